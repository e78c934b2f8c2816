// SPDX-License-Identifier: BSD-3-Clause
#include "stage/farewells.hpp"

#include <optional>

namespace weir::stage {
namespace {

std::uint64_t key_of(const conn::QueuePair& name) {
  return std::uint64_t{name.pair} << 24 | name.qp;
}

} // namespace

Farewells::Farewells(std::uint32_t senders, const conn::HashKey& hash_key)
    : farewells_(senders, hash_key) {}

void Farewells::put(const Farewell& farewell) {
  Farewell* entry = find(farewell.connection);
  if (entry == nullptr) {
    entry = farewells_.insert(key_of(farewell.connection), [](const Farewell& old) {
      return std::optional(UINT64_MAX - old.since_ns);
    });
  }
  *entry = farewell;
}

void Farewells::forget(const conn::QueuePair& connection) {
  if (const Farewell* farewell = find(connection)) {
    farewells_.erase(*farewell);
  }
}

Farewell* Farewells::find(const conn::QueuePair& connection) {
  return farewells_.find(key_of(connection));
}

} // namespace weir::stage
