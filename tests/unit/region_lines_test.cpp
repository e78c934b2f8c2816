// SPDX-License-Identifier: BSD-3-Clause

/// Regions that share a worker with rings and with one another. How many frames of which line go on
/// follows from what is written of turns (docs/architecture.md, fair shares of a worker): equal
/// costs, and a copy costs as much as a frame of its length.

#include "region/region.hpp"
#include "support/region_members.hpp"
#include "switch_fixture.hpp"

#include <gtest/gtest.h>

namespace weir::stage::region_lines_test {
namespace {

constexpr std::uint32_t kRoom = 2000;
constexpr unsigned kServed = 8; // frames that the worker can do between two bursts
constexpr std::size_t kPayload = 200;

using Members = test::RegionMembers;

/// Which the worker holds, however many there are.
Members members_of(std::uint32_t region) {
  Members members(region);
  members.spec.window = region::kMostWindow;
  return members;
}

InlineSwitch::Settings settings() {
  InlineSwitch::Settings settings = small_switch(kSession);
  settings.worker.queue_room = kRoom;
  settings.regions = test::regions_address();
  return settings;
}

/// One worker with a ring of four ranks and regions.
struct World {
  explicit World(const std::vector<const RingJob*>& jobs) : fixture(jobs, settings(), {}) {
    for (const RingJob* job : jobs) {
      fixture.start(*job);
    }
  }

  region::Region& open(Members& members, std::uint16_t tenant = FairQueue::kNoTenant) {
    region::Region& region =
        fixture.inside().add_region(members.spec, members.birth, tenant, fixture.now);
    for (std::uint16_t member = 0; member < members.spec.members.size(); ++member) {
      fixture.send(members.hello(member), member);
    }
    EXPECT_EQ(region.state(), region::State::open);
    return region;
  }

  void crowd() { fixture.inside().queue().expect(Backlog::likely); }

  void write(Members& members, unsigned packets) {
    for (unsigned i = 0; i < packets; ++i) {
      fixture.send(members.write(0, Bytes(kPayload, 1)).front(), 0);
    }
  }

  /// Rank 0 repeats a packet, which is dropped each time. It is as long as a write.
  void repeat(RingJob& job, unsigned packets) {
    const Built first = job.message(0, 1, Bytes(kPayload, 1)).front();
    for (unsigned i = 0; i < packets; ++i) {
      fixture.send(first, job.port_of(0));
    }
  }

  SwitchFixture fixture;
};

RingJob four_ranks() {
  return RingJob(JobSpec{.ring = 1, .world = 4, .window = 8});
}

TEST(RegionLines, AFloodTakesNothingFromARing) {
  RingJob victim = four_ranks();
  World world({&victim});
  Members flooder = members_of(1);
  world.open(flooder);
  for (std::uint32_t id = 1; id <= 50; ++id) {
    world.crowd();
    world.write(flooder, 40);
    for (std::uint16_t rank = 0; rank < victim.spec().world; ++rank) {
      world.fixture.send(victim.message(rank, id, Bytes(kPayload, 1)).front(),
                         victim.port_of(rank));
    }
    world.fixture.serve(kServed);
  }
  world.fixture.serve(2 * kRoom);
  EXPECT_EQ(world.fixture.ring(0).results, 4U + 50 * 4) << "with those of the hellos";
  EXPECT_EQ(world.fixture.dropped(DropReason::ring_queue_full), 0U);
  EXPECT_GT(world.fixture.dropped(DropReason::region_queue_full), 200U);
}

/// Each write has two copies, so for one of them three of the ring's frames go on.
TEST(RegionLines, ARegionPaysForItsCopies) {
  RingJob busy = four_ranks();
  World world({&busy});
  Members members = members_of(1);
  const region::Region& region = world.open(members);
  world.crowd();
  world.write(members, 200);
  world.repeat(busy, 600);
  ASSERT_EQ(world.fixture.accounting().queued, 800U);
  world.fixture.serve(400);
  EXPECT_NEAR(static_cast<double>(region.counters().accepted), 100, 12);
  EXPECT_EQ(region.counters().copies, 2 * region.counters().accepted);
}

/// While nobody else waits, nobody pays.
TEST(RegionLines, NothingWaitsWhileTheWorkerKeepsUp) {
  RingJob job = four_ranks();
  World world({&job});
  Members members = members_of(1);
  const region::Region& region = world.open(members);
  world.write(members, 100);
  EXPECT_EQ(world.fixture.accounting().queued, 0U);
  EXPECT_EQ(region.counters().accepted, 100U);
}

TEST(RegionLines, OneRegionAloneWaitsForNobody) {
  World world({});
  Members members = members_of(1);
  const region::Region& region = world.open(members);
  world.crowd();
  world.write(members, 100);
  EXPECT_EQ(world.fixture.accounting().queued, 0U);
  EXPECT_EQ(region.counters().accepted, 100U);
}

/// As long as it sends nothing, a ring alone goes its straight way through full bursts.
TEST(RegionLines, ASilentRegionTakesNoRingOffItsWay) {
  RingJob job = four_ranks();
  World world({&job});
  Members members = members_of(1);
  world.open(members);
  world.crowd();
  EXPECT_FALSE(world.fixture.inside().queue().is_open()) << "it has just sent its hellos";
  for (unsigned burst = 0; burst < 64; ++burst) {
    world.crowd();
  }
  EXPECT_TRUE(world.fixture.inside().queue().is_open());
  world.write(members, 1);
  EXPECT_EQ(world.fixture.accounting().queued, 0U) << "the first goes straight through";
  world.crowd();
  EXPECT_FALSE(world.fixture.inside().queue().is_open());
}

/// V9 at the worker.
TEST(RegionLines, AFloodTakesNothingFromAnotherRegion) {
  World world({});
  Members flooder = members_of(1);
  Members victim = members_of(2);
  world.open(flooder);
  const region::Region& region = world.open(victim);
  for (unsigned round = 0; round < 50; ++round) {
    world.crowd();
    world.write(flooder, 40);
    world.write(victim, 1);
    world.fixture.serve(kServed);
    EXPECT_EQ(region.counters().accepted, round + 1U) << "it has waited for its turn alone";
  }
  EXPECT_GT(world.fixture.dropped(DropReason::region_queue_full), 200U);
}

struct Stranger {
  const char* what;
  std::uint16_t port;
  const char* ip;           // nullptr: member 0's
  std::uint32_t queue_pair; // 0: member 0's
  DropReason reason;        // when its turn has come
  std::uint8_t version = 0; // of the transport
};

class RegionStranger : public testing::TestWithParam<Stranger> {};

/// Who is no member floods the region's queue pair, and the member's line stays as it is.
TEST_P(RegionStranger, HasALineOfItsOwn) {
  World world({});
  Members members = members_of(1);
  Members others = members_of(2);
  const region::Region& region = world.open(members);
  world.open(others);
  FrameSpec frame = members.frame_of(0);
  frame.source = GetParam().ip == nullptr ? frame.source : *wire::parse_ip(GetParam().ip);
  frame.qp = GetParam().queue_pair == 0 ? frame.qp : GetParam().queue_pair;
  frame.transport_version = GetParam().version;
  const Built flood = build(frame);
  for (unsigned round = 0; round < 50; ++round) {
    world.crowd();
    for (unsigned i = 0; i < 60; ++i) {
      world.fixture.send(flood, GetParam().port);
    }
    world.write(members, 1);
    world.fixture.serve(kServed);
    ASSERT_EQ(region.counters().accepted, round + 1U);
  }
  EXPECT_GT(world.fixture.dropped(DropReason::region_queue_full), 100U);
  EXPECT_GT(world.fixture.dropped(GetParam().reason), 100U);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RegionStranger,
    testing::Values(Stranger{"OtherPort", 3, nullptr, 0, DropReason::region_elsewhere},
                    Stranger{"OtherHost", 0, "10.9.1.77", 0, DropReason::region_elsewhere},
                    Stranger{"NoQueuePair", 0, nullptr, 0x700, DropReason::region_unknown},
                    Stranger{"Malformed", 0, nullptr, 0, DropReason::transport_version, 1}),
    [](const auto& row) { return row.param.what; });

TEST(RegionLines, ATenantsRateHoldsForItsRegion) {
  RingJob job = four_ranks();
  World world({&job});
  Members members = members_of(1);
  const region::Region& region = world.open(members, 0);
  world.fixture.inside().queue().set_shares({.rates = {1000}, .tenants = {}}, world.fixture.now);
  world.write(members, 500);
  EXPECT_EQ(region.counters().accepted, FairQueue::kSmallestBurst);
  EXPECT_EQ(world.fixture.accounting().queued, FairQueue::kShortestLine);
  EXPECT_EQ(world.fixture.dropped(DropReason::tenant_rate),
            500 - FairQueue::kSmallestBurst - FairQueue::kShortestLine);
  world.repeat(job, 10);
  EXPECT_EQ(world.fixture.accounting().queued, FairQueue::kShortestLine)
      << "who has no rate passes";
  world.fixture.now = frame::Instant{world.fixture.now.ns + 10'000'000};
  world.fixture.serve(100);
  EXPECT_EQ(region.counters().accepted, FairQueue::kSmallestBurst + 10);
}

/// The lines of regions stand behind those of ring groups.
TEST(RegionLines, FramesWaitOnInTheirOrderWhenARingComes) {
  RingJob job = four_ranks();
  World world({&job});
  Members members = members_of(1);
  Members others = members_of(2);
  const region::Region& region = world.open(members);
  const region::Region& other = world.open(others);
  world.crowd();
  world.write(members, 20);
  world.write(others, 10);
  world.repeat(job, 5);
  ASSERT_EQ(world.fixture.accounting().queued, 35U);
  const RingJob newcomer(JobSpec{.ring = 2, .session = kSession + 1, .network_id = 1});
  world.fixture.inside().add_ring(newcomer.ring());
  world.crowd();
  world.write(members, 1);
  EXPECT_EQ(world.fixture.accounting().queued, 36U);
  world.fixture.serve(100);
  EXPECT_EQ(world.fixture.accounting().queued, 0U);
  EXPECT_EQ(region.counters().accepted, 21U);
  EXPECT_EQ(other.counters().accepted, 10U);
  EXPECT_EQ(world.fixture.dropped(DropReason::region_gap), 0U);
}

TEST(RegionLines, WhatWaitsForARegionThatIsForgottenIsAStrangers) {
  RingJob job = four_ranks();
  World world({&job});
  Members gone = members_of(1);
  Members members = members_of(2);
  region::Region& region = world.open(gone);
  world.crowd();
  world.write(gone, 5);
  region.end(region::End::withdrawn, world.fixture.now);
  world.fixture.inside().regions().forget(region);
  const region::Region& next =
      world.fixture.inside().add_region(members.spec, members.birth, 0, world.fixture.now);
  ASSERT_EQ(next.line(), 0U) << "a test of a line that is used again";
  const FairQueue& lines = world.fixture.inside().queue().lines();
  EXPECT_EQ(lines.waiting(lines.line_of_region(0)), 0U);
  EXPECT_EQ(lines.counters_of(lines.line_of_region(0)).waited, 0U) << "counters begin anew";
  EXPECT_EQ(lines.waiting(lines.line_of_strangers()), 5U);
  world.fixture.serve(100);
  EXPECT_EQ(world.fixture.dropped(DropReason::region_unknown), 5U);
}

TEST(RegionLines, WhatWaitsIsDroppedByNameAtTheEnd) {
  RingJob job = four_ranks();
  World world({&job});
  Members members = members_of(1);
  world.open(members);
  world.crowd();
  world.write(members, 5);
  world.fixture.inside().queue().discard(world.fixture.now);
  EXPECT_EQ(world.fixture.dropped(DropReason::region_queue_full), 5U);
  EXPECT_TRUE(world.fixture.accounting().balances());
}

} // namespace
} // namespace weir::stage::region_lines_test
