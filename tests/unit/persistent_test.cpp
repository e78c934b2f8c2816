// SPDX-License-Identifier: BSD-3-Clause

/// Persistent calls by the C API, between ranks in memory: what each start makes, and which memory
/// is theirs.

#include "collective_caller.hpp"
#include "host/api/c_objects.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::host::persistent_test {
namespace {

using test::part;
using test::sum_of;
using test::Values;
using test::values_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const JobPlan kPlan{.world = 3};
constexpr std::size_t kCount = 300;
constexpr std::size_t kStride = 310;
constexpr std::size_t kWhole = kStride * 3;

void release(weir_persistent* persistent) {
  weir_persistent_release(persistent);
}

using Owned = std::unique_ptr<weir_persistent, decltype(&release)>;

/// Three ranks around a switch, as the C API has them.
void run(const std::function<void(weir_group&)>& body) {
  HostFabric fabric(rings_of(kPlan), kPlan.world, kSession);
  const std::string address = free_address();
  expect_none(run_ranks(kPlan.world, [&](std::uint16_t rank) {
    const GroupOptions options = options_of(kPlan, rank, address);
    weir_group group(std::make_shared<Device>(options), Group(options, fabric.open(rank)));
    body(group);
  }));
}

void expect_ok(weir_status status, const char* what) {
  EXPECT_EQ(status, WEIR_OK) << what << ": " << weir_last_error();
}

/// A rank's buffers.
struct Memory {
  Values in = Values(kWhole);
  Values out = Values(kWhole);
};

/// A call, how it is prepared and how it is made at once, and what becomes of the sums.
struct Row {
  const char* name;
  std::function<weir_status(weir_group&, Memory&, weir_persistent**)> prepare;
  std::function<weir_status(weir_group&, Memory&)> call;
};

// Both with the same arguments.
#define WEIR_TEST_ROW(name, ...)                                                                   \
  Row {                                                                                            \
#name,                                                                                         \
        [](weir_group& group, [[maybe_unused]] Memory& memory, weir_persistent** made) {           \
          return weir_prepare_##name(&group __VA_OPT__(, ) __VA_ARGS__, made);                     \
        },                                                                                         \
        [](weir_group& group, [[maybe_unused]] Memory& memory) {                                   \
          return weir_##name(&group __VA_OPT__(, ) __VA_ARGS__);                                   \
        }   \
  }

std::array<weir_tensor, 2> tensors_of(Memory& memory) {
  return {{{memory.in.data(), memory.out.data(), 100},
           {memory.in.data() + 100, memory.out.data() + 100, kCount - 100}}};
}

std::vector<Row> rows() {
  return {
      WEIR_TEST_ROW(all_reduce, memory.in.data(), memory.out.data(), kCount, WEIR_I32, WEIR_SUM),
      WEIR_TEST_ROW(all_reduce_coalesced, tensors_of(memory).data(), 2, WEIR_I32, WEIR_SUM),
      WEIR_TEST_ROW(reduce, memory.in.data(), memory.out.data(), kCount, WEIR_I32, WEIR_SUM, 1),
      WEIR_TEST_ROW(broadcast, memory.out.data(), kCount, WEIR_I32, 2),
      WEIR_TEST_ROW(all_gather, memory.in.data(), memory.out.data(), kCount, WEIR_I32),
      WEIR_TEST_ROW(reduce_scatter, memory.in.data(), memory.out.data(), kCount, WEIR_I32,
                    WEIR_SUM),
      WEIR_TEST_ROW(all_gather_strided, memory.in.data(), memory.out.data(), kCount, kStride,
                    WEIR_I32),
      WEIR_TEST_ROW(reduce_scatter_strided, memory.in.data(), memory.out.data(), kCount, kStride,
                    WEIR_I32, WEIR_SUM),
      WEIR_TEST_ROW(barrier),
  };
}

void fill(Memory& memory, std::int32_t rank, std::int32_t round) {
  for (std::size_t at = 0; at < kWhole; ++at) {
    memory.in[at] = static_cast<std::int32_t>(at) + 1000 * rank + 100'000 * round;
    memory.out[at] = -memory.in[at];
  }
}

/// What the plain call, of which other tests say that it is right, makes of the same input.
Values made_at_once(const Row& row, weir_group& group, std::int32_t round) {
  Memory memory;
  fill(memory, group.group.rank(), round);
  expect_ok(row.call(group, memory), row.name);
  return memory.out;
}

TEST(Persistent, MakesInEachStartWhatThePlainCallMakes) {
  run([](weir_group& group) {
    for (const Row& row : rows()) {
      Memory memory;
      weir_persistent* made = nullptr;
      expect_ok(row.prepare(group, memory, &made), row.name);
      const Owned persistent(made, release);
      expect_ok(weir_persistent_register(persistent.get()), row.name);
      for (std::int32_t round = 0; round < 3; ++round) {
        fill(memory, group.group.rank(), round);
        weir_request* request = nullptr;
        expect_ok(weir_start_persistent(persistent.get(), &request), row.name);
        expect_ok(weir_wait(request), row.name);
        EXPECT_EQ(memory.out, made_at_once(row, group, round)) << row.name << ", round " << round;
      }
    }
  });
}

TEST(Persistent, IsAPlainCallToTheOthers) {
  run([](weir_group& group) {
    Values data = values_of(group.group.rank(), kCount);
    if (group.group.rank() != 1) {
      expect_ok(weir_all_reduce(&group, data.data(), data.data(), kCount, WEIR_I32, WEIR_SUM), "");
    } else {
      weir_persistent* persistent = nullptr;
      weir_request* request = nullptr;
      expect_ok(weir_prepare_all_reduce(&group, data.data(), data.data(), kCount, WEIR_I32,
                                        WEIR_SUM, &persistent),
                "prepare");
      expect_ok(weir_start_persistent(persistent, &request), "start");
      expect_ok(weir_wait(request), "wait");
      weir_persistent_release(persistent);
    }
    EXPECT_EQ(data, sum_of(3, kCount));
  });
}

TEST(Persistent, StartsAgainWhenItsLastRequestIsDoneOrCancelled) {
  std::latch is_refused(1);
  run([&](weir_group& group) {
    Values first = values_of(group.group.rank(), 5000);
    Values data = values_of(group.group.rank(), kCount);
    weir_persistent* made = nullptr;
    expect_ok(weir_prepare_all_reduce(&group, data.data(), data.data(), kCount, WEIR_I32, WEIR_SUM,
                                      &made),
              "prepare");
    const Owned persistent(made, release);
    if (group.group.rank() != 0) {
      is_refused.wait();
    }
    weir_request* before = nullptr;
    weir_request* request = nullptr;
    weir_request* again = nullptr;
    expect_ok(weir_start_all_reduce(&group, first.data(), first.data(), first.size(), WEIR_I32,
                                    WEIR_SUM, &before),
              "the call before");
    expect_ok(weir_start_persistent(made, &request), "start");
    if (group.group.rank() == 0) {
      EXPECT_EQ(weir_start_persistent(made, &again), WEIR_INVALID_ARGUMENT);
      EXPECT_THAT(weir_last_error(), HasSubstr("persistent: found a call whose last request"));
      EXPECT_EQ(again, nullptr);
      EXPECT_EQ(weir_cancel(request), WEIR_OK) << weir_last_error();
      expect_ok(weir_start_persistent(made, &again), "after it was cancelled");
      is_refused.count_down();
      EXPECT_EQ(weir_wait(request), WEIR_CANCELLED);
    } else {
      expect_ok(weir_wait(request), "wait");
      EXPECT_EQ(data, sum_of(3, kCount));
      std::ranges::copy(values_of(group.group.rank(), kCount), data.begin());
      expect_ok(weir_start_persistent(made, &again), "after it was done");
    }
    expect_ok(weir_wait(again), "again");
    EXPECT_EQ(data, sum_of(3, kCount));
    expect_ok(weir_wait(before), "the call before");
  });
}

// ---------------------------------------------------------------------------------- its memory

/// The buffers by offset and length in elements of two arrays that lie one after the other.
std::vector<std::pair<std::ptrdiff_t, std::size_t>> places_in(const Values& both,
                                                              const weir_persistent& persistent) {
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> places;
  for (const std::span<std::uint8_t> buffer : persistent.buffers) {
    places.emplace_back(reinterpret_cast<const std::int32_t*>(buffer.data()) - both.data(),
                        buffer.size() / sizeof(std::int32_t));
  }
  return places;
}

TEST(Persistent, KnowsWhichMemoryACallUses) {
  run([](weir_group& group) {
    const std::uint16_t rank = group.group.rank();
    Values both(2 * kWhole);
    std::int32_t* const in = both.data();
    std::int32_t* const out = both.data() + kWhole;
    constexpr auto kOut = static_cast<std::ptrdiff_t>(kWhole);
    weir_persistent* made = nullptr;
    const auto places = [&](weir_status status) {
      expect_ok(status, "prepare");
      const Owned persistent(std::exchange(made, nullptr), release);
      return places_in(both, *persistent);
    };
    using Place = std::pair<std::ptrdiff_t, std::size_t>;
    EXPECT_THAT(places(weir_prepare_all_reduce(&group, in, out, 10, WEIR_I32, WEIR_SUM, &made)),
                ElementsAre(Place(0, 10), Place(kOut, 10)));
    EXPECT_THAT(places(weir_prepare_all_reduce(&group, in, in, 10, WEIR_I32, WEIR_SUM, &made)),
                ElementsAre(Place(0, 10)));
    EXPECT_THAT(
        places(weir_prepare_reduce(&group, in, out, 10, WEIR_I32, WEIR_SUM, 1, &made)),
        rank == 1 ? testing::Matcher<std::vector<Place>>(ElementsAre(Place(0, 10), Place(kOut, 10)))
                  : ElementsAre(Place(0, 10)));
    EXPECT_THAT(places(weir_prepare_broadcast(&group, in, 10, WEIR_I32, 1, &made)),
                ElementsAre(Place(0, 10)));
    EXPECT_THAT(places(weir_prepare_all_gather(&group, out + 10 * rank, out, 10, WEIR_I32, &made)),
                ElementsAre(Place(kOut, 30)));
    EXPECT_THAT(places(weir_prepare_reduce_scatter(&group, in, in + 10 * rank, 10, WEIR_I32,
                                                   WEIR_SUM, &made)),
                ElementsAre(Place(0, 30)));
    EXPECT_THAT(places(weir_prepare_all_gather_strided(&group, in, out, 10, 15, WEIR_I32, &made)),
                ElementsAre(Place(0, 10), Place(kOut, 40)));
    const std::array<weir_tensor, 3> tensors{{{in, out, 4}, {in + 8, in + 8, 2}, {in, out, 0}}};
    EXPECT_THAT(places(weir_prepare_all_reduce_coalesced(&group, tensors.data(), 3, WEIR_I32,
                                                         WEIR_SUM, &made)),
                ElementsAre(Place(0, 4), Place(kOut, 4), Place(8, 2)));
    EXPECT_THAT(places(weir_prepare_barrier(&group, &made)), IsEmpty());
  });
}

} // namespace
} // namespace weir::host::persistent_test
