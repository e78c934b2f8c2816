// SPDX-License-Identifier: BSD-3-Clause

/// Groups of several rings, of which some do not answer all ranks: the ranks agree on those that
/// do, or on what else the options allow.

#include "host/rendezvous/hello_outcomes.hpp"
#include "host_job.hpp"
#include "wire/headers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <gmock/gmock.h>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::host::missing_rings_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto kPatience = milliseconds(1000); // of a rank's hellos

/// A rank's cable, on which hellos and their results may not come through.
struct Cable {
  std::set<std::uint32_t> deaf_for;  // rings whose hellos' results are lost
  std::set<std::uint32_t> mute_for;  // rings whose hellos are lost
  std::set<std::uint32_t> slow_for;  // rings whose hellos are held back
  std::atomic<bool> lets_go = false; // sends on what it holds back
  std::atomic<int> released = 0;
};

class CableIo : public ForwardingIo, private FrameReader {
 public:
  CableIo(std::unique_ptr<FrameIo> device, Cable& cable)
      : ForwardingIo(std::move(device)), cable_(cable) {}

  std::size_t receive(FrameReader& reader) override {
    reader_ = &reader;
    if (cable_.lets_go) {
      release();
    }
    return ForwardingIo::receive(*this);
  }

  std::span<std::uint8_t> reserve(std::size_t bytes) override {
    return room_ = ForwardingIo::reserve(bytes);
  }

  void commit(std::size_t frame_bytes) override {
    const auto frame = room_.first(frame_bytes);
    const std::optional<std::uint32_t> ring = ring_of_hello(frame);
    if (ring && cable_.slow_for.contains(*ring) && !cable_.lets_go) {
      held_.emplace_back(frame.begin(), frame.end());
    } else if (!ring || !cable_.mute_for.contains(*ring)) {
      ForwardingIo::commit(frame_bytes);
    }
  }

 private:
  /// Of a frame with IPv4 that has a hello, or a hello's result.
  static std::optional<std::uint32_t> ring_of_hello(std::span<const std::uint8_t> frame) {
    constexpr std::size_t bth = 14 + 20 + 8;
    constexpr std::size_t ina = bth + 12 + 4;
    constexpr std::uint8_t send_only_immediate = 0x05;
    if (frame.size() < ina + sizeof(wire::InaHeader) || frame[bth] != send_only_immediate) {
      return std::nullopt;
    }
    const auto& header = wire::view_as<wire::InaHeader>(&frame[ina]);
    const bool is_hello = header.magic.get() == kInaMagic &&
                          header.collective == static_cast<std::uint8_t>(Collective::hello);
    return is_hello ? std::optional(header.ring_id.get()) : std::nullopt;
  }

  void accept(std::span<std::uint8_t> frame) override {
    const std::optional<std::uint32_t> ring = ring_of_hello(frame);
    if (!ring || !cable_.deaf_for.contains(*ring)) {
      reader_->accept(frame);
    }
  }

  void release() {
    for (const Bytes& frame : std::exchange(held_, {})) {
      std::ranges::copy(frame, ForwardingIo::reserve(frame.size()).begin());
      ForwardingIo::commit(frame.size());
      ++cable_.released;
    }
  }

  Cable& cable_;
  FrameReader* reader_ = nullptr;
  std::span<std::uint8_t> room_;
  std::vector<Bytes> held_;
};

/// Three ranks, each with a cable, around a switch that knows `known`.
class Rings : public testing::Test {
 protected:
  using Body = std::function<void(Group&)>;

  GroupOptions options(std::uint16_t rank) const {
    GroupOptions options = options_of(plan_, rank, address_);
    options.form_timeout = 2 * patience_;
    options.missing_rings = missing_rings_;
    options.retry_count = retry_count_;
    return options;
  }

  void connect(const std::vector<std::uint32_t>& known) {
    JobPlan plan = plan_;
    plan.rings = known;
    fabric_ = std::make_unique<HostFabric>(rings_of(plan), plan.world, kSession);
  }

  std::unique_ptr<Group> form(std::uint16_t rank) {
    return std::make_unique<Group>(
        options(rank), std::make_unique<CableIo>(fabric_->open(rank), cables_.at(rank)));
  }

  /// How each rank of a group ends that is formed, does this and closes.
  std::vector<Ending> run(const Body& body) {
    return run_ranks(plan_.world, [&](std::uint16_t rank) { body(*form(rank)); });
  }

  static void expect_sums(Group& group) {
    const std::uint32_t world = group.world();
    for (const std::uint32_t count : {1U, 2U, 239U, 5000U}) {
      std::vector<std::uint32_t> in(count);
      std::iota(in.begin(), in.end(), group.rank());
      std::vector<std::uint32_t> sums(count);
      group.all_reduce(in.data(), sums.data(), count, DataType::u32, Operation::sum);
      for (std::uint32_t i = 0; i < count; ++i) {
        ASSERT_EQ(sums[i], world * i + world * (world - 1) / 2);
      }
    }
  }

  JobPlan plan_{.world = 3, .rings = {1, 2}};
  MissingRings missing_rings_ = MissingRings::leave_out;
  std::uint8_t retry_count_ = 7; // for ever
  milliseconds patience_ = kPatience;
  const std::string address_ = free_address();
  std::vector<Cable> cables_ = std::vector<Cable>(plan_.world);
  std::unique_ptr<HostFabric> fabric_;
};

TEST_F(Rings, AllCarryTheCallsIfAllAnswer) {
  connect({1, 2});
  expect_none(run([](Group& group) {
    EXPECT_THAT(group.rings(), ElementsAre(1, 2));
    EXPECT_EQ(group.missing_rings(), "");
    expect_sums(group);
  }));
}

TEST_F(Rings, AreLeftOutByAllRanksIfOneGetsNoAnswer) {
  connect({1, 2});
  cables_[1].deaf_for = {2};
  expect_none(run([](Group& group) {
    EXPECT_THAT(group.rings(), ElementsAre(1));
    EXPECT_EQ(
        group.missing_rings(),
        "ring 2 is left out: rank 1 got no answer to its hello within 1000 ms; the group goes "
        "on with ring 1");
    EXPECT_EQ(group.algorithm(), Algorithm::in_switch);
    EXPECT_THAT(group.options().rings, ElementsAre(1, 2)) << "a group that shrinks tries both";
    expect_sums(group);
  }));
}

TEST_F(Rings, AreLeftOutIfNobodyAggregatesThem) {
  plan_.rings = {4, 5, 6};
  patience_ = milliseconds(20'000);
  connect({4, 6});
  const auto start = Clock::now();
  expect_none(run([](Group& group) {
    EXPECT_THAT(group.rings(), ElementsAre(4, 6));
    EXPECT_THAT(group.missing_rings(), AllOf(StartsWith("ring 5 is left out: no RESULT flag"),
                                             EndsWith("; the group goes on with rings 4, 6")));
    expect_sums(group);
  }));
  EXPECT_LT(Clock::now() - start, patience_) << "there was nothing to wait for";
}

/// Its queue pair has failed, and that of no other ring.
TEST_F(Rings, AreLeftOutIfARanksHelloStaysUnacknowledged) {
  retry_count_ = 2;
  connect({1, 2});
  cables_[1].mute_for = {2};
  expect_none(run([](Group& group) {
    EXPECT_THAT(group.rings(), ElementsAre(1));
    expect_sums(group);
  }));
}

TEST_F(Rings, AreNamedIfNoneAnswers) {
  connect({1, 2});
  fabric_->cut();
  const auto endings = run([](Group&) {});
  expect_all(endings, ErrorCode::timeout);
  for (const Ending& ending : endings) {
    EXPECT_THAT(ending.text,
                AllOf(StartsWith("no ring is left: ring 1: rank 0 got no answer to its hello"),
                      HasSubstr("; ring 2: rank 0 got no answer"), HasSubstr("`reset ring 2`")));
  }
}

TEST_F(Rings, OfTheHostsTakeOverIfNoneAnswersAndTheyMay) {
  plan_.fallback = Fallback::ring;
  connect({1, 2});
  cables_[0].deaf_for = {1};
  cables_[2].deaf_for = {2};
  expect_none(run([](Group& group) {
    EXPECT_EQ(group.algorithm(), Algorithm::ring);
    EXPECT_EQ(group.fallback_reason(),
              "no ring is left: ring 1: rank 0 got no answer to its hello within 1000 ms; ring 2: "
              "rank 2 got no answer to its hello within 1000 ms");
    EXPECT_THAT(group.rings(), ElementsAre());
    EXPECT_EQ(group.missing_rings(), "");
    expect_sums(group);
  }));
}

TEST_F(Rings, MayNotBeMissingIfTheOptionsRefuse) {
  missing_rings_ = MissingRings::refuse;
  connect({1, 2});
  cables_[1].deaf_for = {2};
  const auto endings = run([](Group&) {});
  expect_all(endings, ErrorCode::timeout);
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.text, "ring 2 is missing: rank 1 got no answer to its hello within 1000 ms; "
                           "the group may not go on with ring 1 alone (missing_rings)");
  }
}

TEST_F(Rings, OfTheHostsTakeOverIfTheOptionsRefuseAnyLess) {
  missing_rings_ = MissingRings::refuse;
  plan_.fallback = Fallback::ring;
  connect({1});
  expect_none(run([](Group& group) {
    EXPECT_EQ(group.algorithm(), Algorithm::ring);
    EXPECT_THAT(group.fallback_reason(), StartsWith("ring 2 is missing: no RESULT flag"));
    expect_sums(group);
  }));
}

/// The hello that was missing comes while the others' still wait at the switch: it begins what
/// nobody uses, and the next group has the ring again.
TEST_F(Rings, ThatAnswerLateDisturbNobody) {
  connect({1, 2});
  cables_[1].slow_for = {2};
  std::barrier together(plan_.world);
  expect_none(run([&](Group& group) {
    EXPECT_THAT(group.rings(), ElementsAre(1));
    expect_sums(group);
    together.arrive_and_wait();
    cables_[1].lets_go = true;
    for (int call = 0; call < 20; ++call) {
      expect_sums(group);
    }
  }));
  EXPECT_GT(cables_[1].released, 0);
  expect_none(run([](Group& group) {
    EXPECT_THAT(group.rings(), ElementsAre(1, 2));
    expect_sums(group);
  }));
}

/// Its device throws, and so its thread ends before it has told what became of its hellos.
class DyingIo : public ForwardingIo {
 public:
  using ForwardingIo::ForwardingIo;

  std::size_t receive(FrameReader& /*reader*/) override {
    throw std::runtime_error("the device is on fire");
  }
};

TEST_F(Rings, AreOfNoUseToRanksOfWhichOneDiesBeforeTheyAgree) {
  connect({1, 2});
  const auto start = Clock::now();
  const auto endings = run_ranks(plan_.world, [&](std::uint16_t rank) {
    if (rank != 2) {
      form(rank);
      return;
    }
    try {
      Group(options(rank), std::make_unique<DyingIo>(fabric_->open(rank)));
    } catch (const std::runtime_error&) {
      throw Error(ErrorCode::aborted, rank, "died");
    }
  });
  EXPECT_LT(Clock::now() - start, 2 * kPatience + milliseconds(3000));
  for (const std::uint16_t rank : {0, 1}) {
    EXPECT_EQ(endings[rank].code, ErrorCode::peer_died) << endings[rank].text;
    EXPECT_EQ(endings[rank].rank, 2);
  }
}

TEST_F(Rings, AreNamedWhenOneEndsACall) {
  retry_count_ = 2;
  connect({1, 2});
  std::barrier together(plan_.world);
  const auto endings = run([&](Group& group) {
    expect_sums(group);
    together.arrive_and_wait();
    fabric_->cut();
    expect_sums(group);
  });
  expect_all(endings, ErrorCode::retry_exceeded);
  EXPECT_THAT(endings[0].text, AllOf(HasSubstr("; ring "), HasSubstr(" under way")));
}

TEST_F(Rings, MayBeMissingOnAllRanksAlike) {
  connect({1, 2});
  const auto endings = run_ranks(plan_.world, [&](std::uint16_t rank) {
    GroupOptions given = options(rank);
    given.missing_rings = rank == 1 ? MissingRings::refuse : MissingRings::leave_out;
    Group(given, fabric_->open(rank));
  });
  expect_all(endings, ErrorCode::mismatch);
  EXPECT_THAT(endings[0].text, HasSubstr("missing_rings 1"));
}

// ------------------------------------------------------------------------------- the agreement

Error error_of(ErrorCode code, const std::string& text) {
  return {code, std::nullopt, text};
}

TEST(HelloOutcomes, ArriveAsTheyWereSent) {
  const HelloOutcomes sent{std::nullopt, Error(ErrorCode::retry_exceeded, 3, "no way"),
                           std::nullopt, error_of(ErrorCode::mismatch, "")};
  const HelloOutcomes found = decode_hello_outcomes(encode(sent), 4, {1, 8});
  ASSERT_EQ(found.size(), 4U);
  EXPECT_FALSE(found[0] || found[2]);
  ASSERT_TRUE(found[1] && found[3]);
  EXPECT_EQ(found[1]->code(), ErrorCode::retry_exceeded);
  EXPECT_EQ(found[1]->rank(), 3);
  EXPECT_STREQ(found[1]->what(), "no way");
  EXPECT_EQ(found[3]->code(), ErrorCode::mismatch);
}

TEST(HelloOutcomes, OfManyRingsFitIntoTheirRanksShareOfAFrame) {
  const HelloOutcomes sent(256, error_of(ErrorCode::timeout, std::string(1000, 'x')));
  const Blob blob = encode(sent);
  EXPECT_LT(blob.size(), 65000U) << "a 256th of 16 MiB";
  const HelloOutcomes found = decode_hello_outcomes(blob, 256, {1, 8});
  ASSERT_EQ(found.size(), 256U);
  EXPECT_STREQ(found[255]->what(), std::string(128, 'x').c_str());
}

TEST(HelloOutcomes, ThatCannotBeReadAreErrorsOfTheirRank) {
  const Blob sound = encode(HelloOutcomes{std::nullopt, error_of(ErrorCode::timeout, "late")});
  std::vector<Blob> spoilt{{}, sound, sound};
  spoilt[1].pop_back();
  spoilt[2].push_back(0);
  for (const Blob& blob : spoilt) {
    const HelloOutcomes found = decode_hello_outcomes(blob, 2, {5, 8});
    ASSERT_EQ(found.size(), 2U);
    for (const std::optional<Error>& outcome : found) {
      ASSERT_TRUE(outcome);
      EXPECT_EQ(outcome->code(), ErrorCode::transport_failure);
      EXPECT_EQ(outcome->rank(), 5);
    }
  }
}

TEST(RingChoice, KeepsWhatAllRanksHaveAnAnswerOf) {
  const std::optional<Error> answered;
  const Error late = error_of(ErrorCode::timeout, "late");
  const RingChoice choice =
      choose_rings({{answered, answered, late, answered}, {answered, late, answered, answered}});
  EXPECT_THAT(choice.kept, ElementsAre(0, 3));
  ASSERT_EQ(choice.missing.size(), 2U);
  EXPECT_EQ(describe_missing(choice, std::vector<std::uint32_t>{7, 8, 9, 10}),
            "ring 8 is left out: late; ring 9 is left out: late; the group goes on with rings 7, "
            "10");
}

/// A switch of another version, for instance, leaves the hosts nothing to do about that ring.
TEST(RingChoice, TellsTheGravestOfTheRanksErrors) {
  struct Row {
    std::vector<ErrorCode> codes; // by rank
    std::size_t gravest;
  };

  const std::vector<Row> rows{
      {{ErrorCode::timeout, ErrorCode::mismatch, ErrorCode::transport_failure}, 1},
      {{ErrorCode::retry_exceeded, ErrorCode::timeout, ErrorCode::timeout}, 1},
      {{ErrorCode::not_aggregated, ErrorCode::retry_exceeded}, 1},
      {{ErrorCode::not_aggregated, ErrorCode::not_aggregated}, 0}};
  for (const Row& row : rows) {
    std::vector<HelloOutcomes> outcomes;
    for (std::size_t rank = 0; rank < row.codes.size(); ++rank) {
      outcomes.push_back({error_of(row.codes[rank], std::to_string(rank))});
    }
    const std::vector<std::uint32_t> rings{7};
    const Error told = shortage(choose_rings(outcomes), rings);
    EXPECT_EQ(told.code(), row.codes[row.gravest]);
    EXPECT_EQ(told.what(), std::to_string(row.gravest)) << "of one ring its error alone";
  }
}

TEST(RingChoice, ThatLeavesNoneIsTheGravestError) {
  const Error plain = error_of(ErrorCode::not_aggregated, "plain");
  const Error late = error_of(ErrorCode::timeout, "late");
  const Error told = shortage(choose_rings({{plain, late}}), std::vector<std::uint32_t>{1, 2});
  EXPECT_EQ(told.code(), ErrorCode::timeout);
  EXPECT_STREQ(told.what(), "no ring is left: ring 1: plain; ring 2: late");
}

} // namespace
} // namespace weir::host::missing_rings_test
