// SPDX-License-Identifier: BSD-3-Clause

/// The rendezvous over loopback: ranks that come, ranks that do not, and strangers.

#include "host/admission.hpp"
#include "host/rendezvous.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <sys/resource.h>
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

TEST(Rendezvous, NamesWhoSaysAnotherWorld) {
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    const std::uint16_t world = rank == 1 ? 3 : 2;
    Rendezvous rendezvous({rank, world, address, milliseconds(2000)});
    rendezvous.gather({});
  });
  expect_all(endings, ErrorCode::mismatch);
  EXPECT_EQ(endings[0].rank, 1);
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
    if (rank == 1) { // before it joins, while the door is sure to be open
      stranger = connected_to(address);
      say(stranger, "GET / HTTP/1.1\r\n\r\n");
    }
    Rendezvous rendezvous({rank, 2, address, milliseconds(5000)});
    rendezvous.gather({});
  });
  expect_none(endings);
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
  const std::optional<Newcomer> newcomer = admission.next(Clock::now() + milliseconds(2000));
  ASSERT_TRUE(newcomer);
  EXPECT_EQ(newcomer->rank, 3);
  EXPECT_EQ(newcomer->world, 5);
}

} // namespace
} // namespace weir::host
