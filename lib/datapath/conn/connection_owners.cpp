// SPDX-License-Identifier: BSD-3-Clause
#include "conn/connection_owners.hpp"

#include "conn/spin_lock.hpp"

#include <bit>
#include <cassert>
#include <utility>

namespace weir::conn {
namespace {

constexpr std::uint32_t kCellsPerConnection = 8; // two are used: most searches end at once

} // namespace

ConnectionOwners::ConnectionOwners(std::uint32_t connections, std::size_t workers,
                                   const HashKey& hash_key)
    : hash_key_(hash_key),
      mask_(std::bit_ceil(std::size_t{kCellsPerConnection} * (connections + 1)) - 1),
      cells_(mask_ + kMostProbes), mail_(workers) {
  assert(workers <= kMostWorkers);
}

std::optional<ConnectionOwners::Worker>
ConnectionOwners::owner_of(const frame::Frame& frame) const {
  const wire::Packet& packet = frame.packet;
  if (packet.parsed != wire::Parsed::message && packet.parsed != wire::Parsed::transport) {
    return std::nullopt;
  }
  const bool is_answer = packet.opcode.position == wire::Position::none;
  const Cell cell =
      find(key_of(is_answer ? Kind::answers : Kind::connection, queue_pair_of(frame)));
  return cell == 0 ? std::nullopt : std::optional(static_cast<Worker>(cell & kWorkerMask));
}

bool ConnectionOwners::has(const QueuePair& name, Worker worker) const {
  const Cell cell = find(key_of(Kind::connection, name));
  return cell != 0 && (cell & kWorkerMask) == worker;
}

std::size_t ConnectionOwners::home_of(Cell key) const {
  return wire::keyed_hash(hash_key_, key, key >> 32) & mask_;
}

/// 0: there is none.
ConnectionOwners::Cell ConnectionOwners::find(Cell key) const {
  const std::atomic<Cell>* place = &cells_[home_of(key)];
  for (const std::atomic<Cell>* const end = place + kMostProbes; place != end; ++place) {
    const Cell cell = place->load(std::memory_order_acquire);
    if (cell == 0 || key_of(cell) == key) {
      return cell;
    }
  }
  return 0;
}

/// nullptr: there is none.
std::atomic<ConnectionOwners::Cell>* ConnectionOwners::place_of(Cell key) {
  std::atomic<Cell>* place = &cells_[home_of(key)];
  for (std::atomic<Cell>* const end = place + kMostProbes; place != end; ++place) {
    const Cell cell = place->load(std::memory_order_relaxed);
    if (key_of(cell) == key) {
      return place;
    }
    if (cell == 0) {
      return nullptr;
    }
  }
  return nullptr;
}

/// The key's place, a free one, or that of what is live no more. nullptr: all are taken by what is
/// live. Nobody without the key can choose queue pairs for which that happens.
std::atomic<ConnectionOwners::Cell>* ConnectionOwners::place_for(Cell key) {
  if (std::atomic<Cell>* known = place_of(key)) {
    return known;
  }
  std::atomic<Cell>* past = nullptr;
  std::atomic<Cell>* place = &cells_[home_of(key)];
  for (std::atomic<Cell>* const end = place + kMostProbes; place != end; ++place) {
    const Cell cell = place->load(std::memory_order_relaxed);
    if (cell == 0) {
      return place;
    }
    past = past == nullptr && (cell & kLive) == 0 ? place : past;
  }
  return past;
}

void ConnectionOwners::admit(const QueuePair& name, Worker worker) {
  const SpinLock lock(is_locked_);
  const Cell key = key_of(Kind::connection, name);
  std::atomic<Cell>* place = place_for(key);
  if (place == nullptr) {
    return;
  }
  const Cell before = place->load(std::memory_order_relaxed);
  const auto owner = static_cast<Worker>(before & kWorkerMask);
  if (key_of(before) == key && (before & kLive) != 0 && owner != worker) {
    mail_[owner].moved.push_back(name);
    mail_[owner].is_there.store(true, std::memory_order_release);
  }
  place->store(key | kLive | worker, std::memory_order_release);
}

void ConnectionOwners::end(const QueuePair& name, Worker worker) {
  const SpinLock lock(is_locked_);
  std::atomic<Cell>* place = place_of(key_of(Kind::connection, name));
  const Cell cell = place == nullptr ? 0 : place->load(std::memory_order_relaxed);
  if (cell != 0 && (cell & kWorkerMask) == worker) {
    place->store(cell & ~kLive, std::memory_order_release);
  }
}

void ConnectionOwners::claim(const QueuePair& answers, Worker worker) {
  const SpinLock lock(is_locked_);
  const Cell key = key_of(Kind::answers, answers);
  std::atomic<Cell>* place = place_for(key);
  if (place == nullptr) {
    return;
  }
  const Cell before = place->load(std::memory_order_relaxed);
  const Cell known = key_of(before) == key ? before & kClaimMask : 0;
  if (known == 0) {
    place->store(key | kLive | Cell{1} << kClaimShift | worker, std::memory_order_release);
  } else if (known != kClaimMask) { // so many that one more makes no difference
    place->store(before + (Cell{1} << kClaimShift), std::memory_order_release);
  }
}

void ConnectionOwners::give_up_claim(const QueuePair& answers) {
  const SpinLock lock(is_locked_);
  std::atomic<Cell>* place = place_of(key_of(Kind::answers, answers));
  const Cell cell = place == nullptr ? 0 : place->load(std::memory_order_relaxed);
  if (claims_of(cell) == 0 || (cell & kClaimMask) == kClaimMask) {
    return;
  }
  const Cell left = cell - (Cell{1} << kClaimShift);
  place->store(claims_of(left) == 0 ? left & ~kLive : left, std::memory_order_release);
}

/// The worker that had the first of several claims keeps what comes, until another is the only one
/// left and asks.
bool ConnectionOwners::is_sole_claim(const QueuePair& answers, Worker worker) {
  const SpinLock lock(is_locked_);
  std::atomic<Cell>* place = place_of(key_of(Kind::answers, answers));
  const Cell cell = place == nullptr ? 0 : place->load(std::memory_order_relaxed);
  if (claims_of(cell) != 1) {
    return false;
  }
  if ((cell & kWorkerMask) != worker) {
    place->store((cell & ~kWorkerMask) | worker, std::memory_order_release);
  }
  return true;
}

std::vector<QueuePair> ConnectionOwners::moved_from(Worker worker) {
  const SpinLock lock(is_locked_);
  mail_[worker].is_there.store(false, std::memory_order_relaxed);
  return std::exchange(mail_[worker].moved, {});
}

} // namespace weir::conn
