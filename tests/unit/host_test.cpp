// SPDX-License-Identifier: BSD-3-Clause

/// The host library: whole jobs whose ranks are threads around a switch in memory. Results are
/// compared with plain loops.

#include "host_job.hpp"
#include "support/comes_true.hpp"
#include "support/sanitized.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <latch>
#include <poll.h>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace weir::host::host_test {
namespace {

/// Every rank's tensor, from a seed.
template <typename Element>
std::vector<std::vector<Element>> tensors(std::uint16_t world, std::size_t count,
                                          std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<std::vector<Element>> all(world, std::vector<Element>(count));
  for (auto& tensor : all) {
    for (Element& element : tensor) {
      if constexpr (std::is_floating_point_v<Element>) {
        element = static_cast<Element>(static_cast<double>(engine() >> 11) * 0x1p-50 - 4);
      } else {
        element = static_cast<Element>(engine());
      }
    }
  }
  return all;
}

template <typename Element, typename Fold>
std::vector<Element> fold(const std::vector<std::vector<Element>>& inputs, Fold combine) {
  std::vector<Element> result = inputs[0];
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = combine(result[i], inputs[rank][i]);
    }
  }
  return result;
}

/// All-reduces `count` elements in place and out of place on one rank and compares.
template <typename Element, typename Fold>
void check_reduction(Group& group, std::size_t count, std::uint64_t seed, DataType type,
                     Operation operation, Fold combine) {
  const auto inputs = tensors<Element>(group.world(), count, seed);
  const std::vector<Element> expected = fold(inputs, combine);
  std::vector<Element> in = inputs[group.rank()];
  std::vector<Element> out(count);
  const auto same = [&](const std::vector<Element>& found) {
    return count == 0 || std::memcmp(found.data(), expected.data(), count * sizeof(Element)) == 0;
  };
  group.all_reduce(in.data(), out.data(), count, type, operation);
  EXPECT_TRUE(same(out)) << count << " of " << name_of(type) << " out of place";
  EXPECT_EQ(in, inputs[group.rank()]) << "the input was touched";
  group.all_reduce(in.data(), in.data(), count, type, operation);
  EXPECT_TRUE(same(in)) << count << " of " << name_of(type) << " in place";
}

constexpr auto kAdd = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };

void reduce_several(Group& group, std::uint64_t seed) {
  for (const std::size_t count : {0, 1, 2, 239, 240, 241, 5000}) {
    check_reduction<float>(group, count, seed + count, DataType::f32, Operation::sum, kAdd);
  }
  check_reduction<std::uint32_t>(group, 3000, seed, DataType::i32, Operation::sum, kAdd);
  check_reduction<double>(group, 1001, seed, DataType::f64, Operation::product,
                          [](double a, double b) { return a * b; });
  check_reduction<std::uint8_t>(group, 4001, seed, DataType::u8, Operation::bitwise_xor,
                                [](auto a, auto b) { return static_cast<std::uint8_t>(a ^ b); });
  check_reduction<std::int16_t>(group, 777, seed, DataType::i16, Operation::min,
                                [](auto a, auto b) { return b < a ? b : a; });
}

class Job : public testing::TestWithParam<JobPlan> {};

TEST_P(Job, ReducesExactly) {
  const JobPlan& plan = GetParam();
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    reduce_several(group, plan.seed);
    const GroupStatistics statistics = group.statistics();
    EXPECT_EQ(plan.loss > 0, statistics.frames_lost_on_purpose > 0);
  });
  expect_none(endings);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Job,
    testing::Values(JobPlan{.world = 2}, JobPlan{.world = 3}, JobPlan{.world = 4},
                    JobPlan{.world = 2, .window = 1, .message_bytes = 48},
                    JobPlan{.world = 3, .rings = {4, 5}},
                    JobPlan{.world = 2, .window = 8, .message_bytes = 16384, .mtu = 1024},
                    JobPlan{.world = 2, .loss = 0.05, .seed = 2},
                    JobPlan{.world = 3, .loss = 0.05, .seed = 3},
                    JobPlan{.world = 4, .rings = {1, 2}, .loss = 0.02, .seed = 4}));

class RingFallback : public testing::TestWithParam<JobPlan> {};

TEST_P(RingFallback, ReducesToTheSameBits) {
  JobPlan plan = GetParam();
  plan.fallback = Fallback::ring;
  HostFabric fabric({}, plan.world); // a plain learning switch
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    EXPECT_EQ(group.algorithm(), Algorithm::ring);
    EXPECT_NE(group.fallback_reason().find("no RESULT"), std::string::npos);
    reduce_several(group, plan.seed);
  });
  expect_none(endings);
}

INSTANTIATE_TEST_SUITE_P(Plans, RingFallback,
                         testing::Values(JobPlan{.world = 2}, JobPlan{.world = 3},
                                         JobPlan{.world = 4, .window = 9},
                                         JobPlan{.world = 5, .window = 1}, // inbox over 2N
                                         JobPlan{.world = 3, .rings = {4, 5}},
                                         JobPlan{.world = 2, .loss = 0.05, .seed = 2},
                                         JobPlan{.world = 4, .loss = 0.03, .seed = 3}));

// ------------------------------------------------------------------------------- on the wire

/// The content of a rank's frames to its successor, by docs/protocol.md §2 and IBTA §9.2: Ethernet,
/// IPv4, UDP and a BTH, then what the opcode has before its payload.
struct Sent {
  std::vector<Bytes> hellos;          // INA headers of ONLY packets
  std::set<std::uint32_t> others_to;  // queue pairs of requests without the magic
  std::set<std::uint32_t> magical_to; // of requests with it
  std::set<std::uint8_t> others_by;   // opcodes of their first packets, and
  std::set<std::uint8_t> magical_by;
  std::set<std::uint32_t> acks_for; // our own queue pairs that acknowledgements came to
};

std::uint32_t number_at(std::span<const std::uint8_t> bytes, std::size_t at, std::size_t size) {
  std::uint32_t number = 0;
  for (const std::uint8_t byte : bytes.subspan(at, size)) {
    number = number << 8 | byte;
  }
  return number;
}

// IBTA §9.2.1, of RC.
constexpr std::uint8_t kSendFirst = 0x00;
constexpr std::uint8_t kSendOnlyImmediate = 0x05;
constexpr std::uint8_t kWriteFirst = 0x06;
constexpr std::uint8_t kWriteOnlyImmediate = 0x0b;

class WatchedIo : public ForwardingIo, private FrameReader {
 public:
  WatchedIo(std::unique_ptr<FrameIo> device, Sent& sent)
      : ForwardingIo(std::move(device)), sent_(sent) {}

  std::size_t receive(FrameReader& reader) override {
    reader_ = &reader;
    return ForwardingIo::receive(*this);
  }

  std::span<std::uint8_t> reserve(std::size_t bytes) override {
    return room_ = ForwardingIo::reserve(bytes);
  }

  void commit(std::size_t frame_bytes) override {
    note(room_.first(frame_bytes));
    ForwardingIo::commit(frame_bytes);
  }

 private:
  static constexpr std::size_t kBth = 14 + 20 + 8;
  static constexpr std::size_t kQueuePair = kBth + 5;
  static constexpr std::size_t kSyndrome = kBth + 12;
  static constexpr std::uint8_t kFirstNak = 0x20; // an earlier run hears by one that this began
  static constexpr std::uint8_t kAcknowledge = 0x11;

  /// Where the payload of a message's first packet begins. None: another packet.
  static std::optional<std::size_t> payload_of(std::uint8_t opcode) {
    constexpr std::size_t bth = 12;
    constexpr std::size_t reth = 16;
    constexpr std::size_t immediate = 4;
    switch (opcode) {
    case kSendFirst:
      return kBth + bth;
    case kSendOnlyImmediate:
      return kBth + bth + immediate;
    case kWriteFirst:
      return kBth + bth + reth;
    case kWriteOnlyImmediate:
      return kBth + bth + reth + immediate;
    default:
      return std::nullopt;
    }
  }

  void accept(std::span<std::uint8_t> frame) override {
    if (frame[kBth] == kAcknowledge && frame[kSyndrome] < kFirstNak) {
      sent_.acks_for.insert(number_at(frame, kQueuePair, 3));
    }
    reader_->accept(frame);
  }

  void note(std::span<const std::uint8_t> frame) {
    const std::uint8_t opcode = frame[kBth];
    const std::optional<std::size_t> offset = payload_of(opcode);
    if (!offset) {
      return;
    }
    const auto payload = frame.subspan(*offset);
    const bool is_magic = number_at(payload, 0, 4) == 0x57454952;
    (is_magic ? sent_.magical_to : sent_.others_to).insert(number_at(frame, kQueuePair, 3));
    (is_magic ? sent_.magical_by : sent_.others_by).insert(opcode);
    if (is_magic && payload[32] == 1) {
      sent_.hellos.emplace_back(payload.begin(), payload.begin() + 40);
    }
  }

  Sent& sent_;
  FrameReader* reader_ = nullptr;
  std::span<std::uint8_t> room_;
};

/// What each rank of a job sent.
std::vector<Sent> watched_job(const JobPlan& plan, HostFabric& fabric) {
  const std::string address = free_address();
  std::vector<Sent> sent(plan.world);
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    auto device = std::make_unique<WatchedIo>(fabric.open(rank), sent[rank]);
    Group group(options_of(plan, rank, address), std::move(device));
    check_reduction<float>(group, 1000, 1, DataType::f32, Operation::sum, kAdd);
  }));
  return sent;
}

TEST(Wire, AHelloTellsTheRunTheQueuePairAndItsTimeout) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  std::set<std::uint32_t> nonces;
  for (int run = 0; run < 2; ++run) { // of the same epoch
    const std::vector<Sent> sent = watched_job(plan, fabric);
    const std::uint32_t nonce = number_at(sent[0].hellos.at(0), 28, 4);
    EXPECT_NE(nonce, 0U);
    EXPECT_TRUE(nonces.insert(nonce).second) << "the same nonce again";
    for (const Sent& rank : sent) {
      for (const Bytes& hello : rank.hellos) {
        EXPECT_EQ(hello[4], 2) << "version";
        EXPECT_EQ(number_at(hello, 16, 4), 0U) << "msg_id";
        EXPECT_EQ(number_at(hello, 28, 4), nonce);
        EXPECT_EQ(hello[33], 14) << "40 ms, rounded up to 4.096 us x 2^14";
        EXPECT_EQ(rank.acks_for, std::set{number_at(hello, 36, 4)}) << "qp";
      }
    }
  }
}

/// So that results can go to where they belong, and nobody may write a rank's memory.
TEST(Wire, MessagesToASwitchAreSends) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  for (const Sent& rank : watched_job(plan, fabric)) {
    EXPECT_EQ(rank.magical_by, (std::set{kSendFirst, kSendOnlyImmediate}));
    EXPECT_TRUE(rank.others_by.empty());
  }
}

TEST(Wire, TheHostsRingHasQueuePairsOfItsOwnAndNoMagic) {
  const JobPlan plan{.world = 3, .fallback = Fallback::ring};
  HostFabric fabric({}, plan.world);
  for (const Sent& rank : watched_job(plan, fabric)) {
    EXPECT_EQ(rank.magical_to.size(), 1U) << "the hello's";
    EXPECT_EQ(rank.others_to.size(), 1U);
    EXPECT_NE(rank.magical_to, rank.others_to);
    EXPECT_EQ(rank.magical_by, std::set{kSendOnlyImmediate});
    EXPECT_EQ(rank.others_by, std::set{kWriteFirst});
  }
}

TEST(Group, AFallbackThatIsAllowedIsNotTakenWithoutNeed) {
  const JobPlan plan{.world = 3, .fallback = Fallback::ring};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    EXPECT_EQ(group.algorithm(), Algorithm::in_switch);
    EXPECT_EQ(group.fallback_reason(), "");
    reduce_several(group, 1);
  });
  expect_none(endings);
}

TEST(Group, SeveralCallsMayBeUnderWay) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    constexpr std::size_t kCount = 2000;
    std::vector<std::vector<std::uint32_t>> buffers(5,
                                                    std::vector<std::uint32_t>(kCount, rank + 1));
    std::vector<Pending> pending;
    for (auto& buffer : buffers) {
      pending.push_back(group.start_all_reduce(buffer.data(), buffer.data(), kCount, DataType::u32,
                                               Operation::sum));
    }
    const auto deadline = Clock::now() + milliseconds(10'000);
    while (!pending[0].test() && Clock::now() < deadline) {
      // The group's own thread drives the engine.
      std::this_thread::sleep_for(milliseconds(1));
    }
    pending[4].wait();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_TRUE(pending[i].test());
      EXPECT_EQ(pending[i].bytes_done(), kCount * 4);
      EXPECT_EQ(buffers[i], std::vector<std::uint32_t>(kCount, 6));
    }
  });
  expect_none(endings);
}

TEST(Group, AThreadThatWaitsHoldsUpNoOther) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<bool> came_through = false;
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<std::uint32_t> first(2000, rank + 1);
    std::vector<std::uint32_t> second(2000, rank + 10);
    const auto start = [&](std::vector<std::uint32_t>& data) {
      return group.start_all_reduce(data.data(), data.data(), data.size(), DataType::u32,
                                    Operation::sum);
    };
    if (rank == 1) {
      EXPECT_TRUE(test::comes_true([&] { return came_through.load(); }, std::chrono::seconds(5)))
          << "rank 0 was held up until rank 1 called";
      start(first);
      start(second).wait();
    } else {
      Pending waited_for = start(first);
      std::thread waiter([&] { waited_for.wait(); });
      std::this_thread::sleep_for(milliseconds(30)); // the waiter waits
      Pending another = start(second);
      EXPECT_FALSE(another.test());
      EXPECT_FALSE(waited_for.test());
      EXPECT_EQ(group.statistics().results_received, 1U); // the hello's
      came_through = true;
      another.wait();
      waiter.join();
    }
    EXPECT_EQ(first, std::vector<std::uint32_t>(2000, 3));
    EXPECT_EQ(second, std::vector<std::uint32_t>(2000, 21));
  });
  expect_none(endings);
}

/// Losses sometimes delay rank 0, so that it knows that rank 1 has left before it starts the
/// second.
TEST(Group, ARankThatLeavesEndsTheCallsAfterItsLast) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const JobPlan plan{.world = 2, .loss = 0.1, .seed = seed};
    HostFabric fabric(rings_of(plan), plan.world, kSession);
    const std::string address = free_address();
    const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
      Group group(options_of(plan, rank, address), fabric.open(rank));
      std::vector<std::uint32_t> data(500, rank + 1);
      const auto call = [&] {
        return group.start_all_reduce(data.data(), data.data(), data.size(), DataType::u32,
                                      Operation::sum);
      };
      Pending first = call();
      if (rank == 1) {
        first.wait();
        return;
      }
      Pending second = call();
      const Ending ending = ending_of([&] {
        while (!second.test()) {
          std::this_thread::sleep_for(milliseconds(1));
        }
      });
      EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
      EXPECT_EQ(ending.rank, 1);
      EXPECT_TRUE(first.test());
      EXPECT_EQ(ending_of([&] { call(); }).code, ErrorCode::peer_died);
    });
    expect_none(endings);
  }
}

/// Frames of another device, until it throws an error that the library does not know.
class FragileIo : public ForwardingIo {
 public:
  FragileIo(std::unique_ptr<FrameIo> device, const std::atomic<bool>& is_broken)
      : ForwardingIo(std::move(device)), is_broken_(is_broken) {}

  std::size_t receive(FrameReader& reader) override {
    if (is_broken_) {
      throw std::runtime_error("the device is broken");
    }
    return ForwardingIo::receive(reader);
  }

 private:
  const std::atomic<bool>& is_broken_;
};

TEST(Group, WhateverADeviceThrowsEndsTheJob) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<int> reduced = 0;
  std::atomic<bool> is_broken = false;
  const std::atomic<bool> never = false;
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    auto device = std::make_unique<FragileIo>(fabric.open(rank), rank == 1 ? is_broken : never);
    Group group(options_of(plan, rank, address), std::move(device));
    std::vector<std::uint32_t> data(500, 1);
    const auto reduce = [&] {
      group.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
    };
    reduce();
    ++reduced;
    if (rank == 1) {
      while (reduced < plan.world) {
        std::this_thread::yield();
      }
      is_broken = true;
    }
    const Ending ending = ending_of(reduce);
    EXPECT_EQ(ending.code, ErrorCode::transport_failure) << ending.text;
    EXPECT_EQ(ending.rank, 1) << ending.text;
    EXPECT_EQ(ending.text, "the device is broken");
    EXPECT_EQ(ending_of(reduce).code, ErrorCode::transport_failure);
    group.statistics();
  });
  expect_none(endings);
}

/// How long rank 0 takes to close when rank 1 closes `later`.
milliseconds closing_time(milliseconds timeout, milliseconds later) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  milliseconds taken{};
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    options.timeout = timeout;
    auto group = std::make_unique<Group>(options, fabric.open(rank));
    std::vector<std::uint32_t> data(100, 1);
    group->all_reduce(data.data(), data.data(), 100, DataType::u32, Operation::sum);
    if (rank == 1) {
      std::this_thread::sleep_for(later);
    }
    const auto start = Clock::now();
    group.reset();
    if (rank == 0) {
      taken = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    }
  });
  expect_none(endings);
  return taken;
}

TEST(Group, StaysUntilAllHaveClosed) {
  EXPECT_GE(closing_time(milliseconds(10'000), milliseconds(1500)), milliseconds(1000));
}

TEST(Group, StaysLittleLongerThanItsTimeout) {
  const milliseconds taken = closing_time(milliseconds(1500), milliseconds(5000));
  EXPECT_GE(taken, milliseconds(1400));
  EXPECT_LT(taken, milliseconds(4500));
}

TEST(Group, ClosingEndsAWaitElsewhere) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::latch rank_0_waits(1);
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    auto group = std::make_unique<Group>(options_of(plan, rank, address), fabric.open(rank));
    std::vector<std::uint32_t> data(2000, 1);
    const auto call = [&] {
      return group->start_all_reduce(data.data(), data.data(), data.size(), DataType::u32,
                                     Operation::sum);
    };
    if (rank == 1) {
      rank_0_waits.wait();
      std::this_thread::sleep_for(milliseconds(500)); // rank 0 has said that it leaves by then
      call().wait();
      return;
    }
    Pending pending = call();
    Ending ending;
    std::thread waiter([&] {
      rank_0_waits.count_down();
      ending = ending_of([&] { pending.wait(); });
    });
    rank_0_waits.wait();
    std::this_thread::sleep_for(milliseconds(30)); // the call itself cannot be seen from here
    group.reset();
    waiter.join();
    EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
    EXPECT_EQ(ending.rank, 0);
  });
  EXPECT_FALSE(endings[0].code) << endings[0].text;
  EXPECT_EQ(endings[1].code, ErrorCode::peer_died) << endings[1].text;
  EXPECT_EQ(endings[1].rank, 0);
}

TEST(Group, JobsMayFollowEachOtherAtOnce) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  for (int job = 0; job < 3; ++job) {
    const std::string address = free_address();
    const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
      GroupOptions options = options_of(plan, rank, address);
      options.epoch = 0;
      Group group(options, fabric.open(rank));
      std::vector<std::uint32_t> data(3000, rank + 1);
      group.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
      EXPECT_EQ(data, std::vector<std::uint32_t>(3000, 3));
    });
    expect_none(endings);
  }
}

TEST(Group, WithoutTheRingNobodyAggregates) {
  const JobPlan plan{.world = 3};
  HostFabric fabric({}, plan.world); // a plain learning switch
  const std::string address = free_address();
  const auto start = Clock::now();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
  });
  expect_all(endings, ErrorCode::not_aggregated);
  EXPECT_LT(Clock::now() - start, milliseconds(5000));
}

TEST(Group, ARestartedSwitchEndsTheJobInBoundedTime) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<int> arrived = 0;
  const auto start = Clock::now();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    options.timeout = milliseconds(1000);
    Group group(options, fabric.open(rank));
    std::vector<std::uint32_t> data(3000, 1);
    group.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
    ++arrived;
    while (arrived < 3) {
      std::this_thread::yield();
    }
    if (rank == 0) {
      fabric.restart(kSession + 1);
    }
    group.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
  });
  expect_all(endings, ErrorCode::timeout);
  for (const Ending& ending : endings) {
    EXPECT_FALSE(ending.rank) << ending.text;
    EXPECT_NE(ending.text.find("all 3 ranks are there"), std::string::npos) << ending.text;
  }
  EXPECT_LT(Clock::now() - start, milliseconds(8000));
}

/// How ranks end when their link is cut from the beginning.
std::vector<Ending> endings_behind_a_cut(std::uint8_t retry_count) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  fabric.cut();
  const std::string address = free_address();
  return run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    options.timeout = milliseconds(1000);
    options.retry_count = retry_count;
    Group group(options, fabric.open(rank));
  });
}

TEST(Group, ACutLinkEndsTheJobInBoundedTime) {
  expect_all(endings_behind_a_cut(7), ErrorCode::timeout);
  expect_all(endings_behind_a_cut(2), ErrorCode::retry_exceeded);
}

TEST(Group, NamesOptionsThatDiffer) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    if (rank == 1) {
      options.window = 5;
    }
    Group group(options, fabric.open(rank));
  });
  expect_all(endings, ErrorCode::mismatch);
  EXPECT_EQ(endings[0].rank, 1);
  EXPECT_NE(endings[0].text.find("window 5"), std::string::npos) << endings[0].text;
}

TEST(Group, NamesTheRankWhoseCallDiffers) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    group.all_reduce(data.data(), data.data(), rank == 2 ? 99 : 100, DataType::f32, Operation::sum);
  });
  expect_all(endings, ErrorCode::mismatch);
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.rank, 2) << ending.text;
  }
}

/// Rank 0 waits for rank 1, which never calls, until another thread of rank 0 has enough.
TEST(Group, AnAbortEndsTheCallsOfAllRanksAtOnce) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::latch is_over(plan.world - 1);
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    const auto call = [&] {
      group.all_reduce(data.data(), data.data(), 100, DataType::f32, Operation::sum);
    };
    if (rank == 1) {
      is_over.wait();
    }
    const std::jthread aborting([&] {
      if (rank == 0) {
        std::this_thread::sleep_for(milliseconds(50));
        group.abort();
      }
    });
    const auto start = Clock::now();
    const Ending ending = ending_of(call);
    EXPECT_EQ(ending.code, ErrorCode::aborted) << ending.text;
    EXPECT_EQ(ending.rank, 0);
    EXPECT_LT(Clock::now() - start, milliseconds(2000));
    EXPECT_EQ(ending_of(call).code, ErrorCode::aborted) << "it stays so";
    if (rank != 1) {
      is_over.count_down();
    }
  }));
}

/// No thread may have driven the group in between.
TEST(Group, AnAbortIsToldAlsoWhenTheGroupIsClosedAtOnce) {
  for (int round = 0; round < 10; ++round) {
    const JobPlan plan{.world = 2, .fallback = Fallback::ring};
    HostFabric fabric({}, plan.world, kSession);
    const std::string address = free_address();
    const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
      Group group(options_of(plan, rank, address), fabric.open(rank));
      if (rank == 1) {
        group.abort("the disk is full");
      } else {
        group.start(nullptr, nullptr, {.kind = CallKind::barrier}).wait();
      }
    });
    EXPECT_EQ(endings[0].code, ErrorCode::aborted);
    EXPECT_EQ(endings[0].text, "rank 1 aborted its group: the disk is full");
  }
}

TEST(Group, AnAbortBetweenCallsEndsTheNext) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    if (rank == 1) {
      group.abort("the disk is full");
      group.abort("and more"); // too late
    }
    const Ending ending = ending_of(
        [&] { group.all_reduce(data.data(), data.data(), 100, DataType::f32, Operation::sum); });
    EXPECT_EQ(ending.code, ErrorCode::aborted) << ending.text;
    EXPECT_EQ(ending.rank, 1);
    EXPECT_EQ(ending.text, "rank 1 aborted its group: the disk is full");
  }));
}

TEST(Group, WaitsForOthersToComeNoLongerThanForTheGroupToForm) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  GroupOptions options = options_of(plan, 0, free_address());
  options.form_timeout = milliseconds(200);
  const auto start = Clock::now();
  const Ending ending = ending_of([&] { const Group group(options, fabric.open(0)); });
  EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout) << ending.text;
  EXPECT_EQ(ending.rank, 1);
  EXPECT_LT(Clock::now() - start, options.timeout / 2);
}

TEST(Group, NamesTheRankThatDoesNotCall) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<int> failed = 0;
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    options.lateness = milliseconds(1000);
    options.timeout = options.lateness; // the ranks look as often why nothing moves
    Group group(options, fabric.open(rank));
    if (rank == 1) {
      EXPECT_TRUE(test::comes_true([&] { return failed == 2; })); // computes too long
      return;
    }
    std::vector<float> data(100, 1);
    const Ending ending = ending_of(
        [&] { group.all_reduce(data.data(), data.data(), 100, DataType::f32, Operation::sum); });
    EXPECT_EQ(ending.code, ErrorCode::timeout) << ending.text;
    EXPECT_EQ(ending.rank, 1) << ending.text;
    ++failed;
  });
  expect_none(endings);
}

TEST(Group, NamesTheRankThatLeft) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    if (rank != 1) {
      std::vector<float> data(100, 1);
      group.all_reduce(data.data(), data.data(), 100, DataType::f32, Operation::sum);
    }
  });
  EXPECT_FALSE(endings[1].code) << endings[1].text;
  for (const std::size_t rank : {0, 2}) {
    EXPECT_EQ(endings[rank].code, ErrorCode::peer_died) << endings[rank].text;
    EXPECT_EQ(endings[rank].rank, 1);
  }
}

/// Rank 0 must know of all calls, so no rank can call without it.
TEST(Group, CallsAfterRankZeroLeftSaySo) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    if (rank == 0) {
      return;
    }
    std::vector<float> data(100, 1);
    for (int call = 0; call < 2; ++call) {
      const Ending ending = ending_of(
          [&] { group.all_reduce(data.data(), data.data(), 100, DataType::f32, Operation::sum); });
      EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
      EXPECT_EQ(ending.rank, 0);
    }
  });
  expect_none(endings);
}

TEST(Group, AnErrorStays) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    const auto call = [&] {
      group.all_reduce(data.data(), data.data(), 50 + rank, DataType::f32, Operation::sum);
    };
    EXPECT_EQ(ending_of(call).code, ErrorCode::mismatch);
    EXPECT_EQ(ending_of(call).code, ErrorCode::mismatch);
  });
  expect_none(endings);
}

/// On the hosts' ring a reduce-scatter needs room for the whole result.
TEST(Group, ACallForWhichThereIsNoMemoryEndsTheGroup) {
  if (test::kIsSanitized) {
    GTEST_SKIP() << "a sanitizer ends the process when there is no memory";
  }
  const JobPlan plan{.world = 2, .fallback = Fallback::ring};
  HostFabric fabric({}, plan.world, kSession);
  const std::string address = free_address();
  std::atomic<int> refusals = 0; // one rank may find that the other has ended the group
  expect_all(run_ranks(plan.world,
                       [&](std::uint16_t rank) {
                         Group group(options_of(plan, rank, address), fabric.open(rank));
                         std::vector<float> data(100, 1);
                         const Call call{.kind = CallKind::reduce_scatter,
                                         .count = std::size_t{1} << 46};
                         const Ending first =
                             ending_of([&] { group.start(data.data(), data.data(), call).wait(); });
                         refusals += first.text == "no memory is left" ? 1 : 0;
                         group.start_all_reduce(data.data(), data.data(), 1, DataType::f32,
                                                Operation::sum);
                       }),
             ErrorCode::transport_failure);
  EXPECT_GE(refusals, 1);
}

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(Group, ADescriptorTellsThatRequestsAreDone) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::latch has_done_all(plan.world);
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    const auto start = [&] {
      return group.start_all_reduce(data.data(), data.data(), data.size(), DataType::f32,
                                    Operation::sum);
    };
    const int descriptor = group.descriptor();
    EXPECT_EQ(group.descriptor(), descriptor);
    EXPECT_FALSE(is_readable(descriptor));
    Pending first = start();
    Pending second = start();
    pollfd entry{descriptor, POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, 10'000), 1);
    second.wait();
    EXPECT_TRUE(is_readable(descriptor)) << "the first has not been asked";
    EXPECT_TRUE(first.test());
    EXPECT_FALSE(is_readable(descriptor));
    EXPECT_TRUE(first.test());
    Pending third = start();
    third.wait();
    EXPECT_FALSE(is_readable(descriptor));
    has_done_all.arrive_and_wait(); // an abort ends calls whose last packets are on their way
    if (rank == 0) {
      group.abort();
    }
    EXPECT_TRUE(test::comes_true([&] { return is_readable(descriptor); })) << "an error";
  }));
}

/// Nobody waits in the library, so the group's own thread repeats what was lost.
TEST(Group, CallsThatNobodyWaitsForAreDoneAllTheSame) {
  const JobPlan plan{.world = 2, .loss = 0.2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(100, 1);
    pollfd done{group.descriptor(), POLLIN, 0};
    for (int call = 0; call < 20; ++call) {
      Pending pending = group.start_all_reduce(data.data(), data.data(), data.size(), DataType::f32,
                                               Operation::max);
      ASSERT_EQ(poll(&done, 1, 10'000), 1) << "call " << call;
      EXPECT_TRUE(pending.test());
    }
  }));
}

/// Empty calls are done at once, so nothing else holds rank 0 up.
TEST(Group, CallsThatTheLastRankLeavesNoRoomForWaitAndThenStart) {
  constexpr std::size_t kCalls = 262'144 + 3;
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::latch is_full(1);
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    const auto start = [&] {
      return group.start_all_reduce(nullptr, nullptr, 0, DataType::f32, Operation::sum);
    };
    if (rank == 1) {
      is_full.wait();
    }
    Pending last;
    for (std::size_t call = 0; call < kCalls; ++call) {
      last = start();
    }
    if (rank == 0) {
      EXPECT_TRUE(test::comes_true([&] {
        return !last.wait_for(milliseconds(5)) && last.waits_for() == "rank 1 has not made call 1";
      })) << last.waits_for();
      is_full.count_down();
    }
    EXPECT_TRUE(last.wait_for(milliseconds(120'000)));
  }));
}

/// Holds the group's own thread when it first looks for frames.
class HoldingIo : public ForwardingIo {
 public:
  struct Hold {
    std::atomic<bool> is_due = true;
    std::latch has_begun{1};
    std::latch is_over{1};
  };

  /// The thread that makes this is never held.
  HoldingIo(std::unique_ptr<FrameIo> device, Hold& hold)
      : ForwardingIo(std::move(device)), hold_(hold) {}

  std::size_t receive(FrameReader& reader) override {
    if (gettid() != maker_ && hold_.is_due.exchange(false)) {
      hold_.has_begun.count_down();
      hold_.is_over.wait();
    }
    return ForwardingIo::receive(reader);
  }

 private:
  const pid_t maker_ = gettid();
  Hold& hold_;
};

/// Each rank's own thread looks and finds nothing. If it slept then without the call, no rank would
/// ever send what wakes another one.
TEST(Group, CallsThatComeWhileTheOwnThreadsLookAreDone) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::vector<HoldingIo::Hold> holds(plan.world);
  std::latch have_started(plan.world);
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    HoldingIo::Hold& hold = holds[rank];
    Group group(options_of(plan, rank, address),
                std::make_unique<HoldingIo>(fabric.open(rank), hold));
    std::vector<float> data(100, 1);
    pollfd done{group.descriptor(), POLLIN, 0};
    hold.has_begun.wait();
    Pending pending = group.start_all_reduce(data.data(), data.data(), data.size(), DataType::f32,
                                             Operation::sum);
    have_started.arrive_and_wait();
    hold.is_over.count_down();
    EXPECT_EQ(poll(&done, 1, 5'000), 1);
    pending.wait();
  }));
}

/// Counts how often anybody looks for frames.
class CountingIo : public ForwardingIo {
 public:
  CountingIo(std::unique_ptr<FrameIo> device, std::atomic<unsigned>& looks)
      : ForwardingIo(std::move(device)), looks_(looks) {}

  std::size_t receive(FrameReader& reader) override {
    ++looks_;
    return ForwardingIo::receive(reader);
  }

 private:
  std::atomic<unsigned>& looks_;
};

/// It sleeps, whoever drives: between calls for as long as nothing comes, and during a call but for
/// a look every 50 ms. Frames that come are repeats of one packet, whose rank waits, every 40 ms.
TEST(Group, ARankWithNothingToDoHardlyEverLooks) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<unsigned> looks = 0;
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    auto device = fabric.open(rank);
    if (rank == 0) {
      device = std::make_unique<CountingIo>(std::move(device), looks);
    }
    Group group(options_of(plan, rank, address), std::move(device));
    std::vector<float> data(100, 1);
    const auto start = [&] {
      return group.start_all_reduce(data.data(), data.data(), data.size(), DataType::f32,
                                    Operation::sum);
    };
    start().wait();
    std::this_thread::sleep_for(milliseconds(300));
    if (rank == 0) {
      looks = 0;
      std::this_thread::sleep_for(milliseconds(500));
      EXPECT_LT(looks, 10U) << "between calls";
      looks = 0;
      Pending driven_by_the_group = start();
      std::this_thread::sleep_for(milliseconds(500));
      EXPECT_LT(looks, 200U) << "while rank 1 is late, without a waiting thread";
      looks = 0;
      EXPECT_FALSE(driven_by_the_group.wait_for(milliseconds(500)));
      EXPECT_LT(looks, 200U) << "with one";
      driven_by_the_group.wait();
    } else {
      std::this_thread::sleep_for(milliseconds(1700));
      start().wait();
    }
  }));
}

/// Tells the caller's looks for frames from those of the group's own thread.
class LookersIo : public ForwardingIo {
 public:
  struct Looks {
    std::atomic<unsigned> by_caller = 0;
    std::atomic<pid_t> own_thread = 0; // once it has looked
  };

  /// The caller is the thread that makes this.
  LookersIo(std::unique_ptr<FrameIo> device, Looks& looks)
      : ForwardingIo(std::move(device)), looks_(looks) {}

  std::size_t receive(FrameReader& reader) override {
    if (gettid() == caller_) {
      ++looks_.by_caller;
    } else {
      looks_.own_thread = gettid();
    }
    return ForwardingIo::receive(reader);
  }

 private:
  const pid_t caller_ = gettid();
  Looks& looks_;
};

/// How often a thread of this process has slept.
std::string sleeps_of(pid_t thread) {
  std::ifstream status(fmt::format("/proc/self/task/{}/status", thread));
  std::string line;
  while (std::getline(status, line) && !line.starts_with("voluntary_ctxt_switches:")) {
  }
  return line;
}

/// To wake it costs more than the rest of a small call.
TEST(Group, ACallerThatDrivesDoesNotWakeTheOwnThread) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  LookersIo::Looks looks;
  const auto caller_goes_on = [&looks] {
    return test::comes_true(
        [&, before = looks.by_caller.load()] { return looks.by_caller >= before + 6; });
  };
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    auto device = fabric.open(rank);
    if (rank == 0) {
      device = std::make_unique<LookersIo>(std::move(device), looks);
    }
    Group group(options_of(plan, rank, address), std::move(device));
    ASSERT_TRUE(test::comes_true([&] { return looks.own_thread != 0; }));
    if (rank == 1) { // late
      EXPECT_TRUE(test::comes_true(
          [&] {
            const std::string before = sleeps_of(looks.own_thread);
            return caller_goes_on() && !before.empty() && sleeps_of(looks.own_thread) == before;
          },
          std::chrono::seconds(10)));
    }
    std::vector<float> data(100, 1);
    group.all_reduce(data.data(), data.data(), data.size(), DataType::f32, Operation::max);
  }));
}

/// Runs a pair of ranks; rank 1 comes to its first call 300 ms after rank 0.
void run_late_pair(const std::function<void(GroupOptions&)>& change,
                   const std::function<void(Group&, std::vector<float>&)>& call) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    change(options);
    Group group(options, fabric.open(rank));
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(300));
    }
    std::vector<float> data(1000, static_cast<float>(rank + 1));
    call(group, data);
    EXPECT_EQ(data, std::vector<float>(1000, 3));
  }));
}

TEST(Group, AWaitWithTheLongestTimeoutIsAWait) {
  const auto unchanged = [](GroupOptions&) {};
  run_late_pair(unchanged, [](Group& group, std::vector<float>& data) {
    Pending pending = group.start_all_reduce(data.data(), data.data(), data.size(), DataType::f32,
                                             Operation::sum);
    EXPECT_FALSE(pending.wait_for(milliseconds::min()) && group.rank() == 0);
    EXPECT_TRUE(pending.wait_for(milliseconds::max()));
  });
}

TEST(Group, TheLongestTimeoutIsATimeout) {
  const auto patient = [](GroupOptions& options) { options.timeout = milliseconds::max(); };
  run_late_pair(patient, [](Group& group, std::vector<float>& data) {
    group.all_reduce(data.data(), data.data(), data.size(), DataType::f32, Operation::sum);
  });
}

/// A number of elements whose bytes are four modulo 2^64.
TEST(Group, ACountThatNoMemoryHoldsIsRefused) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(4, 1);
    for (const std::size_t count : {(std::size_t{1} << 62) + 1, std::size_t{1} << 61}) {
      try {
        group.all_reduce(data.data(), data.data(), count, DataType::f32, Operation::sum);
        ADD_FAILURE() << count << " elements were reduced";
      } catch (const std::invalid_argument& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("count: found " + std::to_string(count)))
            << error.what();
      }
    }
    group.all_reduce(data.data(), data.data(), 4, DataType::f32, Operation::sum);
    EXPECT_EQ(data, std::vector<float>(4, 2));
  }));
}

TEST(Group, OptionsOutOfRangeAreNamed) {
  struct Case {
    std::function<void(GroupOptions&)> hurt;
    const char* option;
  };

  const std::vector<Case> cases{
      {[](auto& o) { o.world = 0; }, "world"},
      {[](auto& o) { o.world = 257; }, "world"},
      {[](auto& o) { o.world = 1, o.rank = 1; }, "rank"},
      {[](auto& o) { o.rank = 2; }, "rank"},
      {[](auto& o) { o.rings = {}; }, "rings"},
      {[](auto& o) {
         o.rings = {1, 1};
       },
       "rings"},
      {[](auto& o) { o.rendezvous = "here"; }, "rendezvous"},
      {[](auto& o) { o.window = 0; }, "window"},
      {[](auto& o) { o.path_mtu = 1500; }, "path_mtu"},
      {[](auto& o) { o.message_bytes = 47; }, "message_bytes"},
      {[](auto& o) { o.window = 1024, o.message_bytes = 1 << 30; }, "window"}, // 2^33 packets
      {[](auto& o) { o.window = 513, o.path_mtu = 4096, o.message_bytes = 1 << 24; }, "window"},
      {[](auto& o) { o.world = 256, o.fallback = Fallback::ring, o.message_bytes = 1 << 20; },
       "window"}, // 2048 slots
      {[](auto& o) { o.ack_timeout = milliseconds::max(); }, "ack_timeout"},
      {[](auto& o) { o.ack_timeout = milliseconds(-1); }, "ack_timeout"},
      {[](auto& o) { o.timeout = milliseconds(0); }, "timeout"},
      {[](auto& o) { o.retry_count = 8; }, "retry_count"},
      {[](auto& o) { o.loss = 1; }, "loss"},
      {[](auto& o) { o.ip = "10.0.0"; }, "ip"},
      {[](auto& o) { o.mac = "02"; }, "mac"},
  };
  const GroupOptions good = options_of({}, 0, "127.0.0.1:1");
  EXPECT_EQ(find_defect(good), "");
  for (const Case& entry : cases) {
    GroupOptions options = good;
    entry.hurt(options);
    EXPECT_TRUE(find_defect(options).starts_with(entry.option)) << find_defect(options);
  }
  GroupOptions largest = good;
  largest.window = 512; // 2^10 messages of 2^12 packets: all that the protocol allows
  largest.path_mtu = 4096;
  largest.message_bytes = 1 << 24;
  largest.timeout = milliseconds::max();
  EXPECT_EQ(find_defect(largest), "");
}

} // namespace
} // namespace weir::host::host_test
