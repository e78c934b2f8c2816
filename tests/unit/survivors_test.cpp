// SPDX-License-Identifier: BSD-3-Clause

/// How the ranks of a group find out who is left, without groups: histories that the tests make.

#include "host/rendezvous/admission.hpp"
#include "host/rendezvous/joining.hpp"
#include "host/shrink/survivors.hpp"
#include "host_job.hpp"
#include "rank_zero.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace weir::host::survivors_test {
namespace {

using Ranks = std::vector<std::uint16_t>;

constexpr milliseconds kTimeout(1500); // so a third of it is silence
constexpr milliseconds kAmple(20'000); // where nothing may run out

/// An address whose kernel does not answer: its queue of connections is full.
class SilentAddress {
 public:
  SilentAddress() : listener_(listen_at({"127.0.0.1", "0"})) {
    listen(listener_.get(), 0);
    for (int caller = 0; caller < 4; ++caller) {
      int error = 0;
      callers_.push_back(connecting_to(endpoint(), error));
    }
  }

  Endpoint endpoint() const { return {"127.0.0.1", std::to_string(port_of(listener_))}; }

 private:
  Socket listener_;
  std::vector<Socket> callers_;
};

/// The histories of the ranks of one group, by rank.
std::vector<std::unique_ptr<GroupHistory>> histories_of(std::uint16_t world) {
  std::vector<std::unique_ptr<GroupHistory>> all;
  std::vector<std::vector<Endpoint>> endpoints;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    auto history = std::make_unique<GroupHistory>();
    history->self = {rank, world};
    history->credentials = {"job", "0123456789abcdef"};
    history->keep_alive = milliseconds(10'000);
    history->listener = listen_at({"127.0.0.1", "0"});
    endpoints.push_back({{"127.0.0.1", std::to_string(port_of(history->listener))}});
    all.push_back(std::move(history));
  }
  for (const auto& history : all) {
    history->endpoints = endpoints;
  }
  return all;
}

Ranks all_of(std::uint16_t world) {
  Ranks ranks;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    ranks.push_back(rank);
  }
  return ranks;
}

Survivors find(GroupHistory& history, milliseconds timeout = kTimeout) {
  return find_survivors(history, {all_of(history.self.world), timeout});
}

/// These ranks look for the rest; the others' processes have ended.
std::vector<Ending>
find_without(std::vector<std::unique_ptr<GroupHistory>>& histories,
             const std::set<std::uint16_t>& ended,
             const std::function<void(std::uint16_t, const ShrinkMembership&)>& body) {
  for (const std::uint16_t rank : ended) {
    histories[rank]->listener = {};
  }
  return run_ranks(static_cast<std::uint16_t>(histories.size()), [&](std::uint16_t rank) {
    if (!ended.contains(rank)) {
      body(rank, find(*histories[rank]).membership);
    }
  });
}

TEST(Survivors, AllLearnTheSame) {
  auto histories = histories_of(5);
  expect_none(
      find_without(histories, {0, 3}, [](std::uint16_t, const ShrinkMembership& membership) {
        EXPECT_EQ(membership.members, (Ranks{1, 2, 4}));
        EXPECT_TRUE(membership.left_out.empty());
      }));
}

/// Rank `silent` of four does not answer, and two have ended or not.
void expect_silence(std::uint16_t silent, const std::set<std::uint16_t>& ended, bool may_go_on) {
  const SilentAddress address;
  auto histories = histories_of(4);
  for (const auto& history : histories) {
    history->endpoints[silent] = {address.endpoint()};
  }
  std::set<std::uint16_t> absent = ended;
  absent.insert(silent);
  const auto endings =
      find_without(histories, absent, [&](std::uint16_t, const ShrinkMembership& membership) {
        EXPECT_TRUE(may_go_on);
        EXPECT_EQ(membership.left_out, std::set<std::uint16_t>{silent});
        EXPECT_EQ(membership.members.size(), 4 - absent.size());
      });
  for (std::uint16_t rank = 0; rank < 4; ++rank) {
    if (!may_go_on && !absent.contains(rank)) {
      EXPECT_EQ(endings[rank].code, ErrorCode::rendezvous_timeout) << endings[rank].text;
      EXPECT_EQ(endings[rank].rank, silent) << endings[rank].text;
      EXPECT_NE(endings[rank].text.find("did not answer and may be alive; 2 of the first 4"),
                std::string::npos)
          << endings[rank].text;
    } else {
      EXPECT_FALSE(endings[rank].code) << endings[rank].text;
    }
  }
}

TEST(Survivors, MostGoOnWithoutOneThatDoesNotAnswer) {
  expect_silence(2, {}, true);
  expect_silence(0, {}, true);
}

TEST(Survivors, HalfGoesOnOnlyWithRankZero) {
  expect_silence(2, {3}, true);
  expect_silence(3, {0}, false);
}

TEST(Survivors, WhoWasLeftOutBeforeStillCounts) {
  auto histories = histories_of(4);
  histories[1]->left_out = {0};
  histories[2]->left_out = {0};
  const auto endings = run_ranks(4, [&](std::uint16_t rank) {
    if (rank == 1 || rank == 2) {
      find_survivors(*histories[rank], {{1, 2}, kTimeout});
    }
  });
  EXPECT_EQ(endings[1].code, ErrorCode::rendezvous_timeout) << endings[1].text;
  EXPECT_EQ(endings[1].rank, std::nullopt) << "rank 0 is none of this group's";
  EXPECT_EQ(endings[2].code, ErrorCode::rendezvous_timeout) << endings[2].text;
}

TEST(Survivors, StrangersAreTurnedAwayAndCounted) {
  auto histories = histories_of(3);
  histories[2]->listener = {};
  const std::string address = histories[0]->endpoints[0].front().text();
  const Socket stranger = connected_to(address);
  say(stranger, "GET / HTTP/1.1\r\n\r\n");
  auto thief = histories_of(3);
  thief[1]->endpoints = histories[0]->endpoints;
  thief[1]->credentials.secret = "0123456789abcdeF";
  const auto endings = run_ranks(3, [&](std::uint16_t rank) {
    if (rank == 0) {
      EXPECT_EQ(find(*histories[0]).callers_turned_away, 2);
    } else if (rank == 1) {
      const Ending ending = ending_of([&] { find(*thief[1]); });
      EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout) << ending.text;
      EXPECT_EQ(ending.rank, 0) << "it refuses, and that proves nothing";
      find(*histories[1]);
    }
  });
  expect_none(endings);
  EXPECT_TRUE(is_closed(stranger));
}

/// Rank 0 listens at the second of its addresses alone. Here the first one means another host.
TEST(Survivors, ARankHasEndedOnlyIfAllItsAddressesRefuse) {
  const Socket closed = listen_at({"127.0.0.1", "0"});
  const Endpoint refusing{"127.0.0.2", std::to_string(port_of(closed))};
  auto histories = histories_of(3);
  for (const auto& history : histories) {
    for (std::vector<Endpoint>& endpoints : history->endpoints) {
      endpoints.insert(endpoints.begin(), refusing);
    }
  }
  expect_none(find_without(histories, {2}, [](std::uint16_t, const ShrinkMembership& membership) {
    EXPECT_EQ(membership.members, (Ranks{0, 1}));
    EXPECT_TRUE(membership.left_out.empty());
  }));
}

TEST(Survivors, ARankMayLiveIfOneOfItsAddressesDoesNotAnswer) {
  const SilentAddress silent;
  auto histories = histories_of(3);
  for (const auto& history : histories) {
    history->endpoints[2].push_back(silent.endpoint());
  }
  expect_none(find_without(histories, {2}, [](std::uint16_t, const ShrinkMembership& membership) {
    EXPECT_EQ(membership.left_out, std::set<std::uint16_t>{2});
  }));
}

/// Another group's process listens at the port of rank 0, or who sits on the way says so.
TEST(Survivors, ARankAtWhosePortAnotherJobAnswersIsLeftOutAndMayLive) {
  auto histories = histories_of(3);
  Admission others(std::move(histories[0]->listener), {"another job", "0123456789abcdef"});
  std::atomic<bool> is_found = false;
  expect_none(run_ranks(3, [&](std::uint16_t rank) {
    if (rank == 0) {
      while (!is_found) {
        EXPECT_FALSE(others.next(Clock::now() + milliseconds(10)));
      }
    } else {
      const Ending ending = ending_of([&] {
        const ShrinkMembership membership = find(*histories[rank], kAmple).membership;
        EXPECT_EQ(membership.members, (Ranks{1, 2}));
        EXPECT_EQ(membership.left_out, std::set<std::uint16_t>{0});
      });
      is_found = true;
      EXPECT_EQ(ending.text, "");
    }
  }));
}

/// As by a firewall that refuses what it does not let pass, or by who sits on the way.
TEST(Survivors, NobodyGoesOnAloneWhenAllOthersAreRefused) {
  const Socket closed = listen_at({"127.0.0.1", "0"});
  const Endpoint refusing{"127.0.0.2", std::to_string(port_of(closed))};
  auto histories = histories_of(3);
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    for (std::uint16_t other = 0; other < 3; ++other) {
      if (other != rank) {
        histories[rank]->endpoints[other] = {refusing};
      }
    }
  }
  const auto endings = run_ranks(3, [&](std::uint16_t rank) { find(*histories[rank]); });
  expect_all(endings, ErrorCode::peer_died);
  EXPECT_EQ(endings[1].rank, 0);
  EXPECT_EQ(endings[1].text, "shrink: ranks 0, 2 ended, as it seems, so one rank is left; a shrink "
                             "leaves two at least. Who wants to go on alone forms a group with "
                             "world 1");
}

/// Rank 1 lives, leads nobody, and follows nobody: its ranks must not wait for ever.
TEST(Survivors, ARankThatDoesNotComeIsNamed) {
  auto histories = histories_of(3);
  const auto endings = run_ranks(3, [&](std::uint16_t rank) {
    if (rank != 1) {
      find(*histories[rank]);
    }
  });
  for (const std::size_t rank : {0, 2}) {
    EXPECT_EQ(endings[rank].code, ErrorCode::rendezvous_timeout) << endings[rank].text;
    EXPECT_EQ(endings[rank].text, "shrink: rank 1 lived and did not come within 1500 ms");
    EXPECT_EQ(endings[rank].rank, 1);
  }
}

/// A rank whose process is at this place, for one handshake with the rank that leads.
std::unique_ptr<FramedStream> joined(const GroupHistory& history, std::uint16_t leader) {
  return join_on(connected_to(history.endpoints[leader].front().text()),
                 {.claim = history.self,
                  .credentials = history.credentials,
                  .endpoints = history.endpoints[leader],
                  .timeout = kAmple,
                  .keep_alive = history.keep_alive})
      .stream;
}

/// The leader has not heard that the first connection is over.
TEST(Survivors, ARankThatComesAgainTakesItsSeat) {
  auto histories = histories_of(3);
  std::latch is_seated(1);
  expect_none(run_ranks(3, [&](std::uint16_t rank) {
    if (rank == 0) {
      EXPECT_EQ(find(*histories[0], kAmple).membership.members, (Ranks{0, 1, 2}));
    } else if (rank == 1) {
      const auto first = joined(*histories[1], 0);
      std::unique_ptr<FramedStream> second;
      EXPECT_EQ(ending_of([&] { second = joined(*histories[1], 0); }).text, "");
      is_seated.count_down();
      ASSERT_TRUE(first && second);
      EXPECT_TRUE(test::comes_true([&] {
        const auto frame = second->receive();
        return frame && frame->kind == code(ControlKind::membership);
      }));
    } else {
      is_seated.wait();
      find(*histories[2], kAmple);
    }
  }));
}

/// It admits rank 1, and ends when rank 1 has no time to begin again.
TEST(Survivors, ALeaderThatEndsLateIsNotTakenForALateRank) {
  auto histories = histories_of(2);
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    if (rank == 1) {
      find(*histories[1]);
      return;
    }
    Admission admission(std::move(histories[0]->listener), histories[0]->credentials);
    const std::optional<PendingPeer> peer = admission.next(Clock::now() + kTimeout);
    ASSERT_TRUE(peer);
    peer->stream->send(code(ControlKind::welcome), {});
    std::this_thread::sleep_for(kTimeout + milliseconds(200));
  });
  EXPECT_EQ(endings[1].code, ErrorCode::peer_died);
  EXPECT_EQ(endings[1].rank, 0);
  EXPECT_EQ(endings[1].text, "shrink: rank 0 ended while it led");
}

} // namespace
} // namespace weir::host::survivors_test
