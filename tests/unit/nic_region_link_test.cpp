// SPDX-License-Identifier: BSD-3-Clause

/// A member's connection to a region over a NIC, whose queue pair does what the test says.

#include "host/region/nic_region_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <gmock/gmock.h>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::host::nic_region_link_test {
namespace {

using endpoint::SendKind;
using endpoint::Status;
using testing::ElementsAre;

constexpr std::uint64_t kBase = 0x1234'5678'0000;
constexpr std::uint32_t kKey = 0xabc0;
constexpr std::uint32_t kQueuePair = 0x77;
constexpr std::uint32_t kExposedKey = 0xe0;
constexpr std::uint32_t kStagingKey = 0x57;
constexpr std::uint32_t kUserKey = 0x05e7;
constexpr std::uint32_t kDepth = 4;
constexpr std::uint32_t kReceives = 3;
constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kStaged = 32 << 10;

struct Posted {
  endpoint::SendRequest work;
  std::uint32_t key = 0;
  std::vector<std::uint8_t> data; // of a write, when it was posted
};

/// What has been asked of the connection, and what comes of it. Shared with the test, since the
/// link owns the connection.
struct Script {
  NicConnectionPlan plan;
  std::uint8_t gid_index = 0;
  NicPeer peer;
  std::vector<Posted> posted;
  std::size_t receives = 0;
  std::size_t receives_when_connected = 0;
  std::vector<NicCompletion> completions; // of the next poll()
  std::span<const std::uint8_t> user_memory;
  std::uint32_t longest_message = 1U << 31U;
  bool is_closed = false;
  bool fails = false;
  unsigned arms = 0;

  void complete(std::size_t requests) { completions.resize(completions.size() + requests); }

  void end_with(Status status) {
    completions.push_back({.status = status, .device_said = std::string(name_of(status))});
  }
};

class ScriptedConnection : public NicConnection {
 public:
  explicit ScriptedConnection(Script& script) : script_(script) {}

  wire::IpAddress ip() const override { return *wire::parse_ip("10.0.0.1"); }

  std::uint32_t queue_pair() const override { return kQueuePair; }

  std::uint32_t exposed_key() const override { return kExposedKey; }

  std::uint32_t longest_message() const override { return script_.longest_message; }

  std::optional<std::uint32_t> key_of(std::span<const std::uint8_t> bytes) const override {
    const std::array known{
        std::pair{std::span<const std::uint8_t>(script_.plan.exposed), kExposedKey},
        std::pair{std::span<const std::uint8_t>(script_.plan.staging), kStagingKey},
        std::pair{script_.user_memory, kUserKey}};
    for (const auto& [memory, key] : known) {
      if (bytes.data() >= memory.data() &&
          bytes.data() + bytes.size() <= memory.data() + memory.size()) {
        return key;
      }
    }
    return std::nullopt;
  }

  void connect(const NicPeer& peer) override {
    script_.peer = peer;
    script_.receives_when_connected = script_.receives;
  }

  void post(const endpoint::SendRequest& request, std::uint32_t key) override {
    if (script_.fails) {
      throw Error(ErrorCode::transport_failure, std::nullopt, "the device is gone");
    }
    script_.posted.push_back(
        {.work = request, .key = key, .data = {request.data.begin(), request.data.end()}});
  }

  void post_receive() override { ++script_.receives; }

  std::span<const NicCompletion> poll() override {
    done_ = std::exchange(script_.completions, {});
    return done_;
  }

  void close() override { script_.is_closed = true; }

  int descriptor() const override { return 5; }

  bool arm() override {
    ++script_.arms;
    return true;
  }

 private:
  Script& script_;
  std::vector<NicCompletion> done_;
};

class ScriptedNic : public Nic {
 public:
  explicit ScriptedNic(Script& script) : script_(script) {}

  std::unique_ptr<NicConnection> open_connection(const NicConnectionPlan& plan,
                                                 std::uint8_t gid_index) override {
    script_.plan = plan;
    script_.gid_index = gid_index;
    return std::make_unique<ScriptedConnection>(script_);
  }

  std::unique_ptr<Transport> open_transport(const TransportPlan& /*plan*/,
                                            std::uint8_t /*gid_index*/) override {
    throw std::logic_error("no transport is due");
  }

  std::unique_ptr<UserMemory> register_memory(std::span<std::uint8_t> /*bytes*/) override {
    throw std::logic_error("no memory is due");
  }

  std::unique_ptr<UserMemory> register_dmabuf(const DmabufRange& /*range*/,
                                              std::span<std::uint8_t> /*mapped*/) override {
    throw std::logic_error("no memory is due");
  }

 private:
  Script& script_;
};

class NicLink : public testing::Test, public RegionListener {
 public:
  NicLink() {
    std::iota(data_.begin(), data_.end(), std::uint8_t{1});
    const MadeRegion made{.ip = *wire::parse_ip("10.0.0.254"), .base = kBase, .key = kKey};
    link_.connect(made, {.queue_pair = 0x99, .first_psn = 0xfffffe, .token = {}});
  }

  void completed() override { ++completed_; }

  void notified(std::uint32_t immediate) override { immediates_.push_back(immediate); }

  static endpoint::SendRequest write_of(std::span<const std::uint8_t> data) {
    return {.kind = SendKind::write, .data = data, .remote_address = kBase, .remote_key = kKey};
  }

  static endpoint::SendRequest read_to(std::span<std::uint8_t> target) {
    endpoint::SendRequest work{.kind = SendKind::read, .remote_address = kBase, .remote_key = kKey};
    work.target = target;
    return work;
  }

  std::vector<std::size_t> posted_bytes() const {
    std::vector<std::size_t> bytes;
    for (const Posted& posted : script_.posted) {
      bytes.push_back(posted.data.size() + posted.work.target.size());
    }
    return bytes;
  }

 protected:
  std::vector<std::uint8_t> copy_ = std::vector<std::uint8_t>(4096);
  std::vector<std::uint8_t> data_ = std::vector<std::uint8_t>(3 * kMiB);
  Script script_;
  ScriptedNic nic_{script_};
  NicRegionLink link_{{.memory = copy_,
                       .path_mtu = 1024,
                       .reads = 5,
                       .send_depth = kDepth,
                       .receive_depth = kReceives,
                       .ack_timeout_exponent = 14,
                       .retry_count = 6},
                      nic_,
                      3};
  std::size_t completed_ = 0;
  std::vector<std::uint32_t> immediates_;
};

TEST_F(NicLink, GivesTheSwitchTheQueuePairAndTheCopy) {
  const RegionMember member = link_.member();
  EXPECT_EQ(wire::to_string(member.ip), "10.0.0.1");
  EXPECT_EQ(member.queue_pair, kQueuePair);
  EXPECT_EQ(member.base, reinterpret_cast<std::uint64_t>(copy_.data()));
  EXPECT_EQ(member.key, kExposedKey);
  EXPECT_EQ(member.ack_timeout, 14);
  EXPECT_EQ(script_.plan.exposed.data(), copy_.data());
  EXPECT_EQ(script_.plan.exposed.size(), copy_.size());
  EXPECT_EQ(script_.plan.reads, 5U);
  EXPECT_EQ(script_.gid_index, 3);
}

TEST_F(NicLink, ConnectsToTheSwitchWithReceivesPosted) {
  EXPECT_EQ(wire::to_string(script_.peer.ip), "10.0.0.254");
  EXPECT_EQ(script_.peer.queue_pair, 0x99U);
  EXPECT_EQ(script_.peer.first_psn, 0xfffffeU);
  EXPECT_EQ(script_.peer.own_psn, link_.member().first_psn);
  EXPECT_EQ(script_.peer.ack_timeout, 14);
  EXPECT_EQ(script_.peer.retry_count, 6);
  EXPECT_EQ(script_.receives_when_connected, kReceives);
}

/// Memory that the device knows is read and written where it is.
TEST_F(NicLink, PostsRegisteredMemoryInPlace) {
  script_.user_memory = data_;
  EXPECT_TRUE(link_.post(write_of(std::span(data_).first(100))));
  EXPECT_TRUE(link_.post(read_to(std::span(copy_).first(64))));
  ASSERT_EQ(script_.posted.size(), 2U);
  EXPECT_EQ(script_.posted[0].work.data.data(), data_.data());
  EXPECT_EQ(script_.posted[0].key, kUserKey);
  EXPECT_EQ(script_.posted[1].work.target.data(), copy_.data());
  EXPECT_EQ(script_.posted[1].key, kExposedKey);
}

TEST_F(NicLink, CopiesOtherMemoryThroughStaging) {
  std::array<std::uint8_t, 64> sums{};
  EXPECT_TRUE(link_.post(write_of(std::span(data_).first(100))));
  EXPECT_TRUE(link_.post(read_to(sums)));
  ASSERT_EQ(script_.posted.size(), 2U);
  EXPECT_EQ(script_.posted[0].key, kStagingKey);
  EXPECT_TRUE(std::equal(script_.posted[0].data.begin(), script_.posted[0].data.end(),
                         data_.begin(), data_.begin() + 100));
  const std::span<std::uint8_t> target = script_.posted[1].work.target;
  EXPECT_EQ(script_.posted[1].key, kStagingKey);
  ASSERT_EQ(target.size(), sums.size());
  EXPECT_NE(target.data(), script_.posted[0].work.data.data()) << "both are under way";
  std::ranges::fill(target, std::uint8_t{7});
  script_.complete(1);
  link_.poll(*this);
  EXPECT_EQ(sums[0], 0) << "not complete";
  script_.complete(1);
  link_.poll(*this);
  EXPECT_THAT(sums, testing::Each(7));
  EXPECT_EQ(completed_, 2U);
}

/// An immediate must come behind all that its write wrote (docs/regions.md).
TEST_F(NicLink, PostsALongWriteInPiecesAndItsImmediateWithTheLast) {
  script_.user_memory = data_;
  endpoint::SendRequest work = write_of(std::span(data_).first(2 * kMiB + 5));
  work.kind = SendKind::write_immediate;
  work.immediate = 0x02000011;
  work.fence = endpoint::Fence::after_reads;
  EXPECT_TRUE(link_.post(work));
  EXPECT_THAT(posted_bytes(), ElementsAre(kMiB, kMiB, 5U));
  std::uint64_t offset = 0;
  for (const Posted& posted : script_.posted) {
    EXPECT_EQ(posted.work.remote_address, kBase + offset);
    EXPECT_EQ(posted.work.data.data(), data_.data() + offset);
    EXPECT_EQ(posted.work.fence, endpoint::Fence::after_reads);
    offset += posted.data.size();
  }
  EXPECT_EQ(script_.posted[0].work.kind, SendKind::write);
  EXPECT_EQ(script_.posted[1].work.kind, SendKind::write);
  EXPECT_EQ(script_.posted[2].work.kind, SendKind::write_immediate);
  EXPECT_EQ(script_.posted[2].work.immediate, 0x02000011U);
  const std::uint64_t before = link_.progress();
  script_.complete(2);
  EXPECT_TRUE(link_.poll(*this));
  EXPECT_EQ(completed_, 0U);
  EXPECT_NE(link_.progress(), before) << "pieces are signs of life";
  script_.complete(1);
  link_.poll(*this);
  EXPECT_EQ(completed_, 1U);
}

TEST_F(NicLink, KeepsToTheDevicesLongestMessage) {
  script_.user_memory = data_;
  script_.longest_message = 4096;
  link_.post(write_of(std::span(data_).first(4097)));
  EXPECT_THAT(posted_bytes(), ElementsAre(4096U, 1U));
}

/// Not more pieces than the send queue has room for, and each slot of staging only when its last
/// piece has ended.
TEST_F(NicLink, FeedsTheSendQueueAsPiecesEnd) {
  std::vector<std::uint8_t> read(6 * kStaged);
  link_.post(read_to(read));
  EXPECT_THAT(posted_bytes(), ElementsAre(kStaged, kStaged, kStaged, kStaged));
  for (std::uint8_t piece = 0; piece < 6; ++piece) {
    std::ranges::fill(script_.posted[piece].work.target, std::uint8_t(piece + 1));
    script_.complete(1);
    link_.poll(*this);
    EXPECT_EQ(script_.posted.size(), std::min(6U, kDepth + piece + 1U));
  }
  EXPECT_EQ(completed_, 1U);
  for (std::size_t piece = 0; piece < 6; ++piece) {
    EXPECT_EQ(read[piece * kStaged], piece + 1);
    EXPECT_EQ(read[(piece + 1) * kStaged - 1], piece + 1);
  }
}

TEST_F(NicLink, TakesAsManyRequestsAsTheQueueIsDeep) {
  for (std::uint32_t request = 0; request < kDepth; ++request) {
    EXPECT_TRUE(link_.post(write_of({}))); // an empty one is one piece, too
  }
  EXPECT_FALSE(link_.post(write_of({})));
  EXPECT_THAT(posted_bytes(), ElementsAre(0U, 0U, 0U, 0U));
  script_.complete(1);
  link_.poll(*this);
  EXPECT_EQ(completed_, 1U);
  EXPECT_TRUE(link_.post(write_of({})));
  EXPECT_EQ(script_.posted.size(), kDepth + 1);
}

TEST_F(NicLink, TellsImmediates) {
  using enum endpoint::CompletionKind;
  script_.completions = {{.kind = receive_write_immediate, .immediate = 0x01000005},
                         {.kind = receive_write_immediate, .immediate = 6}};
  link_.poll(*this);
  EXPECT_THAT(immediates_, ElementsAre(0x01000005U, 6U));
  link_.post_receive();
  EXPECT_EQ(script_.receives, kReceives + 1);
}

/// A receive's flush may be polled before the request that has failed.
TEST_F(NicLink, FailsByTheFirstStatusThatTellsWhy) {
  link_.post(write_of({}));
  EXPECT_FALSE(link_.failure());
  script_.end_with(Status::flushed);
  link_.poll(*this);
  ASSERT_TRUE(link_.failure());
  script_.end_with(Status::retry_exceeded);
  script_.end_with(Status::flushed);
  script_.end_with(Status::remote_access);
  link_.poll(*this);
  EXPECT_EQ(completed_, 0U);
  EXPECT_EQ(link_.failure()->code(), ErrorCode::retry_exceeded);
  EXPECT_EQ(std::string(link_.failure()->what()),
            "the connection to the region at 10.0.0.254 failed: " +
                std::string(name_of(Status::retry_exceeded)));
}

TEST_F(NicLink, PostsNothingMoreWhenItHasFailed) {
  script_.end_with(Status::remote_operational);
  link_.poll(*this);
  EXPECT_EQ(link_.failure()->code(), ErrorCode::transport_failure);
  EXPECT_TRUE(link_.post(write_of({}))) << "its end comes by the region's";
  link_.post_receive();
  EXPECT_TRUE(script_.posted.empty());
  EXPECT_EQ(script_.receives, kReceives);
}

/// No call of the program's, and no thread of ours, must see the device's exception.
TEST_F(NicLink, FailsWithADeviceThatRefuses) {
  script_.fails = true;
  EXPECT_TRUE(link_.post(write_of({})));
  ASSERT_TRUE(link_.failure());
  EXPECT_STREQ(link_.failure()->what(), "the device is gone");
  EXPECT_TRUE(link_.arm()) << "a failed one is not polled in a circle";
  EXPECT_EQ(script_.arms, 1U) << "and its events are taken";
}

TEST_F(NicLink, AsksAClosedConnectionForNothing) {
  link_.close();
  EXPECT_TRUE(script_.is_closed);
  script_.fails = true;
  EXPECT_TRUE(link_.arm());
  EXPECT_EQ(script_.arms, 0U);
  EXPECT_FALSE(link_.failure());
}

} // namespace
} // namespace weir::host::nic_region_link_test
