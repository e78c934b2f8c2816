// SPDX-License-Identifier: BSD-3-Clause

/// How much memory sparse all-reduces take and keep, and what becomes of those that get none. This
/// program counts what operator new gives out, and may give out less.

#include "host/collective/sparse_input.hpp"
#include "host/collective/sparse_outcome.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <gmock/gmock.h>
#include <malloc.h>
#include <new>
#include <vector>

namespace {

std::atomic<std::size_t> bytes_in_use = 0;
std::atomic<std::size_t> most_at_once = SIZE_MAX;

} // namespace

// Not inlined: gcc would take malloc and delete, or new and free, for a pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = bytes <= most_at_once ? std::malloc(bytes) : nullptr;
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  bytes_in_use += malloc_usable_size(memory);
  return memory;
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  bytes_in_use -= memory == nullptr ? 0 : malloc_usable_size(memory);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace weir::host {
namespace {

using Indices = std::vector<std::int64_t>;

class SparseMemory : public testing::Test {
 protected:
  ~SparseMemory() override { most_at_once = SIZE_MAX; }

  Group form(std::uint16_t rank) {
    return Group(options_of(plan_, rank, address_), fabric_.open(rank));
  }

  const JobPlan plan_{.world = 2};
  HostFabric fabric_{rings_of(plan_), plan_.world, kSession};
  const std::string address_ = free_address();
  std::barrier<> everybody_{2};
};

/// Input that does not ascend is copied. The copy is not needed once the call has ended, and the
/// result may be kept for long.
TEST_F(SparseMemory, OfTheInputIsGivenBackWithTheRequest) {
  constexpr std::uint64_t block = 32'768;
  const Indices indices{63, 2, 1, 0};
  const std::vector<double> values(indices.size() * block, 1);
  const std::size_t result_bytes = values.size() * sizeof(double);
  expect_none(run_ranks(2, [&](std::uint16_t rank) {
    Group group = form(rank);
    everybody_.arrive_and_wait();
    const std::size_t before = bytes_in_use;
    everybody_.arrive_and_wait();
    Group::SparseCall call =
        group.start_sparse({.count = 64 * block,
                            .block = block,
                            .indices = indices,
                            .values = reinterpret_cast<const std::uint8_t*>(values.data())},
                           {.type = DataType::f64});
    call.pending.wait();
    call.pending = Pending();
    everybody_.arrive_and_wait();
    EXPECT_EQ(call.result->result().values.size(), result_bytes);
    EXPECT_LT(bytes_in_use - before, 2 * result_bytes + result_bytes / 2)
        << "besides two ranks' results";
    everybody_.arrive_and_wait();
  }));
}

/// The bitmap of the bitmap's words has 2^30 bits.
TEST_F(SparseMemory, ThatIsLackingEndsTheGroupAndTheResultSaysSo) {
  expect_all(run_ranks(2,
                       [&](std::uint16_t rank) {
                         Group group = form(rank);
                         everybody_.arrive_and_wait();
                         most_at_once = std::size_t{1} << 26;
                         const Indices indices{rank};
                         const float value = 1;
                         Group::SparseCall call = group.start_sparse(
                             {.count = std::uint64_t{1} << 36,
                              .indices = indices,
                              .values = reinterpret_cast<const std::uint8_t*>(&value)},
                             {});
                         const Ending ending = ending_of([&] { call.pending.wait(); });
                         EXPECT_THAT(ending.text, testing::HasSubstr("no memory is left"));
                         EXPECT_EQ(ending_of([&] { call.result->find(); }).text, ending.text);
                         EXPECT_FALSE(call.result->is_done());
                         group.start_all_reduce(nullptr, nullptr, 0, DataType::f32, Operation::sum);
                       }),
             ErrorCode::transport_failure);
}

} // namespace
} // namespace weir::host
