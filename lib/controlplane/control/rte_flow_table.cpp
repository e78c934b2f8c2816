// SPDX-License-Identifier: BSD-3-Clause
#include "control/rte_flow_table.hpp"

#include "wire/headers.hpp"

#include <rte_byteorder.h>
#include <rte_errno.h>

#include <algorithm>
#include <cstring>

namespace weir::control {
namespace {

constexpr std::size_t kV4At = 12; // in an IPv4-mapped address

class RteFlowRule : public FlowRule {
 public:
  RteFlowRule(std::uint16_t device, const FlowPattern& pattern) : device_(device) {
    rte_flow_attr attributes{};
    attributes.ingress = 1;
    rte_flow_error error{};
    flow_ = rte_flow_create(device_, &attributes, pattern.items(), pattern.actions(), &error);
    if (flow_ == nullptr) {
      throw FlowRefused(error.message != nullptr ? error.message : rte_strerror(rte_errno));
    }
  }

  /// A rule that the device does not let go of changes only where frames arrive.
  ~RteFlowRule() override {
    rte_flow_error error{};
    rte_flow_destroy(device_, flow_, &error);
  }

 private:
  std::uint16_t device_;
  rte_flow* flow_ = nullptr;
};

} // namespace

FlowPattern::FlowPattern(const SteeringRule& rule) {
  set_addresses(rule);
  udp_.hdr.dst_port = rte_cpu_to_be_16(wire::kRocePort);
  udp_mask_.hdr.dst_port = 0xffff;
  queue_.index = rule.queue;
  items_[0] = {.type = RTE_FLOW_ITEM_TYPE_ETH, .spec = nullptr, .last = nullptr, .mask = nullptr};
  items_[2] = {.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp_, .last = nullptr, .mask = &udp_mask_};
  items_[3] = {.type = RTE_FLOW_ITEM_TYPE_END, .spec = nullptr, .last = nullptr, .mask = nullptr};
  actions_[0] = {.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue_};
  actions_[1] = {.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr};
}

void FlowPattern::set_addresses(const SteeringRule& rule) {
  if (rule.source.is_v4()) {
    std::memcpy(&ipv4_.hdr.src_addr, rule.source.bytes.data() + kV4At, 4);
    std::memcpy(&ipv4_.hdr.dst_addr, rule.destination.bytes.data() + kV4At, 4);
    ipv4_mask_.hdr.src_addr = ipv4_mask_.hdr.dst_addr = 0xffffffff;
    items_[1] = {
        .type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ipv4_, .last = nullptr, .mask = &ipv4_mask_};
  } else {
    std::ranges::copy(rule.source.bytes, ipv6_.hdr.src_addr);
    std::ranges::copy(rule.destination.bytes, ipv6_.hdr.dst_addr);
    std::ranges::fill(ipv6_mask_.hdr.src_addr, 0xff);
    std::ranges::fill(ipv6_mask_.hdr.dst_addr, 0xff);
    items_[1] = {
        .type = RTE_FLOW_ITEM_TYPE_IPV6, .spec = &ipv6_, .last = nullptr, .mask = &ipv6_mask_};
  }
}

std::unique_ptr<FlowRule> RteFlowTable::create(const SteeringRule& rule) {
  return std::make_unique<RteFlowRule>(device_, FlowPattern(rule));
}

} // namespace weir::control
