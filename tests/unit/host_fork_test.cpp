// SPDX-License-Identifier: BSD-3-Clause

/// The host library in a process that forks.

#include "host/api/forming.hpp"
#include "host/rendezvous/rendezvous.hpp"
#include "host_job.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

const pid_t kParent = getpid();

} // namespace

/// LeakSanitizer's hook. A child that exits unwinds no stack, and it lacks the parent's other
/// threads, which own the rest. So all of it would look leaked.
extern "C" int __lsan_is_turned_off() {
  return getpid() != kParent ? 1 : 0;
}

namespace weir::host::host_fork_test {
namespace {

/// Forks a child that runs the body and exits with its result. Returns the exit status, or nullopt
/// when the child had to be killed after ten seconds.
std::optional<int> status_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  for (int naps = 0; naps < 1000; ++naps) {
    if (waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return std::nullopt;
}

void reduce(Group& group) {
  std::vector<float> data(3000, static_cast<float>(group.rank() + 1));
  group.all_reduce(data.data(), data.data(), data.size(), DataType::f32, Operation::sum);
  EXPECT_EQ(data, std::vector<float>(3000, 3));
}

using Bodies = std::vector<std::function<int(std::unique_ptr<Group>&)>>;

/// The NICs of two ranks.
enum class Nics : std::uint8_t { two, one };

void fork_between_calls(Nics nics, const Bodies& bodies) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    if (nics == Nics::one) {
      options.ip = ip_of(0);
      options.nic = "nic";
    }
    auto group = std::make_unique<Group>(options, fabric.open(rank));
    reduce(*group);
    for (std::size_t i = 0; rank == 1 && i < bodies.size(); ++i) {
      EXPECT_EQ(status_of_child([&] { return bodies[i](group); }), 0) << "body " << i;
    }
    reduce(*group);
  }));
}

/// Jobs of two ranks, through a switch and behind one NIC. Between two all-reduces rank 1 forks a
/// child for each body and waits until it has ended with status 0.
void fork_between_calls(const Bodies& bodies) {
  fork_between_calls(Nics::two, bodies);
  fork_between_calls(Nics::one, bodies);
}

TEST(Fork, AChildThatClosesTheGroupEndsNothing) {
  fork_between_calls({[](std::unique_ptr<Group>& group) {
    group.reset();
    return 0;
  }});
}

/// Destroyed when the process exits.
std::unique_ptr<Group>& global_group() {
  static std::unique_ptr<Group> group;
  return group;
}

TEST(Fork, AChildThatExitsEndsNothing) {
  fork_between_calls({[](std::unique_ptr<Group>& group) {
    global_group() = std::move(group);
    std::exit(0);
    return 1;
  }});
}

TEST(Fork, NothingActsInAChild) {
  const auto is_refused = [](const std::function<void()>& call) {
    const Ending ending = ending_of(call);
    return ending.code == ErrorCode::transport_failure && ending.rank == 1 &&
           ending.text.find("fork") != std::string::npos;
  };
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    if (rank == 1) {
      Pending pending = group.start_all_reduce(data.data(), data.data(), data.size(), DataType::f32,
                                               Operation::sum);
      EXPECT_EQ(status_of_child([&] {
                  const bool all =
                      is_refused([&] { pending.test(); }) && is_refused([&] { pending.wait(); }) &&
                      is_refused([&] { pending.wait_for(milliseconds(1)); }) &&
                      is_refused([&] { reduce(group); }) && is_refused([&] { group.statistics(); });
                  return all ? 0 : 1;
                }),
                0);
      pending.wait();
    } else {
      std::this_thread::sleep_for(milliseconds(100)); // rank 1's call is under way in its child
      group.all_reduce(data.data(), data.data(), data.size(), DataType::f32, Operation::sum);
    }
    EXPECT_EQ(data, std::vector<float>(100, 2));
  }));
}

TEST(Fork, AFormingDoesNothingInAChild) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  auto first = std::make_unique<Forming>(options_of(plan, 0, address), fabric.open(0));
  EXPECT_EQ(status_of_child([&] {
              const Ending ending = ending_of([&] { first->test(); });
              const bool is_refused = ending.text.find("fork") != std::string::npos;
              first.reset();
              return is_refused ? 0 : 1;
            }),
            0);
  Forming second(options_of(plan, 1, address), fabric.open(1));
  EXPECT_TRUE(first->wait_for(milliseconds(10'000)));
  EXPECT_TRUE(second.wait_for(milliseconds(10'000)));
}

TEST(Fork, AChildMayFormAGroupOfItsOwn) {
  if (test::kIsSanitized) {
    GTEST_SKIP() << "a sanitizer's locks may be held in the child of a process with threads";
  }
  fork_between_calls({[](std::unique_ptr<Group>& group) {
    const JobPlan plan{.world = 2};
    HostFabric fabric(rings_of(plan), plan.world, kSession);
    const std::string address = free_address();
    const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
      Group own(options_of(plan, rank, address), fabric.open(rank));
      if (rank == 0) {
        group.reset(); // the parent's; its descriptors may now be used by others
      }
      reduce(own);
    });
    return endings[0].code || endings[1].code || testing::Test::HasFailure() ? 1 : 0;
  }});
}

/// Returns when no process has the other end of the pipe open.
void wait_for_end(int pipe_end) {
  char byte = 0;
  while (read(pipe_end, &byte, 1) > 0) {
  }
}

/// Rank 1's process leaves a child that neither execs nor ends.
TEST(Fork, AHelperThatOutlivesItsParentHoldsNoConnection) {
  const std::string address = free_address();
  int until_test_ends[2];
  ASSERT_EQ(pipe(until_test_ends), 0);
  const pid_t rank_1 = fork();
  if (rank_1 == 0) {
    close(until_test_ends[1]);
    Rendezvous rendezvous({1, 2, address, milliseconds(10'000)});
    rendezvous.gather({});
    if (fork() == 0) {
      wait_for_end(until_test_ends[0]);
    }
    _exit(0);
  }
  const auto start = Clock::now();
  const Ending ending = ending_of([&] {
    Rendezvous rendezvous({0, 2, address, milliseconds(10'000)});
    rendezvous.gather({});
    rendezvous.gather({}); // rank 1 does not come to this one
  });
  EXPECT_LT(Clock::now() - start, milliseconds(5000));
  EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
  EXPECT_EQ(ending.rank, 1);
  close(until_test_ends[1]);
  close(until_test_ends[0]);
  waitpid(rank_1, nullptr, 0);
}

} // namespace
} // namespace weir::host::host_fork_test
