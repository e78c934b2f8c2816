// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command/answer.hpp"
#include "config/config.hpp"
#include "ring/ring_spec.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::rpc {

struct ListedRing {
  ring::RingSpec spec;
  std::uint16_t connected = 0; // members
  std::uint64_t held = 0;      // frames
  std::uint64_t slots_completed = 0;
  std::uint64_t results = 0;
  std::optional<std::uint64_t> draining_s; // none: it does not drain
};

/// A ring is to be added whose id another one has. what() names both.
class RingExists : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the control service asks of a switch. Any thread may call; what a call throws becomes the
/// status of the client's call.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual command::Answer execute(const command::Words& words) = 0;
  /// Throws for words that change something.
  virtual report::Report ask(const command::Words& words) = 0;
  virtual command::Words completions(std::string_view line) = 0;
  virtual std::vector<ListedRing> rings() = 0;
  virtual void add_ring(const ring::RingSpec& ring) = 0;
  /// A ring that lasts as long as its owner. Fills in what the caller has left to the switch.
  virtual ring::RingBirth hold_ring(ring::RingSpec& ring) = 0;
  /// Withdraws it.
  virtual void remove_ring(std::uint32_t id) = 0;
  /// Withdraws it when its job has ended and its members have been silent for so long.
  virtual void drain_ring(std::uint32_t id, std::chrono::seconds quiet) = 0;
  /// Withdraws a ring whose owner is gone, unless somebody else has done so.
  virtual void remove_orphan(ring::RingBirth birth) = 0;
  virtual bool has_ring(ring::RingBirth birth) = 0;
  /// With the ports of which rings' members have the indices.
  virtual std::shared_ptr<const config::Config> config() = 0;
  /// Throws unless all lcores stop for a question.
  virtual void check_lcores() = 0;
};

} // namespace weir::rpc
