// SPDX-License-Identifier: BSD-3-Clause

/// Where Linux soft-RoCE's queue pairs differ from the specification's: the rows of
/// docs/transports.md, measured with kernel 6.1.

#include "endpoint_support.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::endpoint::endpoint_stack_test {
namespace {

constexpr std::uint8_t kNak = wire::nak_syndrome(wire::NakCode::sequence_error);
constexpr std::uint8_t kRnr = wire::rnr_syndrome(14); // 1.28 ms

QueuePairConfig config_of(Stack stack) {
  QueuePairConfig config = local_config();
  config.stack = stack;
  return config;
}

class Stacks : public testing::TestWithParam<Stack> {
 protected:
  bool is_soft_roce() const { return GetParam() == Stack::soft_roce; }

  /// Writes of four packets each, all sent.
  void send(QueuePair& pair, unsigned messages) {
    for (unsigned i = 0; i < messages; ++i) {
      pair.post(request_of(SendKind::write, data_));
    }
    drain(pair);
  }

  const Bytes data_ = pattern(1024);
};

INSTANTIATE_TEST_SUITE_P(All, Stacks, testing::Values(Stack::ibta, Stack::soft_roce),
                         [](const auto& info) {
                           return std::string(info.param == Stack::ibta ? "Ibta" : "SoftRoce");
                         });

TEST_P(Stacks, ASecondNakAfterTheRepeat) {
  Pair pair(config_of(GetParam()));
  send(pair.a, 1);
  Pair::give(pair.a, acknowledgement(pair, 0x100, kNak));
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x100, 4));
  Pair::give(pair.a, acknowledgement(pair, 0x100, kNak));
  EXPECT_EQ(psns_of(drain(pair.a)), is_soft_roce() ? psns(0, 0) : psns(0x100, 4));
}

TEST_P(Stacks, AnAckMakesItListenAgain) {
  Pair pair(config_of(GetParam()));
  send(pair.a, 1);
  Pair::give(pair.a, acknowledgement(pair, 0x100, kNak));
  drain(pair.a);
  Pair::give(pair.a, acknowledgement(pair, 0x100));
  Pair::give(pair.a, acknowledgement(pair, 0x101, kNak));
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x101, 3));
}

TEST_P(Stacks, ANakThatAdvancesInsideAMessageAfterARepeat) {
  Pair pair(config_of(GetParam()));
  send(pair.a, 1);
  Pair::give(pair.a, acknowledgement(pair, 0x100, kNak));
  drain(pair.a);
  Pair::give(pair.a, acknowledgement(pair, 0x102, kNak));
  EXPECT_EQ(psns_of(drain(pair.a)), is_soft_roce() ? psns(0, 0) : psns(0x102, 2));
}

TEST_P(Stacks, ANakThatCompletesAMessageIsObeyed) {
  Pair pair(config_of(GetParam()));
  send(pair.a, 2);
  Pair::give(pair.a, acknowledgement(pair, 0x100, kNak));
  drain(pair.a);
  Pair::give(pair.a, acknowledgement(pair, 0x105, kNak)); // the second one of the second message
  EXPECT_EQ(statuses_of(pair.a), std::vector{Status::success});
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x105, 3));
}

TEST_P(Stacks, ANakAfterATimeoutOfItsOwn) {
  Pair pair(config_of(GetParam()));
  send(pair.a, 1);
  const TimePoint later = kStart + milliseconds(1);
  pair.a.expire(later);
  EXPECT_EQ(drain(pair.a, later).size(), 4U);
  Pair::give(pair.a, acknowledgement(pair, 0x100, kNak), later);
  EXPECT_EQ(drain(pair.a, later).size(), is_soft_roce() ? 0U : 4U);
}

TEST_P(Stacks, AnAckAboveAllThatWasSent) {
  for (const std::uint8_t syndrome : {wire::kAckUnlimited, kNak}) {
    Pair pair(config_of(GetParam()));
    send(pair.a, 3);
    Pair::give(pair.a, acknowledgement(pair, 0x200, syndrome));
    EXPECT_EQ(statuses_of(pair.a).size(), is_soft_roce() ? 3U : 0U) << "nobody has them";
  }
}

TEST_P(Stacks, AnAckAboveAMessageThatIsHalfSent) {
  QueuePairConfig config = config_of(GetParam());
  config.window = 6;
  Pair pair(config);
  send(pair.a, 2);
  Pair::give(pair.a, acknowledgement(pair, 0x106));
  EXPECT_EQ(statuses_of(pair.a).size(), is_soft_roce() ? 1U : 0U);
}

/// With the ACK(a-1) of docs/protocol.md's keep-alive each quarter of the timeout.
TEST_P(Stacks, DuplicateAcksAndTheAckTimer) {
  Pair pair(config_of(GetParam()));
  send(pair.a, 1);
  Pair::give(pair.a, acknowledgement(pair, 0x0ff));
  TimePoint now = kStart;
  for (int quarter = 0; quarter < 400; ++quarter) {
    now += microseconds(250);
    pair.a.expire(now);
    Pair::give(pair.a, acknowledgement(pair, 0x0ff), now);
    drain(pair.a, now);
  }
  EXPECT_EQ(pair.a.statistics().timeouts == 0, is_soft_roce());
}

TEST_P(Stacks, RnrAndTheAckTimer) {
  QueuePairConfig config = config_of(GetParam());
  config.retry_count = 2;
  Pair pair(config);
  send(pair.a, 1);
  TimePoint now = kStart;
  for (int i = 0; i < 100 && pair.a.state() == QueuePair::State::ready; ++i) {
    Pair::give(pair.a, acknowledgement(pair, 0x100, kRnr), now);
    while (const auto deadline = pair.a.next_deadline()) {
      now = *deadline;
      pair.a.expire(now);
      if (!drain(pair.a, now).empty()) {
        break;
      }
    }
  }
  EXPECT_EQ(pair.a.state() == QueuePair::State::error, is_soft_roce());
  EXPECT_EQ(statuses_of(pair.a),
            is_soft_roce() ? std::vector{Status::retry_exceeded} : std::vector<Status>{});
}

TEST_P(Stacks, AnAckDuringAnRnrWait) {
  QueuePairConfig config = config_of(GetParam());
  config.ack_timeout = milliseconds(100);
  Pair pair(config);
  send(pair.a, 2);
  Pair::give(pair.a, acknowledgement(pair, 0x100, kRnr));
  Pair::give(pair.a, acknowledgement(pair, 0x103));
  EXPECT_EQ(statuses_of(pair.a), std::vector{Status::success});
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x104, 4)) << "at once";
  pair.a.expire(kStart + microseconds(1280));
  EXPECT_EQ(psns_of(drain(pair.a)), is_soft_roce() ? psns(0x104, 4) : psns(0, 0));
}

TEST_P(Stacks, ARetryCountOfSeven) {
  QueuePairConfig config = config_of(GetParam());
  config.retry_count = 7;
  Pair pair(config);
  send(pair.a, 1);
  for (int i = 1; i <= 20; ++i) {
    pair.a.expire(kStart + milliseconds(i));
    drain(pair.a, kStart + milliseconds(i));
  }
  EXPECT_EQ(pair.a.state() == QueuePair::State::ready, is_soft_roce());
}

TEST_P(Stacks, PacketsThatDoNotAskForAnAck) {
  QueuePairConfig config = config_of(GetParam());
  config.acknowledge_every = 2;
  Pair pair(config);
  pair.a.post(request_of(SendKind::write, data_));
  std::string answers;
  for (const Bytes& frame : drain(pair.a)) {
    Pair::give(pair.b, frame);
    answers += drain(pair.b).empty() ? '.' : 'A';
  }
  EXPECT_EQ(answers, is_soft_roce() ? "...A" : ".A.A");
}

TEST_P(Stacks, PacketsAfterOneThatFoundNoReceive) {
  Pair pair(config_of(GetParam()));
  pair.a.post(request_of(SendKind::send, data_));
  std::string answers;
  for (const Bytes& frame : drain(pair.a)) {
    Pair::give(pair.b, frame);
    for (const Bytes& reply : drain(pair.b)) {
      EXPECT_EQ(psn_of(reply), 0x100U);
    }
    const Statistics& said = pair.b.statistics();
    answers =
        std::to_string(said.rnr_naks_sent) + " RNR " + std::to_string(said.naks_sent) + " NAK";
  }
  EXPECT_EQ(answers, is_soft_roce() ? "1 RNR 1 NAK" : "1 RNR 0 NAK");
}

// --- READ ---------------------------------------------------------------------------------------

class ReadingStacks : public Stacks {
 protected:
  ReadingStacks() : pair_(config()) {}

  static QueuePairConfig config() {
    QueuePairConfig config = reading_config();
    config.stack = GetParam();
    return config;
  }

  /// READs, all asked for, and B's answers.
  std::vector<Bytes> read(std::initializer_list<std::size_t> lengths) {
    for (const std::size_t length : lengths) {
      pair_.a.post(read_into(std::span(target_).first(length)));
    }
    return ask();
  }

  std::vector<Bytes> ask() {
    for (const Bytes& frame : drain(pair_.a)) {
      Pair::give(pair_.b, frame);
    }
    return drain(pair_.b);
  }

  Pair pair_;
  Bytes target_ = Bytes(1024, 0xee);
};

INSTANTIATE_TEST_SUITE_P(All, ReadingStacks, testing::Values(Stack::ibta, Stack::soft_roce),
                         [](const auto& info) {
                           return std::string(info.param == Stack::ibta ? "Ibta" : "SoftRoce");
                         });

TEST_P(ReadingStacks, ALostResponse) {
  const std::vector<Bytes> answers = read({1024});
  for (const std::size_t i : {0, 2, 3}) {
    Pair::give(pair_.a, answers[i], kStart + microseconds(500));
  }
  EXPECT_EQ(psns_of(drain(pair_.a)), is_soft_roce() ? psns(0, 0) : psns(0x101, 1));
  pair_.a.expire(kStart + microseconds(1500));
  EXPECT_EQ(psns_of(drain(pair_.a)), psns(0x101, 1)) << "the rest";
}

TEST_P(ReadingStacks, AResponseOfALaterRead) {
  const std::vector<Bytes> answers = read({1024, 1});
  Pair::give(pair_.a, answers[0]);
  Pair::give(pair_.a, answers[4]);
  EXPECT_EQ(psns_of(drain(pair_.a)), (std::vector<std::uint32_t>{0x101, 0x104}));
  Pair::give(pair_.a, answers[4]);
  EXPECT_EQ(psns_of(drain(pair_.a)), psns(0, 0)) << "once";
  Pair::give(pair_.a, answers[1]);
  Pair::give(pair_.a, answers[4]);
  EXPECT_EQ(psns_of(drain(pair_.a)), (std::vector<std::uint32_t>{0x102, 0x104}))
      << "a response makes it listen again";
}

TEST_P(ReadingStacks, AnAckOfARead) {
  read({1});
  Pair::give(pair_.a, acknowledgement(pair_, 0x100));
  EXPECT_EQ(statuses_of(pair_.a),
            is_soft_roce() ? std::vector{Status::success} : std::vector<Status>{});
  EXPECT_EQ(target_, Bytes(1024, 0xee));
}

TEST_P(ReadingStacks, AnAckAboveAllThatWasSentIsNoData) {
  read({1});
  Pair::give(pair_.a, acknowledgement(pair_, 0x200));
  EXPECT_EQ(statuses_of(pair_.a), std::vector<Status>{});
}

TEST_P(ReadingStacks, OldAcksWhileItWaits) {
  read({1});
  for (TimePoint now = kStart; now < kStart + milliseconds(100); now += microseconds(250)) {
    pair_.a.expire(now);
    Pair::give(pair_.a, acknowledgement(pair_, 0x0ff), now);
    drain(pair_.a, now);
  }
  EXPECT_EQ(pair_.a.statistics().timeouts == 0, is_soft_roce());
}

TEST_P(ReadingStacks, OldResponsesWhileItWaits) {
  const std::vector<Bytes> old = read({1});
  Pair::give(pair_.a, old[0]);
  read({1});
  for (TimePoint now = kStart; now < kStart + milliseconds(100); now += microseconds(250)) {
    pair_.a.expire(now);
    Pair::give(pair_.a, old[0], now);
    drain(pair_.a, now);
  }
  EXPECT_EQ(pair_.a.statistics().timeouts == 0, is_soft_roce());
}

TEST_P(ReadingStacks, TheFirstAnswerToARepeat) {
  const std::vector<Bytes> answers = read({1024});
  Pair::give(pair_.a, answers[0]);
  pair_.a.expire(kStart + milliseconds(1));
  const std::vector<Bytes> again = ask();
  ASSERT_EQ(psns_of(again), psns(0x101, 3));
  EXPECT_EQ(bth_of(again[0]).opcode, is_soft_roce() ? 0x0e : 0x0d) << "MIDDLE, FIRST";
  for (const Bytes& frame : again) {
    Pair::give(pair_.a, frame);
  }
  EXPECT_EQ(statuses_of(pair_.a), std::vector{Status::success}) << "taken either way";
}

TEST_P(ReadingStacks, ARepeatFromALowerPsnThanAnEarlierOne) {
  const std::vector<Bytes> answers = read({1024});
  Pair::give(pair_.a, answers[0]);
  pair_.a.expire(kStart + milliseconds(1));
  const std::vector<Bytes> second = drain(pair_.a);
  Pair::give(pair_.a, answers[1]);
  pair_.a.expire(kStart + milliseconds(2));
  ask();
  Pair::give(pair_.b, second[0]);
  EXPECT_EQ(psns_of(drain(pair_.b)), is_soft_roce() ? psns(0, 0) : psns(0x101, 3));
}

TEST_P(ReadingStacks, ARepeatOfAForgottenRead) {
  pair_.a.post(read_into(target_));
  const Bytes request = drain(pair_.a)[0];
  Pair::give(pair_.b, request);
  for (const Bytes& answer : drain(pair_.b)) {
    Pair::give(pair_.a, answer);
  }
  read({1, 1});
  Pair::give(pair_.b, request);
  EXPECT_TRUE(drain(pair_.b).empty()) << "silently";
}

} // namespace
} // namespace weir::endpoint::endpoint_stack_test
