// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/schedule_run.hpp"
#include "plan/algorithms.hpp"
#include "plan/generators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace weir::netsim::netsim_schedule_test {
namespace {

using plan::Operation;

constexpr plan::LinkTraits kByteANanosecond{8'000'000'000, 100};

/// A schedule written by hand: every message is an entry of its own.
class Tables {
 public:
  explicit Tables(const plan::Topology& topology) : topology_(topology) {
    schedule_.chunk_count = 1;
  }

  /// Call it in order of senders, then of steps. `links` is the way. The entry waits for the
  /// messages in `waits`.
  Tables& add(Operation operation, plan::VertexId from, plan::VertexId to, plan::Step step,
              const std::vector<plan::LinkId>& way,
              const std::vector<plan::MessageId>& waits = {}) {
    plan::Message message;
    message.operation = operation;
    message.flow = static_cast<plan::FlowId>(schedule_.messages.size());
    message.from = from;
    message.to = to;
    message.step = step;
    message.chunks = {0, 1};
    message.route = {static_cast<std::uint32_t>(schedule_.routes.size()),
                     static_cast<std::uint32_t>(way.size())};
    schedule_.routes.insert(schedule_.routes.end(), way.begin(), way.end());
    plan::Entry entry;
    entry.operation = operation;
    entry.flow = message.flow;
    entry.step = step;
    entry.chunks = message.chunks;
    entry.sends = {message.flow, 1};
    entry.waits = {static_cast<std::uint32_t>(schedule_.waits.size()),
                   static_cast<std::uint32_t>(waits.size())};
    schedule_.waits.insert(schedule_.waits.end(), waits.begin(), waits.end());
    schedule_.messages.push_back(message);
    return append(from, entry);
  }

  Tables& add_nop(plan::VertexId node, plan::Step step) {
    plan::Entry entry;
    entry.step = step;
    return append(node, entry);
  }

  plan::Schedule build() {
    schedule_.first_row.resize(topology_.node_count() + 1);
    for (plan::VertexId node = 0; node <= topology_.node_count(); ++node) {
      schedule_.first_row[node] = static_cast<std::uint32_t>(
          std::count_if(nodes_.begin(), nodes_.end(), [&](auto other) { return other < node; }));
    }
    return schedule_;
  }

 private:
  Tables& append(plan::VertexId node, const plan::Entry& entry) {
    nodes_.push_back(node);
    schedule_.entries.push_back(entry);
    schedule_.step_count = std::max(schedule_.step_count, entry.step);
    return *this;
  }

  const plan::Topology& topology_;
  plan::Schedule schedule_;
  std::vector<plan::VertexId> nodes_; // of entries
};

plan::LinkId link_between(const plan::Topology& topology, plan::VertexId from, plan::VertexId to) {
  for (const plan::LinkId link : topology.outgoing(from)) {
    if (topology.link(link).to == to) {
      return link;
    }
  }
  throw std::logic_error("no such link");
}

plan::Topology two_nodes() {
  plan::Topology topology({"a", "b"}, {});
  topology.connect(0, 1, kByteANanosecond);
  return topology;
}

Time one_message(const plan::Topology& topology, std::uint64_t bytes,
                 const ScheduleSettings& settings) {
  const plan::Schedule schedule = Tables(topology).add(Operation::gather, 0, 1, 1, {0}).build();
  return run_schedule(topology, schedule, bytes, settings).duration;
}

/// 1000 bytes are packets of 256, 256, 256 and 232, which takes 15 flits of 16; four heads.
TEST(Schedule, MessageTakesItsWireBytesAndTheLatency) {
  const plan::Topology topology = two_nodes();
  ScheduleSettings settings;
  EXPECT_EQ(one_message(topology, 1000, settings), (768 + 240 + 4 * 16 + 100) * kNanosecond);
  settings.framing.headers = Framing::Headers::every_message;
  EXPECT_EQ(one_message(topology, 1000, settings), (768 + 240 + 16 + 100) * kNanosecond);
}

TEST(Schedule, LatenciesAddUp) {
  const plan::Topology topology = two_nodes();
  ScheduleSettings settings;
  settings.nodes.channel_latency = 1 * kNanosecond;  // in and out
  settings.nodes.routing_latency = 10 * kNanosecond; // of two routers
  settings.nodes.interface_latency = 7 * kNanosecond;
  EXPECT_EQ(one_message(topology, 256, settings), (272 + 100 + 2 + 20 + 7) * kNanosecond);
}

/// A single message uses the link fully for any packet size.
TEST(Schedule, FidelityDoesNotMatterToASingleMessage) {
  const plan::Topology topology = two_nodes();
  for (const std::uint32_t at_once : {0, 1, 3, 100}) {
    ScheduleSettings settings;
    settings.framing.packets_at_once = at_once;
    EXPECT_EQ(one_message(topology, 10'000, settings), (10'000 + 40 * 16 + 100) * kNanosecond)
        << at_once;
  }
}

/// The second reduction begins when the first is done. The messages come at 372 and 644 ns, and
/// take 3 x 200 ns each.
TEST(Schedule, NodeReducesOneMessageAfterTheOther) {
  const plan::Topology topology = two_nodes();
  const plan::Schedule schedule = Tables(topology)
                                      .add(Operation::reduce, 0, 1, 1, {0})
                                      .add(Operation::reduce, 0, 1, 2, {0})
                                      .build();
  ScheduleSettings settings;
  settings.nodes.reduction_time = 200 * kNanosecond;
  settings.nodes.reduction_bytes = 100;
  const ScheduleResult result = run_schedule(topology, schedule, 256, settings);
  EXPECT_EQ(result.duration, (372 + 600 + 600) * kNanosecond);
  EXPECT_EQ(result.reduction, 1200 * kNanosecond);
  EXPECT_EQ(result.step_end[2], 644 * kNanosecond);
}

/// b answers when it has the message: 372 ns twice.
TEST(Schedule, EntryWaitsForItsMessages) {
  const plan::Topology topology = two_nodes();
  const plan::Schedule schedule = Tables(topology)
                                      .add(Operation::reduce, 0, 1, 1, {0})
                                      .add(Operation::gather, 1, 0, 2, {1}, {0})
                                      .build();
  EXPECT_EQ(run_schedule(topology, schedule, 256, {}).duration, 744 * kNanosecond);
}

/// A NOP delays a node by a step. A chunk of 100 packets takes 27,200 ns on the wire; the buffer of
/// 58 packets holds 58 x 256 ns of it: 12,352 ns.
TEST(Schedule, NopHoldsForTheEstimatedStep) {
  const plan::Topology topology = two_nodes();
  const plan::Schedule schedule =
      Tables(topology).add_nop(0, 1).add(Operation::gather, 0, 1, 2, {0}).build();
  ScheduleSettings settings;
  EXPECT_EQ(run_schedule(topology, schedule, 25'600, settings).duration, 27'300 * kNanosecond);
  settings.nodes.lockstep = NodeTraits::Lockstep::estimated;
  EXPECT_EQ(run_schedule(topology, schedule, 25'600, settings).duration,
            (27'300 + 12'352) * kNanosecond);
}

/// With waves of four packets, a channel jumps over the number of packets at which it takes the
/// next message: 101 packets leave 61 unsent, then 57.
TEST(Schedule, WavesMakeAChannelFreeToo) {
  const plan::Topology topology = two_nodes();
  const plan::Schedule schedule = Tables(topology)
                                      .add(Operation::gather, 0, 1, 1, {0})
                                      .add(Operation::gather, 0, 1, 2, {0})
                                      .build();
  ScheduleSettings settings;
  settings.framing.packets_at_once = 4;
  EXPECT_EQ(run_schedule(topology, schedule, 101 * 256, settings).duration,
            (2 * 101 * 272 + 100) * kNanosecond);
}

/// A channel that is taking over a packet is not free: the second message begins 5 ns later.
TEST(Schedule, HandingOverTakesTime) {
  const plan::Topology topology = two_nodes();
  const plan::Schedule schedule = Tables(topology)
                                      .add(Operation::gather, 0, 1, 1, {0})
                                      .add(Operation::gather, 0, 1, 2, {0})
                                      .build();
  ScheduleSettings settings;
  settings.nodes.handing_over = 5 * kNanosecond;
  EXPECT_EQ(run_schedule(topology, schedule, 256, settings).step_start[2], 5 * kNanosecond);
}

/// Two messages of one packet each, with different links, leave by different channels at the same
/// time.
TEST(Schedule, ShortMessagesTakeDifferentChannels) {
  plan::Topology topology({"a", "b", "c"}, {});
  topology.connect(0, 1, kByteANanosecond);
  topology.connect(0, 2, kByteANanosecond);
  Tables tables(topology);
  tables.add(Operation::gather, 0, 1, 1, {link_between(topology, 0, 1)})
      .add(Operation::gather, 0, 2, 1, {link_between(topology, 0, 2)});
  plan::Schedule schedule = tables.build();
  EXPECT_EQ(run_schedule(topology, schedule, 256, {}).duration, (2 * 272 + 100) * kNanosecond);
  schedule.channels = 2;
  EXPECT_EQ(run_schedule(topology, schedule, 256, {}).duration, (272 + 100) * kNanosecond);
}

/// Two packets meet before the link to node 2: heads at 100 ns, the link sends until 372 and 644.
TEST(FifoLinks, ServeInOrderOfArrival) {
  const plan::Topology star = plan::make_star(3, kByteANanosecond);
  const plan::VertexId hub = 3;
  const plan::LinkId down = link_between(star, hub, 2);
  const plan::Schedule schedule =
      Tables(star)
          .add(Operation::gather, 0, 2, 1, {link_between(star, 0, hub), down})
          .add(Operation::gather, 1, 2, 2, {link_between(star, 1, hub), down})
          .build();
  const ScheduleResult result = run_schedule(star, schedule, 256, {});
  EXPECT_EQ(result.step_end[1], 472 * kNanosecond);
  EXPECT_EQ(result.step_end[2], 744 * kNanosecond);
  EXPECT_EQ(result.links[down].packets, 2U);
  EXPECT_EQ(result.links[down].bytes, 544U);
  EXPECT_EQ(result.links[down].busy, 544 * kNanosecond);
}

/// A packet of 272 bytes comes in 272 ns. A link twice as fast needs 136, so it begins 136 later
/// than it could, and both end together.
TEST(FifoLinks, FasterLinkDoesNotRunAheadOfThePacket) {
  plan::Topology topology({"a", "b"}, {"s"});
  topology.connect(0, 2, kByteANanosecond);
  const plan::LinkId fast = topology.connect(2, 1, {16'000'000'000, 100});
  const plan::Schedule schedule =
      Tables(topology).add(Operation::gather, 0, 1, 1, {0, fast}).build();
  EXPECT_EQ(run_schedule(topology, schedule, 256, {}).duration, (272 + 200) * kNanosecond);
}

plan::Topology long_way() {
  plan::Topology topology({"a", "b"}, {"s"});
  topology.connect(0, 2, {8'000'000'000, 500});
  topology.connect(2, 1, {8'000'000'000, 500});
  return topology;
}

/// The far end has room for one packet. The next goes when the sender knows that the last has left,
/// after 500 ns there and 500 ns back. The third begins at 2000, is handed on at 2500 and arrives
/// at 3272.
TEST(VirtualChannels, CreditsLimitTheRate) {
  const plan::Topology topology = long_way();
  const plan::Schedule schedule = Tables(topology).add(Operation::gather, 0, 1, 1, {0, 2}).build();
  ScheduleSettings settings;
  settings.virtual_channels = VirtualChannels{.count = 1, .bytes = 272};
  EXPECT_EQ(run_schedule(topology, schedule, 768, settings).duration, 3272 * kNanosecond);
  settings.virtual_channels->bytes = 10 * 272;
  EXPECT_EQ(run_schedule(topology, schedule, 768, settings).duration,
            (3 * 272 + 1000) * kNanosecond);
}

/// Node 0 sends to 2, then to 3, in one FIFO. Node 1 keeps the link to 2 busy. The packet for 3
/// waits behind that for 2, unless it has a virtual channel of its own.
TEST(VirtualChannels, HeadOfAFifoHoldsUpWhatIsBehind) {
  const plan::Topology star = plan::make_star(4, kByteANanosecond);
  const plan::VertexId hub = 4;
  const plan::LinkId first_up = link_between(star, 0, hub);
  const plan::LinkId second_up = link_between(star, 1, hub);
  const plan::Schedule schedule =
      Tables(star)
          .add(Operation::gather, 0, 2, 1, {first_up, link_between(star, hub, 2)})
          .add(Operation::gather, 0, 3, 2, {first_up, link_between(star, hub, 3)})
          .add(Operation::gather, 1, 2, 1, {second_up, link_between(star, hub, 2)})
          .build();
  ScheduleSettings settings;
  settings.virtual_channels = VirtualChannels{.count = 1, .bytes = 1 << 16};
  // Of 0 and 1, whose heads come together, the FIFO of the lower link is served first: 100 … 372.
  EXPECT_EQ(run_schedule(star, schedule, 256, settings).step_end[2],
            (372 + 272 + 100) * kNanosecond);
  const plan::Schedule other_first =
      Tables(star)
          .add(Operation::gather, 0, 2, 1, {first_up, link_between(star, hub, 2)})
          .add(Operation::gather, 1, 2, 1, {second_up, link_between(star, hub, 2)})
          .add(Operation::gather, 1, 3, 2, {second_up, link_between(star, hub, 3)})
          .build();
  // Node 1's packet for 2 must wait until 372 and is sent until 644; then the one behind it.
  EXPECT_EQ(run_schedule(star, other_first, 256, settings).step_end[2],
            (644 + 272 + 100) * kNanosecond);
  settings.virtual_channels->count = 2;
  EXPECT_EQ(run_schedule(star, other_first, 256, settings).step_end[2],
            (272 + 100 + 272 + 100) * kNanosecond);
}

/// Three heads wait for the link to 3 when it becomes free. The last one to come has the earliest
/// step.
TEST(VirtualChannels, ArbitrationGoesByArrivalOrByStep) {
  const plan::Topology star = plan::make_star(4, kByteANanosecond);
  const plan::VertexId hub = 4;
  const plan::LinkId down = link_between(star, hub, 3);
  const auto up = [&](plan::VertexId node) { return link_between(star, node, hub); };
  const plan::Schedule schedule =
      Tables(star)
          .add(Operation::gather, 0, 3, 1, {up(0), down})
          .add(Operation::gather, 1, 3, 3, {up(1), down})
          .add(Operation::gather, 2, 0, 1, {up(2), link_between(star, hub, 0)})
          .add(Operation::gather, 2, 3, 2, {up(2), down})
          .build();
  ScheduleSettings settings;
  settings.virtual_channels.emplace();
  // Node 0's crosses 100 … 372. Then node 2's second head comes; node 1's has waited since 100.
  settings.framing.header_bytes = 0; // 256 ns a packet: 100 … 356, and 2's second comes at 356
  ScheduleResult result = run_schedule(star, schedule, 256, settings);
  EXPECT_LT(result.step_end[3], result.step_end[2]);
  EXPECT_EQ(result.step_end[2], (100 + 3 * 256 + 100) * kNanosecond);
  settings.virtual_channels->arbitration = VirtualChannels::Arbitration::by_step;
  result = run_schedule(star, schedule, 128 * 3, settings); // longer: it has come before
  EXPECT_LT(result.step_end[2], result.step_end[3]);
}

std::string error_of(const plan::Topology& topology, const plan::Schedule& schedule) {
  try {
    run_schedule(topology, schedule, 256, {});
  } catch (const SimulationError& error) {
    return error.what();
  }
  return {};
}

TEST(Schedule, SaysWhoWaitsForEver) {
  const plan::Topology topology = two_nodes();
  const plan::Schedule schedule = Tables(topology)
                                      .add(Operation::reduce, 0, 1, 1, {0}, {1})
                                      .add(Operation::reduce, 1, 0, 1, {1}, {0})
                                      .build();
  EXPECT_NE(error_of(topology, schedule).find("a waits in step 1"), std::string::npos)
      << error_of(topology, schedule);
}

TEST(Schedule, RefusesAWayThatDoesNotConnect) {
  const plan::Topology topology = two_nodes();
  EXPECT_NE(error_of(topology, Tables(topology).add(Operation::reduce, 0, 1, 1, {1}).build())
                .find("does not begin at a"),
            std::string::npos);
}

TEST(Schedule, RefusesChannelsThatHoldNoPacket) {
  const plan::Topology topology = two_nodes();
  ScheduleSettings settings;
  settings.virtual_channels = VirtualChannels{.count = 4, .bytes = 271};
  EXPECT_THROW(one_message(topology, 256, settings), SimulationError);
}

constexpr plan::LinkTraits kMultiTreeLink{128'000'000'000, 150};

/// RING on a 4x4 torus in closed form: 30 steps of a chunk of 64 packets, 17 ns each, with 150 ns
/// of link, two routers of 4, two channels of 1 and interfaces of 6; 15 reductions of 16 KiB at 16
/// ns per 2 KiB. The simulator of MultiTree's authors gives 39.58 us.
TEST(Schedule, RingOnATorusIsTheClosedForm) {
  const plan::Topology torus = plan::make_torus(4, 4, kMultiTreeLink);
  const plan::Plan plan = plan::make_plan(torus, plan::Algorithm::ring);
  EXPECT_EQ(run_schedule(torus, plan.schedule, 256 << 10, multitree_settings()).duration,
            (30 * (64 * 17 + 150 + 8 + 2 + 6) + 15 * 8 * 16) * kNanosecond);
}

/// Credits make a difference to MultiTree on a torus, and arbitration by step keeps its steps
/// apart.
TEST(Schedule, MultiTreeDriftsApartWithoutArbitrationByStep) {
  const plan::Topology torus = plan::make_torus(8, 8, kMultiTreeLink);
  const plan::Plan plan = plan::make_plan(torus, plan::Algorithm::multitree);
  ScheduleSettings settings = multitree_settings();
  settings.nodes.lockstep = NodeTraits::Lockstep::estimated;
  settings.nodes.step_start = NodeTraits::StepStart::all_channels;
  settings.virtual_channels.emplace();
  constexpr std::uint64_t kBytes = 1 << 19;
  const ScheduleResult drifting = run_schedule(torus, plan.schedule, kBytes, settings);
  EXPECT_EQ(drifting, run_schedule(torus, plan.schedule, kBytes, settings));
  settings.virtual_channels->arbitration = VirtualChannels::Arbitration::by_step;
  const ScheduleResult in_step = run_schedule(torus, plan.schedule, kBytes, settings);
  EXPECT_LT(in_step.duration * 10, drifting.duration * 9);
  // No link can be faster than its load allows.
  for (const LinkUse& use : in_step.links) {
    EXPECT_LE(use.busy, in_step.duration);
  }
}

} // namespace
} // namespace weir::netsim::netsim_schedule_test
