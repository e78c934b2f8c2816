// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Calls of every kind, whose results are compared with plain loops over whole numbers.

#include "host/api/group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::test {

using host::Call;
using host::CallKind;
using host::Group;
using Values = std::vector<std::int32_t>;

inline constexpr std::int32_t kUntouched = -77;

/// Rank r's values: those of two ranks differ everywhere.
inline Values values_of(std::uint16_t rank, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<std::int32_t>(rank * 1'000'000 + i * 7 % 9973);
  }
  return values;
}

/// The sum of every rank's values.
inline Values sum_of(std::uint16_t world, std::size_t count) {
  Values sums(count);
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    const Values values = values_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] += values[i];
    }
  }
  return sums;
}

inline Values part(const Values& values, std::size_t begin, std::size_t count) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

/// One rank of a job, and the calls that every rank makes with it.
class Caller {
 public:
  Caller(Group& group, std::size_t count)
      : group_(group), rank_(group.rank()), world_(group.world()), count_(count) {}

  void call_everything() {
    for (std::uint16_t root = 0; root < world_; ++root) {
      reduce(root);
      broadcast(root);
    }
    all_gather();
    reduce_scatter();
    coalesced();
    call({.kind = CallKind::barrier, .count = count_}, nullptr,
         nullptr); // has no data all the same
    gather_with_gaps();
    scatter_from_gaps();
  }

 private:
  void call(Call call, const void* in, void* out) {
    call.type = DataType::i32;
    group_.start(in, out, call).wait();
  }

  /// Tensors of 0, 1, 2, … elements, and the rest in one; even ones in place. Each rank cuts the
  /// whole in its own way.
  void coalesced() {
    Values in = values_of(rank_, count_);
    Values out(count_, kUntouched);
    std::vector<Group::Part> parts;
    for (std::size_t begin = 0, next = 0; begin < count_ || next == 0; begin += next - 1) {
      const std::size_t length =
          next > 20U + rank_ ? count_ - begin : std::min(next, count_ - begin);
      int* const to = next % 2 == 0 ? in.data() : out.data();
      parts.push_back({in.data() + begin, to + begin, length});
      next = length + 1;
    }
    group_.start_all_reduce(parts, {.type = DataType::i32}).wait();
    const Values expected = sum_of(world_, count_);
    for (const Group::Part& part : parts) {
      const auto* found = static_cast<const int*>(part.out);
      const std::ptrdiff_t begin = static_cast<const int*>(part.in) - in.data();
      EXPECT_TRUE(std::equal(found, found + part.count, expected.begin() + begin))
          << "the tensor at " << begin;
    }
  }

  void reduce(std::uint16_t root) {
    const Call reduce{.kind = CallKind::reduce, .count = count_, .root = root};
    const Values in = values_of(rank_, count_);
    Values out(count_, kUntouched);
    call(reduce, in.data(), rank_ == root ? out.data() : nullptr);
    EXPECT_EQ(out, rank_ == root ? sum_of(world_, count_) : Values(count_, kUntouched))
        << "to rank " << root;
    EXPECT_EQ(in, values_of(rank_, count_)) << "the input was touched";
    Values both = in;
    call(reduce, both.data(), both.data());
    EXPECT_EQ(both, rank_ == root ? sum_of(world_, count_) : in) << "in place, to rank " << root;
  }

  void broadcast(std::uint16_t root) {
    Values data = values_of(rank_, count_);
    call({.kind = CallKind::broadcast, .count = count_, .root = root}, data.data(), data.data());
    EXPECT_EQ(data, values_of(root, count_)) << "from rank " << root;
  }

  void all_gather() {
    const Call gather{.kind = CallKind::all_gather, .count = count_};
    Values expected;
    for (std::uint16_t rank = 0; rank < world_; ++rank) {
      const Values values = values_of(rank, count_);
      expected.insert(expected.end(), values.begin(), values.end());
    }
    const Values in = values_of(rank_, count_);
    Values out(count_ * world_, kUntouched);
    call(gather, in.data(), out.data());
    EXPECT_EQ(out, expected);
    out.assign(count_ * world_, kUntouched);
    std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(rank_ * count_));
    call(gather, out.data() + rank_ * count_, out.data());
    EXPECT_EQ(out, expected) << "in place";
  }

  void reduce_scatter() {
    const Call scatter{.kind = CallKind::reduce_scatter, .count = count_};
    const std::size_t whole = count_ * world_;
    const Values expected = part(sum_of(world_, whole), rank_ * count_, count_);
    Values in = values_of(rank_, whole);
    Values out(count_, kUntouched);
    call(scatter, in.data(), out.data());
    EXPECT_EQ(out, expected);
    call(scatter, in.data(), in.data() + rank_ * count_);
    EXPECT_EQ(part(in, rank_ * count_, count_), expected) << "in place";
    const Values others = values_of(rank_, whole);
    for (std::size_t i = 0; i < whole; ++i) {
      const bool is_ours = i / std::max<std::size_t>(count_, 1) == rank_;
      ASSERT_TRUE(is_ours || in[i] == others[i]) << "another rank's share was touched at " << i;
    }
  }

  /// Each rank's gaps are of another length.
  std::size_t stride() const { return count_ + 3 * rank_; }

  void gather_with_gaps() {
    const Call gather{.kind = CallKind::all_gather, .count = count_, .type = DataType::i32};
    Values expected(stride() * world_, kUntouched);
    for (std::uint16_t rank = 0; rank < world_; ++rank) {
      std::ranges::copy(values_of(rank, count_),
                        expected.begin() + static_cast<std::ptrdiff_t>(rank * stride()));
    }
    const Values in = values_of(rank_, count_);
    Values out(stride() * world_, kUntouched);
    group_.start_strided(in.data(), out.data(), gather, stride()).wait();
    EXPECT_EQ(out, expected) << "with gaps";
    out.assign(out.size(), kUntouched);
    int* const own = out.data() + rank_ * stride();
    std::ranges::copy(in, own);
    group_.start_strided(own, out.data(), gather, stride()).wait();
    EXPECT_EQ(out, expected) << "with gaps, in place";
  }

  void scatter_from_gaps() {
    const Call scatter{.kind = CallKind::reduce_scatter, .count = count_, .type = DataType::i32};
    const Values whole = values_of(rank_, count_ * world_);
    Values in(stride() * world_, kUntouched);
    for (std::uint16_t rank = 0; rank < world_; ++rank) {
      std::ranges::copy(part(whole, rank * count_, count_),
                        in.begin() + static_cast<std::ptrdiff_t>(rank * stride()));
    }
    Values out(count_, kUntouched);
    group_.start_strided(in.data(), out.data(), scatter, stride()).wait();
    EXPECT_EQ(out, part(sum_of(world_, count_ * world_), rank_ * count_, count_)) << "from gaps";
  }

  Group& group_;
  const std::uint16_t rank_;
  const std::uint16_t world_;
  const std::size_t count_;
};

} // namespace weir::test
