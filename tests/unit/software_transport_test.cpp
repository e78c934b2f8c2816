// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/software_transport.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>

namespace weir::host::software_transport_test {
namespace {

/// Keeps what it is told to keep, and carries nothing.
class Deaf : public FrameIo {
 public:
  explicit Deaf(QueuePairRange& kept) : kept_(kept) {}

  wire::MacAddress mac() const override { return {}; }

  void keep_only(QueuePairRange queue_pairs) override { kept_ = queue_pairs; }

  std::size_t receive(FrameReader&) override { return 0; }

  std::span<std::uint8_t> reserve(std::size_t) override { return {}; }

  void commit(std::size_t) override {}

  void flush() override {}

  int descriptor() const override { return kNoDescriptor; }

 private:
  QueuePairRange& kept_;
};

/// Groups of one host find their packets by the queue pair, and none knows of the others. Of 1000
/// draws from 2^24 five repeat an earlier one in one of 5e9 runs; of 2^12, a hundred do in every
/// run (birthday bound).
TEST(SoftwareTransport, DrawsQueuePairsThatHardlyMeet) {
  constexpr std::size_t kDraws = 1000;
  constexpr std::size_t kChannels = 2;
  constexpr std::uint32_t kMulticast = 0xffffff; // IBTA §10.5
  QueuePairRange kept;
  SoftwareTransport transport({.channels = kChannels, .slots = 1, .slot_bytes = 256}, {},
                              std::make_unique<Deaf>(kept));
  std::set<std::uint32_t> drawn;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    transport.renew(Delivery::by_send);
    drawn.insert(transport.queue_pair(0));
    EXPECT_GE(transport.queue_pair(0), 2U); // 0 and 1 are for management
    EXPECT_EQ(transport.queue_pair(1), transport.queue_pair(0) + 2);
    EXPECT_LT(transport.queue_pair(1) + 1, kMulticast);
    EXPECT_EQ(kept.first, transport.queue_pair(0));
    EXPECT_EQ(kept.count, 2 * kChannels); // each to send and one to receive
  }
  EXPECT_GT(drawn.size(), kDraws - 5);
}

} // namespace
} // namespace weir::host::software_transport_test
