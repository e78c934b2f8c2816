// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §9, R3: what the switch sends again is paced, leaves in parts and costs its
/// ring's share. docs/security.md, "What a packet makes the switch send", has the figures.

#include "support/sanitized.hpp"
#include "switch_fixture.hpp"

#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <tuple>

namespace weir::stage::resend_test {
namespace {

constexpr std::uint8_t kAck = 0x1f;
constexpr std::uint8_t kNak = 0x60;
constexpr std::uint8_t kRnr = 0x21; // 10 us
constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kFirstTimer = 1 * kMs; // before a round trip is measured
constexpr std::size_t kPacketsOfMessage = 300;
constexpr std::size_t kAtOnce = 256;

JobSpec large(std::uint32_t ring = 1, std::uint16_t network = 0) {
  return {.ring = ring,
          .window = 4,
          .max_message_bytes = 256 * kPacketsOfMessage,
          .session = kSession + ring - 1,
          .first_own_qp = 0x500,
          .network_id = network};
}

/// A ring whose two receivers have acknowledged the hellos alone; a message's results have left.
struct Window {
  explicit Window(SwitchFixture& fixture, const JobSpec& spec) : job(spec), fixture(fixture) {}

  void begin() {
    fixture.start(job);
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      answer(rank, kAck, first(rank));
    }
    std::mt19937 random(5);
    made = random_exchange(random, job, 1, 256 * kPacketsOfMessage - 40);
    for (std::size_t k = 0; k < kPacketsOfMessage; ++k) {
      fixture.send(made.packets[0][k], job.port_of(0));
      fixture.send(made.packets[1][k], job.port_of(1));
    }
  }

  /// The rank's receiver has all.
  void acknowledge(std::uint16_t rank) {
    answer(rank, kAck, first(rank) + static_cast<std::uint32_t>(kPacketsOfMessage));
  }

  std::uint32_t first(std::uint16_t rank) const { return job.first_psn_of(rank); }

  /// Built once, however often it is sent.
  const Built& answer_from(std::uint16_t rank, std::uint8_t syndrome, std::uint32_t psn) {
    const std::tuple key{rank, syndrome, psn & 0xffffff};
    const auto built = answers.find(key);
    return built != answers.end()
               ? built->second
               : answers.emplace(key, build(job.answer_to(rank, syndrome, psn & 0xffffff)))
                     .first->second;
  }

  std::vector<Sent> answer(std::uint16_t rank, std::uint8_t syndrome, std::uint32_t psn) {
    return fixture.send(answer_from(rank, syndrome, psn), job.port_of(job.successor_of(rank)));
  }

  /// The receiver has nothing of the message.
  std::vector<Sent> nak(std::uint16_t rank = 0) { return answer(rank, kNak, first(rank) + 1); }

  RingJob job;
  SwitchFixture& fixture;
  Exchange made;
  std::map<std::tuple<std::uint16_t, std::uint8_t, std::uint32_t>, Built> answers;
};

/// How many of these are results to the receiver of rank 0.
std::size_t results_in(const std::vector<Sent>& sent, const RingJob& job) {
  return static_cast<std::size_t>(std::ranges::count_if(sent, [&](const Sent& one) {
    return one.ports == port_behind(job, 0) && one.bytes.size() > 200;
  }));
}

struct OneRing {
  OneRing() {
    window.begin();
    hello = window.job.hello(0);
    behind_gap = window.job.message(0, 2, Bytes(600, 1))[2];
  }

  RingJob ring{large()};
  SwitchFixture fixture{{&ring}};
  Window window{fixture, large()};
  Built hello;
  Built behind_gap;
};

// ---- Parts. ----

TEST(Resend, TheFirstNakIsAnsweredAtOnceAndTheRestFollows) {
  OneRing one;
  EXPECT_EQ(results_in(one.window.nak(), one.window.job), kAtOnce);
  EXPECT_EQ(results_in(one.fixture.wait(2 * kUs), one.window.job), kPacketsOfMessage - kAtOnce);
}

TEST(Resend, WhatLeavesAgainIsWhatLeftBefore) {
  OneRing one;
  std::vector<Sent> sent = one.window.nak();
  const std::vector<Sent> rest = one.fixture.wait(2 * kUs);
  sent.insert(sent.end(), rest.begin(), rest.end());
  ASSERT_EQ(sent.size(), kPacketsOfMessage);
  for (std::size_t k = 0; k < kPacketsOfMessage; ++k) {
    EXPECT_EQ(sent[k], result_sent(one.window.job, 0, one.window.made.packets[0][k],
                                   one.window.made.reduced[k]))
        << k;
  }
}

TEST(Resend, WhatTheReceiverHasByNowIsLeftOut) {
  OneRing one;
  one.window.nak();
  one.window.answer(0, kAck, one.window.first(0) + 290);
  EXPECT_EQ(results_in(one.fixture.wait(2 * kUs), one.window.job), kPacketsOfMessage - 290);
}

/// How many of the first 32 are results to the receiver of rank 0.
std::size_t results_in_beginning(std::vector<Sent> sent, const RingJob& job) {
  EXPECT_EQ(sent.size(), kAtOnce);
  sent.resize(32);
  return results_in(sent, job);
}

TEST(Resend, ConnectionsTakeTurns) {
  OneRing one;
  one.window.nak(0);
  one.window.nak(1);
  EXPECT_EQ(results_in_beginning(one.fixture.wait(1 * kUs), one.window.job), 16U);
}

TEST(Resend, EndsWithItsIncarnation) {
  OneRing one;
  one.window.nak();
  one.fixture.reset(0);
  EXPECT_TRUE(one.fixture.wait(kMs).empty());
}

TEST(Resend, EndsWithItsRing) {
  OneRing one;
  one.window.nak();
  one.fixture.withdraw(0);
  EXPECT_TRUE(one.fixture.wait(kMs).empty());
}

// ---- Pauses. ----

TEST(Resend, AskedAgainTooSoonIsAnsweredAfterARoundTrip) {
  OneRing one;
  one.window.acknowledge(1);
  one.window.nak();
  one.fixture.wait(2 * kUs); // the rest leaves after 1 us
  for (unsigned times = 0; times < 100; ++times) {
    EXPECT_TRUE(one.window.nak().empty());
  }
  EXPECT_TRUE(one.fixture.wait(kFirstTimer - 2 * kUs).empty());
  EXPECT_EQ(results_in(one.fixture.wait(3 * kUs), one.window.job), kPacketsOfMessage) << "once";
}

TEST(Resend, AnAcknowledgementEndsThePause) {
  OneRing one;
  one.window.nak();
  one.fixture.wait(2 * kUs);
  const std::vector<Sent> sent = one.window.answer(0, kNak, one.window.first(0) + 281);
  EXPECT_EQ(results_in(sent, one.window.job), kPacketsOfMessage - 280);
}

/// An eighth of what was outstanding ends it.
TEST(Resend, ASmallAdvanceDoesNotEndThePause) {
  OneRing one;
  one.window.nak();
  one.fixture.wait(2 * kUs);
  for (std::uint32_t has = 1; has < 38; ++has) {
    EXPECT_LE(one.window.answer(0, kNak, one.window.first(0) + 1 + has).size(), 1U) << "the ACK";
  }
  const std::vector<Sent> sent = one.window.answer(0, kNak, one.window.first(0) + 1 + 38);
  EXPECT_EQ(results_in(sent, one.window.job), kAtOnce);
}

TEST(Resend, AfterASmallAdvanceTheAnswerComesAfterARoundTrip) {
  OneRing one;
  one.window.acknowledge(1);
  one.window.nak();
  one.fixture.wait(2 * kUs);
  one.window.answer(0, kNak, one.window.first(0) + 2);
  EXPECT_TRUE(one.fixture.wait(kFirstTimer - 2 * kUs).empty());
  EXPECT_EQ(results_in(one.fixture.wait(5 * kUs), one.window.job), kPacketsOfMessage - 1);
}

TEST(Resend, ASenderThatHasWaitedForABufferIsAnsweredAtOnce) {
  OneRing one;
  one.window.nak();
  one.fixture.wait(2 * kUs);
  EXPECT_EQ(one.window.answer(0, kRnr, one.window.first(0) + 1).size(), 1U) << "it passes";
  one.fixture.wait(10 * kUs);
  const auto sent = one.fixture.send(one.window.made.packets[0][0], one.window.job.port_of(0));
  EXPECT_EQ(results_in(sent, one.window.job), kAtOnce);
}

TEST(Resend, EndsWhereTheReceiverHasNoBuffer) {
  OneRing one;
  one.window.acknowledge(1);
  one.window.nak();
  EXPECT_EQ(one.window.answer(0, kRnr, one.window.first(0) + 1).size(), 1U) << "it passes";
  EXPECT_TRUE(one.fixture.wait(19 * kUs).empty()) << "twice its 10 us";
  auto sent = one.fixture.send(one.window.made.packets[0][0], one.window.job.port_of(0));
  EXPECT_EQ(results_in(sent, one.window.job), kAtOnce);
  EXPECT_EQ(results_in(one.fixture.wait(2 * kUs), one.window.job), kPacketsOfMessage - kAtOnce);
}

// ---- Shares. ----

/// Two rings of one worker.
struct Crowd {
  Crowd() {
    greedy.begin();
    other.begin();
  }

  RingJob first{large(1)};
  RingJob second{large(2, 1)};
  SwitchFixture fixture{{&first, &second}, {}, nullptr, 64};
  Window greedy{fixture, large(1)};
  Window other{fixture, large(2, 1)};

  std::uint64_t resent() {
    return fixture.inside().worker().incarnations().flow_of({0, 0}).counters.resent;
  }
};

/// The other ring's receiver is rank 0, the greedy one's rank 1.
TEST(Resend, RingsTakeTurns) {
  Crowd crowd;
  crowd.greedy.nak(0);
  crowd.other.nak(1);
  EXPECT_EQ(results_in_beginning(crowd.fixture.wait(1 * kUs), crowd.greedy.job), 16U);
}

TEST(Resend, CostsTheRingsShareWhereOthersWait) {
  Crowd crowd;
  crowd.other.acknowledge(0);
  crowd.fixture.inside().queue().expect(Backlog::likely);
  for (unsigned i = 0; i < 30; ++i) { // short ones, which cost as much as a third of a result
    crowd.fixture.send(crowd.other.job.hello(0), crowd.other.job.port_of(0));
  }
  crowd.greedy.nak();
  for (unsigned served = 0; served < 28; ++served) {
    crowd.fixture.serve(1);
    crowd.fixture.now.ns += kUs;
    crowd.fixture.poll_timers();
  }
  EXPECT_GE(crowd.resent(), 15U);
  EXPECT_LE(crowd.resent(), 40U);
  crowd.fixture.serve(10);
  crowd.fixture.wait(10 * kUs);
  EXPECT_EQ(crowd.resent(), kPacketsOfMessage) << "the rest when nobody waits";
}

TEST(Resend, CostsATenantsPackets) {
  OneRing one;
  one.window.acknowledge(1);
  one.fixture.inside().queue().set_shares({.rates = {100'000}, .tenants = {0}}, one.fixture.now);
  for (unsigned i = 0; i < 190; ++i) { // of 200 that it has at first
    one.fixture.send(one.window.job.hello(1), one.window.job.port_of(1));
  }
  EXPECT_EQ(results_in(one.window.nak(), one.window.job), 9U) << "one was the NAK's";
  EXPECT_EQ(results_in(one.fixture.wait(100 * kUs), one.window.job), 10U);
}

/// Two rings of one tenant, one of which sends more than the tenant may.
TEST(Resend, GetsItsTurnOfATenantsPackets) {
  Crowd crowd;
  const auto busy = [&] {
    crowd.fixture.send(crowd.other.job.hello(0), crowd.other.job.port_of(0));
  };
  for (const std::uint16_t rank : {0, 1}) {
    crowd.other.acknowledge(rank);
  }
  crowd.greedy.acknowledge(1);
  crowd.fixture.inside().queue().set_shares({.rates = {100'000}, .tenants = {0, 0}},
                                            crowd.fixture.now);
  for (unsigned i = 0; i < 250; ++i) { // of 200 that it has at first
    busy();
  }
  crowd.greedy.nak();
  for (unsigned i = 0; i < 500; ++i) {
    busy();
    crowd.fixture.now.ns += 8 * kUs; // 125,000 a second
    crowd.fixture.serve(64);
    crowd.fixture.poll_timers();
  }
  EXPECT_NEAR(static_cast<double>(crowd.resent()), 200, 10) << "half of 4 ms' packets";
}

/// 28 turns of 8 results and 29 in vain are 253 of 256; 3 results are left.
TEST(Resend, ATurnInVainCounts) {
  Crowd crowd;
  crowd.greedy.acknowledge(1);
  crowd.other.acknowledge(1);
  crowd.fixture.inside().queue().set_shares({.rates = {1}, .tenants = {0}}, crowd.fixture.now);
  for (unsigned i = 0; i + 1 < FairQueue::kSmallestBurst; ++i) {
    crowd.fixture.send(crowd.greedy.job.hello(1), crowd.greedy.job.port_of(1));
  }
  EXPECT_EQ(results_in(crowd.greedy.nak(), crowd.greedy.job), 0U) << "the last packet was the NAK";
  crowd.other.nak();
  const std::vector<Sent> sent = crowd.fixture.wait(1 * kUs);
  EXPECT_EQ(results_in(sent, crowd.other.job), 28U * 8 + 3);
}

constexpr std::uint64_t kPatience = 600 * kSecond; // unless configured

/// The last of the 200 packets that the tenant has at first is the repeat.
TEST(Resend, TheLastResultBeyondPatienceCostsATenantsPacketsToo) {
  Crowd crowd;
  crowd.fixture.now.ns += kPatience + kSecond;
  crowd.fixture.inside().queue().set_shares({.rates = {100'000}, .tenants = {0}},
                                            crowd.fixture.now);
  const auto repeat = [&](std::uint16_t rank) {
    return crowd.fixture.send(crowd.greedy.job.hello(rank), crowd.greedy.job.port_of(rank));
  };
  EXPECT_EQ(repeat(1).size(), 1U) << "the last result, which is a packet too";
  for (unsigned i = 2; i < 199; ++i) {
    EXPECT_TRUE(repeat(1).empty()) << "too soon";
  }
  EXPECT_TRUE(repeat(0).empty()) << "no packet is left for the result";
  crowd.fixture.now.ns += kMs;
  EXPECT_TRUE(repeat(0).empty()) << "behind the wish for a packet";
  EXPECT_EQ(crowd.fixture.serve(1).size(), 1U);
}

// ---- What a packet makes the switch send. ----

/// A kind of packet that makes the switch send without having received as much.
struct Kind {
  std::string about;
  std::function<std::vector<Sent>(OneRing&, unsigned)> send; // the n-th time
};

std::size_t bytes_of(const std::vector<Sent>& sent) {
  std::size_t bytes = 0;
  for (const Sent& frame : sent) {
    bytes += frame.bytes.size();
  }
  return bytes;
}

/// The row of the page: what the switch sends when the kind comes for a second, once each ten
/// microseconds.
std::string row_of(const Kind& kind) {
  constexpr unsigned times = 100'000;
  OneRing one;
  std::size_t results = 0;
  std::size_t out = 0;
  const std::uint64_t before = one.fixture.received_bytes();
  const auto count = [&](const std::vector<Sent>& sent) {
    results += results_in(sent, one.window.job);
    out += bytes_of(sent);
  };
  for (unsigned n = 0; n < times; ++n) {
    count(kind.send(one, n));
    count(one.fixture.wait(kSecond / times));
  }
  const auto in = static_cast<double>(one.fixture.received_bytes() - before);
  return fmt::format("| {} | {} | {:.2f} |", kind.about, results / kPacketsOfMessage,
                     static_cast<double>(out) / in);
}

std::vector<Kind> kinds() {
  const auto repeat = [](OneRing& one, std::size_t k) {
    return one.fixture.send(one.window.made.packets[0][k], one.window.job.port_of(0));
  };
  return {
      {"NAK(a)", [](OneRing& one, unsigned) { return one.window.nak(); }},
      {"NAK(a+1), NAK(a+2), …",
       [](OneRing& one, unsigned n) {
         return one.window.answer(0, kNak, one.window.first(0) + 1 + n % kPacketsOfMessage);
       }},
      {"NAK below a",
       [](OneRing& one, unsigned) { return one.window.answer(0, kNak, one.window.first(0)); }},
      {"RNR NAK(a) and a repeat, in turn",
       [=](OneRing& one, unsigned n) {
         return n % 2 != 0 ? repeat(one, 0) : one.window.answer(0, kRnr, one.window.first(0) + 1);
       }},
      {"one repeat from a on", [=](OneRing& one, unsigned) { return repeat(one, 0); }},
      {"two repeats from a on, in turn",
       [=](OneRing& one, unsigned n) { return repeat(one, 5 * (n % 2)); }},
      {"a repeat below a", [](OneRing& one, unsigned) { return one.fixture.send(one.hello, 0); }},
      {"a repeat below a, beyond patience",
       [](OneRing& one, unsigned n) {
         one.fixture.now.ns += n == 0 ? kPatience + kSecond : 0;
         return one.fixture.send(one.hello, 0);
       }},
      {"a packet behind a gap",
       [](OneRing& one, unsigned) { return one.fixture.send(one.behind_gap, 0); }},
  };
}

TEST(Resend, WhatAPacketMakesTheSwitchSendIsAsThePageSays) {
  std::ifstream file(WEIR_SOURCE_ROOT "/docs/security.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::vector<Kind> all = kinds();
  for (const Kind& kind : std::span(all).first(test::rounds(all.size()))) {
    const std::string row = row_of(kind);
    EXPECT_NE(page.find(row), std::string::npos) << row << " is not in docs/security.md";
  }
}

} // namespace
} // namespace weir::stage::resend_test
