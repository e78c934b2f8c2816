// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command/answer.hpp"
#include "config/config.hpp"
#include "control/operator_seen.hpp"
#include "control/principal.hpp"
#include "control/region_seen.hpp"
#include "control/ring_budget.hpp"
#include "control/ring_exists.hpp"
#include "ring/ring_spec.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

/// A ring at one moment.
struct TendedRing {
  std::uint32_t id = 0;
  ring::RingBirth birth = 0; // 0: it is configured
  std::uint64_t silent_ms = 0;
  std::vector<std::uint16_t> waits_for; // ranks, of which the oldest packet has none here
  control::RingRoom room;
};

struct TendedPort {
  std::string name;
  bool is_down = false;
};

/// The switch as its fabric's manager sees it.
struct TendedSwitch {
  std::vector<TendedRing> rings;
  std::vector<TendedPort> ports;
  control::RingRoom room; // of all rings together
};

using control::Principal;
using Packets = std::vector<std::span<const std::byte>>;
using control::RingExists;

/// What the control service asks of a switch. Any thread may call; what a call throws becomes the
/// status of the client's call. Orders are carried out if `principal` may give them, which is asked
/// where they are carried out; those without one are an operator's. So it is with questions.
class Backend {
 public:
  virtual ~Backend() = default;

  command::Answer execute(const command::Words& words) { return execute(words, {}); }

  report::Report ask(const command::Words& words) { return ask(words, {}); }

  command::Words completions(std::string_view line) { return completions(line, {}); }

  void add_ring(const ring::RingSpec& ring) { add_ring(ring, {}); }

  ring::RingBirth hold_ring(ring::RingSpec& ring) { return hold_ring(ring, {}); }

  void remove_ring(std::uint32_t id) { remove_ring(id, {}); }

  void drain_ring(std::uint32_t id, std::chrono::seconds quiet) { drain_ring(id, quiet, {}); }

  virtual command::Answer execute(const command::Words& words, const Principal& principal) = 0;
  /// Throws for words that change something.
  virtual report::Report ask(const command::Words& words, const Principal& principal) = 0;
  virtual command::Words completions(std::string_view line, const Principal& principal) = 0;
  virtual std::vector<ListedRing> rings() = 0;
  virtual void add_ring(const ring::RingSpec& ring, const Principal& principal) = 0;
  /// A ring that lasts as long as its owner. Fills in what the caller has left to the switch.
  virtual ring::RingBirth hold_ring(ring::RingSpec& ring, const Principal& principal) = 0;
  /// Withdraws it.
  virtual void remove_ring(std::uint32_t id, const Principal& principal) = 0;
  /// Withdraws it when its job has ended and its members have been silent for so long.
  virtual void drain_ring(std::uint32_t id, std::chrono::seconds quiet,
                          const Principal& principal) = 0;
  /// Withdraws a ring whose owner is gone, unless somebody else has done so.
  virtual void remove_orphan(ring::RingBirth birth) = 0;
  virtual bool has_ring(ring::RingBirth birth) = 0;

  /// Lcores that work for rings. Configured: none comes or goes while the switch runs.
  virtual std::size_t workers() { return 1; }

  /// These as control::RegionAdmin. A switch without regions refuses.
  virtual control::MadeRegion hold_region(const control::WantedRegion&, const Principal&) {
    throw control::RegionRefused("this service has no regions");
  }

  control::MadeRegion hold_region(const control::WantedRegion& wanted) {
    return hold_region(wanted, {});
  }

  virtual void remove_orphan_region(std::uint32_t) {}

  virtual std::optional<std::string> end_of_region(std::uint32_t) { return std::nullopt; }

  /// With the ports of which rings' members have the indices.
  virtual std::shared_ptr<const config::Config> config() = 0;
  /// Throws unless all lcores stop for a question.
  virtual void check_lcores() = 0;

  /// These four as control::OperatorAdmin. A switch without operators refuses.
  control::OperatorSeen load_operator(std::string_view text) { return load_operator(text, {}, {}); }

  /// Of a ring with this id, with which it goes.
  control::OperatorSeen load_operator(std::string_view text, std::uint32_t ring) {
    return load_operator(text, {}, ring);
  }

  std::vector<control::OperatorSeen> operators() { return operators(Principal()); }

  void unload_operator(const program::Digest& digest) { unload_operator(digest, {}); }

  std::vector<std::byte> test_operator(const program::Digest& digest, const Packets& inputs) {
    return test_operator(digest, inputs, {});
  }

  virtual control::OperatorSeen load_operator(std::string_view, const Principal&,
                                              std::optional<std::uint32_t>) {
    throw control::OperatorError("this service has no operators");
  }

  virtual std::vector<control::OperatorSeen> operators(const Principal&) { return {}; }

  virtual void unload_operator(const program::Digest&, const Principal&) {
    throw control::NoSuchOperator("this service has no operators");
  }

  virtual std::vector<std::byte> test_operator(const program::Digest&, const Packets&,
                                               const Principal&) {
    throw control::NoSuchOperator("this service has no operators");
  }

  /// Throws lcore::LcoreError.
  virtual TendedSwitch tended() { return {}; }
};

} // namespace weir::rpc
