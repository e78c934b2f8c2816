// SPDX-License-Identifier: BSD-3-Clause

/// What a caller of HoldRegion says, as the switch understands it (proto/weir/v1/switch.proto).

#include "rpc/messages.hpp"
#include "rpc/region_messages.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace weir::rpc::region_messages_test {
namespace {

using testing::ThrowsMessage;

const config::Config& config() {
  static const config::Config config =
      config::parse_config("ports: [{ name: p0, device: a }, { name: p1, device: b }]\n", "f");
  return config;
}

v1::Region two_members() {
  v1::Region message;
  message.set_bytes(4096);
  for (const char* const ip : {"10.0.0.1", "10.0.0.2"}) {
    v1::RegionMember& member = *message.add_members();
    member.set_ip(ip);
    member.set_queue_pair(17);
  }
  return message;
}

/// The message has a mistake, of which the sentence tells.
void expect_refused(const v1::Region& message, const char* sentence) {
  EXPECT_THAT([&] { region_of(message, config()); }, ThrowsMessage<WrongMessage>(sentence));
}

TEST(RegionMessages, StandForTheirDefaults) {
  const region::RegionSpec spec = region_of(two_members(), config()).spec;
  EXPECT_EQ(spec.mtu, 1024);
  EXPECT_EQ(spec.window, 64U);
  EXPECT_EQ(spec.patience_ms, 10'000U);
  EXPECT_EQ(spec.forming_ms, 60'000U);
  EXPECT_EQ(spec.loopback, region::Loopback::off);
  EXPECT_EQ(spec.members[1].ack_timeout, 14);
  EXPECT_EQ(spec.members[1].port, std::nullopt);
}

TEST(RegionMessages, SayWhoMayWrite) {
  v1::Region message = two_members();
  message.mutable_members(1)->set_reads_only(true);
  const auto rights = [&] {
    const region::RegionSpec spec = region_of(message, config()).spec;
    return std::pair(spec.members[0].right, spec.members[1].right);
  };
  EXPECT_EQ(rights(), std::pair(region::Right::all, region::Right::read));
  message.mutable_members(0)->set_writes_only(true);
  message.mutable_members(1)->set_writes_only(true);
  EXPECT_EQ(rights(), std::pair(region::Right::write, region::Right::nothing));
}

v1::Region with_view(const char* operation, const char* type) {
  v1::Region message = two_members();
  v1::RegionView& view = *message.add_views();
  view.set_operation(operation);
  view.set_type(type);
  return message;
}

TEST(RegionMessages, NameViews) {
  v1::Region message = with_view("sum", "f8e4m3");
  *message.add_views() = with_view("xor", "u16").views(0);
  message.mutable_members(1)->set_reads(16);
  const region::RegionSpec spec = region_of(message, config()).spec;
  EXPECT_EQ(spec.views, (std::vector<region::RegionView>{{Operation::sum, DataType::f8e4m3},
                                                         {Operation::bitwise_xor, DataType::u16}}));
  EXPECT_EQ(spec.entries, 32U);
  EXPECT_EQ(spec.members[0].reads, 1);
  EXPECT_EQ(spec.members[1].reads, 16);
}

TEST(RegionMessages, RefuseViewsThatThereAreNot) {
  expect_refused(with_view("plus", "f32"), "views[0].operation: found 'plus'; allowed: sum, min, "
                                           "max, product, and, or, xor");
  expect_refused(with_view("sum", "f128"),
                 "views[0].type: found 'f128'; allowed: f32, i32, f16, bf16, f64, i8, u8, i16, "
                 "u16, u32, i64, u64, f8e4m3, f8e5m2");
  expect_refused(with_view("xor", "f32"), "region 0, view 0: found xor of f32; allowed: and, or "
                                          "and xor of integers only");
  v1::Region message = with_view("sum", "f32");
  *message.add_views() = message.views(0);
  expect_refused(message, "region 0, view 1: found sum of f32 twice; allowed: once");
  message = with_view("sum", "f32");
  message.set_entries(4097);
  expect_refused(message, "region 0: found entries 4097; allowed: 1 to 4096");
  message = with_view("sum", "f32");
  message.mutable_members(1)->set_reads(17);
  expect_refused(message, "region 0, member 1: found reads 17; allowed: 1 to 16");
}

/// What members must be told: the keys, in the order of the views.
TEST(RegionMessages, TellTheKeysOfViews) {
  control::MadeRegion made;
  made.spec = region_of(with_view("min", "i32"), config()).spec;
  made.spec.members[0].right = region::Right::read;
  made.birth.view_keys = {77};
  config::Config with_address = config();
  with_address.regions.emplace();
  v1::HeldRegion message;
  write(made, with_address, message);
  ASSERT_EQ(message.view_keys_size(), 1);
  EXPECT_EQ(message.view_keys(0), 77U);
  EXPECT_EQ(message.region().views(0).operation(), "min");
  EXPECT_EQ(message.region().views(0).type(), "i32");
  EXPECT_EQ(message.region().entries(), 32U);
  EXPECT_EQ(message.region().members(0).reads(), 1U);
  EXPECT_TRUE(message.region().members(0).reads_only());
  EXPECT_FALSE(message.region().members(0).writes_only());
}

TEST(RegionMessages, NameThePortsOfTheSwitch) {
  v1::Region message = two_members();
  message.mutable_members(1)->set_port("p1");
  EXPECT_EQ(region_of(message, config()).spec.members[1].port, 1);
  message.mutable_members(1)->set_port("p2");
  expect_refused(message, "members[1].port: found p2; allowed: p0, p1");
}

TEST(RegionMessages, HaveMembersOfOneFamily) {
  v1::Region message = two_members();
  message.mutable_members(1)->set_ip("2001:db8::2");
  expect_refused(message, "region 0, member 1: found address 2001:db8::2; allowed: one of the "
                          "family of member 0's, 10.0.0.1");
  message.mutable_members(1)->set_ip("10.0.0.2.3");
  expect_refused(message, "members[1].ip: found '10.0.0.2.3'; allowed: an IPv4 or IPv6 address");
}

/// A number that the field of the specification cannot hold is no smaller one.
TEST(RegionMessages, KeepNumbersThatAreTooLarge) {
  v1::Region message = two_members();
  message.set_mtu((1U << 16) + 1024);
  expect_refused(message, "region 0: found mtu 65535; allowed: 256 to 4096");
  message = two_members();
  message.set_window(4097);
  expect_refused(message, "region 0: found window 4097; allowed: 2 to 4096");
  message = two_members();
  message.set_patience(std::uint64_t{1} << 63);
  expect_refused(message, "region 0: found patience (ms) 4294967296000; allowed: 1 to 86400000");
  message = two_members();
  message.mutable_members(0)->set_ack_timeout(256 + 14);
  expect_refused(message, "region 0, member 0: found ack timeout 255; allowed: 1 to 31");
}

} // namespace
} // namespace weir::rpc::region_messages_test
