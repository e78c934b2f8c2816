// SPDX-License-Identifier: BSD-3-Clause
#include "conn/queue_pair_claims.hpp"

#include "conn/spin_lock.hpp"

#include <cassert>
#include <optional>

namespace weir::conn {

QueuePairClaims::QueuePairClaims(std::uint32_t claims, const HashKey& hash_key)
    : hash_key_(hash_key), claimants_(decltype(claimants_)::kRoomy * claims, hash_key) {}

std::uint32_t QueuePairClaims::most_of(const ring::RingSet& rings) {
  std::uint32_t claims = 0;
  for (const ring::Ring& ring : rings.rings()) {
    claims += kPerChild * ring.senders();
  }
  return claims;
}

std::uint64_t QueuePairClaims::name_of(const wire::IpAddress& source, std::uint32_t qp,
                                       std::uint16_t port) const {
  const auto [high, low] = source.words();
  const std::uint64_t queue_pair = std::uint64_t{port} << 24 | qp;
  const std::uint64_t name = keyed_hash(hash_key_, keyed_hash(hash_key_, high, low), queue_pair);
  return name == 0 || name == UINT64_MAX ? 1 : name;
}

void QueuePairClaims::add(std::uint64_t name) {
  const SpinLock lock(is_locked_);
  std::uint32_t* claimants = claimants_.find(name);
  if (claimants == nullptr) {
    claimants = claimants_.insert(name);
  }
  if (claimants != nullptr) {
    ++*claimants;
  }
}

void QueuePairClaims::remove(std::uint64_t name) {
  const SpinLock lock(is_locked_);
  std::uint32_t* claimants = claimants_.find(name);
  assert(claimants == nullptr || *claimants != 0);
  if (claimants != nullptr && --*claimants == 0) {
    claimants_.erase(*claimants);
  }
}

bool QueuePairClaims::is_sole(std::uint64_t name) {
  const SpinLock lock(is_locked_);
  const std::uint32_t* claimants = claimants_.find(name);
  return claimants != nullptr && *claimants == 1;
}

bool QueuePairClaims::is_claimed(std::uint64_t name) {
  const SpinLock lock(is_locked_);
  return claimants_.find(name) != nullptr;
}

} // namespace weir::conn
