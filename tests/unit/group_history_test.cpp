// SPDX-License-Identifier: BSD-3-Clause

/// What the ranks of a new group open and tell one another for the day on which one of them dies.

#include "host/base/host_addresses.hpp"
#include "host/shrink/group_history.hpp"
#include "host/shrink/liveness_probe.hpp"
#include "host_job.hpp"
#include "support/comes_true.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <gmock/gmock.h>
#include <optional>
#include <string>
#include <sys/resource.h>

namespace weir::host::group_history_test {
namespace {

constexpr const char* kNoDescriptors =
    "without a descriptor a sanitizer takes any object for a wrong one";

RendezvousPlan plan_of(std::uint16_t rank, const std::string& address) {
  return {.rank = rank, .world = 2, .address = address, .timeout = milliseconds(10'000)};
}

/// The soft limit of open descriptors while the object lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{.rlim_cur = most, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }

  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

/// Rank 1 has no descriptor for a listener. The other rank has one already, and waits.
TEST(GroupHistory, ARankThatCannotListenIsNamedOnAllRanks) {
  if (test::kIsSanitized) {
    GTEST_SKIP() << kNoDescriptors;
  }
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    const RendezvousPlan plan = plan_of(rank, address);
    Rendezvous rendezvous(plan);
    rendezvous.gather(Blob{}); // as when a group is formed
    if (rank == 0) {
      rendezvous.gather(Blob{});
    } else {
      const DescriptorLimit none(3);
      begin_history(rendezvous, plan);
    }
  });
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.code, ErrorCode::transport_failure);
    EXPECT_EQ(ending.rank, 1);
    EXPECT_THAT(ending.text, testing::StartsWith("rank 1: cannot "));
    EXPECT_THAT(ending.text, testing::EndsWith(": Too many open files"));
  }
}

TEST(GroupHistory, SaysWhyItCannotListen) {
  if (test::kIsSanitized) {
    GTEST_SKIP() << kNoDescriptors;
  }
  const DescriptorLimit none(3);
  try {
    listen_at({"127.0.0.1", "0"});
    FAIL() << "it listens without a descriptor";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot listen at 127.0.0.1:0: Too many open files");
  }
}

LivenessProbe::State state_of(const std::vector<Endpoint>& endpoints) {
  LivenessProbe liveness(endpoints, milliseconds(2000));
  test::comes_true([&] { return liveness.check() != LivenessProbe::State::trying; });
  return liveness.check();
}

/// The kernel tells of a reset once. It may come when that has been asked already.
TEST(GroupHistory, AResetIsAResetWheneverItComes) {
  std::optional<Socket> listener(listen_at({"127.0.0.1", "0"}));
  int error = 0;
  const Socket connection = connecting_to({"127.0.0.1", std::to_string(port_of(*listener))}, error);
  ASSERT_EQ(error, 0);
  listener.reset();
  EXPECT_EQ(outcome_of(connection), ECONNRESET);
  EXPECT_EQ(outcome_of(connection), ECONNRESET) << "the error was taken";
}

/// Rank 1 is on the host of rank 0 and met it by the loopback; rank 2 came by the network.
TEST(GroupHistory, RanksThatMetByTheLoopbackAreReachedByTheNetwork) {
  const std::vector<HostAddress> addresses = read_host_addresses();
  const auto network = std::ranges::find(addresses, HostAddress::Reach::network,
                                         [](const HostAddress& address) { return address.reach; });
  if (network == addresses.end()) {
    GTEST_SKIP() << "this host has no network";
  }
  const std::string port = Endpoint::parse(free_address())->port;
  const std::vector<std::string> addresses_of_rank_0{"[::]:" + port, "127.0.0.1:" + port,
                                                     Endpoint{network->text, port}.text()};
  std::vector<std::shared_ptr<GroupHistory>> histories(3);
  expect_none(run_ranks(3, [&](std::uint16_t rank) {
    RendezvousPlan plan = plan_of(rank, addresses_of_rank_0[rank]);
    plan.world = 3;
    Rendezvous rendezvous(plan);
    histories[rank] = begin_history(rendezvous, plan);
  }));
  for (const Endpoint& endpoint : histories[2]->endpoints[1]) {
    EXPECT_NE(endpoint.host, "127.0.0.1") << "for rank 2 it is another host";
  }
  for (std::uint16_t ended = 0; ended < 3; ++ended) {
    for (std::uint16_t other = 0; other < 3; ++other) {
      if (other > ended) {
        EXPECT_EQ(state_of(histories[other]->endpoints[ended]), LivenessProbe::State::alive)
            << other << " looks for " << ended;
        EXPECT_EQ(state_of(histories[ended]->endpoints[other]), LivenessProbe::State::alive)
            << ended << " looks for " << other;
      }
    }
    histories[ended]->listener = {};
    for (const auto& history : histories) {
      EXPECT_EQ(state_of(history->endpoints[ended]), LivenessProbe::State::ended);
    }
  }
}

} // namespace
} // namespace weir::host::group_history_test
