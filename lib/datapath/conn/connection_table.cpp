// SPDX-License-Identifier: BSD-3-Clause
#include "conn/connection_table.hpp"

#include <bit>
#include <cassert>
#include <limits>

namespace weir::conn {

ConnectionTable::ConnectionTable(const Settings& settings)
    : ring_(settings.ring_entries, settings.hash_key),
      strangers_(settings.plain_entries, settings.ports, settings.hash_key),
      aging_(settings.aging) {}

Connection* ConnectionTable::find_ring(const QueuePair& name, std::uint64_t now) {
  return fresh(ring_, key_of(name), now);
}

Connection* ConnectionTable::find_stranger(const QueuePair& name, std::uint16_t port,
                                           std::uint64_t now) {
  return fresh(strangers_.of(port), key_of(name, port), now);
}

Connection* ConnectionTable::fresh(BucketTable<Connection>& table, std::uint64_t key,
                                   std::uint64_t now) {
  Connection* connection = table.find(key);
  if (connection == nullptr || !connection->has_aged(now)) [[likely]] {
    return connection;
  }
  if (connection->hellos != 0) {
    connection->state = ConnectionState::unclassified;
    return connection;
  }
  table.erase(*connection);
  return nullptr;
}

Connection& ConnectionTable::put_stranger(const QueuePair& name, std::uint16_t port,
                                          ConnectionState state, std::uint64_t now) {
  Connection* connection = find_stranger(name, port, now);
  if (connection == nullptr) {
    connection = strangers_.of(port).insert(key_of(name, port), [now](const Connection& old) {
      return std::optional(old.silence(now));
    });
    assert(connection != nullptr); // every stranger may be forgotten
    *connection = {.pair = name.pair, .qp = name.qp, .port = port};
    assert(port < std::numeric_limits<std::uint64_t>::digits);
    strangers_ports_ |= std::uint64_t{1} << port;
  }
  connection->state = state;
  connection->last_seen = now;
  connection->aging = aging_;
  return *connection;
}

void ConnectionTable::forget_strangers(const QueuePair& name) {
  for (std::uint64_t ports = strangers_ports_; ports != 0; ports &= ports - 1) {
    const auto port = static_cast<std::uint16_t>(std::countr_zero(ports));
    if (const Connection* stranger = strangers_.of(port).find(key_of(name, port))) {
      strangers_.of(port).erase(*stranger);
    }
  }
}

Connection* ConnectionTable::take_in(const QueuePair& name, std::uint64_t now) {
  if (Connection* known = find_ring(name, now); known != nullptr) {
    return known;
  }
  Connection* place = ring_.insert(key_of(name), [now](const Connection& old) {
    return old.may_be_forgotten() ? std::optional(old.silence(now)) : std::nullopt;
  });
  if (place != nullptr) {
    *place = {.pair = name.pair, .qp = name.qp, .last_seen = now};
  }
  return place;
}

void ConnectionTable::forget_unused(const Connection& connection) {
  if (connection.state == ConnectionState::unclassified && connection.hellos == 0) {
    ring_.erase(connection);
  }
}

} // namespace weir::conn
