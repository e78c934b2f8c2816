// SPDX-License-Identifier: BSD-3-Clause

/// Data go from the caller's memory to the wire and back without a stop: which results have one
/// place, which memory a device knows, and that the software transport stores where it was told.

#include "host/base/error.hpp"
#include "host/collective/slice.hpp"
#include "host/transport/inline_data.hpp"
#include "host/transport/registered_ranges.hpp"
#include "host/transport/software_transport.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace weir::host::zero_copy_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

// ------------------------------------------------------------------------- the place of a result

struct Part {
  std::uint16_t segment = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::optional<std::size_t> at; // in `out`; none: not in one place
};

/// Of 8 elements of 8 bytes for each rank: three ranks, and this one is rank 1.
void expect_places(CallKind kind, const std::vector<Part>& parts, std::uint16_t root = 0) {
  Bytes in(192);
  Bytes out(192);
  const Call call{.kind = kind, .count = 8, .type = DataType::u64, .root = root};
  const Slice slice = slice_of(call, {1, 3}, {in.data(), out.data()}, {});
  for (const Part& part : parts) {
    const auto found = slice.target(part.segment, part.offset, part.bytes);
    ASSERT_EQ(found.empty(), !part.at)
        << name_of(kind) << " " << part.segment << " " << part.offset;
    if (part.at) {
      EXPECT_EQ(found.data(), out.data() + *part.at) << name_of(kind);
      EXPECT_EQ(found.size(), part.bytes);
    }
  }
}

TEST(ResultPlace, IsWhereTheCallersResultIs) {
  expect_places(CallKind::all_reduce, {{0, 0, 40, 0}, {0, 40, 24, 40}});
  expect_places(CallKind::broadcast, {{0, 16, 24, 16}});
  expect_places(CallKind::all_gather, {{0, 8, 16, 8}, {1, 8, 16, 72}, {2, 40, 24, 168}});
}

TEST(ResultPlace, IsNoneForWhatTheRankDoesNotKeep) {
  expect_places(CallKind::reduce, {{0, 0, 64, std::nullopt}}, 0);
  expect_places(CallKind::reduce, {{0, 8, 56, 8}}, 1);
  // Of 192 bytes rank 1 keeps 64 .. 128.
  expect_places(CallKind::reduce_scatter, {{0, 0, 64, std::nullopt},
                                           {0, 56, 16, std::nullopt},
                                           {0, 64, 40, 0},
                                           {0, 104, 24, 40},
                                           {0, 120, 16, std::nullopt},
                                           {0, 128, 64, std::nullopt}});
}

TEST(ResultPlace, IsInOneTensorOfSeveral) {
  Bytes in(80);
  Bytes out(80);
  const TensorList list({{in.data(), out.data(), 24}, {in.data() + 24, out.data() + 40, 40}});
  const Call call{.count = 8, .type = DataType::u64};
  const Slice slice = slice_of(call, {0, 2}, {.list = &list}, {});
  EXPECT_EQ(slice.target(0, 0, 24).data(), out.data());
  EXPECT_EQ(slice.target(0, 24, 16).data(), out.data() + 40);
  EXPECT_EQ(slice.target(0, 32, 32).data(), out.data() + 48);
  EXPECT_TRUE(slice.target(0, 16, 16).empty()) << "in two tensors";
}

// --------------------------------------------------------------------------- registered memory

TEST(RegisteredRanges, FindsARangeThatHasAllOfTheBytes) {
  const Bytes memory(100);
  const std::span<const std::uint8_t> all(memory);
  RegisteredRanges ranges;
  EXPECT_EQ(ranges.find(all.first(1)), std::nullopt);
  ranges.add(all.subspan(10, 20), 1);
  ranges.add(all.subspan(30, 20), 2);
  EXPECT_EQ(ranges.find(all.subspan(10, 20)), 1U);
  EXPECT_EQ(ranges.find(all.subspan(30, 1)), 2U);
  EXPECT_EQ(ranges.find(all.subspan(49, 1)), 2U);
  EXPECT_EQ(ranges.find(all.subspan(9, 2)), std::nullopt);
  EXPECT_EQ(ranges.find(all.subspan(49, 2)), std::nullopt);
  EXPECT_EQ(ranges.find(all.subspan(25, 10)), std::nullopt) << "in two, with two keys";
}

TEST(RegisteredRanges, MayOverlapAndGoOneByOne) {
  const Bytes memory(100);
  const std::span<const std::uint8_t> all(memory);
  RegisteredRanges ranges;
  ranges.add(all.first(90), 1);
  ranges.add(all.subspan(20, 5), 2);
  ranges.add(all.subspan(40, 5), 3);
  ranges.add(all.first(90), 4);
  EXPECT_EQ(ranges.find(all.subspan(41, 1)), 4U) << "the newest of those that end last";
  EXPECT_EQ(ranges.find(all.subspan(50, 40)), 4U) << "behind two shorter ones";
  ranges.remove(all.first(90), 1);
  EXPECT_EQ(ranges.find(all.subspan(50, 40)), 4U);
  ranges.remove(all.first(90), 4);
  EXPECT_EQ(ranges.find(all.subspan(50, 40)), std::nullopt);
  EXPECT_EQ(ranges.find(all.subspan(20, 5)), 2U);
}

/// Pieces that come and go, looked for among all that are known.
TEST(RegisteredRanges, AreFoundAsInAList) {
  struct Known {
    std::size_t begin;
    std::size_t end;
    std::uint32_t key;
  };

  const Bytes memory(3000);
  const std::span<const std::uint8_t> all(memory);
  std::vector<Known> known; // by age
  RegisteredRanges ranges;
  std::mt19937 random(7);
  const auto draw = [&] {
    const std::size_t begin = random() % all.size();
    return all.subspan(begin, 1 + random() % std::min(all.size() - begin, 600UL));
  };
  const auto due = [&](std::size_t begin, std::size_t end) {
    std::optional<Known> best;
    for (const Known& piece : known) {
      const bool has_all = piece.begin <= begin && piece.end >= end;
      if (has_all && (!best || piece.end >= best->end)) {
        best = piece;
      }
    }
    return best ? std::optional(best->key) : std::nullopt;
  };
  for (std::uint32_t key = 1; key <= 1000; ++key) {
    const auto piece = draw();
    const auto begin = static_cast<std::size_t>(piece.data() - all.data());
    ranges.add(piece, key);
    known.push_back({begin, begin + piece.size(), key});
    const auto wanted = draw();
    const auto from = static_cast<std::size_t>(wanted.data() - all.data());
    ASSERT_EQ(ranges.find(wanted), due(from, from + wanted.size())) << "key " << key;
    if (known.size() > 20) {
      const auto gone = known.begin() + static_cast<std::ptrdiff_t>(random() % known.size());
      ranges.remove(all.subspan(gone->begin, gone->end - gone->begin), gone->key);
      known.erase(gone);
    }
  }
}

// ------------------------------------------------------------------------------- inline data

/// What a device says that takes `most` bytes inline and refuses more with `refusal`.
InlineTrial trial_of(std::uint32_t most, int refusal, std::vector<std::uint32_t>& attempts) {
  return try_inline(256, [&](std::uint32_t bytes) {
    attempts.push_back(bytes);
    return bytes <= most ? 0 : refusal;
  });
}

TEST(InlineData, IsAsMuchAsTheDeviceTakes) {
  struct Row {
    std::uint32_t most;
    std::vector<std::uint32_t> attempts;
  };

  const std::vector<Row> rows{{1000, {256}},
                              {256, {256}},
                              {220, {256, 128}},
                              {60, {256, 128, 64, 32}},
                              {0, {256, 128, 64, 32, 16, 8, 4, 2, 1, 0}}};
  for (const Row& row : rows) {
    for (const int refusal : {EINVAL, ENOMEM, EOPNOTSUPP, E2BIG}) {
      std::vector<std::uint32_t> attempts;
      const InlineTrial trial = trial_of(row.most, refusal, attempts);
      EXPECT_EQ(trial.error, 0);
      EXPECT_EQ(trial.bytes, row.attempts.back());
      EXPECT_EQ(attempts, row.attempts) << "most " << row.most;
    }
  }
}

/// A device that is gone does not come back for less.
TEST(InlineData, DoesNotMendOtherRefusals) {
  for (const int refusal : {ENODEV, EPERM, EIO, EMFILE, EAGAIN}) {
    std::vector<std::uint32_t> attempts;
    const InlineTrial trial = trial_of(0, refusal, attempts);
    EXPECT_EQ(trial.error, refusal);
    EXPECT_EQ(attempts, std::vector<std::uint32_t>{256});
  }
}

TEST(InlineData, EndsWhenNoneIsStillTooMuch) {
  std::size_t attempts = 0;
  const InlineTrial trial = try_inline(256, [&](std::uint32_t) {
    ++attempts;
    return ENOMEM;
  });
  EXPECT_EQ(trial.error, ENOMEM);
  EXPECT_EQ(trial.bytes, 0U);
  EXPECT_EQ(attempts, 10U);
}

// ------------------------------------------------------------------------ the software transport

/// One end of a cable. Frames lie at the other end until it receives.
class CableEnd : public FrameIo {
 public:
  explicit CableEnd(std::uint8_t number) : number_(number) {}

  void plug_into(CableEnd& other) { other_ = &other; }

  wire::MacAddress mac() const override { return {{0x02, 0, 0, 0, 0, number_}}; }

  std::size_t receive(FrameReader& reader) override {
    std::deque<Bytes> frames = std::exchange(frames_, {});
    for (Bytes& frame : frames) {
      reader.accept(frame);
    }
    return frames.size();
  }

  std::span<std::uint8_t> reserve(std::size_t bytes) override {
    outgoing_.resize(bytes);
    return outgoing_;
  }

  void commit(std::size_t frame_bytes) override {
    const auto frame = std::span(outgoing_).first(frame_bytes);
    other_->frames_.emplace_back(frame.begin(), frame.end());
  }

  void flush() override {}

  int descriptor() const override { return kNoDescriptor; }

 private:
  const std::uint8_t number_;
  CableEnd* other_ = nullptr;
  std::deque<Bytes> frames_;
  Bytes outgoing_;
};

/// A rank of two that are each other's neighbours, without a switch.
class Peer : public TransportListener {
 public:
  explicit Peer(std::uint16_t rank) {
    auto frames = std::make_unique<CableEnd>(static_cast<std::uint8_t>(rank + 1));
    cable = frames.get();
    const TransportPlan plan{
        .rank = rank, .slots = 4, .slot_bytes = 1000, .path_mtu = 256, .window = 2};
    const SoftwareTransportOptions options{
        .ip = *wire::parse_ip(rank == 0 ? "10.7.0.1" : "10.7.0.2"), .mac = frames->mac()};
    transport = std::make_unique<SoftwareTransport>(plan, options, std::move(frames));
  }

  Arrival arrived(std::size_t, const IncomingMessage& message) override {
    arrivals.push_back(message);
    contents.emplace_back(message.data.begin(), message.data.end());
    return arrivals.size() > ignored_first ? Arrival::taken : Arrival::ignored;
  }

  void completed(std::size_t) override { ++completions; }

  void post(std::uint64_t number, const Bytes& data, std::span<std::uint8_t> result) {
    ASSERT_TRUE(
        transport->post(0, {.number = number, .header = header, .data = data, .result = result}));
  }

  Bytes header = Bytes(kInaHeaderBytes, 7);
  CableEnd* cable = nullptr;
  std::unique_ptr<SoftwareTransport> transport;
  std::vector<IncomingMessage> arrivals; // whose bytes may have changed since
  std::vector<Bytes> contents;           // of their data, when they came
  std::size_t completions = 0;
  std::size_t ignored_first = 0; // messages that are taken for another one's
};

struct TwoPeers : testing::Test {
  TwoPeers() {
    a.cable->plug_into(*b.cable);
    b.cable->plug_into(*a.cable);
    const Bytes to_a = a.transport->address();
    const Bytes to_b = b.transport->address();
    a.transport->connect({1, to_b}, {1, to_b});
    b.transport->connect({0, to_a}, {0, to_a});
  }

  static Bytes pattern(std::size_t bytes, std::uint8_t first) {
    Bytes data(bytes);
    std::iota(data.begin(), data.end(), first);
    return data;
  }

  void settle() {
    for (int round = 0; round < 20; ++round) {
      a.transport->poll(a);
      b.transport->poll(b);
    }
  }

  Peer a{0};
  Peer b{1};
};

TEST_F(TwoPeers, AClosedChannelTakesNothingAndReportsNothing) {
  const Bytes from_a = pattern(10, 1);
  const Bytes from_b = pattern(700, 101); // sent again and again, from here
  Bytes place(700, 0xee);
  a.post(0, from_a, place);
  a.transport->close(0);
  b.post(0, from_b, {});
  settle();
  EXPECT_TRUE(a.arrivals.empty());
  EXPECT_EQ(a.completions, 0U);
  EXPECT_EQ(place, Bytes(700, 0xee));
  EXPECT_EQ(b.completions, 0U) << "nobody acknowledges";
  EXPECT_TRUE(b.arrivals.empty()) << "what waited to be sent as well";
}

TEST_F(TwoPeers, AMessageIsStoredWhereItsResultBelongs) {
  const Bytes from_a = pattern(700, 1);
  const Bytes from_b = pattern(700, 101);
  Bytes at_a(702, 0xee);
  const auto place = std::span(at_a).subspan(1, 700);
  a.post(0, from_a, place);
  b.post(0, from_b, {});
  settle();
  ASSERT_EQ(a.arrivals.size(), 1U);
  EXPECT_EQ(a.arrivals[0].data.data(), place.data()) << "not in the transport's memory";
  EXPECT_EQ(a.arrivals[0].header.size(), kInaHeaderBytes);
  EXPECT_TRUE(std::ranges::equal(place, from_b));
  EXPECT_EQ(at_a.front(), 0xee);
  EXPECT_EQ(at_a.back(), 0xee);
  ASSERT_EQ(b.contents.size(), 1U);
  EXPECT_EQ(b.contents[0], from_a) << "b has told no place";
  EXPECT_EQ(a.completions, 1U);
}

TEST_F(TwoPeers, MessagesWithAndWithoutAPlaceMayAlternate) {
  constexpr std::size_t kMessages = 9; // the slots are used more than twice
  Bytes at_a(kMessages * 300);
  for (std::size_t number = 0; number < kMessages; ++number) {
    const Bytes data = pattern(300, static_cast<std::uint8_t>(number));
    const auto place = std::span(at_a).subspan(number * 300, 300);
    a.post(number, data, number % 2 == 0 ? place : std::span<std::uint8_t>());
    b.post(number, data, {});
    settle();
    ASSERT_EQ(a.contents.size(), number + 1);
    EXPECT_EQ(a.contents[number], data);
    EXPECT_EQ(std::ranges::equal(place, data), number % 2 == 0);
  }
}

TEST_F(TwoPeers, AfterAMessageOfSomebodyElseTheRightOneFindsItsPlace) {
  const Bytes data = pattern(300, 5);
  const Bytes somebody_elses = pattern(300, 77);
  Bytes at_a(300);
  a.ignored_first = 1;
  a.post(0, data, at_a);
  b.post(0, somebody_elses, {});
  settle();
  EXPECT_EQ(a.contents.size(), 1U);
  b.post(1, data, {});
  settle();
  ASSERT_EQ(a.arrivals.size(), 2U);
  EXPECT_EQ(at_a, data);
}

TEST_F(TwoPeers, NothingIsStoredAfterTheEnd) {
  const Bytes data = pattern(300, 5);
  Bytes at_a(300);
  a.post(0, data, at_a);
  b.post(0, data, {});
  b.transport->poll(b); // its frames lie before a now
  a.transport->quiesce();
  try {
    settle();
  } catch (const Error&) { // the connection is over
  }
  EXPECT_EQ(at_a, Bytes(300));
  EXPECT_TRUE(a.contents.empty());
}

} // namespace
} // namespace weir::host::zero_copy_test
