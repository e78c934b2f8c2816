// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/bucket_table.hpp"
#include "conn/port_tables.hpp"
#include "frame/frame.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir::conn {

/// What the switch knows about a queue pair between ring neighbours (docs/protocol.md §3).
enum class ConnectionState : std::uint8_t {
  unclassified, // nothing yet; hellos wait on it
  plain,        // the last message that started had no magic
  announced,    // sent a hello of a ring that is not on this switch
  foreign,      // belongs to a ring of another switch
  barred,       // sent an INA header of a ring that no switch has confirmed
  live,         // admitted to its ring's incarnation
  dead,         // was live; its incarnation has ended
};

/// By the queue pair's packets that one port brings, or, of a ring's, by all.
struct Connection {
  ConnectionState state = ConnectionState::unclassified;
  std::uint8_t ack_timeout = 0; // exponent, as its hello told; 0: untold
  std::uint16_t pair = 0;       // ring::RingSet's number of <source, destination>
  std::uint32_t qp = 0;         // destination QP
  std::uint16_t ring = 0;       // of live and dead ones
  std::uint16_t child = 0;      // likewise
  std::uint16_t port = 0;       // where its packets come in; of live and dead ones, its hello's
  std::uint16_t hellos = 0;     // that wait on it
  std::uint64_t last_seen = 0;  // milliseconds
  std::uint64_t packets = 0;    // requests seen
  std::uint64_t aging = 0;      // milliseconds of silence after which it is forgotten

  void count_packet(std::uint64_t now) {
    last_seen = now;
    ++packets;
  }

  /// All that a packet does not change by coming. Two words, to be compared at once.
  std::array<std::uint64_t, 2> identity() const {
    std::array<std::uint64_t, 2> words;
    static_assert(offsetof(Connection, last_seen) == sizeof words);
    std::memcpy(words.data(), this, sizeof words);
    return words;
  }

  /// Whether identity() returns these words. It is not called: what it returns would be stored as
  /// one vector and loaded as two words.
  bool has_identity(const std::array<std::uint64_t, 2>& words) const {
    return std::memcmp(this, words.data(), sizeof words) == 0;
  }

  std::uint64_t silence(std::uint64_t now) const { return now - last_seen; }

  bool may_be_forgotten() const { return state != ConnectionState::live && hellos == 0; }

  /// Live connections do not age. Where hellos wait, only the state ages.
  bool has_aged(std::uint64_t now) const {
    return state != ConnectionState::live && silence(now) > aging;
  }
};

/// A queue pair as its packets name it. The address pair is ring::RingSet's number.
struct QueuePair {
  std::uint16_t pair = 0;
  std::uint32_t qp = 0; // destination QP

  bool operator==(const QueuePair&) const = default;
};

/// That the packet goes to.
inline QueuePair queue_pair_of(const frame::Frame& frame) {
  return {frame.pair, frame.packet.destination_qp};
}

/// <source IP, destination IP, destination QP> to Connection. A ring has one connection with a
/// queue pair. Of all others each port has its own, since anybody can forge a queue pair's headers,
/// but nobody can send by another's port (docs/protocol.md §3, "Each port by itself"). Connections
/// of rings have places of their own, which no plain traffic takes; so have each port's others. One
/// lcore owns a table.
class ConnectionTable {
 public:
  struct Settings {
    std::uint32_t ring_entries = 0;  // live, dead, and those with waiting hellos
    std::uint32_t plain_entries = 0; // of strangers: all others, of all ports together
    std::uint16_t ports = 0;
    std::uint64_t aging = 600'000; // milliseconds, of strangers
    HashKey hash_key;
  };

  explicit ConnectionTable(const Settings& settings);

  /// A ring's connection, or one on which hellos wait. nullptr when there is none or it has aged.
  /// An aged one on which hellos wait is returned as unclassified.
  Connection* find_ring(const QueuePair& name, std::uint64_t now);

  /// What the packets of this port have shown of a queue pair. nullptr when there is nothing or it
  /// has aged.
  Connection* find_stranger(const QueuePair& name, std::uint16_t port, std::uint64_t now);

  /// Adds a queue pair that the table does not know by this port, or gives it another state. When
  /// the port's places are full, the one that was silent longest is forgotten; its next FIRST or
  /// ONLY classifies it again.
  Connection& put_stranger(const QueuePair& name, std::uint16_t port, ConnectionState state,
                           std::uint64_t now);

  /// By all ports. What a queue pair was before a ring used it counts no more afterwards.
  void forget_strangers(const QueuePair& name);

  /// Adds the connection to the rings' places, if it is not there. When these are full, the dead
  /// one that was silent longest is forgotten. nullptr when there is no dead one.
  Connection* take_in(const QueuePair& name, std::uint64_t now);

  /// Forgets a connection of which nothing is known and on which no hello waits. Call it when the
  /// last hello on a connection is gone, or a ring has left it for good.
  void forget_unused(const Connection& connection);

  /// For strangers added from now on.
  void set_aging(std::uint64_t milliseconds) { aging_ = milliseconds; }

  std::uint32_t size() const { return ring_.size() + strangers_.size(); }

  /// Fixed number of places for connections.
  std::size_t places() const { return ring_.places() + strangers_.places(); }

  template <typename Visitor>
  void for_each(PlaceRange range, Visitor&& visit) const {
    const std::size_t of_rings = ring_.places();
    const std::size_t end = range.first + range.count;
    if (range.first < of_rings) {
      ring_.for_each(range, visit);
    }
    if (end > of_rings) {
      const std::size_t first = std::max(range.first, of_rings);
      strangers_.for_each({first - of_rings, end - first}, visit);
    }
  }

 private:
  static std::uint64_t key_of(const QueuePair& name, std::uint16_t port = 0) {
    return std::uint64_t{port} << 40 | std::uint64_t{name.pair} << 24 | name.qp;
  }

  Connection* fresh(BucketTable<Connection>& table, std::uint64_t key, std::uint64_t now);

  BucketTable<Connection> ring_;
  PortTables<Connection> strangers_;
  std::uint64_t strangers_ports_ = 0; // a set: all that any stranger has come by
  std::uint64_t aging_;
};

} // namespace weir::conn
