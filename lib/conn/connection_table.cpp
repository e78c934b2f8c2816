// SPDX-License-Identifier: BSD-3-Clause
#include "conn/connection_table.hpp"

#include <cassert>

namespace weir::conn {

ConnectionTable::ConnectionTable(const Settings& settings)
    : ring_(settings.ring_entries, settings.hash_key),
      strangers_(settings.plain_entries, settings.hash_key), aging_(settings.aging) {}

Connection* ConnectionTable::find(std::uint16_t pair, std::uint32_t qp, std::uint64_t now) {
  const std::uint64_t key = key_of(pair, qp);
  if (Connection* connection = fresh(ring_, key, now); connection != nullptr) [[likely]] {
    return connection;
  }
  return fresh(strangers_, key, now);
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

Connection& ConnectionTable::add_stranger(std::uint16_t pair, std::uint32_t qp,
                                          ConnectionState state, std::uint64_t now) {
  Connection* connection = strangers_.insert(
      key_of(pair, qp), [now](const Connection& old) { return std::optional(old.silence(now)); });
  assert(connection != nullptr); // every stranger may be forgotten
  *connection = {
      .state = state, .pair = pair, .qp = qp, .last_seen = now, .packets = 0, .aging = aging_};
  return *connection;
}

Connection* ConnectionTable::take_in(std::uint16_t pair, std::uint32_t qp, std::uint64_t now) {
  const std::uint64_t key = key_of(pair, qp);
  if (Connection* known = fresh(ring_, key, now); known != nullptr) {
    return known;
  }
  Connection* place = ring_.insert(key, [now](const Connection& old) {
    return old.may_be_forgotten() ? std::optional(old.silence(now)) : std::nullopt;
  });
  if (place == nullptr) {
    return nullptr;
  }
  *place = {.pair = pair, .qp = qp, .last_seen = now};
  if (const Connection* stranger = fresh(strangers_, key, now); stranger != nullptr) {
    *place = *stranger;
    strangers_.erase(*stranger);
  }
  return place;
}

void ConnectionTable::move_to_its_part(Connection& connection, std::uint64_t now) {
  if (connection.hellos != 0 || !ring_.owns(connection)) {
    return;
  }
  switch (connection.state) {
  case ConnectionState::live:
  case ConnectionState::dead:
    return;
  case ConnectionState::plain:
  case ConnectionState::announced:
  case ConnectionState::foreign:
  case ConnectionState::barred: {
    const Connection known = connection;
    ring_.erase(connection);
    add_stranger(known.pair, known.qp, known.state, now) = known;
    return;
  }
  case ConnectionState::unclassified:
    ring_.erase(connection);
  }
}

} // namespace weir::conn
