// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/fork_watch.hpp"
#include "wire/address.hpp"

#include <cstdint>
#include <vector>

namespace weir::host {

struct RingRegister;

/// A rank of one run of a group.
struct RingHolder {
  std::uint32_t nonce = 0; // of the run
  std::uint16_t rank = 0;
};

/// The rings of the switch's configuration that one group of this process has, at one address. A
/// second group's hellos there look like a restart of the first one's job to the switch, which
/// would end it.
class RingClaim {
 public:
  /// Throws Error (mismatch) about the holder's rank if another group of this process has one of
  /// the rings at this address, or another rank of this group. In a child made by fork, its
  /// parent's groups do not count.
  RingClaim(const wire::IpAddress& own, const RingHolder& holder, std::vector<std::uint32_t> rings);

  ~RingClaim() { release(); }

  RingClaim(const RingClaim&) = delete;
  RingClaim& operator=(const RingClaim&) = delete;

  /// Other groups may have the rings from now on. For any thread; never waits for long.
  void release();

 private:
  const Birthplace birthplace_;
  RingRegister& register_;
  const wire::IpAddress own_;
  const std::vector<std::uint32_t> rings_;
  bool is_held_ = true; // guarded by the register's mutex
};

} // namespace weir::host
