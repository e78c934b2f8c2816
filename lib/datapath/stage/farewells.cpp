// SPDX-License-Identifier: BSD-3-Clause
#include "stage/farewells.hpp"

#include <optional>

namespace weir::stage {
namespace {

std::uint64_t key_of(const conn::QueuePair& name) {
  return std::uint64_t{name.pair} << 24 | name.qp;
}

/// The entry of a name. A new one may take the place of the one whose run ended first.
template <typename Entry>
Entry& entry_for(conn::BucketTable<Entry>& table, const conn::QueuePair& name) {
  if (Entry* known = table.find(key_of(name))) {
    return *known;
  }
  return *table.insert(key_of(name),
                       [](const Entry& old) { return std::optional(UINT64_MAX - old.since_ns); });
}

} // namespace

Farewells::Farewells(std::uint32_t senders, const conn::HashKey& hash_key)
    : farewells_(kRunsPerSender * senders, hash_key), names_(kRunsPerSender * senders, hash_key) {}

void Farewells::put(const Farewell& farewell) {
  entry_for(farewells_, farewell.connection) = farewell;
  entry_for(names_, farewell.acknowledgements) = {farewell.connection, farewell.since_ns};
}

void Farewells::forget(const conn::QueuePair& connection) {
  const Farewell* farewell = find(connection);
  if (farewell == nullptr) {
    return;
  }
  const Name* name = names_.find(key_of(farewell->acknowledgements));
  if (name != nullptr && name->connection == connection) {
    names_.erase(*name);
  }
  farewells_.erase(*farewell);
}

Farewell* Farewells::find(const conn::QueuePair& connection) {
  return farewells_.find(key_of(connection));
}

Farewell* Farewells::find_acknowledged(const conn::QueuePair& acknowledgements) {
  const Name* name = names_.find(key_of(acknowledgements));
  Farewell* farewell = name == nullptr ? nullptr : find(name->connection);
  const bool is_meant = farewell != nullptr && farewell->acknowledgements == acknowledgements;
  return is_meant ? farewell : nullptr;
}

} // namespace weir::stage
