// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/steering.hpp"

#include <rte_flow.h>

#include <array>
#include <cstdint>

namespace weir::control {

/// A rule as rte_flow has it (DPDK, "Flow API"): Ethernet without or with any tag as the driver
/// sees it, IPv4 or IPv6 with both addresses, UDP to RoCE v2's port; to a queue.
class FlowPattern {
 public:
  explicit FlowPattern(const SteeringRule& rule);
  FlowPattern(const FlowPattern&) = delete; // its items point into it
  FlowPattern& operator=(const FlowPattern&) = delete;

  const rte_flow_item* items() const { return items_.data(); }

  const rte_flow_action* actions() const { return actions_.data(); }

 private:
  void set_addresses(const SteeringRule& rule);

  rte_flow_item_ipv4 ipv4_{};
  rte_flow_item_ipv4 ipv4_mask_{};
  rte_flow_item_ipv6 ipv6_{};
  rte_flow_item_ipv6 ipv6_mask_{};
  rte_flow_item_udp udp_{};
  rte_flow_item_udp udp_mask_{};
  rte_flow_action_queue queue_{};
  std::array<rte_flow_item, 4> items_{};
  std::array<rte_flow_action, 2> actions_{};
};

/// A started DPDK device, by its number.
class RteFlowTable : public FlowTable {
 public:
  explicit RteFlowTable(std::uint16_t device) : device_(device) {}

  std::unique_ptr<FlowRule> create(const SteeringRule& rule) override;

 private:
  std::uint16_t device_;
};

} // namespace weir::control
