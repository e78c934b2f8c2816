// SPDX-License-Identifier: BSD-3-Clause

/// Pull: READs of a region, answered by the fold of all members' memory (docs/protocol.md §13,
/// rules P1 to P6 and A3). The hosts check each READ's data when it is complete.

#include "region_world.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

namespace weir::region::region_pull_test {
namespace {

using network::Dice;
using network::kPercent;
using network::LinkTraits;
using network::Ppm;
using region_test::Bytes;
using region_test::calm_plan;
using region_test::draw_faults;
using region_test::draw_first_psn;
using region_test::Host;
using region_test::kMtu;
using region_test::Plan;
using region_test::random_bytes;
using region_test::World;
using region_test::Write;

// Views of all plans here.
constexpr std::size_t kSumU64 = 0;
constexpr std::size_t kSumF32 = 1;
constexpr std::size_t kMinI32 = 2;
constexpr std::size_t kSumU8 = 3;

// Of each copy: numbers that nobody changes, what members write, clocks.
constexpr std::uint64_t kNumbersBytes = 4096;
constexpr std::uint64_t kShareBytes = 2048;
constexpr std::uint64_t kClocksAt = 12288;
constexpr std::size_t kClocks = 64;

template <typename Number>
Number number_at(const Bytes& bytes, std::size_t at) {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <typename Number>
void append(Bytes& bytes, Number number) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof number);
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

/// Numbers whose sum depends on the order, as bytes.
Bytes random_numbers(Dice& dice) {
  Bytes bytes;
  while (bytes.size() < kNumbersBytes) {
    const float magnitude = static_cast<float>(1U << dice.below(24));
    append(bytes, magnitude * (static_cast<float>(dice.below(20001)) - 10000.0F) / 7.0F);
  }
  return bytes;
}

Plan pull_plan(std::uint16_t members, std::uint64_t seed) {
  Dice dice(seed * 31);
  Plan plan = calm_plan(members);
  plan.seed = seed;
  plan.spec.bytes = 16384;
  plan.spec.views = {{Operation::sum, DataType::u64},
                     {Operation::sum, DataType::f32},
                     {Operation::min, DataType::i32},
                     {Operation::sum, DataType::u8}};
  plan.clocks_at = kClocksAt;
  plan.clocks = kClocks;
  for (std::uint16_t member = 0; member < members; ++member) {
    plan.contents.push_back(random_numbers(dice));
    plan.contents.back().resize(plan.spec.bytes);
  }
  return plan;
}

/// The left fold in the order of members, number by number.
template <typename Number, typename Fold>
Bytes folded(const Plan& plan, std::uint64_t offset, std::size_t bytes, Fold&& fold) {
  Bytes result;
  for (std::size_t at = offset; at < offset + bytes; at += sizeof(Number)) {
    volatile Number all = number_at<Number>(plan.contents[0], at);
    for (std::size_t member = 1; member < plan.contents.size(); ++member) {
      all = fold(Number{all}, number_at<Number>(plan.contents[member], at));
    }
    append(result, Number{all});
  }
  return result;
}

Write read_of_floats(const Plan& plan, std::uint64_t offset, std::size_t bytes) {
  return {.offset = offset,
          .bytes = folded<float>(plan, offset, bytes, [](float a, float b) { return a + b; }),
          .view = kSumF32};
}

Write read_of_integers(const Plan& plan, std::uint64_t offset, std::size_t bytes) {
  return {.offset = offset,
          .bytes = folded<std::int32_t>(
              plan, offset, bytes, [](std::int32_t a, std::int32_t b) { return std::min(a, b); }),
          .view = kMinI32};
}

Write read_of_clocks(std::size_t first, std::size_t count) {
  return {.offset = kClocksAt + 8 * first,
          .bytes = Bytes(8 * count),
          .view = kSumU64,
          .is_of_clocks = true};
}

/// What a member has written, in the copies of all who got it; the others have zeros.
Write read_of_written(const Plan& plan, const Write& write) {
  const std::size_t copies =
      plan.spec.members.size() - (plan.spec.loopback == Loopback::on ? 0 : 1);
  Write read{.offset = write.offset, .bytes = write.bytes, .view = kSumU8};
  for (std::uint8_t& byte : read.bytes) {
    byte = static_cast<std::uint8_t>(byte * copies);
  }
  return read;
}

std::uint64_t drops_of(World& world, DropReason reason) {
  return world.network().engine().accounting().frames.dropped[static_cast<std::size_t>(reason)];
}

TEST(RegionPull, AnswersByTheFoldOfAllMembers) {
  Plan plan = pull_plan(3, 1);
  plan.writes[1] = {read_of_floats(plan, 8, 5 * kMtu + 16),
                    read_of_integers(plan, 0, kMtu),
                    {.offset = 0, .bytes = {}, .view = kSumF32},
                    read_of_floats(plan, 256, 8)};
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  const Counters& counters = world.region().counters();
  EXPECT_EQ(counters.reads, 4U);
  EXPECT_EQ(counters.folds, 6U + 1 + 1 + 1);
  EXPECT_EQ(counters.member_reads, 3U * (6 + 1 + 1)) << "nobody is asked for nothing";
  EXPECT_EQ(counters.member_reads_again + counters.folds_again, 0U);
  world.run_for(1'000'000);
  EXPECT_EQ(world.region().held(), 0U);
  EXPECT_EQ(world.region().entries_used(), 0U);
}

/// A READ behind a WRITE sees it at all members that get it.
TEST(RegionPull, ReadsWhatWasWrittenBefore) {
  for (const Loopback loopback : {Loopback::off, Loopback::on}) {
    Plan plan = pull_plan(3, 2);
    plan.spec.loopback = loopback;
    plan.links[2].delay = 500'000; // its copy is on the way when the others have theirs
    Dice dice(2);
    const Write write{.offset = kNumbersBytes, .bytes = random_bytes(1000, dice)};
    plan.writes[0] = {write, read_of_written(plan, write)};
    World world(plan);
    world.run_until([&] { return world.is_done(); });
  }
}

/// Each time all members are asked: results are not kept.
TEST(RegionPull, ReadsAnewForEachRead) {
  Plan plan = pull_plan(2, 3);
  plan.writes[0].assign(20, read_of_clocks(0, kClocks));
  plan.writes[1].assign(20, read_of_clocks(3, 8));
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  EXPECT_EQ(world.region().counters().member_reads, 2U * 20 * (2 + 1));
}

/// All entries are another reader's, and still each gets its turn.
TEST(RegionPull, GivesEntriesToReadersInTurn) {
  Plan plan = pull_plan(3, 4);
  plan.spec.entries = 2;
  for (MemberSpec& member : plan.spec.members) {
    member.reads = 4;
  }
  plan.writes[0] = {read_of_floats(plan, 0, kNumbersBytes), read_of_floats(plan, 0, kNumbersBytes)};
  plan.writes[2] = {read_of_floats(plan, 8, 8)};
  World world(plan);
  world.run_until([&] { return world.host(2).is_done(); });
  EXPECT_LT(world.region().counters().folds, 8U) << "it has waited for the long READs";
  world.run_until([&] { return world.is_done(); });
}

/// A READ whose turn has not come costs a member nothing: at most `reads` are under way to it.
TEST(RegionPull, AsksAMemberForAsManyAsItRemembers) {
  Plan plan = pull_plan(2, 5);
  plan.spec.members[0].reads = 2;
  plan.spec.members[1].reads = 3;
  plan.writes[0] = {read_of_floats(plan, 0, 10 * kMtu)};
  World world(plan);
  world.run_until([&] { return world.host(0).is_open() && world.host(1).is_open(); });
  world.network().from_switch(1).set_down();
  world.run_for(500'000);
  EXPECT_EQ(world.region().unacknowledged_by(1), 3U);
  EXPECT_EQ(world.region().unacknowledged_by(0), 0U) << "it has answered all that it was asked for";
  EXPECT_GE(world.region().counters().member_reads, 2U + 3);
}

/// What one member must not ask for, and how it is told.
struct Breach {
  std::string what;
  std::uint64_t offset = 0;
  std::size_t bytes = 8;
  std::uint32_t key = 0; // xor
  Right right = Right::all;
  bool has_views = true;
  std::size_t times = 1;
  endpoint::Status told{};
};

void PrintTo(const Breach& breach, std::ostream* stream) {
  *stream << breach.what;
}

class RegionPullBreach : public testing::TestWithParam<Breach> {};

TEST_P(RegionPullBreach, EndsTheRegion) {
  const Breach& breach = GetParam();
  Plan plan = pull_plan(3, 6);
  plan.spec.members[1].right = breach.right;
  if (!breach.has_views) {
    plan.spec.views.clear();
  }
  World world(plan);
  world.run_until([&] { return world.is_done(); });
  Bytes target(breach.bytes, 0xee);
  endpoint::SendRequest request;
  request.kind = endpoint::SendKind::read;
  request.target = target;
  request.remote_address = world.birth().base + breach.offset;
  request.remote_key = (breach.has_views ? world.birth().view_keys[kSumF32] : 1) ^ breach.key;
  world.host(1).queue_pair().post(request);
  world.host(1).act();
  world.run_for(1'000'000);
  EXPECT_EQ(world.region().why_ended(), End::broken);
  EXPECT_EQ(world.region().culprit(), 1);
  EXPECT_EQ(world.host(1).queue_pair().failure(), breach.told);
  EXPECT_EQ(target, Bytes(breach.bytes, 0xee)) << "V3";
  EXPECT_EQ(world.region().counters().member_reads, 0U) << "V5";
}

INSTANTIATE_TEST_SUITE_P(All, RegionPullBreach,
                         testing::Values(Breach{.what = "8 bytes too long",
                                                .offset = 16384 - 296,
                                                .bytes = 304,
                                                .told = endpoint::Status::remote_access},
                                         Breach{.what = "before the region",
                                                .offset = UINT64_MAX - 7,
                                                .told = endpoint::Status::remote_access},
                                         Breach{.what = "another key",
                                                .key = 1,
                                                .told = endpoint::Status::remote_access},
                                         Breach{.what = "by who may only write",
                                                .right = Right::write,
                                                .told = endpoint::Status::remote_access},
                                         Breach{.what = "no bytes, by who may only write",
                                                .bytes = 0,
                                                .right = Right::write,
                                                .told = endpoint::Status::remote_access},
                                         Breach{.what = "an offset that is no multiple of 8",
                                                .offset = 4,
                                                .told = endpoint::Status::remote_invalid_request},
                                         Breach{.what = "a length that is no multiple of 8",
                                                .bytes = 260,
                                                .told = endpoint::Status::remote_invalid_request},
                                         Breach{.what = "where there are no views",
                                                .has_views = false,
                                                .told = endpoint::Status::remote_invalid_request}));

/// The key of a view writes nothing, and that of writes reads nothing.
TEST(RegionPull, HasAKeyForEachView) {
  const Plan plan = pull_plan(2, 7);
  const RegionBirth birth = World::draw(plan);
  std::set<std::uint32_t> keys(birth.view_keys.begin(), birth.view_keys.end());
  keys.insert(birth.multicast_key);
  EXPECT_EQ(keys.size(), plan.spec.views.size() + 1);
}

/// A member's fatal NAK to a READ: its memory is gone.
TEST(RegionPull, EndsWhenAMemberRefuses) {
  Plan plan = pull_plan(3, 8);
  plan.spec.members[2].key += 100; // of nothing there
  plan.writes[0] = {read_of_floats(plan, 0, 8)};
  World world(plan);
  world.run_until([&] { return world.region().why_ended().has_value(); });
  EXPECT_EQ(world.region().why_ended(), End::refused);
  EXPECT_EQ(world.region().culprit(), 2);
  world.run_for(200'000'000);
  EXPECT_EQ(world.host(0).queue_pair().failure(), endpoint::Status::remote_operational);
  EXPECT_EQ(world.region().held(), 0U);
}

/// Its READ was answered, and the answer is lost: nobody has its data any more.
TEST(RegionPull, RefusesARepeatWhenTheRegionHasEnded) {
  for (const endpoint::Stack stack : {endpoint::Stack::ibta, endpoint::Stack::soft_roce}) {
    Plan plan = pull_plan(2, 9);
    plan.stacks.assign(2, stack);
    plan.links[1].delay = 50'000; // member 0 has answered long before the fold is complete
    plan.spec.members[1].reads = 3;
    plan.spec.members[0].reads = 3;
    plan.writes[0] = {read_of_floats(plan, 0, 600)};
    World world(plan);
    world.run_until([&] { return world.host(0).is_open() && world.host(1).is_open(); });
    world.run_until([&] { return world.region().counters().reads == 1; });
    world.run_for(30'000);
    world.network().from_switch(0).set_down();
    world.run_for(1'000'000);
    ASSERT_EQ(world.region().counters().folds, 3U);
    world.region().end(End::withdrawn, {world.network().now()});
    world.network().from_switch(0).set_up();
    world.run_for(100'000'000);
    EXPECT_EQ(world.host(0).queue_pair().failure(), endpoint::Status::remote_operational);
    EXPECT_EQ(world.host(0).completed(), 0U) << "V3";
  }
}

/// Runs until member 0 has two of five packets of its READ, and no more is on the way to it.
void run_into_read(World& world) {
  world.run_until([&] { return world.region().counters().folds == 2; });
  world.run_for(20'000);
  ASSERT_EQ(world.region().counters().folds, 2U);
}

Plan half_read_plan(endpoint::Stack stack) {
  Plan plan = pull_plan(2, 16);
  plan.stacks.assign(2, stack);
  plan.links[1].delay = 50'000; // and one packet at a time
  plan.writes[0] = {read_of_floats(plan, 0, 5 * kMtu)};
  return plan;
}

/// A NAK alone would complete it at soft-RoCE, without the rest of its data.
TEST(RegionPull, CutsAHalfAnsweredReadOff) {
  for (const endpoint::Stack stack : {endpoint::Stack::ibta, endpoint::Stack::soft_roce}) {
    World world(half_read_plan(stack));
    run_into_read(world);
    const std::uint64_t answers = world.region().counters().answers;
    world.region().end(End::withdrawn, {world.network().now()});
    world.run_for(10'000'000);
    EXPECT_EQ(world.region().counters().answers, answers) << "nobody is told unasked";
    world.run_for(20'000'000);
    EXPECT_EQ(world.host(0).queue_pair().failure(), endpoint::Status::bad_response);
    EXPECT_EQ(world.host(0).completed(), 0U) << "V3";
    EXPECT_EQ(world.region().counters().answers, answers + 1) << "the NAK behind it";
  }
}

/// What soft-RoCE sends after that: the rest of the READ, from behind the last response.
TEST(RegionPull, RefusesWhatFollowsACutOffRead) {
  const Plan plan = half_read_plan(endpoint::Stack::soft_roce);
  World world(plan);
  run_into_read(world);
  world.region().end(End::withdrawn, {world.network().now()});
  world.run_until([&] { return world.host(0).queue_pair().failure().has_value(); });
  const std::uint32_t first = wire::psn_add(plan.spec.members[0].first_psn, 1);
  endpoint::PacketWriter writer(world.host(0).queue_pair().config());
  const auto ask = [&](std::uint32_t packet) {
    Bytes frame(region_test::kLongestFrame);
    frame.resize(writer.write_request(frame,
                                      {.opcode = wire::Opcode::read_request,
                                       .ack_request = endpoint::AckRequest::yes,
                                       .psn = wire::psn_add(first, packet),
                                       .remote_address = world.birth().base,
                                       .remote_key = world.birth().view_keys[kSumF32],
                                       .message_bytes = 8,
                                       .immediate = 0},
                                      {}));
    const std::uint64_t before = world.network().engine().accounting().frames.originated;
    world.network().send(0, frame);
    world.run_for(100'000);
    return world.network().engine().accounting().frames.originated - before;
  };
  EXPECT_EQ(ask(3), 1U) << "a NAK: it has had the response before";
  EXPECT_EQ(ask(2), 2U) << "that response was lost";
  EXPECT_EQ(ask(5), 0U) << "behind the READ";
  EXPECT_EQ(ask(0), 1U) << "a NAK: it has nothing of the READ";
}

/// Its own breach does not complete a READ of its own either.
TEST(RegionPull, TellsWhoBrokeItBehindItsRead) {
  World world(half_read_plan(endpoint::Stack::soft_roce));
  run_into_read(world);
  endpoint::SendRequest request;
  request.kind = endpoint::SendKind::send;
  world.host(0).queue_pair().post(request);
  world.host(0).act();
  world.run_for(30'000'000);
  EXPECT_EQ(world.region().why_ended(), End::broken);
  EXPECT_EQ(world.host(0).queue_pair().failure(), endpoint::Status::bad_response);
  EXPECT_EQ(world.host(0).completed(), 0U) << "V3";
}

/// P4: while a READ is answered again, a repeated WRITE behind it is not; then both are.
TEST(RegionPull, AcknowledgesWritesBehindAReadThatIsAnsweredAgain) {
  Plan plan = half_read_plan(endpoint::Stack::ibta);
  plan.writes[0] = {read_of_floats(plan, 0, 8), {.offset = kNumbersBytes, .bytes = Bytes(8, 1)}};
  World world(plan);
  world.run_until([&] { return world.region().counters().reads == 1; });
  world.run_for(30'000); // member 0 has answered the READ of it
  world.network().from_switch(0).set_down();
  world.run_for(1'000'000); // the response and the ACK are lost
  world.network().from_switch(0).set_up();
  world.run_until([&] { return world.is_done(); });
  EXPECT_EQ(world.region().counters().folds_again, 1U);
  EXPECT_EQ(world.host(0).queue_pair().statistics().timeouts, 1U);
}

/// P5: a lost response is asked for again, by the old PSN, though nothing else shows the loss.
TEST(RegionPull, AsksAgainForALostResponse) {
  Plan plan = pull_plan(2, 10);
  plan.writes[0] = {read_of_floats(plan, 0, 8)};
  World world(plan);
  world.run_until([&] { return world.host(0).is_open() && world.host(1).is_open(); });
  world.network().to_switch(1).set_down();
  world.run_for(500'000);
  world.network().to_switch(1).set_up();
  world.run_until([&] { return world.is_done(); });
  EXPECT_GE(world.region().counters().member_reads_again, 1U);
  EXPECT_EQ(world.host(0).queue_pair().statistics().timeouts, 0U);
}

/// The newest answered WRITE, while READs behind it wait longer than an ACK timeout.
TEST(RegionPull, KeepsAReaderAliveByTheNameOfAWrite) {
  Plan plan = pull_plan(2, 11);
  plan.stacks.assign(2, endpoint::Stack::soft_roce);
  plan.retries = 1;
  plan.writes[0] = {read_of_floats(plan, 0, 600)};
  World world(plan);
  world.run_until([&] { return world.host(0).is_open() && world.host(1).is_open(); });
  world.network().to_switch(1).set_down();
  world.run_for(200'000'000);
  EXPECT_EQ(world.host(0).completed(), 0U) << "V3";
  EXPECT_EQ(world.host(0).queue_pair().statistics().timeouts, 0U);
  world.network().to_switch(1).set_up();
  world.run_until([&] { return world.is_done(); });
}

constexpr std::uint32_t kPsn = 0xfffffd; // a READ of five packets passes the highest PSN
constexpr std::uint64_t kAddress = 0x1000;
constexpr std::uint32_t kViewKey = 9;

/// With a READ of so many packets, the last of which has 8 bytes.
Read read_of(std::uint32_t packets, std::uint32_t psn = kPsn) {
  return {.psn = psn,
          .packets = packets,
          .key = kViewKey,
          .address = kAddress,
          .offset = 512,
          .bytes = static_cast<std::uint32_t>((packets - 1) * kMtu + 8)};
}

/// As a member repeats it from that packet on.
endpoint::ReadRequest rest_of(const Read& read, std::uint32_t packet) {
  const auto skipped = static_cast<std::uint32_t>(packet * kMtu);
  return {wire::psn_add(read.psn, packet), read.key, read.address + skipped, read.bytes - skipped};
}

/// All answers that are due, as "first middle", and the reader has none any more.
std::string leave_all(Reader& reader) {
  constexpr const char* names[] = {"first", "middle", "last", "only"};
  std::string parts;
  while (const auto due = reader.due(0)) {
    parts += (parts.empty() ? "" : " ") + std::to_string(wire::psn_distance(kPsn, due->psn)) +
             names[static_cast<std::size_t>(due->part)];
    reader.leave();
  }
  return parts;
}

void leave(Reader& reader, int answers) {
  for (; answers != 0; --answers) {
    reader.leave();
  }
}

/// P6 (IBTA table 38): whatever the requester asks for begins with FIRST or ONLY.
TEST(Reader, BeginsWhatIsAnsweredAgainAnew) {
  Reader reader(kMtu, 2);
  const Read read = read_of(5);
  reader.accept(read);
  EXPECT_EQ(leave_all(reader), "0first 1middle 2middle 3middle 4last");
  EXPECT_EQ(reader.repeat(rest_of(read, 2)), 0U);
  EXPECT_EQ(reader.due(2)->bytes, 8U);
  EXPECT_EQ(reader.due(2)->offset, 512U + 4 * kMtu);
  EXPECT_EQ(leave_all(reader), "2first 3middle 4last");
  EXPECT_EQ(reader.repeat(rest_of(read, 4)), 0U);
  EXPECT_EQ(leave_all(reader), "4only");
  endpoint::ReadRequest part = rest_of(read, 1);
  part.bytes = 2 * kMtu;
  EXPECT_EQ(reader.repeat(part), 0U);
  EXPECT_EQ(leave_all(reader), "1first 2last") << "it asked for no more";
}

/// P4: up to what has been answered; then the answers go on where they were.
TEST(Reader, AnswersAgainBeforeWhatIsNew) {
  Reader reader(kMtu, 2);
  const Read read = read_of(5);
  reader.accept(read);
  leave(reader, 3);
  EXPECT_EQ(reader.repeat(rest_of(read, 1)), 0U);
  EXPECT_TRUE(reader.is_answering_again());
  EXPECT_EQ(leave_all(reader), "1first 2middle 3middle 4last");
  EXPECT_EQ(reader.unanswered_reads(), 0U);
}

/// P4: the same PSN changes nothing, a lower one begins a new pass, and what is in a pass is there.
TEST(Reader, KnowsAPassFromTheNext) {
  Reader reader(kMtu, 3);
  const Read first = read_of(3);
  const Read second = read_of(2, wire::psn_add(kPsn, 3));
  reader.accept(first);
  reader.accept(second);
  leave(reader, 5);
  EXPECT_EQ(reader.repeat(rest_of(first, 1)), 0U);
  EXPECT_EQ(reader.repeat(rest_of(second, 0)), 2U) << "the two before it are due as before";
  EXPECT_EQ(reader.repeat(rest_of(second, 1)), std::nullopt) << "it is there";
  EXPECT_EQ(reader.repeat(rest_of(first, 1)), 2U) << "the second one comes again";
  EXPECT_EQ(reader.due(2), std::nullopt);
  reader.leave();
  EXPECT_EQ(reader.repeat(rest_of(first, 2)), 1U) << "the next one that is due";
  EXPECT_EQ(reader.repeat(rest_of(first, 0)), 0U) << "a new pass";
  EXPECT_EQ(leave_all(reader), "0first 1middle 2last");
}

TEST(Reader, RepeatsWhatItRemembersAlone) {
  Reader reader(kMtu, 1);
  const Read read = read_of(3);
  reader.accept(read);
  EXPECT_EQ(reader.repeat(rest_of(read, 0)), std::nullopt) << "it is not answered";
  EXPECT_FALSE(reader.has_room());
  leave(reader, 3);
  endpoint::ReadRequest wrong = rest_of(read, 1);
  wrong.remote_key ^= 1;
  EXPECT_EQ(reader.repeat(wrong), std::nullopt);
  wrong = rest_of(read, 1);
  wrong.address += 8;
  EXPECT_EQ(reader.repeat(wrong), std::nullopt);
  wrong = rest_of(read, 1);
  wrong.bytes += 8;
  EXPECT_EQ(reader.repeat(wrong), std::nullopt) << "beyond the READ";
  EXPECT_EQ(reader.repeat(rest_of(read, 1)), 0U);
  const Read next = read_of(1, wire::psn_add(kPsn, 3));
  EXPECT_EQ(reader.accept(next), 0U) << "what was due again is not";
  EXPECT_EQ(reader.repeat(rest_of(read, 1)), std::nullopt) << "it is forgotten";
  EXPECT_EQ(leave_all(reader), "3only");
}

/// A reader cannot have more due than it has READs, whatever it repeats.
TEST(Reader, AnswersNoMorePartsThanReads) {
  Reader reader(kMtu, 2);
  const Read read = read_of(5);
  reader.accept(read);
  leave(reader, 5);
  for (std::uint32_t packet = 0; packet < 5; ++packet) {
    endpoint::ReadRequest one = rest_of(read, packet);
    one.bytes = 8;
    EXPECT_EQ(reader.repeat(one).has_value(), packet < 2) << packet;
  }
}

/// 2^22 PSNs behind, a number soon means another packet.
TEST(Reader, ForgetsWhatIsFarBehind) {
  Reader reader(kMtu, 4);
  reader.accept(read_of(2));
  leave(reader, 2);
  reader.forget_old(wire::psn_add(kPsn, 3 << 21));
  EXPECT_EQ(reader.psn_below_all(), wire::psn_add(kPsn, -1));
  reader.forget_old(wire::psn_add(kPsn, (3 << 21) + 1));
  EXPECT_EQ(reader.psn_below_all(), std::nullopt);
}

constexpr std::uint64_t kMs = 1'000'000;
constexpr PullTable::Asked kAsked{{1, 1}, {0, 8}};
constexpr auto kNoCopies = [](const Copy&) { FAIL() << "there are READs only"; };

/// The PSNs of what leaves now.
std::vector<std::uint32_t> sent_now(Requester& requester, std::uint64_t now) {
  std::vector<std::uint32_t> psns;
  while (const auto due = requester.next(now)) {
    psns.push_back(due->psn);
  }
  return psns;
}

using Psns = std::vector<std::uint32_t>;

/// P2: a span of READs, answered ones too.
TEST(Requester, AsksForASpanOfReads) {
  Requester requester(100, 8, 2, 10'000 * kMs);
  requester.add_read(kAsked, 0);
  requester.add_read(kAsked, 0);
  EXPECT_FALSE(requester.has_room_for_read());
  EXPECT_EQ(sent_now(requester, 0), (Psns{100, 101}));
  EXPECT_TRUE(requester.take_response(101, 8, 1000, kNoCopies));
  EXPECT_FALSE(requester.has_room_for_read()) << "the member would forget the first one";
  EXPECT_TRUE(requester.take_response(100, 8, 2000, kNoCopies));
  EXPECT_TRUE(requester.has_room_for_read());
}

/// P5, W4: an acknowledgement above a READ shows that its response is lost, and is not its data.
TEST(Requester, AsksAgainForAReadBelowAnAcknowledgement) {
  Requester requester(100, 8, 2, 10'000 * kMs);
  requester.add_read(kAsked, 0);
  requester.add({.source = 3}, 0);
  requester.add({.source = 4}, 0);
  EXPECT_EQ(sent_now(requester, 0), (Psns{100, 101, 102}));
  std::vector<std::uint16_t> had;
  const auto has = [&had](const Copy& copy) { had.push_back(copy.source); };
  requester.take(wire::kAckUnlimited, 101, 1000, has);
  EXPECT_EQ(had, (std::vector<std::uint16_t>{3}));
  EXPECT_EQ(requester.unacknowledged(), 2U);
  EXPECT_EQ(sent_now(requester, 1000), (Psns{100, 102})) << "what the member has is not repeated";
  requester.take(wire::kAckUnlimited, 101, 2000, has);
  EXPECT_EQ(sent_now(requester, 2000), Psns{}) << "the same says nothing new";
  EXPECT_TRUE(requester.take_response(100, 8, 3000, has));
  EXPECT_FALSE(requester.take_response(100, 8, 3000, has)) << "a READ has one response";
  requester.take(wire::kAckUnlimited, 102, 4000, has);
  EXPECT_EQ(had, (std::vector<std::uint16_t>{3, 4}));
  EXPECT_EQ(requester.unacknowledged(), 0U);
  EXPECT_EQ(requester.waits_since(), kNever);
}

/// W3: who answers a READ has the copies before it.
TEST(Requester, TakesAResponseForTheCopiesBelowIt) {
  Requester requester(100, 8, 2, 10'000 * kMs);
  requester.add({.source = 3}, 0);
  requester.add_read(kAsked, 0);
  EXPECT_EQ(sent_now(requester, 0), (Psns{100, 101}));
  int had = 0;
  EXPECT_EQ(requester.take_response(102, 8, 1000, kNoCopies), std::nullopt) << "was not sent";
  EXPECT_EQ(requester.take_response(100, 8, 1000, kNoCopies), std::nullopt) << "a copy's";
  EXPECT_EQ(requester.take_response(101, 16, 1000, kNoCopies), std::nullopt) << "too long";
  EXPECT_EQ(requester.take_response(101, 8, 1000, [&had](const Copy&) { ++had; }),
            (EntryName{1, 1}));
  EXPECT_EQ(had, 1);
}

/// Of member 0, in its place among the requests.
void accept_write(Responder& responder, const RegionBirth& birth, std::uint32_t psn) {
  endpoint::QueuePairConfig config;
  config.local_ip = region_test::ip_of(0);
  config.remote_ip = region_test::regions_address().ip;
  config.send_psn = psn;
  Bytes bytes = region_test::write_only(config, birth, Bytes(8, 1));
  frame::Frame frame;
  frame.data = bytes.data();
  frame.length = static_cast<std::uint32_t>(bytes.size());
  frame.packet = wire::parse(bytes);
  responder[responder.accept(frame, birth, 0)].frame = nullptr; // all have it
  responder.advance(0);
}

/// A3, where soft-RoCE would complete a READ without data.
TEST(Responder, NamesNoReadByAnAcknowledgement) {
  Plan plan = pull_plan(2, 12);
  plan.spec.members[0].reads = 4;
  const RegionBirth birth = World::draw(plan);
  const MemberSpec& member = plan.spec.members[0];
  Responder responder(plan.spec, member);
  responder.accept_hello(0);
  responder[0].missing = 0;
  responder.advance(0);
  const std::uint32_t hello = member.first_psn;
  EXPECT_EQ(responder.acknowledged(), hello);
  const auto answer_read = [&](std::uint32_t psn, std::uint32_t packets) {
    responder.accept_read(
        {psn, birth.view_keys[0], birth.base, static_cast<std::uint32_t>(packets * kMtu)}, birth,
        0);
    for (; packets != 0; --packets) {
      responder.answer_read(0);
    }
  };
  answer_read(wire::psn_add(hello, 1), 3);
  EXPECT_EQ(responder.unanswered(), wire::psn_add(hello, 4));
  EXPECT_EQ(responder.acknowledged(), hello);
  accept_write(responder, birth, wire::psn_add(hello, 4));
  EXPECT_EQ(responder.acknowledged(), wire::psn_add(hello, 4));
  responder.repeat_read({wire::psn_add(hello, 3), birth.view_keys[0], birth.base + 2 * kMtu, kMtu},
                        0);
  EXPECT_EQ(responder.acknowledged(), hello) << "below all READs";
  accept_write(responder, birth, wire::psn_add(hello, 5));
  EXPECT_EQ(responder.unanswered(), wire::psn_add(hello, 5)) << "P4 goes before all that is new";
  responder.answer_read(0);
  EXPECT_EQ(responder.acknowledged(), wire::psn_add(hello, 4));
  responder.advance(0);
  EXPECT_EQ(responder.acknowledged(), wire::psn_add(hello, 5));
  std::uint32_t psn = wire::psn_add(hello, 6);
  for (std::uint64_t packets = 0; packets < (1U << 25); packets += 1U << 17) {
    answer_read(psn, 1U << 17);
    psn = wire::psn_add(psn, 1 << 17);
    const std::int32_t behind = wire::psn_distance(responder.acknowledged(), psn);
    ASSERT_GT(behind, packets < (1U << 19) ? 0 : 1 << 19) << "it names one of the last four READs";
    ASSERT_LE(behind, (1 << 22) + 1) << "after " << packets << " packets no WRITE came";
  }
}

/// A4: a NAK names the first PSN of a request, where nothing is answered again.
TEST(Responder, AsksBetweenRequestsAlone) {
  Plan plan = pull_plan(2, 13);
  const RegionBirth birth = World::draw(plan);
  const MemberSpec& member = plan.spec.members[0];
  Responder responder(plan.spec, member);
  const std::uint32_t psn = member.first_psn;
  const endpoint::ReadRequest read{psn, birth.view_keys[0], birth.base, 2 * kMtu};
  responder.accept_read(read, birth, 0);
  responder.hear(wire::psn_add(psn, 9)); // so some are lost
  responder.answer_read(0);
  EXPECT_EQ(responder.ask(kMs), Responder::Ask::nothing) << "the READ is half answered";
  EXPECT_EQ(responder.ask_timer(), kNever);
  responder.answer_read(0);
  responder.repeat_read(read, 0);
  EXPECT_EQ(responder.ask(kMs), Responder::Ask::nothing) << "it is answered again";
  responder.answer_read(0);
  responder.answer_read(0);
  EXPECT_EQ(responder.ask(kMs), Responder::Ask::nak);
}

/// MSN: a READ counts from its first response on, and once (IBTA §9.7.7.1).
TEST(Responder, CountsAReadFromItsFirstResponse) {
  Plan plan = pull_plan(2, 14);
  const RegionBirth birth = World::draw(plan);
  Responder responder(plan.spec, plan.spec.members[0]);
  const std::uint32_t psn = plan.spec.members[0].first_psn;
  const endpoint::ReadRequest read{psn, birth.view_keys[0], birth.base, 2 * kMtu};
  responder.accept_read(read, birth, 0);
  EXPECT_EQ(responder.message_sequence(), 0U);
  EXPECT_EQ(responder.answer_read(0), 1U);
  EXPECT_EQ(responder.answer_read(0), 1U);
  responder.repeat_read(read, 0);
  EXPECT_EQ(responder.answer_read(0), 1U);
}

/// So that PSNs have an order; and no more than the member has said that it would.
TEST(Responder, TakesNoReadThatIsTooLong) {
  Plan plan = pull_plan(2, 15);
  plan.spec.bytes = std::uint64_t{1} << 40;
  const RegionBirth birth = World::draw(plan);
  Responder responder(plan.spec, plan.spec.members[0]);
  const std::uint32_t psn = plan.spec.members[0].first_psn;
  endpoint::ReadRequest read{psn, birth.view_keys[0], birth.base,
                             static_cast<std::uint32_t>(kMostReadPackets * kMtu)};
  EXPECT_EQ(responder.judge_read(read, birth), Responder::Verdict::accept);
  read.bytes += 8;
  EXPECT_EQ(responder.judge_read(read, birth), Responder::Verdict::invalid_request);
  EXPECT_EQ(responder.judge_read(std::nullopt, birth), Responder::Verdict::invalid_request);
  read.bytes = 8;
  responder.accept_read(read, birth, 0);
  read.psn = wire::psn_add(psn, 1);
  EXPECT_EQ(responder.judge_read(read, birth), Responder::Verdict::invalid_request)
      << "its `reads` is 1";
}

void add_requests(Plan& plan, std::uint16_t member, Dice& dice) {
  std::vector<Write>& requests = plan.writes[member];
  std::uint64_t at = kNumbersBytes + member * kShareBytes;
  const std::uint64_t end = at + kShareBytes;
  const std::uint64_t count = dice.between(1, 16);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t bytes = 8 * (dice.below(dice.pick({2U, 33U, 150U})) + 1);
    const std::uint64_t offset = 8 * dice.below((kNumbersBytes - bytes) / 8 + 1);
    switch (dice.below(5)) {
    case 0:
      requests.push_back(read_of_floats(plan, offset, bytes));
      break;
    case 1:
      requests.push_back(read_of_integers(plan, offset, bytes));
      break;
    case 2:
      requests.push_back(read_of_clocks(dice.below(20), dice.between(1, kClocks - 20)));
      break;
    default:
      if (at + bytes <= end) {
        requests.push_back({.offset = at,
                            .bytes = random_bytes(bytes, dice),
                            .has_immediate = dice.chance(40 * kPercent)});
        at += bytes;
        if (dice.chance(50 * kPercent)) {
          requests.push_back(read_of_written(plan, requests.back()));
        }
      }
    }
  }
}

Plan random_plan(std::uint64_t seed) {
  Dice dice(seed);
  Plan plan = pull_plan(static_cast<std::uint16_t>(dice.between(2, 4)), seed);
  plan.spec.window = static_cast<std::uint32_t>(dice.between(2, 40));
  plan.spec.entries = dice.pick({1U, 2U, 6U, 32U});
  plan.spec.loopback = dice.pick({Loopback::off, Loopback::on});
  plan.host_window = dice.pick({2U, 8U, 32U});
  plan.receive_late = dice.chance(20 * kPercent) ? 50 * kPercent : 0;
  const bool is_bad = dice.chance(80 * kPercent);
  // V7: without loss, and with room for what hosts send, a queue pair needs no more.
  const bool may_need_more = is_bad || plan.host_window > plan.spec.window;
  plan.retries = may_need_more ? endpoint::kRetryForever : 1;
  for (std::uint16_t member = 0; member < plan.links.size(); ++member) {
    LinkTraits& link = plan.links[member];
    plan.stacks[member] = dice.pick({endpoint::Stack::ibta, endpoint::Stack::soft_roce});
    plan.starts[member] = 1000 + dice.below(dice.pick({1U, 100'000U}));
    plan.spec.members[member].reads =
        dice.pick({std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{4}});
    plan.spec.members[member].first_psn = draw_first_psn(dice);
    link.spread = 60'000;
    link.late = 0;
    if (is_bad) {
      draw_faults(link, dice);
    }
    link.order = dice.pick({LinkTraits::Order::kept, LinkTraits::Order::free});
    add_requests(plan, member, dice);
  }
  return plan;
}

void check_end(World& world) {
  EXPECT_EQ(world.region().state(), State::open);
  EXPECT_EQ(world.region().held(), 0U) << "W3, P3";
  EXPECT_EQ(world.region().entries_used(), 0U);
  for (std::size_t member = 0; member < world.members(); ++member) {
    EXPECT_EQ(world.host(member).queue_pair().state(), endpoint::QueuePair::State::ready)
        << "V5, V7";
    EXPECT_EQ(world.region().unacknowledged_by(static_cast<std::uint16_t>(member)), 0U);
  }
}

TEST(RegionPull, HoldsUnderBadLinks) {
  constexpr std::uint64_t seeds = test::rounds(1500);
  Counters total;
  std::uint64_t unwanted = 0;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Plan plan = random_plan(seed);
    World world(plan);
    ASSERT_NO_FATAL_FAILURE(world.run_until([&] { return world.is_done(); }));
    for (std::uint16_t member = 0; member < world.members(); ++member) {
      world.network().from_switch(member).become_reliable();
      world.network().to_switch(member).become_reliable();
    }
    ASSERT_NO_FATAL_FAILURE(world.run_for(200'000'000)); // what is late must do no harm
    check_end(world);
    total.reads += world.region().counters().reads;
    total.folds_again += world.region().counters().folds_again;
    total.member_reads_again += world.region().counters().member_reads_again;
    unwanted += drops_of(world, DropReason::region_response);
  }
  // A simulation without these events would show nothing.
  EXPECT_GT(total.reads, 8 * seeds);
  EXPECT_GT(total.folds_again, seeds);
  EXPECT_GT(total.member_reads_again, seeds);
  EXPECT_GT(unwanted, seeds / 10);
}

} // namespace
} // namespace weir::region::region_pull_test
