// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Which frames a port's NIC is to put on the receive queue of the lcore that works for their ring
/// (docs/operating.md), and how that follows the rings. No EAL, so that tests can ask.

#include "control/placement.hpp"
#include "ring/ring_set.hpp"
#include "wire/address.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::control {

/// RoCE v2 from one ring neighbour to the other, and the receive queue where it is to arrive.
struct SteeringRule {
  wire::IpAddress source; // both IPv4 or both IPv6
  wire::IpAddress destination;
  std::uint16_t queue = 0;

  auto operator<=>(const SteeringRule&) const = default;
};

/// What a port's rules should be.
struct SteeringPlan {
  std::vector<SteeringRule> rules; // at most one for two addresses
  std::size_t without_queue = 0;   // pairs whose worker polls no receive queue of the port
};

/// For each two neighbours of the rings that are not withdrawn: those that may arrive at the port,
/// in both directions. `port` is its place in the switch.
SteeringPlan plan_steering(const ring::RingSet& rings, const Placement& placement,
                           std::uint16_t port);

/// A rule that the device has taken. It holds while this object lives.
class FlowRule {
 public:
  FlowRule() = default;
  virtual ~FlowRule() = default;
  FlowRule(const FlowRule&) = delete;
  FlowRule& operator=(const FlowRule&) = delete;
};

/// The device does not take a rule. what() is its reason.
class FlowRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A device that may take rules.
class FlowTable {
 public:
  FlowTable() = default;
  virtual ~FlowTable() = default;
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  /// Throws FlowRefused.
  virtual std::unique_ptr<FlowRule> create(const SteeringRule& rule) = 0;
};

/// How many pairs of neighbours a port's rules stand for.
struct SteeringState {
  std::size_t steered = 0;
  std::size_t refused = 0;
  std::size_t without_queue = 0;
  std::string reason; // the device's, of its last refusal; empty: it has refused none
};

/// What is wrong, without numbers: it changes only when there is something new to tell.
std::string kinds_of_trouble(const SteeringState& state);

/// Says in words which pairs are not steered and why; empty when all are. "p0", "net_tap".
std::string why_not_all(const SteeringState& state, std::string_view port, std::string_view driver);

/// The rules of one port. None is tried a second time: a rule that came while its ring works could
/// let a packet overtake another (docs/protocol.md, I7).
class Steering {
 public:
  explicit Steering(std::unique_ptr<FlowTable> table) : table_(std::move(table)) {}

  /// Installs the plan's rules that there are not, before the rings that need them are in force.
  void install(const SteeringPlan& plan);
  /// Removes the rules that the plan has not, when the rings that needed them are withdrawn.
  void keep_only(const SteeringPlan& plan);

  SteeringState state() const;

 private:
  using Pair = std::pair<wire::IpAddress, wire::IpAddress>; // source, destination

  struct Entry {
    std::uint16_t queue = 0;
    std::unique_ptr<FlowRule> rule; // nullptr: refused
  };

  std::unique_ptr<FlowRule> rule_for(const SteeringRule& wanted);

  std::unique_ptr<FlowTable> table_;
  std::map<Pair, Entry> entries_;
  std::size_t without_queue_ = 0;
  std::string reason_;
};

} // namespace weir::control
