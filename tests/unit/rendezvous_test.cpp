// SPDX-License-Identifier: BSD-3-Clause

/// The rendezvous over loopback: ranks that come, ranks that do not come, and strangers.

#include "host/bootstrap/admission.hpp"
#include "host/bootstrap/rendezvous.hpp"
#include "host_job.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace weir::host {
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

TEST(Rendezvous, NamesRankZeroWhenNobodyListens) {
  const auto start = Clock::now();
  const Ending ending = ending_of([] {
    Rendezvous rendezvous({1, 2, free_address(), milliseconds(200)});
  });
  EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout);
  EXPECT_EQ(ending.rank, 0);
  EXPECT_LT(Clock::now() - start, milliseconds(2000));
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
    rendezvous.gather({}, [&] {
      if (++looks == 1) {
        std::this_thread::sleep_for(timeout + milliseconds(50));
      }
    });
  });
  expect_none(endings);
}

/// Rank 0 of `world` in a thread, until its gather is done.
class RankZero {
 public:
  RankZero(std::uint16_t world, const std::string& address, milliseconds timeout)
      : thread_([this, world, address, timeout] {
          ending_ = ending_of([&] {
            Rendezvous rendezvous({0, world, address, timeout});
            blobs_ = rendezvous.gather({});
          });
        }) {}

  Ending ending() {
    thread_.join();
    return ending_;
  }

  /// After ending().
  const std::vector<Blob>& blobs() const { return blobs_; }

 private:
  Ending ending_;
  std::vector<Blob> blobs_;
  std::thread thread_;
};

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

Socket connected_to(const std::string& address) {
  std::string cause;
  return connect_until(*Endpoint::parse(address), Clock::now() + milliseconds(2000), cause);
}

void say(const Socket& socket, std::string_view text) {
  ASSERT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

TEST(Rendezvous, ToleratesStrangers) {
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    Socket stranger;
    if (rank == 1) { // before it joins, while rank 0 surely accepts
      stranger = connected_to(address);
      say(stranger, "GET / HTTP/1.1\r\n\r\n");
    }
    Rendezvous rendezvous({rank, 2, address, milliseconds(5000)});
    rendezvous.gather({});
  });
  expect_none(endings);
}

/// A join as rank 1 of `world`, and nothing more.
Socket thirteen_bytes(const std::string& address, char world) {
  Socket stranger = connected_to(address);
  const std::string join{'W', 'C', 'T', 'L', 1, 0, 0, 0, 4, 0, 1, 0, world};
  say(stranger, join);
  return stranger;
}

TEST(Rendezvous, ThirteenBytesTakeNobodysPlace) {
  const std::string address = free_address();
  RankZero rank_0(3, address, milliseconds(5000));
  std::vector<Socket> strangers;
  strangers.push_back(thirteen_bytes(address, 3)); // before rank 1
  strangers.push_back(thirteen_bytes(address, 9));
  std::atomic<bool> may_go_on = false;
  std::thread rank_1([&] {
    Rendezvous rendezvous({1, 3, address, milliseconds(5000)});
    may_go_on = true;
    EXPECT_FALSE(ending_of([&] { rendezvous.gather(Blob(4, 1)); }).code);
  });
  EXPECT_TRUE(test::comes_true([&] { return may_go_on.load(); }));
  strangers.push_back(thirteen_bytes(address, 3)); // after it, while rank 2 is awaited
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(ending_of([&] {
                 Rendezvous({2, 3, address, milliseconds(5000)}).gather(Blob(4, 2));
               }).code);
  rank_1.join();
  EXPECT_FALSE(rank_0.ending().code);
  EXPECT_EQ(rank_0.blobs(), (std::vector<Blob>{{}, Blob(4, 1), Blob(4, 2)}));
}

/// Joins as rank 1 of 3.
std::unique_ptr<Rendezvous> join_as_rank_1(const std::string& address) {
  return std::make_unique<Rendezvous>(RendezvousPlan{1, 3, address, milliseconds(5000)});
}

/// Whether rank 1's first process still has its connection when the second comes.
class RelaunchedRank : public testing::TestWithParam<bool> {};

TEST_P(RelaunchedRank, TakesItsPredecessorsPlace) {
  const std::string address = free_address();
  RankZero rank_0(3, address, milliseconds(5000));
  std::unique_ptr<Rendezvous> first = join_as_rank_1(address);
  if (!GetParam()) {
    first.reset();
  }
  const std::unique_ptr<Rendezvous> second = join_as_rank_1(address);
  std::this_thread::sleep_for(milliseconds(50)); // it is in its place
  std::thread rank_2([&] {
    EXPECT_FALSE(ending_of([&] {
                   Rendezvous({2, 3, address, milliseconds(5000)}).gather({});
                 }).code);
  });
  EXPECT_FALSE(ending_of([&] { second->gather(Blob(4, 2)); }).code);
  if (first) {
    const Ending replaced = ending_of([&] { first->gather(Blob(4, 1)); });
    EXPECT_EQ(replaced.code, ErrorCode::mismatch) << replaced.text;
    EXPECT_NE(replaced.text.find("another process came as rank 1"), std::string::npos);
  }
  rank_2.join();
  EXPECT_FALSE(rank_0.ending().code);
  EXPECT_EQ(rank_0.blobs()[1], Blob(4, 2));
}

INSTANTIATE_TEST_SUITE_P(Predecessor, RelaunchedRank, testing::Bool());

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

TEST(Rendezvous, LetsNobodyWaitForSilentStrangers) {
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    std::vector<Socket> strangers;
    for (int count = 0; rank == 1 && count < 40; ++count) {
      strangers.push_back(connected_to(address));
      if (count % 2 == 0) {
        say(strangers.back(), "WCT"); // may yet become a join
      }
    }
    Rendezvous rendezvous({rank, 2, address, milliseconds(5000)});
    rendezvous.gather({});
  });
  expect_none(endings);
}

TEST(Rendezvous, ClosesToWhoAnnouncesMoreThanAJoin) {
  const std::string address = free_address();
  Admission admission(listen_at(*Endpoint::parse(address)));
  const Socket stranger = connected_to(address);
  say(stranger, std::string_view("WCTL\x01\0\0\0\x05", 9)); // a join with five bytes
  EXPECT_FALSE(admission.next(Clock::now() + milliseconds(200)));
  std::uint8_t byte = 0;
  EXPECT_EQ(recv(stranger.get(), &byte, 1, MSG_DONTWAIT), 0) << "still open";
}

TEST(Rendezvous, ForgetsTheOldestOfTooManyStrangers) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max; // both ends of every connection are ours
  setrlimit(RLIMIT_NOFILE, &files);
  const std::string address = free_address();
  Admission admission(listen_at(*Endpoint::parse(address)));
  std::vector<Socket> strangers;
  for (std::size_t count = 0; count <= Admission::kMaxCallers; ++count) {
    strangers.push_back(connected_to(address));
  }
  EXPECT_FALSE(admission.next(Clock::now() + milliseconds(100)));
  const auto answer = [](const Socket& stranger) {
    std::uint8_t byte = 0;
    return recv(stranger.get(), &byte, 1, MSG_DONTWAIT);
  };
  EXPECT_EQ(answer(strangers[0]), 0) << "still open";
  EXPECT_EQ(answer(strangers[1]), -1) << "closed";
  FramedStream last(std::move(strangers.back()));
  ask_admission(last, 3, 5);
  EXPECT_FALSE(admission.next(Clock::now() + milliseconds(100))) << "without its answer";
  const std::optional<ControlFrame> challenge = last.receive();
  ASSERT_TRUE(challenge);
  answer_challenge(last, *challenge);
  const std::optional<PendingPeer> peer = admission.next(Clock::now() + milliseconds(2000));
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->rank, 3);
  EXPECT_EQ(peer->world, 5);
}

} // namespace
} // namespace weir::host
