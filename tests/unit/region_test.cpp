// SPDX-License-Identifier: BSD-3-Clause

/// Regions over the real switch and links that lose, double, delay and damage: members are software
/// queue pairs. Each seed is a run, and watchers look after each step for what must never happen
/// (docs/protocol.md §13).

#include "region_world.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir::region::region_test {
namespace {

TEST(Region, OpensWhenTheLastHasSaidHello) {
  Plan plan = calm_plan(3);
  plan.starts = {1000, 50'000'000, 2000};
  plan.stacks.assign(3, endpoint::Stack::soft_roce); // whose timer a repeated ACK starts anew
  plan.spec.members[1].port = 1;
  World world(plan);
  EXPECT_FALSE(world.region().speaks_by(1)) << "it may never come";
  world.run_for(49'000'000);
  EXPECT_EQ(world.region().state(), State::forming);
  EXPECT_TRUE(world.region().speaks_by(0) && !world.region().speaks_by(1));
  for (const std::size_t early : {0, 2}) {
    EXPECT_FALSE(world.host(early).is_open());
    EXPECT_EQ(world.host(early).queue_pair().statistics().timeouts, 0u) << "it was kept alive";
  }
  world.run_until([&] { return world.is_done(); });
  EXPECT_EQ(world.region().state(), State::open);
  EXPECT_TRUE(world.region().speaks_by(1));
}

TEST(Region, WritesToAllOthers) {
  Plan plan = calm_plan(3);
  Dice dice(1);
  plan.writes[1] = {{.offset = 300, .bytes = random_bytes(100, dice), .has_immediate = true}};
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  world.run_for(1'000'000);
  Bytes expected(plan.spec.bytes);
  std::ranges::copy(plan.writes[1][0].bytes, expected.begin() + 300);
  EXPECT_EQ(world.host(0).memory(), expected);
  EXPECT_EQ(world.host(2).memory(), expected);
  EXPECT_EQ(world.host(1).memory(), Bytes(plan.spec.bytes)) << "its own write came back";
  EXPECT_EQ(world.host(0).immediates(), std::vector<std::uint32_t>{1u << 16});
  EXPECT_EQ(world.region().held(), 0u);
}

std::uint64_t drops_of(World& world, DropReason reason) {
  return world.network().engine().accounting().frames.dropped[static_cast<std::size_t>(reason)];
}

/// What a member has sent, once more, from somewhere else; and for another queue pair.
TEST(Region, TakesNothingFromElsewhere) {
  Plan plan = calm_plan(3);
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  endpoint::QueuePairConfig config = world.host(0).queue_pair().config();
  config.send_psn = wire::psn_add(config.send_psn, 1); // the one behind the hello
  const auto forge = [&](const endpoint::QueuePairConfig& forged, std::uint16_t port) {
    world.network().send(port, write_only(forged, world.birth(), Bytes(8, 0xee)));
    world.run_for(1'000'000);
  };
  forge(config, 1);
  EXPECT_EQ(drops_of(world, DropReason::region_elsewhere), 1u) << "another port";
  endpoint::QueuePairConfig other = config;
  other.local_ip = ip_of(1);
  forge(other, 0);
  EXPECT_EQ(drops_of(world, DropReason::region_elsewhere), 2u) << "another address";
  other = config;
  other.remote_qp ^= 1;
  forge(other, 0);
  EXPECT_EQ(drops_of(world, DropReason::region_unknown), 1u) << "another queue pair";
  EXPECT_EQ(world.region().counters().accepted, 0u);
  world.network().from_switch(0).set_down(); // the member did not send it, so it must not hear
  forge(config, 0);
  EXPECT_EQ(world.region().counters().accepted, 1u) << "the same from the member is taken";
}

/// Without its token nobody joins, and a host that was not told cannot guess it.
TEST(Region, OpensForTokensAlone) {
  Plan plan = calm_plan(2);
  plan.starts[1] = 20'000'000;
  World world(plan);
  world.run_for(1'000'000);
  endpoint::QueuePairConfig config = world.host(0).queue_pair().config();
  config.local_ip = ip_of(1);
  config.remote_qp = world.birth().members[1].queue_pair;
  config.send_psn = plan.spec.members[1].first_psn;
  const auto say = [&](const RegionBirth& birth, const Token& token) {
    world.network().send(1, write_only(config, birth, token));
    world.run_for(100'000);
  };
  Token token = world.birth().members[1].token;
  for (std::uint8_t& byte : token) {
    byte ^= 0x01;
    say(world.birth(), token);
    byte ^= 0x01;
  }
  RegionBirth guessed = world.birth();
  ++guessed.multicast_key;
  say(guessed, token);
  EXPECT_EQ(world.region().state(), State::forming);
  EXPECT_EQ(drops_of(world, DropReason::region_early), kTokenBytes + 1);
  world.run_until([&] { return world.is_done(); }); // the member itself says it
}

/// V6, for the switch: a member that acknowledges what it was not sent frees nothing.
TEST(Region, BelievesNoGhost) {
  Plan plan = calm_plan(3);
  Dice dice(5);
  plan.writes[0] = {{.offset = 0, .bytes = random_bytes(100, dice)}};
  World world(plan);
  world.run_until([&] { return world.host(0).is_open() && world.host(2).is_open(); });
  world.network().from_switch(2).set_down(); // its copy does not come
  endpoint::PacketWriter writer(world.host(2).queue_pair().config());
  const std::uint32_t first = world.birth().members[2].first_psn;
  world.run_for(20'000);
  for (const std::uint32_t ahead : {1u, 2u, 1u << 20}) {
    Bytes ghost(kLongestFrame);
    ghost.resize(
        writer.write_acknowledge(ghost, {wire::kAckUnlimited, wire::psn_add(first, ahead), 0}));
    world.network().send(2, ghost);
  }
  world.run_for(1'000'000);
  EXPECT_EQ(drops_of(world, DropReason::region_ghost), 3u);
  EXPECT_EQ(world.host(0).completed(), 0u);
  EXPECT_EQ(world.region().held(), 1u);
}

/// From the member to its end of the switch. Of the zeros that follow the headers the region reads
/// none, so it has four of the sixteen.
Bytes congestion_notification(World& world, std::uint16_t member) {
  Bytes bytes(kLongestFrame);
  bytes.resize(endpoint::PacketWriter(world.host(member).queue_pair().config())
                   .write_acknowledge(bytes, {0, 0, 0}));
  bytes[kOpcodeAt] = kCongestion;
  wire::ParsedBytes frame{bytes.data(), static_cast<std::uint32_t>(bytes.size())};
  frame.packet = wire::parse(bytes);
  wire::store_icrc(frame, wire::compute_icrc(frame));
  return bytes;
}

/// It hears of it who has packets under way to the target, and not for each notification.
TEST(Region, PassesCongestionOnToWhoMakesIt) {
  Plan plan = calm_plan(3);
  plan.writes[0] = {{.offset = 0, .bytes = Bytes(3 * kMtu, 1)}};
  World world(plan);
  world.run_until([&] { return world.host(0).is_open() && world.host(2).is_open(); });
  world.network().from_switch(2).set_down(); // so that nothing is acknowledged
  world.run_for(40'000);
  for (int time = 0; time < 5; ++time) {
    world.network().send(2, congestion_notification(world, 2));
    world.network().send(1, congestion_notification(world, 1)); // which has acknowledged all
  }
  world.run_for(40'000);
  ASSERT_EQ(world.host(0).notifications().size(), 1U);
  EXPECT_EQ(world.host(1).notifications().size(), 0U);
  world.run_for(20'000);
  world.network().send(2, congestion_notification(world, 2));
  world.run_for(20'000);
  ASSERT_EQ(world.host(0).notifications().size(), 2U) << "50 us later";
  EXPECT_EQ(world.region().counters().congested, 5U + 5 + 1);
  EXPECT_EQ(world.region().counters().notified, 2U);
  EXPECT_EQ(world.region().counters().suppressed, 4U + 5) << "member 1 lacks nothing of anybody";
  Bytes bytes = world.host(0).notifications()[0];
  ASSERT_EQ(bytes.size(), kOpcodeAt + 12 + 16 + 4);
  EXPECT_EQ(bytes[kOpcodeAt + 4] & 0x40, 0x40) << "BECN";
  EXPECT_EQ(Bytes(bytes.begin() + kOpcodeAt + 8, bytes.end() - 4), Bytes(20)) << "PSN 0, zeros";
  wire::ParsedBytes frame{bytes.data(), static_cast<std::uint32_t>(bytes.size())};
  frame.packet = wire::parse(bytes);
  EXPECT_EQ(frame.packet.destination_qp, plan.spec.members[0].queue_pair);
  EXPECT_TRUE(wire::icrc_is_valid(frame));
}

/// An ACK to member 0 of what it has not sent yet.
Bytes ghost_to_member_0(World& world, const wire::MacAddress& mac, const wire::IpAddress& ip) {
  endpoint::QueuePairConfig config = world.host(0).queue_pair().config();
  const std::uint32_t ahead = wire::psn_add(world.host(0).queue_pair().sent_psn(), 1);
  config.local_mac = mac;
  config.local_ip = ip;
  config.remote_mac = mac_of(0);
  config.remote_ip = ip_of(0);
  config.remote_qp = config.local_qp;
  Bytes ghost(kLongestFrame);
  ghost.resize(
      endpoint::PacketWriter(config).write_acknowledge(ghost, {wire::kAckUnlimited, ahead, 0}));
  return ghost;
}

/// Member 1's answer to whoever asks (RFC 826): `ip` is at its MAC address.
Bytes answer_of_member_1(const wire::MacAddress& to, std::uint8_t last_byte_of_ip) {
  const wire::MacAddress mac = mac_of(1);
  Bytes frame(to.bytes.begin(), to.bytes.end());
  frame.insert(frame.end(), mac.bytes.begin(), mac.bytes.end());
  frame.insert(frame.end(), {0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 2});
  frame.insert(frame.end(), mac.bytes.begin(), mac.bytes.end());
  frame.insert(frame.end(), {10, 0, 0, last_byte_of_ip});
  frame.insert(frame.end(), to.bytes.begin(), to.bytes.end());
  frame.insert(frame.end(), {10, 0, 0, 1});
  frame.resize(60);
  return frame;
}

/// The same, for the hardware of IEEE 802, which Linux takes for Ethernet's.
Bytes of_ieee_802(Bytes arp) {
  arp[15] = 6; // RFC 1042
  return arp;
}

/// Nobody acknowledges in the switch's name, or has its members' packets sent to himself.
TEST(Region, IsNobodyElse) {
  const Plan plan = calm_plan(3);
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  std::uint64_t impostors = 0;
  const auto expect_dropped = [&](const Bytes& frame, const char* what) {
    world.network().send(1, frame);
    world.run_for(100'000);
    EXPECT_EQ(drops_of(world, DropReason::region_impostor), ++impostors) << what;
  };
  const Address regions = regions_address();
  const wire::MacAddress everybody{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  expect_dropped(ghost_to_member_0(world, mac_of(1), regions.ip), "a packet from their address");
  expect_dropped(ghost_to_member_0(world, regions.mac, ip_of(1)), "from their MAC address");
  expect_dropped(answer_of_member_1(mac_of(0), 254), "an ARP answer");
  expect_dropped(answer_of_member_1(everybody, 254), "an announcement");
  expect_dropped(of_ieee_802(answer_of_member_1(mac_of(0), 254)), "one that names other hardware");
  const auto forwarded = [&] { return world.network().engine().accounting().frames.forwarded; };
  const std::uint64_t before = forwarded();
  for (const Bytes& frame : {answer_of_member_1(mac_of(0), 2), answer_of_member_1(everybody, 2)}) {
    world.network().send(1, frame);
    world.run_for(100'000);
  }
  EXPECT_EQ(drops_of(world, DropReason::region_impostor), impostors) << "a host's own address";
  EXPECT_EQ(forwarded(), before + 2);
}

/// A region of the same members as the world's, with tokens of its own.
Region& another_region(World& world, const RegionSpec& spec, std::uint32_t id) {
  RegionSpec another = spec;
  another.id = id;
  return world.network().regions().add(another, World::draw({.spec = another, .seed = id}));
}

/// The member's hello to another region than the world's.
void say_hello(World& world, const Region& region, std::uint16_t member, std::uint16_t port) {
  endpoint::QueuePairConfig config = world.host(member).queue_pair().config();
  const MemberBirth& birth = region.birth().members[member];
  config.remote_qp = birth.queue_pair;
  world.network().send(port, write_only(config, region.birth(), birth.token));
  world.run_for(100'000);
}

/// A queue pair is one region's: what a former one had under way for it never comes.
TEST(Region, EndsWhenItsQueuePairSaysHelloToANewerOne) {
  const Plan plan = calm_plan(2);
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  const Region& newer = another_region(world, plan.spec, 8);
  EXPECT_EQ(world.region().state(), State::open) << "as long as nobody says hello";
  say_hello(world, newer, 0, 0);
  EXPECT_EQ(newer.state(), State::forming);
  EXPECT_EQ(world.region().why_ended(), End::superseded);
  const std::uint64_t answers = world.region().counters().answers;
  endpoint::QueuePairConfig config = world.host(0).queue_pair().config();
  config.send_psn = wire::psn_add(config.send_psn, 1);
  world.network().send(0, write_only(config, world.birth(), Bytes(8, 1)));
  world.run_for(1'000'000);
  EXPECT_GE(drops_of(world, DropReason::region_ended), 1u);
  EXPECT_EQ(world.region().counters().answers, answers) << "it says nothing more";
}

/// Who has a region made with somebody's queue pair in it, and says hello himself, ends nothing.
TEST(Region, KeepsItsQueuePairsFromWhoIsBehindAnotherPort) {
  const Plan plan = calm_plan(2);
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  RegionSpec theirs = plan.spec;
  theirs.members[0].port = 1;
  const Region& stolen = another_region(world, theirs, 8);
  say_hello(world, stolen, 0, 1);
  EXPECT_TRUE(stolen.has_heard(0));
  EXPECT_EQ(world.region().state(), State::open);
}

/// A late hello of a former life ends its own region, not its queue pair's new one.
TEST(Region, EndsWhenALateHelloComesToIt) {
  const Plan plan = calm_plan(2);
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  const Region& older = another_region(world, plan.spec, 8);
  const Region& newer = another_region(world, plan.spec, 9);
  say_hello(world, older, 1, 1);
  say_hello(world, newer, 0, 0);
  say_hello(world, older, 0, 0); // the last one that it needs
  EXPECT_EQ(older.why_ended(), End::superseded);
  EXPECT_EQ(older.counters().answers, 0u) << "nobody hears that it is open";
  EXPECT_EQ(newer.state(), State::forming);
}

/// Several packets, the last one not full, and one of no bytes at all.
TEST(Region, WritesMessagesOfManyPackets) {
  Plan plan = calm_plan(2);
  Dice dice(2);
  plan.writes[0] = {{.offset = 1, .bytes = random_bytes(5 * kMtu + 3, dice)},
                    {.offset = 0, .bytes = {}, .has_immediate = true},
                    {.offset = 8000, .bytes = random_bytes(2 * kMtu, dice), .has_immediate = true}};
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  world.run_for(1'000'000);
  EXPECT_EQ(world.host(1).immediates(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(world.region().counters().again, 0u);
  EXPECT_EQ(world.region().counters().asked, 0u);
}

/// A host may send more than the region holds of it; what does not fit is asked for again.
TEST(Region, AsksForWhatItHadNoRoomFor) {
  Plan plan = calm_plan(2);
  plan.spec.window = 4;
  Dice dice(3);
  plan.writes[0] = {{.offset = 0, .bytes = random_bytes(40 * kMtu, dice)}};
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  EXPECT_GT(world.region().counters().asked, 0u);
  EXPECT_EQ(world.host(0).queue_pair().statistics().timeouts, 0u);
}

/// A target without a receive for an immediate gets the copies again once in each RNR wait, no
/// more.
TEST(Region, IsSilentWhileATargetIsNotReady) {
  Plan plan = calm_plan(2);
  plan.receives_from = 10'000'000;
  for (std::uint64_t i = 0; i < 20; ++i) {
    plan.writes[0].push_back({.offset = i, .bytes = Bytes(1, 1), .has_immediate = true});
  }
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  constexpr std::uint64_t waits = 10'000'000 / 40'000; // twice the 20 us of the host's code
  EXPECT_GT(world.region().counters().again, 0u);
  EXPECT_LE(world.region().counters().again, 8 * (waits + 1)) << "copies of 8 requests at a time";
  EXPECT_EQ(world.host(0).queue_pair().statistics().timeouts, 0u);
}

/// V7: nothing is heard of a target, and the others keep their queue pairs.
TEST(Region, EndsWhenATargetIsSilentForPatience) {
  Plan plan = calm_plan(3);
  plan.spec.patience_ms = 500;
  plan.retries = 1;
  plan.stacks.assign(3, endpoint::Stack::soft_roce); // whose timer a repeated ACK starts anew
  Dice dice(4);
  plan.writes[0] = {{.offset = 0, .bytes = random_bytes(100, dice)}};
  World world(plan);
  world.run_until([&] { return world.host(2).is_open(); });
  world.network().to_switch(2).set_down();
  world.run_for(450'000'000);
  EXPECT_EQ(world.region().state(), State::open);
  const frame::Instant now{world.network().now()};
  EXPECT_GE(world.region().waits_for(2, now), 440'000'000U);
  EXPECT_LE(world.region().waits_for(2, now), 450'000'000U);
  EXPECT_EQ(world.region().waits_for(1, now), 0U) << "it owes nothing";
  EXPECT_EQ(world.host(0).queue_pair().state(), endpoint::QueuePair::State::ready);
  world.run_for(100'000'000);
  EXPECT_EQ(world.region().why_ended(), End::silent);
  EXPECT_EQ(world.region().culprit(), 2);
  EXPECT_EQ(world.host(0).queue_pair().failure(), endpoint::Status::remote_operational)
      << "it asked by its timer, and was told";
  EXPECT_EQ(world.host(0).completed(), 0u);
  EXPECT_EQ(world.region().held(), 0u);
  world.run_for(600'000'000);
  EXPECT_EQ(world.network().regions().with_id(7), nullptr) << "it is forgotten";
}

/// What a region holds can be a million frames, and other packets wait while an lcore drops them.
TEST(Region, LetsGoInPieces) {
  constexpr std::size_t packets = 200;
  constexpr std::size_t at_once = 64; // as slots of a ring
  Plan plan = calm_plan(2);
  plan.spec.window = 256;
  plan.host_window = packets;
  plan.writes[0] = {{.offset = 0, .bytes = Bytes(packets * kMtu, 1)}};
  World world(plan);
  world.run_until([&] { return world.host(1).is_open(); });
  world.network().to_switch(1).set_down();
  world.run_until([&] { return world.region().held() == packets; });
  std::uint64_t dropped = drops_of(world, DropReason::region_ended);
  const auto drops_few = [&] {
    const std::uint64_t before = std::exchange(dropped, drops_of(world, DropReason::region_ended));
    return dropped - before <= at_once;
  };
  world.region().end(End::withdrawn, {world.network().now()});
  EXPECT_TRUE(drops_few());
  EXPECT_FALSE(world.region().has_let_go());
  world.network().regions().forget(world.region());
  EXPECT_EQ(world.network().regions().with_id(7), &world.region()) << "it holds frames";
  world.run_until([&] {
    EXPECT_TRUE(drops_few());
    return world.region().has_let_go();
  });
  EXPECT_GE(dropped, packets);
  EXPECT_EQ(world.region().held(), 0u);
}

/// An lcore that forgets a region allocates nothing.
TEST(Region, IsForgottenWhereThereIsRoomForIt) {
  const Plan plan = calm_plan(2);
  World world(plan);
  RegionTable& table = world.network().regions();
  Region& second = another_region(world, plan.spec, 8);
  for (Region* const region : {&world.region(), &second}) {
    region->end(End::withdrawn, {world.network().now()});
    table.forget(*region); // asserts that there is room
    EXPECT_EQ(table.take_forgotten().size(), 1u);
  }
}

/// It does not form for ever, and it is known who was not there.
TEST(Region, EndsWhenAMemberSaysNoHelloInTime) {
  Plan plan = calm_plan(3);
  plan.spec.forming_ms = 500;
  plan.stacks.assign(3, endpoint::Stack::soft_roce);
  plan.starts[1] = 600'000'000;
  World world(plan);
  world.region().await_hellos({world.network().now()});
  world.run_for(490'000'000);
  EXPECT_EQ(world.region().state(), State::forming);
  world.run_for(20'000'000);
  EXPECT_EQ(world.region().why_ended(), End::unformed);
  EXPECT_TRUE(world.region().has_heard(0) && !world.region().has_heard(1));
  const auto storage = world.region().give_storage();
  EXPECT_EQ(storage.size(), 3u);
  EXPECT_GE(storage[0].capacity(), 3u * plan.spec.window);
  world.run_for(80'000'000); // members are told without it
  EXPECT_EQ(world.host(0).queue_pair().failure(), endpoint::Status::remote_operational);
}

constexpr std::uint8_t kLost = wire::nak_syndrome(wire::NakCode::sequence_error);
constexpr std::uint64_t kMs = 1'000'000;

/// How many copies leave now.
std::size_t sent_now(Requester& requester, std::uint64_t now) {
  std::size_t sent = 0;
  for (; requester.next(now); ++sent) {
  }
  return sent;
}

Requester with_copies(std::uint64_t number, std::uint64_t now) {
  Requester requester(100, 512, 0, 10'000 * kMs);
  for (std::uint64_t i = 0; i < number; ++i) {
    requester.add({.request = i}, now);
  }
  return requester;
}

constexpr auto kNothingHere = [](const Copy&) { FAIL() << "the member has nothing"; };

/// A member that repeats itself is no amplifier.
TEST(Requester, GoesBackOnceForALoss) {
  Requester requester = with_copies(200, kMs);
  ASSERT_EQ(sent_now(requester, kMs), 200u);
  requester.take(kLost, 100, kMs + 1000, kNothingHere);
  EXPECT_EQ(sent_now(requester, kMs + 1000), 200u);
  for (std::uint64_t ns = 2000; ns < 50'000; ns += 1000) {
    requester.take(kLost, 100, kMs + ns, kNothingHere);
    EXPECT_EQ(sent_now(requester, kMs + ns), 0u) << ns << " ns";
  }
  requester.take(kLost, 150, kMs + 50'000, [](const Copy&) {});
  EXPECT_EQ(sent_now(requester, kMs + 50'000), 150u) << "another one is lost";
}

/// The usual code 12 is 0.64 ms. Nobody sends before its double, and then one copy.
TEST(Requester, ProbesAMemberThatWasNotReady) {
  Requester requester = with_copies(20, kMs);
  ASSERT_EQ(sent_now(requester, kMs), 20u);
  requester.take(wire::rnr_syndrome(12), 100, kMs, kNothingHere);
  const std::uint64_t over = kMs + 1'280'000;
  EXPECT_EQ(sent_now(requester, over - 1), 0u);
  EXPECT_EQ(sent_now(requester, over), 1u);
  requester.poll(over + 8000);
  EXPECT_EQ(sent_now(requester, over + 8000), 0u) << "by a timer that the wait has made run out";
  requester.take(wire::kAckUnlimited, 100, over + 9000, [](const Copy&) {});
  EXPECT_EQ(sent_now(requester, over + 9000), 19u);
}

/// Nobody answers for ten seconds.
TEST(Requester, SendsLittleToTheDead) {
  Requester requester = with_copies(256, 0);
  ASSERT_EQ(sent_now(requester, 0), 256u);
  std::size_t again = 0;
  std::uint64_t now = 0;
  while ((now = requester.next_timer()) < 10'000 * kMs) {
    requester.poll(now);
    again += sent_now(requester, now);
  }
  EXPECT_GE(again, 10u);
  EXPECT_LE(again, 40u) << "the timer doubles from some 60 us or more, up to a sixteenth";
}

/// An answer to what was sent twice tells nothing of the time that a round takes.
TEST(Requester, KeepsItsPatienceUntilItHasMeasured) {
  Requester requester = with_copies(2, 0);
  ASSERT_EQ(sent_now(requester, 0), 2u);
  const std::uint64_t first = requester.next_timer();
  requester.poll(first);
  ASSERT_EQ(sent_now(requester, first), 1u);
  requester.take(wire::kAckUnlimited, 100, first + 1000, [](const Copy&) {});
  ASSERT_EQ(sent_now(requester, first + 1000), 1u);
  EXPECT_EQ(requester.next_timer(), first + 1000 + 2 * first) << "it measured a repeated copy";
}

/// What one member must not do, how it is told, and why the region has ended then.
struct Breach {
  std::string what;
  Write write;
  std::uint32_t key = 0; // xor
  endpoint::SendKind kind = endpoint::SendKind::write;
  Right right = Right::write; // the member's
  endpoint::Status told{};
};

void PrintTo(const Breach& breach, std::ostream* stream) {
  *stream << breach.what;
}

class RegionBreach : public testing::TestWithParam<Breach> {};

TEST_P(RegionBreach, EndsTheRegion) {
  const Breach& breach = GetParam();
  Plan plan = calm_plan(3);
  plan.spec.members[1].right = breach.right;
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  endpoint::SendRequest request;
  request.kind = breach.kind;
  request.data = breach.write.bytes;
  request.remote_address = world.birth().base + breach.write.offset;
  request.remote_key = world.birth().multicast_key ^ breach.key;
  const std::uint64_t answers = world.region().counters().answers;
  world.host(1).queue_pair().post(request);
  world.host(1).act();
  world.run_for(1'000'000);
  EXPECT_EQ(world.region().why_ended(), End::broken);
  EXPECT_EQ(world.host(1).queue_pair().failure(), breach.told);
  const std::size_t packets = endpoint::packets_of(breach.write.bytes.size(), plan.spec.mtu);
  EXPECT_EQ(world.region().counters().answers, answers + packets) << "nobody is told unasked";
  for (const std::size_t other : {0, 2}) {
    EXPECT_EQ(world.host(other).memory(), Bytes(plan.spec.bytes)) << "V5";
    EXPECT_EQ(world.host(other).queue_pair().state(), endpoint::QueuePair::State::ready);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RegionBreach,
    testing::Values(Breach{.what = "a byte too long",
                           .write = {.offset = 65536 - 299, .bytes = Bytes(300, 1)},
                           .told = endpoint::Status::remote_access},
                    Breach{.what = "many packets, too long",
                           .write = {.offset = 65536 - 999, .bytes = Bytes(1000, 1)},
                           .told = endpoint::Status::remote_access},
                    Breach{.what = "before the region",
                           .write = {.offset = UINT64_MAX, .bytes = Bytes(2, 1)},
                           .told = endpoint::Status::remote_access},
                    Breach{.what = "another key",
                           .write = {.offset = 0, .bytes = Bytes(8, 1)},
                           .key = 1,
                           .told = endpoint::Status::remote_access},
                    Breach{.what = "by who may not write",
                           .write = {.offset = 0, .bytes = Bytes(8, 1)},
                           .right = Right::nothing,
                           .told = endpoint::Status::remote_access},
                    Breach{.what = "no bytes, by who may not write",
                           .write = {},
                           .right = Right::nothing,
                           .told = endpoint::Status::remote_access},
                    Breach{.what = "a send",
                           .write = {.offset = 0, .bytes = Bytes(8, 1)},
                           .kind = endpoint::SendKind::send,
                           .told = endpoint::Status::remote_invalid_request}));

/// Each writes into a part of the region that is its own, behind what it has written before.
void add_disjoint_writes(Plan& plan, Dice& dice) {
  const std::uint64_t share = plan.spec.bytes / plan.writes.size();
  for (std::size_t member = 0; member < plan.writes.size(); ++member) {
    std::uint64_t at = member * share;
    const std::uint64_t count = dice.between(1, 16);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t bytes = dice.below(dice.pick({2u, 257u, 2000u}));
      if (at + bytes > (member + 1) * share) {
        break;
      }
      plan.writes[member].push_back({.offset = at,
                                     .bytes = random_bytes(bytes, dice),
                                     .has_immediate = dice.chance(40 * kPercent)});
      at += bytes;
    }
  }
}

/// All write everywhere.
void add_meeting_writes(Plan& plan, Dice& dice) {
  for (std::vector<Write>& writes : plan.writes) {
    const std::uint64_t count = dice.between(1, 16);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t bytes = dice.below(dice.pick({2u, 257u, 2000u}));
      writes.push_back({.offset = dice.below(3000),
                        .bytes = random_bytes(bytes, dice),
                        .has_immediate = dice.chance(40 * kPercent)});
    }
  }
}

Plan random_plan(std::uint64_t seed) {
  Dice dice(seed);
  Plan plan = calm_plan(static_cast<std::uint16_t>(dice.between(2, 4)));
  plan.seed = seed;
  plan.spec.bytes = 16384;
  plan.spec.window = static_cast<std::uint32_t>(dice.between(2, 40));
  plan.spec.loopback = dice.pick({Loopback::off, Loopback::on});
  plan.host_window = dice.pick({2u, 8u, 32u});
  plan.receive_late = dice.chance(30 * kPercent) ? 50 * kPercent : 0;
  plan.retries = endpoint::kRetryForever;
  const bool is_bad = dice.chance(80 * kPercent);
  for (std::size_t member = 0; member < plan.links.size(); ++member) {
    LinkTraits& link = plan.links[member];
    plan.stacks[member] = dice.pick({endpoint::Stack::ibta, endpoint::Stack::soft_roce});
    plan.starts[member] = 1000 + dice.below(dice.pick({1u, 100'000u, 30'000'000u}));
    plan.spec.members[member].first_psn = draw_first_psn(dice);
    link.spread = 60'000;
    link.late = 0;
    if (is_bad) {
      draw_faults(link, dice);
    }
    link.order = dice.pick({LinkTraits::Order::kept, LinkTraits::Order::free});
  }
  if (dice.chance(50 * kPercent)) {
    add_disjoint_writes(plan, dice);
  } else {
    add_meeting_writes(plan, dice);
  }
  return plan;
}

/// V4: of what two members have both had, the order is the same.
void check_order(const std::vector<std::uint32_t>& one, const std::vector<std::uint32_t>& other) {
  const std::set<std::uint32_t> of_one(one.begin(), one.end());
  const std::set<std::uint32_t> of_other(other.begin(), other.end());
  EXPECT_EQ(of_one.size(), one.size()) << "V4: executed twice";
  const auto common = [](const std::vector<std::uint32_t>& all, const std::set<std::uint32_t>& in) {
    std::vector<std::uint32_t> found;
    std::ranges::copy_if(all, std::back_inserter(found),
                         [&in](std::uint32_t number) { return in.contains(number); });
    return found;
  };
  EXPECT_EQ(common(one, of_other), common(other, of_one)) << "V4";
}

void check_end(World& world, const Plan& plan) {
  EXPECT_EQ(world.region().state(), State::open);
  EXPECT_EQ(world.region().held(), 0u) << "W3";
  for (std::size_t member = 0; member < world.members(); ++member) {
    Host& host = world.host(member);
    EXPECT_EQ(host.queue_pair().state(), endpoint::QueuePair::State::ready) << "V5, V7";
    std::size_t expected = 0;
    for (std::size_t source = 0; source < world.members(); ++source) {
      if (source != member || plan.spec.loopback == Loopback::on) {
        expected += static_cast<std::size_t>(
            std::ranges::count_if(plan.writes[source], &Write::has_immediate));
      }
    }
    EXPECT_EQ(host.immediates().size(), expected) << "of member " << member;
    check_order(host.immediates(), world.host(0).immediates());
    if (plan.spec.loopback == Loopback::on) {
      EXPECT_EQ(host.memory(), world.host(0).memory()) << "V4: with loopback all copies are alike";
    }
  }
}

constexpr std::array kUsualDrops{DropReason::bad_icrc,      DropReason::region_gap,
                                 DropReason::region_repeat, DropReason::region_window,
                                 DropReason::region_early,  DropReason::region_unknown};

TEST(Region, HoldsUnderBadLinks) {
  constexpr std::uint64_t seeds = test::rounds(1500);
  Counters total;
  std::array<std::uint64_t, kUsualDrops.size()> drops{};
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Plan plan = random_plan(seed);
    World world(plan);
    ASSERT_NO_FATAL_FAILURE(world.run_until([&] { return world.is_done(); }));
    for (std::size_t member = 0; member < world.members(); ++member) {
      world.network().from_switch(static_cast<std::uint16_t>(member)).become_reliable();
      world.network().to_switch(static_cast<std::uint16_t>(member)).become_reliable();
    }
    ASSERT_NO_FATAL_FAILURE(world.run_for(200'000'000)); // what is late must do no harm
    check_end(world, plan);
    total.again += world.region().counters().again;
    total.asked += world.region().counters().asked;
    for (std::size_t i = 0; i < kUsualDrops.size(); ++i) {
      drops[i] += drops_of(world, kUsualDrops[i]);
    }
  }
  // A simulation without these events would show nothing.
  EXPECT_GT(total.again, seeds);
  EXPECT_GT(total.asked, seeds);
  for (std::size_t i = 0; i < drops.size(); ++i) {
    EXPECT_GT(drops[i], seeds / 10) << name_of(kUsualDrops[i]);
  }
}

// ---- Beside another region. ----

/// Which of the two wrote a byte.
constexpr std::uint8_t kVictims = 0x80;

void mark(Plan& plan, std::uint8_t owner) {
  for (std::vector<Write>& writes : plan.writes) {
    for (Write& write : writes) {
      for (std::uint8_t& byte : write.bytes) {
        byte = static_cast<std::uint8_t>((byte & 0x7f) | 1 | owner);
      }
    }
  }
}

/// Three members behind further ports. Two write all the time; the other one falls silent, so that
/// the region holds what it may and repeats its copies.
Plan flooding_plan(const Plan& victim) {
  Plan plan = calm_plan(3, static_cast<std::uint16_t>(victim.links.size()));
  plan.spec.id = victim.spec.id + 1;
  plan.seed = victim.seed + 1'000'000;
  for (const std::size_t member : {0, 1}) {
    plan.writes[member].assign(40, {.offset = 0, .bytes = Bytes(2000, 1)});
  }
  mark(plan, 0);
  return plan;
}

/// Two regions of one worker, which takes its time for each frame. Meanwhile member 1 of the
/// flooding one sends so many notifications of congestion.
class Pair {
 public:
  static constexpr Time kFrameTime = 5000;

  Pair(const Plan& of_victim, const Plan& of_flooder, unsigned floods)
      : network_({.links = joined(of_victim.links, of_flooder.links),
                  .longest_frame = kLongestFrame,
                  .seed = of_victim.seed},
                 {}, settings()),
        victim_(of_victim, network_), flooder_(of_flooder, network_),
        flooding_port_(static_cast<std::uint16_t>(of_flooder.first_port + 1)), floods_(floods) {
    network_.expect(stage::Backlog::likely);
    network_.wake(0, next_);
  }

  World& victim() { return victim_; }

  World& flooder() { return flooder_; }

  void run_until_done() {
    constexpr std::uint64_t most_steps = 4'000'000;
    std::uint64_t steps = 0;
    while (!victim_.is_done() && !testing::Test::HasFailure()) {
      ASSERT_TRUE(victim_.step());
      ASSERT_NO_FATAL_FAILURE(flooder_.watch());
      ASSERT_LT(++steps, most_steps) << "no end in sight" << victim_.where();
      work();
    }
  }

  /// From now on the worker keeps up, and nobody floods.
  void catch_up() {
    network_.expect(stage::Backlog::none);
    network_.serve(kRoom);
  }

  /// Of the victim's frames.
  stage::LineCounters line_of_victim() const {
    const stage::FairQueue& lines = network_.engine().worker().queue().lines();
    return lines.counters_of(lines.line_of_region(0));
  }

 private:
  static constexpr std::uint32_t kRoom = 1024;

  static stage::InlineSwitch::Settings settings() {
    stage::InlineSwitch::Settings settings;
    settings.regions = regions_address();
    settings.worker.queue_room = kRoom;
    return settings;
  }

  static std::vector<LinkTraits> joined(std::vector<LinkTraits> links,
                                        const std::vector<LinkTraits>& more) {
    links.insert(links.end(), more.begin(), more.end());
    return links;
  }

  void work() {
    if (network_.now() < next_) {
      return;
    }
    network_.expect(stage::Backlog::likely); // as before each burst
    network_.serve(1);
    if (flooder_.host(1).is_open()) {
      flooder_.host(2).die();
      for (unsigned i = 0; i < floods_; ++i) {
        network_.send(flooding_port_, congestion_notification(flooder_, 1));
      }
    }
    next_ = network_.now() + kFrameTime;
    network_.wake(0, next_);
  }

  SimulatedNetwork network_;
  World victim_;
  World flooder_;
  std::uint16_t flooding_port_;
  unsigned floods_;
  Time next_ = kFrameTime;
};

/// Whether all bytes that were written are this one's.
bool has_only(const Bytes& memory, std::uint8_t owner) {
  return std::ranges::all_of(
      memory, [owner](std::uint8_t byte) { return byte == 0 || (byte & kVictims) == owner; });
}

/// V9: turns are fair, so who gets by with half of the worker's time waits for a turn of the other
/// one's line, of six frames (a quantum of 12 KiB, 2 KiB a frame), and for nothing else.
TEST(Region, IsNotDelayedByAnother) {
  Plan plan = calm_plan(3);
  for (std::vector<Write>& writes : plan.writes) {
    writes.assign(20, {.offset = 0, .bytes = Bytes(3 * kMtu, 1)});
  }
  mark(plan, kVictims);
  Time alone = 0;
  for (const unsigned floods : {0U, 3U}) {
    Pair pair(plan, flooding_plan(plan), floods);
    ASSERT_NO_FATAL_FAILURE(pair.run_until_done());
    EXPECT_GT(pair.line_of_victim().waited, 180U);
    EXPECT_EQ(pair.line_of_victim().queue_full, 0U);
    alone = floods == 0 ? pair.victim().network().now() : alone;
    EXPECT_LE(pair.victim().network().now(), 2 * alone);
    EXPECT_EQ(drops_of(pair.victim(), DropReason::region_queue_full) != 0, floods != 0);
  }
}

/// V9, and all else holds beside a flood.
TEST(Region, NeitherReadsNorHindersAnother) {
  constexpr std::uint64_t seeds = test::rounds(100);
  std::uint64_t flooded = 0;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Plan plan = random_plan(seed);
    mark(plan, kVictims);
    Pair pair(plan, flooding_plan(plan), 2);
    ASSERT_NO_FATAL_FAILURE(pair.run_until_done());
    pair.catch_up();
    for (std::uint16_t member = 0; member < pair.victim().members(); ++member) {
      pair.victim().network().from_switch(member).become_reliable();
      pair.victim().network().to_switch(member).become_reliable();
    }
    ASSERT_NO_FATAL_FAILURE(pair.victim().run_for(200'000'000));
    check_end(pair.victim(), plan);
    for (std::size_t member = 0; member < pair.victim().members(); ++member) {
      EXPECT_TRUE(has_only(pair.victim().host(member).memory(), kVictims)) << member;
    }
    for (std::size_t member = 0; member < pair.flooder().members(); ++member) {
      EXPECT_TRUE(has_only(pair.flooder().host(member).memory(), 0)) << member;
    }
    EXPECT_EQ(pair.line_of_victim().queue_full, 0U);
    flooded += drops_of(pair.victim(), DropReason::region_queue_full);
  }
  EXPECT_GT(flooded, 100 * seeds);
}

} // namespace
} // namespace weir::region::region_test
