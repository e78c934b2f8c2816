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

} // namespace
} // namespace weir::endpoint::endpoint_stack_test
