// SPDX-License-Identifier: BSD-3-Clause

/// All-reduce between hosts without a transport: reducers connected by queues; messages and
/// acknowledgements move in a random order. Results are compared with the reference kernels.

#include "host/api/group.hpp"
#include "host/collective/ring_reducer.hpp"
#include "op/kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <pmmintrin.h>
#include <random>
#include <string>
#include <vector>
#include <xmmintrin.h>

namespace weir::host {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

constexpr std::uint32_t kRing = 3;
constexpr std::uint32_t kEpoch = 9;

struct Pair {
  DataType type = DataType::i32;
  Operation operation = Operation::sum;
};

/// A rank's share of an all-reduce of a whole tensor.
Slice slice(const Bytes& in, Bytes& out, const Pair& pair) {
  const Call call{
      .count = in.size() / element_size(pair.type), .type = pair.type, .operation = pair.operation};
  return slice_of(call, {}, {.in = in.data(), .out = out.data()}, {});
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    for (std::size_t operation = 0; operation < kOperations; ++operation) {
      const Pair pair{static_cast<DataType>(type), static_cast<Operation>(operation)};
      if (is_reducible(pair.type, pair.operation)) {
        pairs.push_back(pair);
      }
    }
  }
  return pairs;
}

/// Every rank's tensor. Random codes have any magnitude. One byte in four belongs to a special
/// number: zeros of both signs, infinities, NaNs, limits of integers.
std::vector<Bytes> tensors_of(std::uint16_t world, const Pair& pair, std::size_t count,
                              Random& random) {
  const std::size_t size = element_size(pair.type);
  std::vector<Bytes> tensors(world, Bytes(count * size));
  for (Bytes& tensor : tensors) {
    for (std::size_t at = 0; at < tensor.size(); at += size) {
      std::uint64_t code = random();
      if (code % 4 == 0) {
        const std::uint8_t lead =
            std::array<std::uint8_t, 6>{0, 0x80, 0x7f, 0xff, 0x7c, 0x3c}[code / 4 % 6];
        code = (std::uint64_t{lead} << (8 * size - 8)) | (code >> 60 & 1);
      }
      std::memcpy(&tensor[at], &code, size);
    }
  }
  return tensors;
}

Bytes expected_of(const std::vector<Bytes>& tensors, const Pair& pair) {
  std::vector<const std::byte*> inputs;
  for (const Bytes& tensor : tensors) {
    inputs.push_back(reinterpret_cast<const std::byte*>(tensor.data()));
  }
  Bytes result(tensors[0].size());
  op::reference_kernel(pair.type,
                       pair.operation)(reinterpret_cast<std::byte*>(result.data()), inputs.data(),
                                       static_cast<unsigned>(inputs.size()), result.size(), {});
  return result;
}

/// Ranks in a ring. The queue of a link holds a message as the spans it was posted with, and reads
/// them at delivery: as late as a transport that repeats packets may read them.
class Ring {
 public:
  Ring(std::uint16_t world, std::uint32_t slots, std::size_t data_bytes, std::uint64_t seed)
      : slots_(slots), links_(world), random_(seed) {
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      ranks_.push_back(std::make_unique<RingReducer>(RingReducerConfig{.ring = kRing,
                                                                       .rank = rank,
                                                                       .world = world,
                                                                       .epoch = kEpoch,
                                                                       .slots = slots,
                                                                       .data_bytes = data_bytes}));
    }
  }

  /// All-reduces one tensor per rank. Each rank begins at a random time.
  void reduce(std::vector<Bytes>& in, std::vector<Bytes>& out, const Pair& pair) {
    std::vector<bool> begun(ranks_.size());
    const auto begin = [&](std::size_t rank) {
      begun[rank] = true;
      ranks_[rank]->begin(slice(in[rank], out[rank], pair));
    };
    for (unsigned idle = 0; idle < kMostIdleRounds;) {
      const std::size_t rank = random_() % ranks_.size();
      if (!begun[rank] && random_() % 4 == 0) {
        begin(rank);
      }
      idle = (begun[rank] && act(rank)) ? 0 : idle + 1;
      const bool is_settled = links_[rank].posted.empty() && links_[rank].delivered == 0;
      ASSERT_TRUE(is_settled || !ranks_[rank]->is_idle()) << "the buffers are given back too early";
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ASSERT_TRUE(begun[rank]);
      ASSERT_TRUE(ranks_[rank]->is_idle()) << "rank " << rank << ": " << ranks_[rank]->describe();
      EXPECT_EQ(ranks_[rank]->bytes_done(), in[rank].size());
    }
  }

  /// Tensor bytes that the link from a rank to its successor has carried.
  std::size_t carried(std::size_t rank) const { return links_[rank].carried; }

 private:
  static constexpr unsigned kMostIdleRounds = 2000;

  struct Link {
    std::deque<OutgoingMessage> posted; // not delivered yet
    std::uint64_t delivered = 0;        // not acknowledged yet
    std::size_t carried = 0;
  };

  /// One of: post a message, deliver the oldest to the successor, acknowledge it.
  bool act(std::size_t rank) {
    Link& link = links_[rank];
    switch (random_() % 3) {
    case 0:
      return post(rank);
    case 1:
      return deliver(rank);
    default:
      if (link.delivered == 0) {
        return false;
      }
      --link.delivered;
      ranks_[rank]->complete();
      return true;
    }
  }

  bool post(std::size_t rank) {
    Link& link = links_[rank];
    const auto message = ranks_[rank]->next();
    if (!message) {
      return false;
    }
    link.posted.push_back(*message);
    link.carried += message->data.size();
    EXPECT_LE(link.posted.size(), slots_) << "an inbox slot is overwritten";
    EXPECT_LE(link.posted.size() + link.delivered, slots_) << "the send queue is too short";
    return true;
  }

  bool deliver(std::size_t rank) {
    Link& link = links_[rank];
    if (link.posted.empty()) {
      return false;
    }
    const OutgoingMessage message = link.posted.front();
    link.posted.pop_front();
    ++link.delivered;
    Bytes inbox(message.header.begin(), message.header.end());
    inbox.insert(inbox.end(), message.data.begin(), message.data.end());
    ranks_[(rank + 1) % ranks_.size()]->accept(
        message_in_one_piece(static_cast<std::uint32_t>(message.number), inbox));
    return true;
  }

  const std::uint32_t slots_;
  std::vector<std::unique_ptr<RingReducer>> ranks_;
  std::vector<Link> links_; // by the rank that sends
  Random random_;
};

std::vector<std::size_t> counts_of(std::uint16_t world) {
  const std::size_t n = world;
  return {0, 1, n - 1, n, n + 1, 7 * n + 3, 211};
}

class RingOf : public testing::TestWithParam<std::uint16_t> {};

/// Tensors of all pairs follow each other, so blocks of the next one come before a rank has begun
/// it.
TEST_P(RingOf, ReducesEveryPairToTheReferencesBits) {
  const std::uint16_t world = GetParam();
  Random random(world);
  for (const std::uint32_t slots : {4U, 8U * world}) {
    Ring ring(world, slots, 48, random());
    for (const Pair& pair : all_pairs()) {
      for (const std::size_t count : counts_of(world)) {
        std::vector<Bytes> in = tensors_of(world, pair, count, random);
        const std::vector<Bytes> before = in;
        const Bytes expected = expected_of(in, pair);
        std::vector<Bytes> out(world, Bytes(expected.size()));
        const bool in_place = random() % 2 == 0;
        ASSERT_NO_FATAL_FAILURE(ring.reduce(in, in_place ? in : out, pair));
        ASSERT_EQ(in_place ? in : out, std::vector<Bytes>(world, expected))
            << count << " of " << name_of(pair.type) << ", " << name_of(pair.operation);
        ASSERT_TRUE(in_place || in == before) << "the input was touched";
      }
    }
  }
}

/// The table in ring_reducer.hpp.
TEST_P(RingOf, CarriesWhatItsScheduleSays) {
  const std::uint16_t n = GetParam();

  struct Case {
    Pair pair;
    std::size_t partial_bytes; // for each byte of the tensor
  };

  const std::size_t elements = std::size_t{60} * n; // not whole messages, but divisible
  for (const Case& entry :
       {Case{{DataType::i32, Operation::sum}, 1}, Case{{DataType::u8, Operation::bitwise_xor}, 1},
        Case{{DataType::f32, Operation::sum}, 1}, Case{{DataType::f16, Operation::max}, 1},
        Case{{DataType::bf16, Operation::sum}, 2},
        Case{{DataType::f8e4m3, Operation::product}, 4}}) {
    Random random(n);
    Ring ring(n, 8U * n, 64, random());
    std::vector<Bytes> in = tensors_of(n, entry.pair, elements, random);
    const std::size_t tensor = in[0].size();
    ASSERT_NO_FATAL_FAILURE(ring.reduce(in, in, entry.pair));
    for (std::uint16_t rank = 0; rank < n; ++rank) {
      const bool is_free = ring_schedule(entry.pair.type) == RingSchedule::reduce_scatter;
      const std::size_t partials = rank == n - 1 ? 0 : tensor * entry.partial_bytes;
      const std::size_t results = rank == n - 2 ? 0 : tensor;
      EXPECT_EQ(ring.carried(rank), is_free ? 2 * tensor * (n - 1U) / n : partials + results)
          << name_of(entry.pair.type) << ", link from rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, RingOf, testing::Range<std::uint16_t>(2, 9));

TEST(RingSchedule, IsFreeForIntegersAlone) {
  for (const Pair& pair : all_pairs()) {
    const bool is_integer = name_of(pair.type)[0] == 'i' || name_of(pair.type)[0] == 'u';
    EXPECT_EQ(name_of(ring_schedule(pair.type)), is_integer ? "reduce-scatter" : "chain")
        << name_of(pair.type);
  }
}

// ------------------------------------------------------------------- the caller's arithmetic

/// Sets the thread's MXCSR while it lives.
class CallersMxcsr {
 public:
  explicit CallersMxcsr(unsigned flags) : before_(_mm_getcsr()) { _mm_setcsr(before_ | flags); }

  ~CallersMxcsr() { _mm_setcsr(before_); }

  CallersMxcsr(const CallersMxcsr&) = delete;
  CallersMxcsr& operator=(const CallersMxcsr&) = delete;

 private:
  unsigned before_;
};

/// Subnormal numbers, and numbers whose sums must be rounded.
std::vector<Bytes> delicate_tensors(std::uint16_t world, DataType type, Random& random) {
  constexpr std::size_t kCount = 200;
  const std::size_t size = element_size(type);
  std::vector<Bytes> tensors(world, Bytes(kCount * size));
  for (Bytes& tensor : tensors) {
    for (std::size_t at = 0; at < tensor.size(); at += size) {
      const bool is_subnormal = at / size % 2 == 0;
      const std::uint64_t mantissa = random() & 0x7;
      const std::uint64_t code =
          is_subnormal ? mantissa : mantissa | std::uint64_t{3} << (8 * size - 4);
      std::memcpy(&tensor[at], &code, size);
    }
  }
  return tensors;
}

class UnderMxcsr : public testing::TestWithParam<unsigned> {};

TEST_P(UnderMxcsr, FoldsToTheSameBitsAndLeavesItAsItWas) {
  Random random(1);
  for (const Pair& pair : all_pairs()) {
    if (element_size(pair.type) == 1) {
      continue; // every sum of theirs is exact in f32
    }
    std::vector<Bytes> tensors = delicate_tensors(3, pair.type, random);
    const Bytes expected = expected_of(tensors, pair);
    Ring ring(3, 8, 48, random());
    const CallersMxcsr caller(GetParam());
    const unsigned before = _mm_getcsr();
    ASSERT_NO_FATAL_FAILURE(ring.reduce(tensors, tensors, pair));
    EXPECT_EQ(_mm_getcsr(), before);
    EXPECT_EQ(tensors, std::vector<Bytes>(3, expected))
        << name_of(pair.type) << ", " << name_of(pair.operation);
  }
}

INSTANTIATE_TEST_SUITE_P(Flags, UnderMxcsr,
                         testing::Values(_MM_FLUSH_ZERO_ON, _MM_DENORMALS_ZERO_ON, _MM_ROUND_UP,
                                         _MM_ROUND_DOWN, _MM_ROUND_TOWARD_ZERO));

// ---------------------------------------------------------------------------- what is not due

RingReducer rank_1_of_3() {
  RingReducer reducer(
      {.ring = kRing, .rank = 1, .world = 3, .epoch = kEpoch, .slots = 8, .data_bytes = 16});
  return reducer;
}

/// Rank 0's partial of the job's first block of eight bytes, for a call of so many elements.
Bytes first_partial(std::uint64_t count = 0, DataType type = DataType::f32) {
  Bytes bytes(sizeof(RingHeader) + 8, 1);
  RingHeader header{};
  header.magic.set(kRingMagic);
  header.ring_id.set(kRing);
  header.epoch.set(kEpoch);
  header.bytes.set(8);
  header.call = encode({.count = count, .type = type});
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

std::optional<std::string> refusal(RingReducer& reducer, std::uint32_t immediate,
                                   const Bytes& message) {
  try {
    reducer.accept(message_in_one_piece(immediate, message));
    return std::nullopt;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::transport_failure);
    EXPECT_EQ(error.rank(), 0);
    return error.what();
  }
}

constexpr Pair kFloatSum{DataType::f32, Operation::sum};

template <typename Body>
std::optional<ErrorCode> code_of(Body body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(RingReducer, RefusesWhatIsNotDue) {
  struct Case {
    const char* named;
    std::function<void(RingHeader&)> hurt;
  };

  const std::vector<Case> cases{{"magic", [](auto& h) { h.magic.set(kInaMagic); }},
                                {"ring", [](auto& h) { h.ring_id.set(4); }},
                                {"epoch", [](auto& h) { h.epoch.set(8); }},
                                {"content", [](auto& h) { h.content.set(2); }},
                                {"results", [](auto& h) { h.content.set(1); }},
                                {"block", [](auto& h) { h.block.set(4); }},
                                {"bytes", [](auto& h) { h.bytes.set(17); }},
                                {"message bytes", [](auto& h) { h.bytes.set(4); }}};
  for (const Case& entry : cases) {
    RingReducer reducer = rank_1_of_3();
    Bytes message = first_partial();
    entry.hurt(wire::view_as<RingHeader>(message.data()));
    const auto said = refusal(reducer, 0, message);
    ASSERT_TRUE(said) << entry.named;
    EXPECT_NE(said->find(std::string("found ") + entry.named), std::string::npos) << *said;
  }
}

TEST(RingReducer, RefusesARepeatAWrongImmediateAndHalfAHeader) {
  RingReducer reducer = rank_1_of_3();
  EXPECT_TRUE(refusal(reducer, 1, first_partial()));
  EXPECT_TRUE(refusal(reducer, 0, Bytes(39)));
  EXPECT_FALSE(refusal(reducer, 0, first_partial()));
  EXPECT_TRUE(refusal(reducer, 1, first_partial())) << "the same block again";
}

TEST(RingReducer, RefusesAPartialOfAnotherLengthWhenTheTensorIsKnown) {
  RingReducer reducer = rank_1_of_3();
  EXPECT_FALSE(refusal(reducer, 0, first_partial(4))) << "kept until then";
  Bytes tensor(16);
  EXPECT_EQ(code_of([&] { reducer.begin(slice(tensor, tensor, kFloatSum)); }),
            ErrorCode::transport_failure);
}

/// Whether it comes before or after our own call.
TEST(RingReducer, NamesWhatTheRankBeforeCallsInstead) {
  Bytes tensor(8);
  RingReducer late = rank_1_of_3();
  EXPECT_FALSE(refusal(late, 0, first_partial(3))) << "kept until then";
  EXPECT_EQ(code_of([&] { late.begin(slice(tensor, tensor, kFloatSum)); }), ErrorCode::mismatch);
  RingReducer early = rank_1_of_3();
  early.begin(slice(tensor, tensor, kFloatSum));
  try {
    early.accept(message_in_one_piece(0, first_partial(3)));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::mismatch);
    EXPECT_EQ(error.rank(), 0);
    EXPECT_STREQ(error.what(), "call 0: rank 0 calls all-reduce of 3 f32, sum; rank 1 calls "
                               "all-reduce of 2 f32, sum");
  }
}

TEST(RingReducer, RefusesAPartialOfAFoldThatWeStart) {
  RingReducer reducer = rank_1_of_3();
  Bytes tensor(24);
  Bytes message = first_partial(3, DataType::i64);
  wire::view_as<RingHeader>(message.data()).block.set(1); // rank 1 starts it
  EXPECT_FALSE(refusal(reducer, 0, message)) << "kept until then";
  EXPECT_EQ(code_of([&] {
              reducer.begin(slice(tensor, tensor, {DataType::i64, Operation::sum}));
            }),
            ErrorCode::transport_failure);
}

TEST(RingReducer, AnEmptyTensorIsOverAtOnce) {
  RingReducer reducer = rank_1_of_3();
  Bytes tensor;
  reducer.begin(slice(tensor, tensor, {DataType::f32, Operation::sum}));
  EXPECT_TRUE(reducer.is_idle());
  EXPECT_FALSE(reducer.next());
}

} // namespace
} // namespace weir::host
