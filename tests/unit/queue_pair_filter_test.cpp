// SPDX-License-Identifier: BSD-3-Clause

/// The filter runs in the kernel, which takes it for any kind of socket. What is due comes from the
/// bytes of soft-RoCE's frames at fixed offsets, not from wire::parse().

#include "host/transport/queue_pair_filter.hpp"
#include "support/captured_frames.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::host::queue_pair_filter_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Two ends of which one has the filter.
class Filtered {
 public:
  explicit Filtered(QueuePairRange queue_pairs) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
    QueuePairFilter program = filter_for(queue_pairs);
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    EXPECT_EQ(setsockopt(ends_[1], SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), 0);
  }

  ~Filtered() {
    close(ends_[0]);
    close(ends_[1]);
  }

  Filtered(const Filtered&) = delete;
  Filtered& operator=(const Filtered&) = delete;

  /// Whether all of it comes through.
  bool keeps(const Bytes& frame) {
    EXPECT_EQ(send(ends_[0], frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
    Bytes received(frame.size() + 1);
    const ssize_t bytes = recv(ends_[1], received.data(), received.size(), 0);
    EXPECT_TRUE(bytes == -1 || bytes == static_cast<ssize_t>(frame.size()));
    return bytes >= 0;
  }

 private:
  std::array<int, 2> ends_{};
};

constexpr std::uint32_t kQueuePair = 0x00abcd;

void append(Bytes& bytes, std::initializer_list<unsigned> values) {
  for (const unsigned value : values) {
    bytes.push_back(static_cast<std::uint8_t>(value));
  }
}

Bytes ethernet(unsigned type) {
  Bytes frame(12, 0x02);
  append(frame, {type >> 8, type & 0xff});
  return frame;
}

void append_udp(Bytes& frame, unsigned port, std::uint32_t queue_pair) {
  append(frame, {0xc0, 0x01, port >> 8, port & 0xff, 0, 24, 0, 0}); // RFC 768
  // IBTA §9.2: a BTH of an ACK. The byte before the queue pair is reserved, and may be set.
  append(frame, {0x11, 0, 0xff, 0xff, 0x40, queue_pair >> 16, queue_pair >> 8 & 0xff,
                 queue_pair & 0xff, 0, 0, 0, 1});
  frame.insert(frame.end(), 8, 0); // AETH, ICRC
}

/// With `options` four-byte words of options (RFC 791 §3.1).
Bytes ipv4(unsigned options, unsigned protocol, unsigned port, std::uint32_t queue_pair) {
  Bytes frame = ethernet(0x0800);
  append(frame, {0x45 + options, 0, 0, 48 + 4 * options, 0, 0, 0x40, 0, 64, protocol, 0, 0});
  append(frame, {10, 0, 0, 1, 10, 0, 0, 2});
  frame.insert(frame.end(), 4 * std::size_t{options}, 1);
  append_udp(frame, port, queue_pair);
  return frame;
}

Bytes ipv6(unsigned next_header, std::uint32_t queue_pair) {
  Bytes frame = ethernet(0x86dd);
  append(frame, {0x60, 0, 0, 0, 0, 28, next_header, 64}); // RFC 8200 §3
  frame.insert(frame.end(), 32, 0xfd);
  append_udp(frame, 4791, queue_pair);
  return frame;
}

TEST(QueuePairFilter, KeepsWhatIsForThemInTheFramesOfSoftRoce) {
  for (const char* const name : {"ring4-f32-mtu1024-psnwrap.pcap", "roce-mix.pcap"}) {
    const std::vector<Bytes> frames = test::captured_frames(name);
    ASSERT_GT(frames.size(), 100u) << name;
    std::optional<std::uint32_t> queue_pair;
    std::size_t kept = 0;
    for (const Bytes& frame : frames) {
      // Ethernet, IPv4 without options, UDP to port 4791; the queue pair is behind the BTH's fifth
      // byte.
      const bool is_roce = frame.size() > 54 && frame[12] == 0x08 && frame[13] == 0x00 &&
                           frame[23] == 17 && frame[36] == 0x12 && frame[37] == 0xb7;
      const std::uint32_t destination =
          is_roce ? std::uint32_t{frame[47]} << 16 | std::uint32_t{frame[48]} << 8 | frame[49] : 0;
      if (destination > 1 && !queue_pair) {
        queue_pair = destination;
      }
      if (!queue_pair) {
        continue;
      }
      Filtered filter({*queue_pair, 1});
      const bool is_due = is_roce && destination == *queue_pair;
      EXPECT_EQ(filter.keeps(frame), is_due) << name;
      kept += is_due ? 1 : 0;
    }
    EXPECT_GT(kept, 10u) << name;
    EXPECT_LT(kept, frames.size()) << name;
  }
}

TEST(QueuePairFilter, TakesTheRangeAndNoMore) {
  Filtered filter({kQueuePair, 4});
  for (const auto& [queue_pair, is_due] : {std::pair{kQueuePair - 1, false},
                                           {kQueuePair, true},
                                           {kQueuePair + 3, true},
                                           {kQueuePair + 4, false},
                                           {0x010000 | kQueuePair, false},
                                           {1u, false}}) {
    EXPECT_EQ(filter.keeps(ipv4(0, 17, 4791, queue_pair)), is_due) << std::hex << queue_pair;
    EXPECT_EQ(filter.keeps(ipv6(17, queue_pair)), is_due) << std::hex << queue_pair;
  }
  Filtered last({0xfffffe, 2});
  EXPECT_TRUE(last.keeps(ipv4(0, 17, 4791, 0xffffff)));
  EXPECT_FALSE(last.keeps(ipv4(0, 17, 4791, 0xfffffd)));
}

TEST(QueuePairFilter, FindsTheQueuePairBehindOptions) {
  Filtered filter({kQueuePair, 1});
  for (const unsigned options : {1u, 5u, 10u}) {
    EXPECT_TRUE(filter.keeps(ipv4(options, 17, 4791, kQueuePair))) << options;
    EXPECT_FALSE(filter.keeps(ipv4(options, 17, 4791, kQueuePair + 1))) << options;
  }
}

TEST(QueuePairFilter, DropsWhatIsNoRoce) {
  Filtered filter({kQueuePair, 1});
  EXPECT_FALSE(filter.keeps(ipv4(0, 6, 4791, kQueuePair))) << "TCP";
  EXPECT_FALSE(filter.keeps(ipv4(0, 17, 4790, kQueuePair))) << "another port";
  EXPECT_FALSE(filter.keeps(ipv6(6, kQueuePair))) << "TCP";
  EXPECT_FALSE(filter.keeps(Bytes(60, 0))) << "an 802.3 length";
  Bytes arp = ethernet(0x0806);
  arp.resize(60);
  EXPECT_FALSE(filter.keeps(arp));
}

TEST(QueuePairFilter, KeepsWhatItDoesNotLookInto) {
  Filtered filter({kQueuePair, 1});
  for (const unsigned type : {0x8100u, 0x88a8u, 0x9100u, 0x8915u}) {
    Bytes frame = ethernet(type);
    frame.resize(60);
    EXPECT_TRUE(filter.keeps(frame)) << std::hex << type;
  }
}

TEST(QueuePairFilter, DropsAFrameThatEndsBeforeItsQueuePair) {
  Filtered filter({kQueuePair, 1});
  for (Bytes whole :
       {ipv4(0, 17, 4791, kQueuePair), ipv4(3, 17, 4791, kQueuePair), ipv6(17, kQueuePair)}) {
    const std::size_t end = whole.size() - 12; // PSN, AETH and ICRC lie behind it
    for (std::size_t bytes = 1; bytes < end; ++bytes) {
      EXPECT_FALSE(filter.keeps(Bytes(whole.begin(), whole.begin() + static_cast<long>(bytes))))
          << bytes;
    }
    whole.resize(end);
    EXPECT_TRUE(filter.keeps(whole));
  }
}

} // namespace
} // namespace weir::host::queue_pair_filter_test
