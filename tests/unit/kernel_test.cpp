// SPDX-License-Identifier: BSD-3-Clause

/// The reference kernels compared with values from kernel_vectors.py. The fast kernels of every
/// level compared with the reference kernels, bit for bit.

#include "op/kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <sys/mman.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace weir::op {

namespace {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

constexpr std::size_t kLongest = 1160; // more than two of the widest level's 512-byte blocks
constexpr std::array<unsigned, 10> kCounts{1, 2, 3, 4, 7, 8, 16, 33, 64, 256};
constexpr std::byte kCanary{0xa5};

// ---- Making inputs. ----

struct FloatLayout {
  unsigned exponent_bits;
  unsigned mantissa_bits;
};

/// {0, 0} for an integer type.
FloatLayout layout_of(DataType type) {
  switch (type) {
  case DataType::f32:
    return {8, 23};
  case DataType::f64:
    return {11, 52};
  case DataType::f16:
    return {5, 10};
  case DataType::bf16:
    return {8, 7};
  case DataType::f8e4m3:
    return {4, 3};
  case DataType::f8e5m2:
    return {5, 2};
  default:
    return {0, 0};
  }
}

/// Zeros, subnormals, ones, the largest finite numbers, infinities and NaNs, each with neighbours.
/// For an integer: its limits.
std::vector<std::uint64_t> special_codes(DataType type) {
  const std::size_t bits = 8 * element_size(type);
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const FloatLayout layout = layout_of(type);
  const std::uint64_t smallest_normal = std::uint64_t{1} << layout.mantissa_bits;
  const std::uint64_t one = ((std::uint64_t{1} << layout.exponent_bits) / 2 - 1)
                            << layout.mantissa_bits;
  const std::uint64_t top = ((std::uint64_t{1} << layout.exponent_bits) - 1)
                            << layout.mantissa_bits;
  std::vector<std::uint64_t> codes{0, 1, 2, sign - 2, sign - 1};
  if (layout.exponent_bits != 0) {
    codes.insert(codes.end(), {smallest_normal - 1, smallest_normal, one, one + 1, top - 1, top,
                               top + 1, top + smallest_normal / 2, sign - smallest_normal / 2});
  }
  for (std::size_t i = 0, positive = codes.size(); i < positive; ++i) {
    codes.push_back(codes[i] | sign);
  }
  return codes;
}

enum class Flavour : std::uint8_t { random, special, tame };

/// Codes near one, whose sums and products stay finite and are often rounded. For integers: any
/// code.
std::uint64_t tame_code(DataType type, Random& random) {
  const FloatLayout layout = layout_of(type);
  const std::uint64_t code = random();
  if (layout.exponent_bits == 0) {
    return code;
  }
  const std::uint64_t bias = (std::uint64_t{1} << layout.exponent_bits) / 2 - 1;
  const std::uint64_t exponent = bias - 1 + code % 3 / 2;
  const std::uint64_t fraction = (code >> 4) % (std::uint64_t{1} << layout.mantissa_bits);
  const std::uint64_t sign = code >> 63;
  return (sign << (layout.exponent_bits + layout.mantissa_bits)) |
         (exponent << layout.mantissa_bits) | fraction;
}

Bytes make_input(DataType type, Flavour flavour, std::size_t bytes, Random& random) {
  const std::vector<std::uint64_t> specials = special_codes(type);
  Bytes input(bytes);
  const std::size_t size = element_size(type);
  for (std::size_t at = 0; at < bytes; at += size) {
    std::uint64_t code = random();
    if (flavour == Flavour::special) {
      code = specials[code % specials.size()];
    } else if (flavour == Flavour::tame) {
      code = tame_code(type, random);
    }
    std::memcpy(&input[at], &code, size); // little-endian: the low bytes
  }
  return input;
}

/// Inputs at addresses of all alignments. Each ends at the end of its allocation.
class Inputs {
 public:
  Inputs(DataType type, Flavour flavour, unsigned count, std::size_t bytes, Random& random) {
    for (unsigned i = 0; i < count; ++i) {
      const std::size_t shift = (i * 7 + 1) % 64;
      const Bytes input = make_input(type, flavour, bytes, random);
      Bytes& buffer = buffers_.emplace_back(shift + bytes);
      std::copy(input.begin(), input.end(), buffer.begin() + static_cast<std::ptrdiff_t>(shift));
      pointers_.push_back(buffer.data() + shift);
    }
  }

  const std::byte* const* data() const { return pointers_.data(); }

  unsigned count() const { return static_cast<unsigned>(pointers_.size()); }

 private:
  std::vector<Bytes> buffers_;
  std::vector<const std::byte*> pointers_;
};

/// The bytes that the kernel wrote to `out`. Fails when it wrote any others beside them.
template <typename Kernel>
Bytes run_guarded(Kernel kernel, const std::byte* const* inputs, unsigned count, std::size_t bytes,
                  Copies copies = {}) {
  constexpr std::size_t kGuard = 67; // odd: `out` is misaligned
  Bytes buffer(bytes + 2 * kGuard, kCanary);
  kernel(buffer.data() + kGuard, inputs, count, bytes, copies);
  const auto begin = buffer.begin() + kGuard;
  const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
  const auto untouched = [](std::byte byte) { return byte == kCanary; };
  EXPECT_TRUE(std::all_of(buffer.begin(), begin, untouched)) << "wrote before out";
  EXPECT_TRUE(std::all_of(end, buffer.end(), untouched)) << "wrote past out";
  return {begin, end};
}

Bytes run_reference(DataType type, Operation operation, const Inputs& inputs, std::size_t bytes) {
  Bytes out(bytes);
  reference_kernel(type, operation)(out.data(), inputs.data(), inputs.count(), bytes, {});
  return out;
}

/// The first byte that differs, for messages; -1 when none does.
std::ptrdiff_t first_difference(std::span<const std::byte> left, std::span<const std::byte> right) {
  // Without optimization std::mismatch takes long.
  if (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0) {
    return -1;
  }
  const auto [at, other] = std::mismatch(left.begin(), left.end(), right.begin());
  return at == left.end() ? -1 : at - left.begin();
}

// ---- The reference against kernel_vectors.inc. ----

struct Vector {
  DataType type;
  Operation operation;
  unsigned count;
  std::array<std::uint64_t, 4> inputs;
  std::uint64_t expected;
};

constexpr Vector kVectors[] = {
#include "kernel_vectors.inc"
};

std::uint64_t reduce_one(ReduceKernel kernel, const Vector& vector) {
  std::array<const std::byte*, 4> inputs{};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = reinterpret_cast<const std::byte*>(&vector.inputs[i]);
  }
  std::uint64_t result = 0;
  kernel(reinterpret_cast<std::byte*>(&result), inputs.data(), vector.count,
         element_size(vector.type), {});
  return result;
}

TEST(ReferenceKernel, AgreesWithExactRationalArithmetic) {
  for (const Vector& vector : kVectors) {
    ASSERT_EQ(reduce_one(reference_kernel(vector.type, vector.operation), vector), vector.expected)
        << name_of(vector.type) << ' ' << name_of(vector.operation) << " of " << vector.count
        << std::hex << ": " << vector.inputs[0] << ' ' << vector.inputs[1] << ' '
        << vector.inputs[2] << ' ' << vector.inputs[3];
  }
}

// ---- What can be reduced. ----

TEST(FindKernel, GivesNullptrExactlyWhereThePairHasNoMeaning) {
  for (std::size_t t = 0; t < kDataTypes; ++t) {
    for (std::size_t o = 0; o < kOperations; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto operation = static_cast<Operation>(o);
      const bool meant = is_reducible(type, operation);
      EXPECT_EQ(reference_kernel(type, operation) != nullptr, meant);
      for (std::size_t level = 0; level < kCpuLevels; ++level) {
        EXPECT_EQ(find_kernel(type, operation, static_cast<CpuLevel>(level)) != nullptr, meant)
            << name_of(type) << ' ' << name_of(operation);
      }
    }
  }
}

TEST(FindKernel, GivesNullptrForNumbersOutsideTheTable) {
  const auto no_type = static_cast<DataType>(kDataTypes);
  const auto no_operation = static_cast<Operation>(kOperations);
  EXPECT_EQ(find_kernel(no_type, Operation::sum, CpuLevel::baseline), nullptr);
  EXPECT_EQ(find_kernel(DataType::u32, no_operation, CpuLevel::baseline), nullptr);
  EXPECT_EQ(reference_kernel(no_type, Operation::sum), nullptr);
  EXPECT_EQ(reference_kernel(DataType::u32, no_operation), nullptr);
}

TEST(CpuLevel, HasANameForEach) {
  EXPECT_EQ(name_of(CpuLevel::baseline), "baseline");
  EXPECT_EQ(name_of(CpuLevel::avx2), "avx2");
  EXPECT_EQ(name_of(CpuLevel::avx512), "avx512");
  EXPECT_EQ(name_of(CpuLevel::avx512vbmi), "avx512vbmi");
}

// ---- The fast kernels against the reference. ----

using Pair = std::tuple<DataType, Operation>;
using Case = std::tuple<Pair, CpuLevel>;

bool is_any(DataType /*type*/) {
  return true;
}

bool is_float(DataType type) {
  return layout_of(type).exponent_bits != 0;
}

/// Whether the type has few enough codes to try all.
bool is_short(DataType type) {
  return element_size(type) <= 2;
}

std::vector<Pair> reducible_pairs(bool (*wanted)(DataType)) {
  std::vector<Pair> pairs;
  for (std::size_t t = 0; t < kDataTypes; ++t) {
    for (std::size_t o = 0; o < kOperations; ++o) {
      const Pair pair{static_cast<DataType>(t), static_cast<Operation>(o)};
      if (is_reducible(std::get<0>(pair), std::get<1>(pair)) && wanted(std::get<0>(pair))) {
        pairs.push_back(pair);
      }
    }
  }
  return pairs;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const auto& [pair, level] = info.param;
  const auto& [type, operation] = pair;
  return std::string(name_of(type)) + '_' + std::string(name_of(operation)) + '_' +
         std::string(name_of(level));
}

class FastKernel : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (level() > best_cpu_level()) {
      GTEST_SKIP() << "this CPU has no " << name_of(level());
    }
  }

  static DataType type() { return std::get<0>(std::get<0>(GetParam())); }

  static Operation operation() { return std::get<1>(std::get<0>(GetParam())); }

  static CpuLevel level() { return std::get<1>(GetParam()); }

  static ReduceKernel kernel() { return find_kernel(type(), operation(), level()); }

  /// Reduces one long payload by the reference and every shorter one by the kernel. A shorter one's
  /// result must be the beginning of the long one's.
  static void expect_every_length(Flavour flavour, unsigned count) {
    Random random(count);
    const Inputs inputs(type(), flavour, count, kLongest, random);
    const Bytes expected = run_reference(type(), operation(), inputs, kLongest);
    // With many inputs only some lengths are tried, because it takes longer; few inputs cover every
    // length.
    const std::size_t step = element_size(type()) * (count <= 8 ? 1 : 13);
    for (std::size_t bytes = 0; bytes <= kLongest; bytes += step) {
      const Bytes result = run_guarded(kernel(), inputs.data(), count, bytes);
      ASSERT_EQ(first_difference(result, expected), -1)
          << count << " inputs of " << bytes << " bytes, flavour " << static_cast<int>(flavour);
    }
  }

  /// Tries every code with every code of `others`.
  static void expect_every_code(std::span<const std::uint64_t> others) {
    const std::size_t size = element_size(type());
    const std::size_t codes = std::size_t{1} << (8 * size);
    Bytes left(codes * size);
    for (std::size_t code = 0; code < codes; ++code) {
      std::memcpy(&left[code * size], &code, size);
    }
    Bytes right(left.size());
    Bytes expected(left.size());
    for (const std::uint64_t other : others) {
      for (std::size_t at = 0; at < right.size(); at += size) {
        std::memcpy(&right[at], &other, size);
      }
      const std::array<const std::byte*, 2> inputs{left.data(), right.data()};
      reference_kernel(type(), operation())(expected.data(), inputs.data(), 2, left.size(), {});
      const Bytes result = run_guarded(kernel(), inputs.data(), 2, left.size());
      ASSERT_EQ(first_difference(result, expected), -1) << "right operand " << other;
    }
  }
};

TEST_P(FastKernel, EqualsTheReferenceForEveryLengthAndCount) {
  for (const unsigned count : kCounts) {
    for (const Flavour flavour : {Flavour::random, Flavour::special, Flavour::tame}) {
      expect_every_length(flavour, count);
    }
  }
}

/// All lengths of the narrowest levels' blocks, and every fifth of the longer ones: every length is
/// summed by expect_every_length.
std::size_t next_length_to_copy(std::size_t bytes, std::size_t element) {
  return bytes + element * (bytes < 192 ? 1 : 5);
}

/// As in a slot: the result goes into every input's place and to a place of its own. Nothing beside
/// them changes.
TEST_P(FastKernel, CopiesItsResultInPlaceOfTheInputs) {
  constexpr std::size_t kRoom = kLongest + 256;
  constexpr unsigned kMost = 9;
  Random random(31);
  for (std::size_t bytes = 0; bytes <= kLongest;
       bytes = next_length_to_copy(bytes, element_size(type()))) {
    const unsigned count = 1 + static_cast<unsigned>(random() % kMost);
    std::vector<Bytes> rooms;
    std::vector<std::byte*> places;
    for (unsigned i = 0; i < count + 1; ++i) {
      Bytes& room = rooms.emplace_back(kRoom, kCanary);
      places.push_back(room.data() + random() % 128);
      std::ranges::copy(make_input(type(), Flavour::random, bytes, random), places.back());
    }
    const Bytes expected =
        run_guarded(reference_kernel(type(), operation()), places.data(), count, bytes);
    std::vector<Bytes> wanted = rooms;
    for (unsigned i = 0; i < count + 1; ++i) {
      std::ranges::copy(expected, wanted[i].data() + (places[i] - rooms[i].data()));
    }
    const Bytes out =
        run_guarded(kernel(), places.data(), count, bytes, {places.data(), count + 1});
    ASSERT_EQ(first_difference(out, expected), -1) << bytes << " bytes, " << count << " inputs";
    ASSERT_EQ(rooms, wanted) << bytes << " bytes, " << count << " inputs";
  }
}

class FastShortKernel : public FastKernel {};

TEST_P(FastShortKernel, EqualsTheReferenceForEveryCode) {
  if (element_size(type()) == 2) {
    expect_every_code(special_codes(type()));
    return;
  }
  std::array<std::uint64_t, 256> all{};
  for (std::size_t code = 0; code < all.size(); ++code) {
    all[code] = code;
  }
  expect_every_code(all);
}

TEST_P(FastKernel, EqualsTheVectors) {
  for (const Vector& vector : kVectors) {
    if (vector.type == type() && vector.operation == operation()) {
      ASSERT_EQ(reduce_one(kernel(), vector), vector.expected)
          << std::hex << vector.inputs[0] << ' ' << vector.inputs[1];
    }
  }
}

class FastFloatKernel : public FastKernel {};

TEST_P(FastFloatKernel, GivesTheOneNanWhicheverCameIn) {
  const FloatLayout layout = layout_of(type());
  const std::size_t size = element_size(type());
  std::uint64_t negative_nan = ~std::uint64_t{0};
  std::uint64_t zero = 0;
  const auto* nan = reinterpret_cast<const std::byte*>(&negative_nan);
  const auto* number = reinterpret_cast<const std::byte*>(&zero);
  const std::uint64_t canonical = type() == DataType::f8e4m3
                                      ? 0x7f
                                      : ((std::uint64_t{2} << layout.exponent_bits) - 1)
                                            << (layout.mantissa_bits - 1);
  for (const std::array<const std::byte*, 3>& inputs :
       {std::array{nan, number, number}, std::array{number, nan, number},
        std::array{number, number, nan}, std::array{nan, nan, nan}}) {
    std::uint64_t result = 0;
    kernel()(reinterpret_cast<std::byte*>(&result), inputs.data(), 3, size, {});
    EXPECT_EQ(result, canonical);
  }
}

/// One readable page between two unreadable ones.
class FencedPage {
 public:
  FencedPage() {
    void* mapped = mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return;
    }
    mapped_ = static_cast<std::byte*>(mapped);
    mprotect(begin(), page_, PROT_READ | PROT_WRITE);
  }

  FencedPage(const FencedPage&) = delete;
  FencedPage& operator=(const FencedPage&) = delete;

  ~FencedPage() {
    if (mapped_ != nullptr) {
      munmap(mapped_, 3 * page_);
    }
  }

  bool is_mapped() const { return mapped_ != nullptr; }

  std::byte* begin() const { return mapped_ + page_; }

  std::byte* end() const { return begin() + page_; }

 private:
  std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::byte* mapped_ = nullptr;
};

TEST_P(FastKernel, ReadsNoByteOutsideTheInputs) {
  const FencedPage page;
  ASSERT_TRUE(page.is_mapped());
  Bytes out(kLongest);
  for (std::size_t bytes = 0; bytes <= kLongest; bytes += element_size(type())) {
    const std::array<const std::byte*, 3> inputs{page.begin(), page.end() - bytes, page.begin()};
    kernel()(out.data(), inputs.data(), 3, bytes, {});
  }
}

// ---- Folds done in several places, in f32 between them. ----

bool is_narrow_float(DataType type) {
  return is_float(type) && element_size(type) < sizeof(float);
}

class StepwiseFold : public FastKernel {
 protected:
  static Bytes widened(const std::byte* narrow, std::size_t elements) {
    return converted(conversions().to_f32, narrow, elements, sizeof(float));
  }

  static Bytes narrowed(const Bytes& wide) {
    return converted(conversions().from_f32, wide.data(), wide.size() / sizeof(float),
                     element_size(type()));
  }

  /// The left fold over the inputs' elements, one input at a time.
  static Bytes fold(const Inputs& inputs, std::size_t elements) {
    const ReduceKernel join = find_kernel(DataType::f32, operation(), level());
    Bytes sum = widened(inputs.data()[0], elements);
    for (unsigned i = 1; i < inputs.count(); ++i) {
      const Bytes own = widened(inputs.data()[i], elements);
      const std::array<const std::byte*, 2> pair{sum.data(), own.data()};
      sum = run_guarded(join, pair.data(), 2, sum.size());
    }
    return narrowed(sum);
  }

  static Conversions conversions() { return find_conversions(type(), level()); }

 private:
  static Bytes converted(ConvertKernel kernel, const std::byte* in, std::size_t elements,
                         std::size_t size) {
    const auto guarded = [&](std::byte* out, const std::byte* const* inputs, unsigned /*count*/,
                             std::size_t bytes,
                             Copies /*none*/) { kernel(out, inputs[0], bytes / size); };
    return run_guarded(guarded, &in, 1, elements * size);
  }
};

TEST_P(StepwiseFold, EqualsTheReference) {
  constexpr std::size_t kMost = 150;
  const std::size_t bytes = kMost * element_size(type());
  for (const unsigned count : {1U, 2U, 3U, 8U}) {
    for (const Flavour flavour : {Flavour::random, Flavour::special, Flavour::tame}) {
      Random random(count);
      const Inputs inputs(type(), flavour, count, bytes, random);
      const Bytes expected = run_reference(type(), operation(), inputs, bytes);
      for (std::size_t elements = 0; elements <= kMost; ++elements) {
        ASSERT_EQ(first_difference(fold(inputs, elements), expected), -1)
            << count << " inputs of " << elements << " elements";
      }
    }
  }
}

/// A number of the format needs no rounding.
TEST_P(StepwiseFold, ConvertsEveryCodeThereAndBack) {
  const std::size_t size = element_size(type());
  const std::size_t codes = std::size_t{1} << (8 * size);
  Bytes all(codes * size);
  for (std::size_t code = 0; code < codes; ++code) {
    std::memcpy(&all[code * size], &code, size);
  }
  Bytes expected(all.size());
  const std::byte* const one = all.data();
  reference_kernel(type(), operation())(expected.data(), &one, 1, all.size(), {});
  EXPECT_EQ(first_difference(narrowed(widened(one, codes)), expected), -1);
}

TEST(Conversions, AreThereForTheNarrowFormatsAlone) {
  for (std::size_t t = 0; t <= kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    for (std::size_t level = 0; level < kCpuLevels; ++level) {
      const Conversions found = find_conversions(type, static_cast<CpuLevel>(level));
      const bool wanted = t < kDataTypes && is_narrow_float(type);
      EXPECT_EQ(found.to_f32 != nullptr, wanted) << t;
      EXPECT_EQ(found.from_f32 != nullptr, wanted) << t;
    }
  }
}

auto cases(bool (*wanted)(DataType)) {
  return testing::Combine(
      testing::ValuesIn(reducible_pairs(wanted)),
      testing::Values(CpuLevel::baseline, CpuLevel::avx2, CpuLevel::avx512, CpuLevel::avx512vbmi));
}

INSTANTIATE_TEST_SUITE_P(All, FastKernel, cases(is_any), case_name);
INSTANTIATE_TEST_SUITE_P(All, FastShortKernel, cases(is_short), case_name);
INSTANTIATE_TEST_SUITE_P(All, FastFloatKernel, cases(is_float), case_name);
INSTANTIATE_TEST_SUITE_P(All, StepwiseFold, cases(is_narrow_float), case_name);

} // namespace

} // namespace weir::op
