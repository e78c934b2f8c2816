// SPDX-License-Identifier: BSD-3-Clause

/// The rendezvous over loopback: ranks that come, and ranks that do not come. Strangers:
/// strangers_test.cpp.

#include "host/rendezvous/joining.hpp"
#include "host/rendezvous/rendezvous.hpp"
#include "host_job.hpp"
#include "rank_zero.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace weir::host::rendezvous_test {
namespace {

TEST(Rendezvous, GathersBlobsInRankOrder) {
  const std::string address = free_address();
  const auto endings = run_ranks(4, [&](std::uint16_t rank) {
    std::this_thread::sleep_for(milliseconds(20 * (3 - rank))); // rank 0 comes last
    Rendezvous rendezvous({rank, 4, address, milliseconds(5000)});
    for (std::size_t round = 1; round <= 3; ++round) {
      const Blob mine(rank * 50000 * round, static_cast<std::uint8_t>(rank));
      const std::vector<Blob> all = rendezvous.gather(mine);
      ASSERT_EQ(all.size(), 4U);
      for (std::size_t other = 0; other < 4; ++other) {
        EXPECT_EQ(all[other], Blob(other * 50000 * round, static_cast<std::uint8_t>(other)));
      }
    }
  });
  expect_none(endings);
}

TEST(Rendezvous, EndsWhenAllThatItGatheredHasLeft) {
  const std::string address = free_address();
  const Blob large(7'000'000, 1); // more than a connection holds by itself
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    Rendezvous rendezvous({rank, 2, address, milliseconds(10'000)});
    const std::vector<Blob> all = rendezvous.gather(rank == 0 ? large : Blob());
    EXPECT_EQ(all.at(0), large);
  });
  expect_none(endings);
}

TEST(Rendezvous, NamesTheMissingRank) {
  const std::string address = free_address();
  const auto endings = run_ranks(4, [&](std::uint16_t rank) {
    if (rank != 2) {
      Rendezvous rendezvous({rank, 4, address, milliseconds(300)});
      rendezvous.gather({});
    }
  });
  for (const std::size_t rank : {0, 1, 3}) {
    EXPECT_EQ(endings[rank].code, ErrorCode::rendezvous_timeout) << endings[rank].text;
    EXPECT_EQ(endings[rank].rank, 2);
    EXPECT_NE(endings[rank].text.find("rank 2 of 4"), std::string::npos) << endings[rank].text;
  }
}

TEST(Rendezvous, SaysWhatARankDoesNotSend) {
  const std::string address = free_address();
  std::atomic<bool> is_over = false;
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    Rendezvous rendezvous({rank, 2, address, milliseconds(300)});
    if (rank == 1) {
      EXPECT_TRUE(test::comes_true([&] { return is_over.load(); }, std::chrono::seconds(10)));
      return;
    }
    const Ending ending = ending_of([&] { rendezvous.gather({}, "its address"); });
    is_over = true;
    EXPECT_EQ(ending.rank, 1);
    EXPECT_EQ(ending.text, "rendezvous: rank 1 did not send its address within 300 ms");
  });
  expect_none(endings);
}

TEST(Rendezvous, NamesRankZeroWhenNobodyListens) {
  const auto start = Clock::now();
  const Ending ending = ending_of([] {
    Rendezvous rendezvous({1, 2, free_address(), milliseconds(200)});
  });
  EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout);
  EXPECT_EQ(ending.rank, 0);
  EXPECT_LT(Clock::now() - start, milliseconds(2000));
}

/// It may be at several addresses, and for a while nobody listens at any.
TEST(Rendezvous, WaitsForARankZeroThatComesLate) {
  const std::string address = free_address();
  std::unique_ptr<RankZero> rank_0;
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(1500));
    rank_0 = std::make_unique<RankZero>(2, address, milliseconds(5000));
  });
  const auto endpoints = Endpoint::parse_list(free_address() + "," + address);
  std::unique_ptr<FramedStream> stream;
  const Ending ending = ending_of([&] {
    stream = join_rank_0({{1, 2}, {}, endpoints, milliseconds(10'000)});
    stream->send(code(ControlKind::blob), Blob());
  });
  later.join();
  EXPECT_FALSE(ending.code) << ending.text;
  EXPECT_FALSE(rank_0->ending().code);
}

/// Rank 0 stands, as when its process is stopped or gets no CPU, and has to look again before the
/// other rank sends.
TEST(Rendezvous, APauseOfARankIsNotTheOthersSilence) {
  constexpr milliseconds timeout(1000);
  const std::string address = free_address();
  std::atomic<int> looks = 0;
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    Rendezvous rendezvous({rank, 2, address, rank == 0 ? timeout : 20 * timeout});
    if (rank == 1) {
      EXPECT_TRUE(test::comes_true([&] { return looks > 1; }, std::chrono::seconds(10)));
      rendezvous.gather({});
      return;
    }
    rendezvous.gather({}, "a blob", [&] {
      if (++looks == 1) {
        std::this_thread::sleep_for(timeout + milliseconds(50));
      }
    });
  });
  expect_none(endings);
}

TEST(Rendezvous, TellsWhoSaysAnotherWorldAndWaitsForAnother) {
  const std::string address = free_address();
  RankZero rank_0(2, address, milliseconds(5000));
  const auto come = [&](std::uint16_t rank, std::uint16_t world) {
    return ending_of([&] {
      Rendezvous rendezvous({rank, world, address, milliseconds(5000)});
      rendezvous.gather({});
    });
  };
  for (const std::uint16_t rank : {1, 2}) {
    const Ending refused = come(rank, rank == 1 ? 3 : 2);
    EXPECT_EQ(refused.code, ErrorCode::mismatch) << refused.text;
    EXPECT_EQ(refused.rank, rank);
  }
  EXPECT_FALSE(come(1, 2).code);
  EXPECT_FALSE(rank_0.ending().code);
}

TEST(Rendezvous, NamesWhomItTurnedAway) {
  const std::string address = free_address();
  RankZero rank_0(2, address, milliseconds(500));
  const Ending refused = ending_of([&] {
    Rendezvous({1, 3, address, milliseconds(5000)}).gather({});
  });
  EXPECT_NE(refused.text.find("rank 0 says world 2"), std::string::npos) << refused.text;
  const Ending ending = rank_0.ending();
  EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout);
  EXPECT_EQ(ending.rank, 1);
  EXPECT_NE(ending.text.find("said rank 1 of 3"), std::string::npos) << ending.text;
}

/// Joins as rank 1 of 3.
std::unique_ptr<Rendezvous> join_as_rank_1(const std::string& address) {
  return std::make_unique<Rendezvous>(RendezvousPlan{1, 3, address, milliseconds(5000)});
}

void come_as_rank_2(const std::string& address) {
  EXPECT_FALSE(ending_of([&] { Rendezvous({2, 3, address, milliseconds(5000)}).gather({}); }).code);
}

TEST(Rendezvous, ARelaunchedRankTakesItsPredecessorsPlace) {
  const std::string address = free_address();
  RankZero rank_0(3, address, milliseconds(5000));
  join_as_rank_1(address).reset();
  const std::unique_ptr<Rendezvous> second = join_as_rank_1(address);
  std::thread rank_2([&] { come_as_rank_2(address); });
  EXPECT_FALSE(ending_of([&] { second->gather(Blob(4, 2)); }).code);
  rank_2.join();
  EXPECT_FALSE(rank_0.ending().code);
  EXPECT_EQ(rank_0.blobs()[1], Blob(4, 2));
}

/// Its blob is read before its end, and is longer than any frame of the handshake.
TEST(Rendezvous, ARelaunchedRankTakesThePlaceOfOneThatHadSentItsBlob) {
  const std::string address = free_address();
  RankZero rank_0(3, address, milliseconds(5000));
  const std::unique_ptr<FramedStream> first = join_rank_0(
      {{1, 3}, {}, {*Endpoint::parse(address)}, milliseconds(5000), milliseconds(5000)});
  first->send(code(ControlKind::blob), Blob(120, 1));
  shutdown(first->descriptor(), SHUT_RDWR);
  const std::unique_ptr<Rendezvous> second = join_as_rank_1(address);
  std::thread rank_2([&] { come_as_rank_2(address); });
  EXPECT_FALSE(ending_of([&] { second->gather(Blob(120, 2)); }).code);
  rank_2.join();
  EXPECT_FALSE(rank_0.ending().code);
  EXPECT_EQ(rank_0.blobs()[1], Blob(120, 2));
}

TEST(Rendezvous, TheSecondOfTwoIsTurnedAwayWhileTheFirstIsAlive) {
  const std::string address = free_address();
  RankZero rank_0(3, address, milliseconds(5000));
  const std::unique_ptr<Rendezvous> first = join_as_rank_1(address);
  const Ending second = ending_of([&] { join_as_rank_1(address); });
  EXPECT_EQ(second.code, ErrorCode::mismatch) << second.text;
  EXPECT_EQ(second.rank, 1);
  EXPECT_NE(second.text.find("another process is here as this rank"), std::string::npos)
      << second.text;
  std::thread rank_2([&] { come_as_rank_2(address); });
  EXPECT_FALSE(ending_of([&] { first->gather(Blob(4, 1)); }).code);
  rank_2.join();
  EXPECT_FALSE(rank_0.ending().code);
  EXPECT_EQ(rank_0.blobs()[1], Blob(4, 1));
  EXPECT_EQ(rank_0.callers_turned_away(), 1);
}

TEST(Rendezvous, WaitsForARankThatCameAndWent) {
  const std::string address = free_address();
  RankZero rank_0(3, address, milliseconds(1000));
  join_as_rank_1(address).reset();
  const Ending rank_2 = ending_of([&] {
    Rendezvous({2, 3, address, milliseconds(5000)}).gather({});
  });
  for (const Ending& ending : {rank_0.ending(), rank_2}) {
    EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout) << ending.text;
    EXPECT_EQ(ending.rank, 1);
  }
}

/// One frame holds all ranks' blobs, so each has its part of the longest one.
TEST(Rendezvous, ARankWhoseBlobIsTooLongIsNamed) {
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    Rendezvous rendezvous({rank, 2, address, milliseconds(5000)});
    rendezvous.gather(Blob(rank == 0 ? 10 : (std::size_t{1} << 23) - 3));
  });
  EXPECT_EQ(endings[0].code, ErrorCode::peer_died);
  EXPECT_EQ(endings[0].rank, 1);
  EXPECT_EQ(endings[0].text, "rendezvous: rank 1: it sent a control frame of kind 6 with 8388605 "
                             "bytes; allowed: 8388604");
}

} // namespace
} // namespace weir::host::rendezvous_test
