// SPDX-License-Identifier: BSD-3-Clause
#include "conn/connection_table.hpp"

#include <algorithm>
#include <bit>

namespace weir::conn {
namespace {

// Cells that an insertion into a full table looks at for the longest idle entry there.
constexpr std::size_t kSweepCells = 64;

} // namespace

ConnectionTable::ConnectionTable(std::uint32_t capacity, std::uint64_t aging)
    : connections_(capacity), cells_(std::bit_ceil(2 * std::size_t{capacity} + 2), kEmpty),
      aging_(aging) {
  free_.reserve(capacity);
  for (std::uint32_t index = capacity; index-- > 0;) {
    free_.push_back(index);
  }
}

std::size_t ConnectionTable::bytes_for(std::uint32_t capacity) {
  return capacity * (sizeof(Connection) + sizeof(std::uint32_t)) +
         std::bit_ceil(2 * std::size_t{capacity} + 2) * sizeof(std::uint32_t);
}

Connection* ConnectionTable::find(std::uint16_t pair, std::uint32_t qp, std::uint64_t now) {
  const std::size_t cell = find_cell(pair, qp);
  if (cells_[cell] == kEmpty) {
    return nullptr;
  }
  Connection& connection = connections_[cells_[cell]];
  if (has_aged(connection, now)) {
    erase(cell);
    return nullptr;
  }
  return &connection;
}

Connection* ConnectionTable::find_or_insert(std::uint16_t pair, std::uint32_t qp,
                                            std::uint64_t now) {
  if (Connection* connection = find(pair, qp, now); connection != nullptr) {
    return connection;
  }
  if (free_.empty() && !forget_one(now)) {
    return nullptr;
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  cells_[find_cell(pair, qp)] = index;
  connections_[index] = {.pair = pair, .qp = qp, .last_seen = now};
  return &connections_[index];
}

std::size_t ConnectionTable::home_of(std::uint16_t pair, std::uint32_t qp) const {
  const std::uint64_t key = std::uint64_t{pair} << 24 | qp;
  const std::uint64_t hash = key * 0x9e3779b97f4a7c15;
  return (hash ^ (hash >> 32)) & (cells_.size() - 1);
}

std::size_t ConnectionTable::find_cell(std::uint16_t pair, std::uint32_t qp) const {
  std::size_t cell = home_of(pair, qp);
  while (cells_[cell] != kEmpty) {
    const Connection& connection = connections_[cells_[cell]];
    if (connection.pair == pair && connection.qp == qp) {
      break;
    }
    cell = (cell + 1) & (cells_.size() - 1);
  }
  return cell;
}

bool ConnectionTable::has_aged(const Connection& connection, std::uint64_t now) const {
  return connection.state != ConnectionState::ring && now - connection.last_seen > aging_;
}

/// Frees an aged entry near the sweep, or else the longest idle one there that no ring needs.
bool ConnectionTable::forget_one(std::uint64_t now) {
  const std::size_t reach = std::min(cells_.size(), kSearchCells);
  std::optional<std::size_t> oldest;
  for (std::size_t i = 0; i < reach && (i < kSweepCells || !oldest); ++i) {
    sweep_ = (sweep_ + 1) & (cells_.size() - 1);
    if (cells_[sweep_] == kEmpty) {
      continue;
    }
    const Connection& connection = connections_[cells_[sweep_]];
    if (connection.state == ConnectionState::ring) {
      continue;
    }
    if (!oldest || connection.last_seen < connections_[cells_[*oldest]].last_seen) {
      oldest = sweep_;
    }
    if (has_aged(connection, now)) {
      break;
    }
  }
  if (!oldest) {
    return false;
  }
  erase(*oldest);
  return true;
}

/// Linear probing without tombstones: what follows in the same run moves up where its home allows.
void ConnectionTable::erase(std::size_t cell) {
  const std::size_t mask = cells_.size() - 1;
  free_.push_back(cells_[cell]);
  cells_[cell] = kEmpty;
  for (std::size_t next = (cell + 1) & mask; cells_[next] != kEmpty; next = (next + 1) & mask) {
    const Connection& moving = connections_[cells_[next]];
    const std::size_t home = home_of(moving.pair, moving.qp);
    const bool may_move = ((next - home) & mask) >= ((next - cell) & mask);
    if (may_move) {
      cells_[cell] = cells_[next];
      cells_[next] = kEmpty;
      cell = next;
    }
  }
}

} // namespace weir::conn
