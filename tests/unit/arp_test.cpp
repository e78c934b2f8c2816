// SPDX-License-Identifier: BSD-3-Clause

/// Who asks for an address, and the answer. The frames are scapy's.

#include "wire/arp.hpp"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace weir::wire::arp_test {
namespace {

using Frame = std::vector<std::uint8_t>;

const Frame kRequest{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x30, 0x00, 0x00, 0x00,
                     0x01, 0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01,
                     0x02, 0x30, 0x00, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x01, 0x00,
                     0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0xfe};
const Frame kReply{0x02, 0x30, 0x00, 0x00, 0x00, 0x01, 0x02, 0x57, 0x45, 0x00, 0x00,
                   0x01, 0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x02,
                   0x02, 0x57, 0x45, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0xfe, 0x02,
                   0x30, 0x00, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x01};

/// With a tag behind the addresses.
Frame tagged(Frame frame) {
  const Frame tag{0x81, 0x00, 0, 7};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

TEST(Arp, AnswersInTheAskersTags) {
  for (const auto& [asked, answer] :
       {std::pair(kRequest, kReply), std::pair(tagged(kRequest), tagged(kReply)),
        std::pair(tagged(tagged(kRequest)), tagged(tagged(kReply)))}) {
    Frame frame = asked;
    const ArpRequest request = find_arp_request(frame);
    ASSERT_NE(request.at, 0u);
    EXPECT_EQ(request.wanted, *parse_ip("10.0.0.254"));
    answer_arp(frame, request, *parse_mac("02:57:45:00:00:01"));
    EXPECT_EQ(frame, answer);
  }
}

TEST(Arp, FindsNoRequestInOtherFrames) {
  EXPECT_EQ(find_arp_request(kReply).at, 0u);
  for (std::size_t length = 0; length < kRequest.size(); ++length) {
    EXPECT_EQ(find_arp_request(std::span(kRequest).first(length)).at, 0u) << length;
  }
  for (std::size_t byte = 12; byte < 22; ++byte) { // from the EtherType to the operation
    Frame other = kRequest;
    other[byte] ^= 0x04;
    EXPECT_EQ(find_arp_request(other).at, 0u) << byte;
  }
}

TEST(Arp, TellsWhoseAddressTheSenderClaims) {
  EXPECT_EQ(claimed_by_arp(kRequest), parse_ip("10.0.0.1"));
  EXPECT_EQ(claimed_by_arp(tagged(kReply)), parse_ip("10.0.0.254"));
  EXPECT_EQ(claimed_by_arp(std::span(kReply).first(kReply.size() - 1)), std::nullopt);
}

} // namespace
} // namespace weir::wire::arp_test
