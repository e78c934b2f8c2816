// SPDX-License-Identifier: BSD-3-Clause

/// Requests that are cancelled: which ones can be, that their buffers are free at once, and that
/// the other ranks notice nothing.

#include "collective_caller.hpp"
#include "host/collective/sparse_input.hpp"
#include "host/collective/sparse_outcome.hpp"
#include "host_job.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <poll.h>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace weir::host::cancel_test {
namespace {

using test::kUntouched;
using test::part;
using test::sum_of;
using test::Values;
using test::values_of;

constexpr std::size_t kCount = 700;
constexpr std::int32_t kGarbage = -999'999; // of a caller that uses its buffers for other things

/// Who the ranks are, and who adds up.
struct Ranks {
  const char* name;
  std::vector<std::uint16_t> nics; // of each rank
  std::size_t first_count;         // of a call that does not end before all ranks make it
  JobPlan job{};
};

std::uint16_t world_of(const Ranks& ranks) {
  return static_cast<std::uint16_t>(ranks.nics.size());
}

/// Every rank in a thread, in a group of this kind.
std::vector<Ending> run(const Ranks& ranks, ProgressBy progress,
                        const std::function<void(Group&)>& body) {
  JobPlan plan = ranks.job;
  plan.world = static_cast<std::uint16_t>(*std::ranges::max_element(ranks.nics) + 1);
  const bool has_switch = plan.fallback == Fallback::none && plan.world > 1;
  HostFabric fabric(has_switch ? rings_of(plan) : std::vector<ring::RingSpec>(), plan.world,
                    kSession);
  const std::string address = free_address();
  return run_ranks(world_of(ranks), [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, ranks.nics[rank], address);
    options.rank = rank;
    options.world = world_of(ranks);
    options.nic = "nic" + std::to_string(ranks.nics[rank]);
    options.progress = progress;
    Group group(options, fabric.open(ranks.nics[rank]));
    body(group);
  });
}

const Ranks kPair{.name = "Pair", .nics = {0, 1}, .first_count = 1000};

Pending start_sum(Group& group, Values& data) {
  return group.start_all_reduce(data.data(), data.data(), data.size(), DataType::i32,
                                Operation::sum);
}

/// Whether messages of rank 0 go before the others call: not where ranks fold theirs first.
bool leaves(const Group& group) {
  bool is_alone = group.rank() == 0;
  for (std::uint16_t rank = 1; rank < group.world(); ++rank) {
    is_alone = is_alone && group.leader(rank) != 0;
  }
  return is_alone;
}

/// The first of two calls, which rank 0 makes before the others make any: so the second waits.
struct First {
  First(Group& its_group, std::size_t count)
      : group(its_group), data(values_of(group.rank(), count)) {
    const std::uint64_t before = group.statistics().messages_sent;
    pending = start_sum(group, data);
    if (leaves(group)) {
      EXPECT_TRUE(test::comes_true([&] {
        group.progress();
        return group.statistics().messages_sent > before;
      }));
    }
  }

  void expect_its_end() {
    pending.wait();
    EXPECT_EQ(data, sum_of(group.world(), data.size()));
  }

  Group& group;
  Values data;
  Pending pending;
};

// ----------------------------------------------------------------------------------- every call

/// A call, and what it must make on a rank.
struct Row {
  const char* name;
  std::function<Pending(Group&, const Values& in, Values& out)> start;
  std::function<Values(std::uint16_t rank, std::uint16_t world)> due;
  std::size_t in_shares = 1;  // 0: one of each rank
  std::size_t out_shares = 1; // likewise
};

std::function<Pending(Group&, const Values&, Values&)> dense(Call call) {
  call.count = kCount;
  call.type = DataType::i32;
  return [call](Group& group, const Values& in, Values& out) {
    return group.start(in.data(), out.data(), call);
  };
}

std::function<Pending(Group&, const Values&, Values&)> strided(CallKind kind) {
  return [kind](Group& group, const Values& in, Values& out) {
    return group.start_strided(in.data(), out.data(),
                               {.kind = kind, .count = kCount - 1, .type = DataType::i32}, kCount);
  };
}

Pending coalesced(Group& group, const Values& in, Values& out) {
  const std::array<Group::Part, 2> parts{
      Group::Part{in.data(), out.data(), 333},
      Group::Part{in.data() + 333, out.data() + 333, kCount - 333}};
  return group.start_all_reduce(parts, {.type = DataType::i32});
}

Pending scaled(Group& group, const Values& in, Values& out) {
  Factor factor{};
  factor[0] = 3;
  return group.start_scaled(in.data(), out.data(), {.count = kCount, .type = DataType::i32},
                            factor);
}

Values sums(std::uint16_t /*rank*/, std::uint16_t world) {
  return sum_of(world, kCount);
}

Values thrice(std::uint16_t /*rank*/, std::uint16_t world) {
  Values due = sum_of(world, kCount);
  std::ranges::for_each(due, [](std::int32_t& value) { value *= 3; });
  return due;
}

Values means(std::uint16_t /*rank*/, std::uint16_t world) {
  Values due = sum_of(world, kCount);
  std::ranges::for_each(due, [&](std::int32_t& value) { value /= world; });
  return due;
}

/// `used` elements of each rank's share, the others untouched.
Values gathered(std::uint16_t world, std::size_t used) {
  Values due(kCount * world, kUntouched);
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    std::ranges::copy(values_of(rank, used),
                      due.begin() + static_cast<std::ptrdiff_t>(rank * kCount));
  }
  return due;
}

Values share_of_sums(std::uint16_t rank, std::uint16_t world, std::size_t used) {
  Values due = part(sum_of(world, kCount * world), rank * kCount, used);
  due.resize(kCount, kUntouched);
  return due;
}

std::vector<Row> rows() {
  using Kind = CallKind;
  return {
      {"all-reduce", dense({}), sums},
      {"average", dense({.finish = Finish::average}), means},
      {"coalesced", coalesced, sums},
      {"scaled", scaled, thrice},
      {"reduce", dense({.kind = Kind::reduce, .root = 1}),
       [](auto rank, auto world) {
         return rank == 1 ? sum_of(world, kCount) : Values(kCount, kUntouched);
       }},
      {"broadcast by who cancels", dense({.kind = Kind::broadcast, .root = 0}),
       [](auto rank, auto) { return rank == 0 ? Values() : values_of(0, kCount); }},
      {"broadcast by another", dense({.kind = Kind::broadcast, .root = 1}),
       [](auto rank, auto) { return rank == 1 ? Values() : values_of(1, kCount); }},
      {"all-gather", dense({.kind = Kind::all_gather}),
       [](auto, auto world) { return gathered(world, kCount); }, 1, 0},
      {"all-gather with gaps", strided(Kind::all_gather),
       [](auto, auto world) { return gathered(world, kCount - 1); }, 1, 0},
      {"reduce-scatter", dense({.kind = Kind::reduce_scatter}),
       [](auto rank, auto world) { return share_of_sums(rank, world, kCount); }, 0, 1},
      {"reduce-scatter from gaps", strided(Kind::reduce_scatter),
       [](auto rank, auto world) { return share_of_sums(rank, world, kCount - 1); }, 0, 1},
      {"barrier", dense({.kind = Kind::barrier}),
       [](auto, auto) { return Values(kCount, kUntouched); }},
  };
}

void cancel(Group& group, First& first, const Row& row, std::latch& is_cancelled) {
  const std::uint16_t world = group.world();
  Values in = values_of(0, kCount * (row.in_shares == 0 ? world : 1));
  Values out(kCount * (row.out_shares == 0 ? world : 1), kUntouched);
  Pending second = row.start(group, in, out);
  if (leaves(group)) {
    EXPECT_FALSE(first.pending.cancel()) << row.name << ": messages of the first have left";
  }
  EXPECT_TRUE(second.cancel()) << row.name;
  std::ranges::fill(in, kGarbage);
  std::ranges::fill(out, kGarbage);
  const Ending ending = ending_of([&] { second.test(); });
  EXPECT_EQ(ending.code, ErrorCode::cancelled) << row.name << ": " << ending.text;
  EXPECT_TRUE(second.cancel()) << row.name << ": it is over";
  is_cancelled.count_down();
  first.expect_its_end();
  expect_sum(group, 50);
  EXPECT_TRUE(std::ranges::all_of(in, [](auto value) { return value == kGarbage; })) << row.name;
  EXPECT_TRUE(std::ranges::all_of(out, [](auto value) { return value == kGarbage; })) << row.name;
}

void go_on(Group& group, First& first, const Row& row) {
  const std::uint16_t world = group.world();
  const Values in = values_of(group.rank(), kCount * (row.in_shares == 0 ? world : 1));
  Values out(kCount * (row.out_shares == 0 ? world : 1), kUntouched);
  row.start(group, in, out).wait();
  if (const Values due = row.due(group.rank(), world); !due.empty()) {
    EXPECT_EQ(out, due) << row.name << " on rank " << group.rank();
  }
  first.expect_its_end();
  expect_sum(group, 50);
}

class Cancelled : public testing::TestWithParam<Ranks> {};

TEST_P(Cancelled, LeavesTheOthersTheirResultsInEveryCall) {
  const Ranks& ranks = GetParam();
  const std::vector<Row> calls = rows();
  std::vector<std::unique_ptr<std::latch>> are_cancelled;
  for (std::size_t call = 0; call < calls.size(); ++call) {
    are_cancelled.push_back(std::make_unique<std::latch>(1));
  }
  expect_none(run(ranks, ProgressBy::thread, [&](Group& group) {
    for (std::size_t call = 0; call < calls.size(); ++call) {
      if (group.rank() == 0) {
        First first(group, ranks.first_count);
        cancel(group, first, calls[call], *are_cancelled[call]);
      } else {
        are_cancelled[call]->wait();
        First first(group, ranks.first_count);
        go_on(group, first, calls[call]);
      }
    }
  }));
}

/// Each rank cancels what it likes, when it likes; what is not cancelled is exact.
TEST_P(Cancelled, AnyOfManyByAnybodyAtAnyTime) {
  constexpr std::size_t kCalls = 120;
  const Ranks& ranks = GetParam();
  std::atomic<unsigned> over = 0;
  expect_none(run(ranks, ProgressBy::thread, [&](Group& group) {
    std::mt19937_64 dice(group.rank() + 5U);
    std::vector<Values> data(kCalls);
    std::vector<Pending> pending;
    std::vector<bool> has_ended(kCalls);
    for (std::size_t call = 0; call < kCalls; ++call) {
      data[call] = values_of(group.rank(), 500 * (call % 3) + 20);
      pending.push_back(start_sum(group, data[call]));
      const std::size_t chosen = dice() % pending.size();
      if (dice() % 2 == 0 && pending[chosen].cancel() && !has_ended[chosen]) {
        const Ending ending = ending_of([&] { EXPECT_TRUE(pending[chosen].test()); });
        has_ended[chosen] = ending.code == ErrorCode::cancelled;
        if (has_ended[chosen]) {
          std::ranges::fill(data[chosen], kGarbage);
          ++over;
        }
      }
    }
    for (std::size_t call = 0; call < kCalls; ++call) {
      const Ending ending = ending_of([&] { pending[call].wait(); });
      EXPECT_EQ(ending.code.has_value(), has_ended[call]) << ending.text;
      const std::size_t count = data[call].size();
      EXPECT_EQ(data[call],
                has_ended[call] ? Values(count, kGarbage) : sum_of(group.world(), count))
          << "call " << call;
    }
    expect_sum(group);
  }));
  EXPECT_GT(over, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Requests, Cancelled,
    testing::Values(kPair, Ranks{"TwoRings", {0, 1, 2}, 5000, {.rings = {1, 2}}},
                    Ranks{"HostsRing", {0, 1, 2}, 500, {.fallback = Fallback::ring}},
                    Ranks{"OneNic", {0, 0, 0}, 130'000},
                    Ranks{
                        "TwoNics", {0, 0, 1, 1}, 130'000, {.message_bytes = 16'000, .mtu = 4096}}),
    [](const auto& info) { return std::string(info.param.name); });

// ------------------------------------------------------------------------------ who hears of it

class CancelledIn : public testing::TestWithParam<ProgressBy> {};

TEST_P(CancelledIn, CallsBackOnce) {
  std::latch is_cancelled(1);
  std::atomic<int> called = 0;
  expect_none(run(kPair, GetParam(), [&](Group& group) {
    if (group.rank() == 1) {
      is_cancelled.wait();
    }
    First first(group, kPair.first_count);
    Values data(kCount, 1);
    Pending second = start_sum(group, data);
    if (group.rank() == 0) {
      second.on_done([&](const std::optional<Error>& error) {
        EXPECT_TRUE(error && error->code() == ErrorCode::cancelled);
        ++called;
      });
      EXPECT_TRUE(second.cancel());
      EXPECT_TRUE(test::comes_true([&] {
        group.progress();
        return called == 1;
      }));
      is_cancelled.count_down();
    }
    first.expect_its_end();
    expect_sum(group);
  }));
  EXPECT_EQ(called, 1);
}

TEST_P(CancelledIn, EndsTheWaitOfAnotherThread) {
  std::latch is_cancelled(1);
  expect_none(run(kPair, GetParam(), [&](Group& group) {
    if (group.rank() == 1) {
      is_cancelled.wait();
    }
    First first(group, kPair.first_count);
    Values data(kCount, 1);
    Pending second = start_sum(group, data);
    if (group.rank() == 0) {
      std::atomic<bool> waits = false;
      std::thread waiter([&] {
        waits = true;
        EXPECT_EQ(ending_of([&] { second.wait(); }).code, ErrorCode::cancelled);
      });
      EXPECT_TRUE(test::comes_true([&] { return waits.load(); }));
      EXPECT_TRUE(second.cancel());
      waiter.join();
      is_cancelled.count_down();
    }
    first.expect_its_end();
    expect_sum(group);
  }));
}

TEST_P(CancelledIn, StaysSoWhenTheGroupIsOver) {
  std::latch is_over(1);
  run(kPair, GetParam(), [&](Group& group) {
    if (group.rank() == 1) {
      is_over.wait();
      return;
    }
    First first(group, kPair.first_count);
    Values data(kCount, 1);
    Pending second = start_sum(group, data);
    Pending third = start_sum(group, data);
    EXPECT_TRUE(second.cancel());
    group.abort("enough");
    EXPECT_EQ(ending_of([&] { first.pending.wait(); }).code, ErrorCode::aborted);
    EXPECT_EQ(ending_of([&] { second.wait(); }).code, ErrorCode::cancelled);
    EXPECT_EQ(ending_of([&] { third.wait(); }).code, ErrorCode::aborted);
    EXPECT_TRUE(third.cancel()) << "it is over";
    is_over.count_down();
  });
}

INSTANTIATE_TEST_SUITE_P(Groups, CancelledIn,
                         testing::Values(ProgressBy::thread, ProgressBy::caller),
                         [](const auto& info) {
                           return std::string(info.param == ProgressBy::thread ? "Thread"
                                                                               : "Caller");
                         });

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(CancelledRequest, IsToldByTheDescriptorOnce) {
  std::latch is_cancelled(1);
  expect_none(run(kPair, ProgressBy::thread, [&](Group& group) {
    if (group.rank() == 1) {
      is_cancelled.wait();
    }
    First first(group, kPair.first_count);
    Values data(kCount, 1);
    Pending second = start_sum(group, data);
    const int descriptor = group.descriptor();
    if (group.rank() == 0) {
      EXPECT_FALSE(is_readable(descriptor));
      EXPECT_TRUE(second.cancel());
      EXPECT_TRUE(is_readable(descriptor));
      is_cancelled.count_down();
    }
    first.expect_its_end();
    expect_sum(group);
    if (group.rank() == 0) { // the cancelled call has ended as well
      EXPECT_TRUE(is_readable(descriptor));
      EXPECT_EQ(ending_of([&] { second.test(); }).code, ErrorCode::cancelled);
      EXPECT_FALSE(is_readable(descriptor));
    }
  }));
}

/// What it takes from the caller's tensor is not all known before the ranks have spoken.
TEST(SparseRequest, IsNotCancelled) {
  static constexpr std::array<std::int64_t, 2> kIndices{1, 9};
  std::latch is_asked(1);
  expect_none(run(kPair, ProgressBy::thread, [&](Group& group) {
    if (group.rank() == 1) {
      is_asked.wait();
    }
    First first(group, kPair.first_count);
    const Values values(2, 1);
    Group::SparseCall sparse =
        group.start_sparse({.count = 100,
                            .block = 1,
                            .indices = kIndices,
                            .values = reinterpret_cast<const std::uint8_t*>(values.data())},
                           {.type = DataType::i32});
    if (group.rank() == 0) {
      EXPECT_FALSE(sparse.pending.cancel());
      is_asked.count_down();
    }
    sparse.pending.wait();
    first.expect_its_end();
    expect_sum(group);
  }));
}

} // namespace
} // namespace weir::host::cancel_test
