// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Jobs whose ranks are threads of one process: their rendezvous, their options, and how each
/// ended.

#include "host/api/group.hpp"
#include "host/base/stream.hpp"
#include "host/transport/frame_io.hpp"
#include "host_fabric.hpp"
#include "support/free_address.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace weir::host {

using std::chrono::milliseconds;
using test::Bytes;
using test::free_address;
using test::HostFabric;

constexpr std::uint32_t kSession = 7;

/// How a rank ended: the error, if any.
struct Ending {
  std::optional<ErrorCode> code;
  std::optional<std::uint16_t> rank;
  std::string text;
};

inline Ending ending_of(const std::function<void()>& body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    return {error.code(), error.rank(), error.what()};
  }
}

/// Runs body(rank) for every rank in a thread of its own.
inline std::vector<Ending> run_ranks(std::uint16_t world,
                                     const std::function<void(std::uint16_t)>& body) {
  std::vector<Ending> endings(world);
  std::vector<std::thread> threads;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] { endings[rank] = ending_of([&] { body(rank); }); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return endings;
}

inline void expect_all(const std::vector<Ending>& endings, ErrorCode code) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) {
    ASSERT_TRUE(endings[rank].code) << "rank " << rank << " ended well";
    EXPECT_EQ(*endings[rank].code, code) << "rank " << rank << ": " << endings[rank].text;
  }
}

inline void expect_none(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) {
    EXPECT_FALSE(endings[rank].code) << "rank " << rank << ": " << endings[rank].text;
  }
}

/// Every rank gives its number plus one.
inline void expect_sum(Group& group, std::size_t count = 3000) {
  std::vector<std::uint32_t> data(count, group.rank() + 1U);
  group.all_reduce(data.data(), data.data(), count, DataType::u32, Operation::sum);
  const std::uint32_t world = group.world();
  EXPECT_EQ(data, std::vector<std::uint32_t>(count, world * (world + 1) / 2));
}

/// A job of threads around one fabric.
struct JobPlan {
  std::uint16_t world = 2;
  std::vector<std::uint32_t> rings{1};
  std::uint64_t patience_ms = 600'000; // of the rings
  std::uint32_t window = 3;
  std::uint32_t message_bytes = 1000;
  std::uint32_t mtu = 256;
  double loss = 0;
  std::uint64_t seed = 1;
  Fallback fallback = Fallback::none;
};

inline std::string ip_of(std::size_t rank) {
  return "10.7.0." + std::to_string(rank + 1);
}

inline GroupOptions options_of(const JobPlan& plan, std::uint16_t rank,
                               const std::string& address) {
  GroupOptions options;
  options.rings = plan.rings;
  options.rank = rank;
  options.world = plan.world;
  options.rendezvous = address;
  options.timeout = milliseconds(10'000);
  options.window = plan.window;
  options.message_bytes = plan.message_bytes;
  options.path_mtu = plan.mtu;
  options.ip = ip_of(rank);
  options.ack_timeout = milliseconds(40);
  options.epoch = 1; // every fabric has a new switch
  options.loss = plan.loss;
  options.fallback = plan.fallback;
  options.seed = plan.seed * 1000 + rank;
  return options;
}

inline std::vector<ring::RingSpec> rings_of(const JobPlan& plan) {
  std::vector<ring::RingSpec> rings;
  for (const std::uint32_t id : plan.rings) {
    ring::RingSpec ring{.id = id,
                        .window = plan.window,
                        .max_message_bytes = plan.message_bytes,
                        .mtu = static_cast<std::uint16_t>(plan.mtu),
                        .patience_ms = plan.patience_ms,
                        .members = {}};
    for (std::size_t rank = 0; rank < plan.world; ++rank) {
      ring.members.push_back({*wire::parse_ip(ip_of(rank)), std::nullopt});
    }
    rings.push_back(ring);
  }
  return rings;
}

/// Frames of another device.
class ForwardingIo : public FrameIo {
 public:
  explicit ForwardingIo(std::unique_ptr<FrameIo> device) : device_(std::move(device)) {}

  wire::MacAddress mac() const override { return device_->mac(); }

  std::size_t receive(FrameReader& reader) override { return device_->receive(reader); }

  std::span<std::uint8_t> reserve(std::size_t bytes) override { return device_->reserve(bytes); }

  void commit(std::size_t frame_bytes) override { device_->commit(frame_bytes); }

  void flush() override { device_->flush(); }

  int descriptor() const override { return device_->descriptor(); }

 private:
  std::unique_ptr<FrameIo> device_;
};

} // namespace weir::host
