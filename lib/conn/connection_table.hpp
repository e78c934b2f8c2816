// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::conn {

/// What the switch knows of a queue pair between ring neighbours (docs/protocol.md §3).
enum class ConnectionState : std::uint8_t {
  plain, // last seen starting a message that is somebody else's
  ring,  // admitted by a hello
  dead,  // was admitted, but its ring was reset, flushed or admitted the rank anew
};

struct Connection {
  ConnectionState state = ConnectionState::plain;
  std::uint16_t pair = 0; // RingDirectory's number of <source, destination>
  std::uint32_t qp = 0;   // destination QP
  std::uint16_t ring = 0; // for ring and dead: who admitted it
  std::uint16_t rank = 0;
  std::uint32_t epoch = 0;
  std::uint64_t last_seen = 0; // milliseconds
  std::uint64_t packets = 0;   // message packets seen

  void count_packet(std::uint64_t now) {
    last_seen = now;
    ++packets;
  }
};

/// <source IP, destination IP, destination QP> to Connection, with a fixed number of entries. The
/// address pair is handed in as RingDirectory's number, which makes the key 40 bits. One lcore owns
/// a table.
class ConnectionTable {
 public:
  /// Cells, of which at least two belong to each entry of the capacity, that one insertion into a
  /// full table searches at most: bounds the time that a single packet can take.
  static constexpr std::size_t kSearchCells = 1024;

  /// Room for `capacity` connections. A plain or dead one is forgotten when it has been idle for
  /// `aging` milliseconds, or earlier, longest idle first, when another needs its place: its next
  /// FIRST or ONLY classifies it again.
  ConnectionTable(std::uint32_t capacity, std::uint64_t aging);

  /// Bytes that a table of this capacity takes.
  static std::size_t bytes_for(std::uint32_t capacity);

  /// nullptr when there is none, or only one that has aged.
  Connection* find(std::uint16_t pair, std::uint32_t qp, std::uint64_t now);

  /// The existing connection or a new plain one; nullptr when the table is full and the next
  /// kSearchCells hold nothing that may be forgotten. The call after that searches the next ones.
  Connection* find_or_insert(std::uint16_t pair, std::uint32_t qp, std::uint64_t now);

  std::uint32_t size() const {
    return static_cast<std::uint32_t>(connections_.size() - free_.size());
  }

  template <typename Visitor>
  void for_each(Visitor&& visit) const {
    for (const std::uint32_t index : cells_) {
      if (index != kEmpty) {
        visit(connections_[index]);
      }
    }
  }

 private:
  static constexpr std::uint32_t kEmpty = UINT32_MAX;

  std::size_t find_cell(std::uint16_t pair, std::uint32_t qp) const;
  std::size_t home_of(std::uint16_t pair, std::uint32_t qp) const;
  bool has_aged(const Connection& connection, std::uint64_t now) const;
  bool forget_one(std::uint64_t now);
  void erase(std::size_t cell);

  std::vector<Connection> connections_;
  std::vector<std::uint32_t> free_;  // unused indices of connections_
  std::vector<std::uint32_t> cells_; // open addressing, linear probing, at most half full
  std::size_t sweep_ = 0;            // where forget_one goes on
  std::uint64_t aging_;
};

} // namespace weir::conn
