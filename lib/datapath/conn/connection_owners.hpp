// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_table.hpp"
#include "frame/frame.hpp"
#include "wire/keyed_hash.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace weir::conn {

/// Which worker has a connection, where the rings of two neighbours have several workers: only the
/// queue pair tells them apart (docs/protocol.md §4, "Order"). A connection has none before its
/// first incarnation; what belongs to none is the pair's first worker's. A worker that has had a
/// connection keeps it, dead or plain, until a ring of another worker admits it, or its place is
/// wanted. All lcores share a table and read it without a lock. Calls that change it are rare: when
/// an incarnation begins or ends.
class ConnectionOwners {
 public:
  using Worker = std::uint16_t;

  static constexpr std::size_t kMostWorkers = 255;

  /// Room for so many live connections, of all workers.
  ConnectionOwners(std::uint32_t connections, std::size_t workers, const HashKey& hash_key);

  /// Who has the connection that a frame between ring neighbours belongs to, or acknowledges.
  std::optional<Worker> owner_of(const frame::Frame& frame) const;

  /// The worker's ring has admitted the connection. Another worker that has it live learns from
  /// take_moved() that it has moved: before anything can come on it that was sent to the new ring.
  void admit(const QueuePair& name, Worker worker);

  /// The connection is dead, or its queue pair plain. Does nothing if another worker has it.
  void end(const QueuePair& name, Worker worker);

  /// Of a live connection: acknowledgements to this queue pair of its sender's own, which come as
  /// packets of that pair, are for it.
  void claim(const QueuePair& answers, Worker worker);
  void give_up_claim(const QueuePair& answers);

  /// Whether one live connection alone, the worker's, makes this claim.
  bool is_sole_claim(const QueuePair& answers, Worker worker);

  /// Whether take_moved() has something.
  bool has_moved(Worker worker) const {
    return mail_[worker].is_there.load(std::memory_order_acquire);
  }

  /// Calls `leave` with each connection that was this worker's and is another's now. Since it
  /// moved, the worker may have admitted it again.
  template <typename Leave>
  void take_moved(Worker worker, Leave&& leave) {
    std::vector<QueuePair> moved = moved_from(worker);
    for (const QueuePair& name : moved) {
      if (!has(name, worker)) {
        leave(name);
      }
    }
  }

 private:
  // A cell, from the highest bit on: what it names (1 bit: connection or answers, 16: pair, 24:
  // queue pair), whether a live connection is behind it (1), how many claim it (8), and the worker
  // that has it (8). 0: it is free, and ends a search.
  using Cell = std::uint64_t;

  enum class Kind : std::uint8_t { connection, answers };

  struct Mail {
    std::atomic<bool> is_there{false};
    std::vector<QueuePair> moved;
  };

  static constexpr std::size_t kMostProbes = 16;
  static constexpr unsigned kKeyShift = 23;
  static constexpr unsigned kClaimShift = 8;
  static constexpr Cell kWorkerMask = 0xff;
  static constexpr Cell kClaimMask = Cell{0xff} << kClaimShift;
  static constexpr Cell kLive = Cell{1} << 16;

  static Cell key_of(Kind kind, const QueuePair& name) {
    return (Cell{static_cast<std::uint8_t>(kind)} << 40 | Cell{name.pair} << 24 | name.qp)
           << kKeyShift;
  }

  static Cell key_of(Cell cell) { return cell >> kKeyShift << kKeyShift; }

  static std::uint8_t claims_of(Cell cell) {
    return static_cast<std::uint8_t>((cell & kClaimMask) >> kClaimShift);
  }

  bool has(const QueuePair& name, Worker worker) const;
  std::size_t home_of(Cell key) const;
  Cell find(Cell key) const;
  std::atomic<Cell>* place_of(Cell key);
  std::atomic<Cell>* place_for(Cell key);
  std::vector<QueuePair> moved_from(Worker worker);

  HashKey hash_key_;
  std::size_t mask_;
  std::vector<std::atomic<Cell>> cells_; // open addressing, and kMostProbes for the last ones
  std::vector<Mail> mail_;               // by worker
  std::atomic_flag is_locked_ = ATOMIC_FLAG_INIT; // for changes of cells and mail
};

} // namespace weir::conn
