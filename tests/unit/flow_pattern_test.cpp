// SPDX-License-Identifier: BSD-3-Clause

/// A steering rule in rte_flow's words: which items, and which bytes of them count.

#include "control/rte_flow_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <gmock/gmock.h>
#include <span>
#include <vector>

namespace weir::control::flow_pattern_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;

std::vector<rte_flow_item_type> types_of(const FlowPattern& pattern) {
  std::vector<rte_flow_item_type> types;
  for (const rte_flow_item* item = pattern.items(); item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
    types.push_back(item->type);
  }
  return types;
}

/// Of an item's header as it is on the wire, or of its mask.
std::vector<std::uint8_t> bytes_of(const void* header, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(header);
  return {bytes, bytes + size};
}

/// RFC 768: the destination port is in bytes 2 and 3.
void expect_roce_port(const rte_flow_item& udp) {
  EXPECT_THAT(bytes_of(udp.spec, 8), ElementsAre(0, 0, 0x12, 0xb7, 0, 0, 0, 0)); // 4791
  EXPECT_THAT(bytes_of(udp.mask, 8), ElementsAre(0, 0, 0xff, 0xff, 0, 0, 0, 0));
}

void expect_queue(const FlowPattern& pattern, std::uint16_t queue) {
  ASSERT_EQ(pattern.actions()[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
  EXPECT_EQ(static_cast<const rte_flow_action_queue*>(pattern.actions()[0].conf)->index, queue);
  EXPECT_EQ(pattern.actions()[1].type, RTE_FLOW_ACTION_TYPE_END);
}

/// RFC 791: the addresses are in bytes 12 to 19.
TEST(FlowPattern, OfIpv4) {
  const FlowPattern pattern({*wire::parse_ip("10.1.2.3"), *wire::parse_ip("192.168.0.9"), 5});
  ASSERT_THAT(types_of(pattern),
              ElementsAre(RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_UDP));
  EXPECT_EQ(pattern.items()[0].spec, nullptr) << "any MAC address";
  EXPECT_THAT(bytes_of(pattern.items()[1].spec, 20),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 1, 2, 3, 192, 168, 0, 9));
  EXPECT_THAT(bytes_of(pattern.items()[1].mask, 20),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                          0xff, 0xff));
  expect_roce_port(pattern.items()[2]);
  expect_queue(pattern, 5);
}

/// RFC 8200: the addresses are in bytes 8 to 39.
TEST(FlowPattern, OfIpv6) {
  const FlowPattern pattern({*wire::parse_ip("2001:db8::1"), *wire::parse_ip("2001:db8::2"), 0});
  ASSERT_THAT(types_of(pattern),
              ElementsAre(RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_IPV6, RTE_FLOW_ITEM_TYPE_UDP));
  const std::vector<std::uint8_t> header = bytes_of(pattern.items()[1].spec, 40);
  const std::vector<std::uint8_t> mask = bytes_of(pattern.items()[1].mask, 40);
  EXPECT_THAT(std::span(header).first(8), Each(0));
  EXPECT_THAT(std::span(header).subspan(8),
              ElementsAreArray({0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
                                0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_THAT(std::span(mask).first(8), Each(0));
  EXPECT_THAT(std::span(mask).subspan(8), Each(0xff));
  expect_roce_port(pattern.items()[2]);
  expect_queue(pattern, 0);
}

} // namespace
} // namespace weir::control::flow_pattern_test
