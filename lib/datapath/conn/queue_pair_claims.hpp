// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/bucket_table.hpp"
#include "conn/waiting_hellos.hpp"
#include "ring/ring_set.hpp"
#include "wire/address.hpp"

#include <atomic>
#include <cstdint>

namespace weir::conn {

/// Which queue pair numbers the hellos of each host have claimed for themselves. A claim may be a
/// lie: the switch must not answer in the name of a queue pair that two connections of one source
/// address, live or waiting, call their own (docs/protocol.md §9). Each port is counted by itself:
/// what the switch says leaves by the hello's port, so a lie reaches only who is behind the liar's.
/// All lcores share it. Calls are rare: for hellos, and when the switch speaks.
class QueuePairClaims {
 public:
  /// Of a child: its live connection's, and those of its waiting hellos.
  static constexpr std::uint32_t kPerChild = 1 + WaitingHellos::kPerChild;

  /// The most claims that the children of these rings can make.
  static std::uint32_t most_of(const ring::RingSet& rings);

  /// Room for so many claims. When it is full, further ones are never sole, and not known.
  QueuePairClaims(std::uint32_t claims, const HashKey& hash_key);

  /// The name of a claim that came by this port; never 0.
  std::uint64_t name_of(const wire::IpAddress& source, std::uint32_t qp, std::uint16_t port) const;

  void add(std::uint64_t name);
  void remove(std::uint64_t name);

  /// Whether exactly one connection makes this claim.
  bool is_sole(std::uint64_t name);

  /// Whether one does, or more.
  bool is_claimed(std::uint64_t name);

 private:
  HashKey hash_key_;
  BucketTable<std::uint32_t> claimants_; // by name
  std::atomic_flag is_locked_ = ATOMIC_FLAG_INIT;
};

} // namespace weir::conn
