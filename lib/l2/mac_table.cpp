// SPDX-License-Identifier: BSD-3-Clause
#include "l2/mac_table.hpp"

#include "wire/big_endian.hpp"

#include <bit>
#include <cstring>

namespace weir::l2 {
namespace {

std::size_t bucket_count(std::uint32_t entries, std::size_t ways) {
  return std::bit_ceil((entries + ways - 1) / ways);
}

} // namespace

std::uint64_t to_number(const wire::MacAddress& mac) {
  wire::BigEndian<std::uint64_t, 6> number;
  std::memcpy(&number, mac.bytes.data(), sizeof number);
  return number.get();
}

wire::MacAddress from_number(std::uint64_t number) {
  wire::MacAddress mac;
  for (std::size_t i = mac.bytes.size(); i-- > 0; number >>= 8) {
    mac.bytes[i] = static_cast<std::uint8_t>(number);
  }
  return mac;
}

MacTable::MacTable(std::uint32_t entries, std::uint64_t aging)
    : buckets_(bucket_count(entries, kWays)), table_(std::make_unique<Bucket[]>(buckets_)),
      aging_(aging) {}

std::size_t MacTable::bytes_for(std::uint32_t entries) {
  return bucket_count(entries, kWays) * sizeof(Bucket);
}

void MacTable::learn(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  Bucket& bucket = bucket_of(address);
  Cell* cell = find(bucket, address);
  if (cell == nullptr) {
    return add(bucket, Station::at(address, port), now);
  }
  const Station known = read(*cell);
  if (known.port() != port) { // the station moved, or somebody pretends to be it
    if (known.pins() != 0 || !replace(*cell, known, Station::at(address, port))) {
      return;
    }
  }
  if (cell->heard.load(std::memory_order_relaxed) != now) { // keep the line clean while it is fresh
    cell->heard.store(now, std::memory_order_relaxed);
  }
}

std::optional<std::uint16_t> MacTable::port_of(const wire::MacAddress& station,
                                               std::uint64_t now) const {
  const Cell* cell = find(bucket_of(to_number(station)), to_number(station));
  return cell != nullptr && is_fresh(*cell, now) ? std::optional(read(*cell).port()) : std::nullopt;
}

bool MacTable::pin(const wire::MacAddress& station, std::uint16_t port) {
  const std::uint64_t address = to_number(station);
  Bucket& bucket = bucket_of(address);
  while (true) {
    Cell* cell = find(bucket, address);
    cell = cell != nullptr ? cell : cell_to_reuse(bucket, 0);
    if (cell == nullptr) {
      return false;
    }
    const Station known = read(*cell);
    const bool is_pinned = known.is(address) && known.pins() != 0;
    if (is_pinned && (known.port() != port || known.pins() == kMostPins)) {
      return false;
    }
    const std::uint64_t pins = is_pinned ? known.pins() + 1 : 1;
    if (replace(*cell, known, Station::at(address, port, pins))) {
      forget_others(bucket, *cell, address);
      return true;
    }
  }
}

void MacTable::unpin(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  Cell* cell = find(bucket_of(address), address);
  if (cell == nullptr) {
    return;
  }
  cell->heard.store(now, std::memory_order_relaxed);
  for (Station known = read(*cell); known.is(address) && known.port() == port && known.pins() != 0;
       known = read(*cell)) {
    if (replace(*cell, known, Station::at(address, port, known.pins() - 1))) {
      return;
    }
  }
}

MacTable::Cell* MacTable::find(Bucket& bucket, std::uint64_t address) {
  for (Cell& cell : bucket) {
    if (read(cell).is(address)) {
      return &cell;
    }
  }
  return nullptr;
}

/// A station that another lcore pins at this moment must not stay in a second cell: whoever writes
/// last sees the other.
void MacTable::add(Bucket& bucket, Station station, std::uint64_t now) {
  Cell* cell = cell_to_reuse(bucket, now);
  if (cell == nullptr) {
    return;
  }
  const Station known = read(*cell);
  cell->heard.store(now, std::memory_order_relaxed);
  if (known.pins() == 0 && replace(*cell, known, station) &&
      is_pinned_beside(bucket, *cell, station.address())) {
    replace(*cell, station, {});
  }
}

bool MacTable::is_pinned_beside(Bucket& bucket, const Cell& own, std::uint64_t address) {
  for (Cell& cell : bucket) {
    const Station known{cell.station.load()};
    if (&cell != &own && known.is(address) && known.pins() != 0) {
      return true;
    }
  }
  return false;
}

void MacTable::forget_others(Bucket& bucket, const Cell& pinned, std::uint64_t address) {
  for (Cell& cell : bucket) {
    const Station known{cell.station.load()};
    if (&cell != &pinned && known.is(address) && known.pins() == 0) {
      replace(cell, known, {});
    }
  }
}

MacTable::Bucket& MacTable::bucket_of(std::uint64_t address) const {
  const std::uint64_t hash = address * 0x9e3779b97f4a7c15;
  return table_[(hash ^ hash >> 32) & (buckets_ - 1)];
}

bool MacTable::is_fresh(const Cell& cell, std::uint64_t now) const {
  // Another lcore's clock reading may be a little ahead of `now`.
  return static_cast<std::int64_t>(now - cell.heard.load(std::memory_order_relaxed)) <=
             static_cast<std::int64_t>(aging_) ||
         read(cell).pins() != 0;
}

/// An empty or aged cell, else the longest silent one; nullptr when all are pinned.
MacTable::Cell* MacTable::cell_to_reuse(Bucket& bucket, std::uint64_t now) const {
  Cell* oldest = nullptr;
  for (Cell& cell : bucket) {
    const Station known = read(cell);
    if (known.is_nobody() || !is_fresh(cell, now)) {
      return &cell;
    }
    const bool is_older = oldest == nullptr || cell.heard.load(std::memory_order_relaxed) <
                                                   oldest->heard.load(std::memory_order_relaxed);
    if (known.pins() == 0 && is_older) {
      oldest = &cell;
    }
  }
  return oldest;
}

} // namespace weir::l2
