// SPDX-License-Identifier: BSD-3-Clause

/// What the rows of the operators and collectives say, held against the kernels and against
/// docs/protocol.md §2.

#include "op/collectives.hpp"
#include "op/operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace weir::op::operators_test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kElements = 4096;

Bytes random_elements(std::mt19937& random, DataType type) {
  Bytes bytes(kElements * element_size(type));
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

Bytes repeated(std::uint64_t bits, DataType type) {
  Bytes bytes(kElements * element_size(type));
  for (std::size_t i = 0; i < kElements; ++i) {
    std::memcpy(bytes.data() + i * element_size(type), &bits, element_size(type));
  }
  return bytes;
}

Bytes fold(ReduceKernel kernel, const std::vector<const Bytes*>& inputs) {
  std::vector<const std::byte*> pointers;
  for (const Bytes* input : inputs) {
    pointers.push_back(input->data());
  }
  Bytes result(inputs.front()->size());
  kernel(result.data(), pointers.data(), static_cast<unsigned>(pointers.size()), result.size(), {});
  return result;
}

/// Calls `look` with every row, every type that it is for, and the kernel of the two.
template <typename Look>
void for_every_kernel(Look&& look) {
  for (const OperatorRow& row : kOperatorRows) {
    for (std::size_t number = 0; number < kDataTypes; ++number) {
      const auto type = static_cast<DataType>(number);
      const ReduceKernel kernel = row.kernel(type, best_cpu_level());
      ASSERT_EQ(kernel != nullptr, is_reducible(type, row.operation));
      if (kernel != nullptr) {
        SCOPED_TRACE(std::string(name_of(row.operation)) + " of " + std::string(name_of(type)));
        look(row, type, kernel);
      }
    }
  }
}

TEST(Operators, StandAtTheirNumbers) {
  for (std::size_t number = 0; number < kOperatorRows.size(); ++number) {
    EXPECT_EQ(static_cast<std::size_t>(kOperatorRows[number].operation), number);
  }
}

/// NaNs and both zeros are among the random elements of every type.
TEST(Operators, AnIdentityFoldedBeforeAnythingLeavesItAsItIs) {
  std::mt19937 random(1);
  for_every_kernel([&](const OperatorRow& row, DataType type, ReduceKernel kernel) {
    const Bytes identity = repeated(row.identity(type), type);
    const Bytes data = random_elements(random, type);
    EXPECT_EQ(fold(kernel, {&identity, &data}), fold(kernel, {&data}));
    const Bytes zeros = repeated(0, type);
    EXPECT_EQ(fold(kernel, {&identity, &zeros}), fold(kernel, {&zeros}));
  });
}

bool is_float(DataType type) {
  switch (type) {
  case DataType::f32:
  case DataType::f16:
  case DataType::bf16:
  case DataType::f64:
  case DataType::f8e4m3:
  case DataType::f8e5m2:
    return true;
  default:
    return false;
  }
}

bool order_counts(ReduceKernel kernel, const Bytes& a, const Bytes& b, const Bytes& c) {
  const Bytes expected = fold(kernel, {&a, &b, &c});
  return fold(kernel, {&c, &a, &b}) != expected || fold(kernel, {&b, &a, &c}) != expected;
}

TEST(Operators, OrderNeverMattersWhereTheRowSaysSo) {
  std::mt19937 random(2);
  for_every_kernel([&](const OperatorRow& row, DataType type, ReduceKernel kernel) {
    if (row.order == Order::never_matters || !is_float(type)) {
      EXPECT_FALSE(order_counts(kernel, random_elements(random, type),
                                random_elements(random, type), random_elements(random, type)));
    }
  });
}

/// Numbers of -1 to 1, and in front of them a zero of this sign.
template <typename Float>
Bytes random_floats(std::mt19937& random, Float zero) {
  std::vector<Float> numbers(kElements);
  std::uniform_real_distribution<Float> any(-1, 1);
  std::ranges::generate(numbers, [&] { return any(random); });
  numbers.front() = zero;
  Bytes bytes(kElements * sizeof(Float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

template <typename Float>
void expect_order_counts(DataType type) {
  std::mt19937 random(3);
  for (const OperatorRow& row : kOperatorRows) {
    if (const ReduceKernel kernel = row.kernel(type, best_cpu_level())) {
      EXPECT_EQ(row.order, Order::matters_for_floats);
      EXPECT_TRUE(order_counts(kernel, random_floats<Float>(random, 0),
                               random_floats<Float>(random, Float{-0.0}),
                               random_floats<Float>(random, 0)))
          << name_of(row.operation);
    }
  }
}

TEST(Operators, OrderMattersForFloats) {
  expect_order_counts<float>(DataType::f32);
  expect_order_counts<double>(DataType::f64);
}

/// docs/protocol.md §2, "Collectives".
TEST(Collectives, AreWhatTheProtocolSays) {
  EXPECT_EQ(row_of(Collective::all_reduce).contributes, Who::everybody);
  EXPECT_EQ(row_of(Collective::hello).contributes, Who::everybody);
  EXPECT_EQ(row_of(Collective::broadcast).contributes, Who::root);
  EXPECT_EQ(row_of(Collective::barrier).contributes, Who::nobody);
  for (const CollectiveRow& row : kCollectiveRows) {
    EXPECT_EQ(row.completes, Who::everybody) << static_cast<int>(row.collective);
    EXPECT_EQ(row.receives, Who::everybody) << static_cast<int>(row.collective);
  }
}

} // namespace
} // namespace weir::op::operators_test
