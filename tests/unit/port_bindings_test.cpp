// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "Ports".

#include "conn/port_bindings.hpp"
#include "support/frame_builder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace weir::conn::port_bindings_test {
namespace {

using Port = std::optional<std::uint16_t>;
using Set = std::set<std::uint16_t>;

const Set kAny{0, 1, 2, 3, 4, 5, 6, 7};

wire::IpAddress host(int number) {
  return test::ip(fmt::format("10.0.0.{}", number));
}

ring::RingSpec ring_of(std::uint32_t id, const std::vector<int>& members) {
  ring::RingSpec ring{.id = id, .members = {}};
  for (const int member : members) {
    ring.members.push_back({host(member), {}});
  }
  return ring;
}

/// Bindings of hosts.
class Ports {
 public:
  explicit Ports(const std::vector<ring::RingSpec>& rings)
      : rings_(ring::RingSet(rings)), bindings(rings_) {}

  /// The ports by which packets of one to the other may enter.
  Set source(int from, int to) const {
    Set ports;
    for (const std::uint16_t port : kAny) {
      if (bindings.may_enter(rings_->pair_of(host(from), host(to)), port)) {
        ports.insert(port);
      }
    }
    return ports;
  }

  Port destination(int from, int to) const {
    return bindings.destination_of(rings_->pair_of(host(from), host(to)));
  }

  void change(const ring::RingSpec& spec) {
    rings_.swap(std::make_shared<const ring::RingSet>(rings_->with_changed(std::vector{spec})));
    bindings.update_configured(*rings_->ring_with_id(spec.id));
  }

 private:
  ring::CurrentRings rings_;

 public:
  PortBindings bindings;
};

TEST(PortBindings, TheConfigurationBindsBothDirections) {
  ring::RingSpec ring = ring_of(1, {1, 2, 3, 4});
  ring.members[1].port = 6;
  const Ports ports({ring});
  EXPECT_EQ(ports.source(2, 3), Set{6}) << "its data";
  EXPECT_EQ(ports.source(2, 1), Set{6}) << "its acknowledgements";
  EXPECT_EQ(ports.destination(1, 2), 6);
  EXPECT_EQ(ports.destination(3, 2), 6);
  EXPECT_EQ(ports.source(1, 2), kAny);
  EXPECT_EQ(ports.destination(2, 3), std::nullopt);
  EXPECT_EQ(ports.source(3, 4), kAny);
}

TEST(PortBindings, AHelloBindsUntilTheIncarnationEnds) {
  Ports ports({ring_of(1, {1, 2, 3, 4})});
  EXPECT_EQ(ports.source(2, 3), kAny);
  ports.bindings.bind({0, 1}, 6);
  ports.bindings.bind({0, 2}, 7);
  EXPECT_EQ(ports.source(2, 3), Set{6});
  EXPECT_EQ(ports.source(2, 1), Set{6});
  EXPECT_EQ(ports.destination(1, 2), 6);
  EXPECT_EQ(ports.source(3, 2), Set{7});
  EXPECT_EQ(ports.destination(2, 3), 7);
  EXPECT_EQ(ports.source(1, 2), kAny) << "no hello of rank 0";
  ports.bindings.bind({0, 1}, 5);
  EXPECT_EQ(ports.source(2, 3), Set{5}) << "the next incarnation's";
  ports.bindings.release(0);
  EXPECT_EQ(ports.source(2, 3), kAny);
  EXPECT_EQ(ports.destination(2, 3), std::nullopt);
}

TEST(PortBindings, WhatIsConfiguredStays) {
  ring::RingSpec ring = ring_of(1, {1, 2, 3});
  ring.members[1].port = 6;
  Ports ports({ring});
  ports.bindings.bind({0, 1}, 2);
  EXPECT_EQ(ports.source(2, 3), Set{6});
  ports.bindings.release(0);
  EXPECT_EQ(ports.source(2, 3), Set{6});
  EXPECT_EQ(ports.destination(1, 2), 6);
}

/// A member that is untied stays where it was last, until its incarnation ends.
TEST(PortBindings, WhatIsConfiguredMayChange) {
  ring::RingSpec ring = ring_of(1, {1, 2, 3});
  Ports ports({ring});
  ports.bindings.bind({0, 1}, 2);
  ring.members[1].port = 6;
  ports.change(ring);
  EXPECT_EQ(ports.source(2, 3), Set{6});
  EXPECT_EQ(ports.source(2, 1), Set{6});
  EXPECT_EQ(ports.destination(1, 2), 6);
  EXPECT_EQ(ports.source(1, 2), kAny);
  ring.members[1].port.reset();
  ports.change(ring);
  EXPECT_EQ(ports.source(2, 3), Set{6});
  ports.bindings.release(0);
  EXPECT_EQ(ports.source(2, 3), kAny);
}

TEST(PortBindings, OneRingsEndLeavesAnothersBinding) {
  Ports ports({ring_of(1, {1, 2, 3}), ring_of(2, {1, 2, 4})});
  ports.bindings.bind({0, 0}, 5);
  ports.bindings.bind({1, 0}, 5);
  ports.bindings.release(0);
  EXPECT_EQ(ports.source(1, 2), Set{5});
  EXPECT_EQ(ports.source(1, 4), Set{5});
  EXPECT_EQ(ports.source(1, 3), kAny);
  ports.bindings.release(1);
  EXPECT_EQ(ports.source(1, 2), kAny);
}

/// One ring's data goes where the other's acknowledgements go.
TEST(PortBindings, RingsInOppositeDirectionsBindTheSamePairs) {
  Ports ports({ring_of(1, {1, 2, 3}), ring_of(2, {2, 1, 4})});
  ports.bindings.bind({1, 1}, 5); // host 1, of the second ring
  EXPECT_EQ(ports.source(1, 2), Set{5});
  EXPECT_EQ(ports.destination(2, 1), 5);
  EXPECT_EQ(ports.source(2, 1), kAny);
}

/// An intruder in one ring cannot block another ring's ports.
TEST(PortBindings, WhereHellosDisagreeEachRingHasItsOwn) {
  Ports ports({ring_of(1, {1, 2, 3}), ring_of(2, {1, 2, 4})});
  ports.bindings.bind({0, 0}, 5);
  ports.bindings.bind({1, 0}, 6);
  EXPECT_EQ(ports.source(1, 2), (Set{5, 6}));
  EXPECT_EQ(ports.destination(2, 1), std::nullopt);
  EXPECT_EQ(ports.bindings.port_of({0, 0}), 5);
  EXPECT_EQ(ports.bindings.port_of({1, 0}), 6);
  EXPECT_EQ(ports.bindings.port_of({1, 1}), std::nullopt);
  EXPECT_EQ(ports.source(1, 4), Set{6}) << "no neighbours in the first";
  ports.bindings.release(1);
  EXPECT_EQ(ports.source(1, 2), Set{5});
  EXPECT_EQ(ports.destination(2, 1), 5);
}

TEST(PortBindings, TheLastOfSixtyFourPorts) {
  Ports ports({ring_of(1, {1, 2, 3})});
  ports.bindings.bind({0, 0}, 63);
  EXPECT_EQ(ports.destination(2, 1), 63);
  EXPECT_EQ(ports.source(1, 2), Set{});
}

} // namespace
} // namespace weir::conn::port_bindings_test
