// SPDX-License-Identifier: BSD-3-Clause
#include "recovery/answer_template.hpp"
#include "recovery/result_template.hpp"
#include "support/frame_builder.hpp"
#include "wire/parse.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace weir::recovery::frame_template_test {
namespace {

using test::Built;
using test::Bytes;
using test::FrameSpec;

constexpr std::uint8_t kAcknowledge = 0x11; // IBTA table 38

/// As many tags and IP options as a frame may have.
FrameSpec longest_headers() {
  FrameSpec spec;
  spec.tags = {{0x88a8, 1}, {0x8100, 2}, {0x8100, 3}, {0x8100, 4}};
  spec.ip_options.assign(40, 0x01);
  spec.source = test::ip("10.0.0.1");
  spec.destination = test::ip("10.0.0.2");
  return spec;
}

wire::ParsedBytes parsed(Bytes& bytes) {
  wire::ParsedBytes frame{bytes.data(), static_cast<std::uint32_t>(bytes.size())};
  frame.packet = wire::parse(bytes);
  return frame;
}

/// Its headers are kept whole: an answer in their style is the frame that its receiver would send.
TEST(FrameTemplate, KeepsTheLongestHeaders) {
  FrameSpec spec = longest_headers();
  spec.opcode = kAcknowledge;
  spec.psn = 7;
  spec.aeth = 0x1f000002;
  Built seen = test::build(spec);
  const wire::ParsedBytes frame = parsed(seen.bytes);
  ASSERT_EQ(frame.packet.parsed, wire::Parsed::transport);
  AnswerTemplate answers;
  answers.take(frame, *find_aeth(frame));
  Bytes room(kMostAnswerBytes);
  wire::ParsedBytes written{room.data(), static_cast<std::uint32_t>(room.size())};
  answers.write(written, wire::kAckUnlimited, 9);
  room.resize(written.length);
  spec.psn = 8;
  EXPECT_EQ(room, test::build(spec).bytes);
}

/// A hello from A to B, and the ACK that B would send for the packet before PSN 9.
struct Exchange {
  Bytes hello;
  Bytes answer;
};

Exchange exchange_with(test::Network network, std::uint8_t tos, std::uint8_t tos_of_answer) {
  FrameSpec spec;
  spec.network = network;
  spec.source = test::ip(network == test::Network::ipv4 ? "10.0.0.1" : "fd00::1");
  spec.destination = test::ip(network == test::Network::ipv4 ? "10.0.0.2" : "fd00::2");
  spec.tos = tos;
  const Bytes hello = test::build(spec).bytes;
  std::swap(spec.source, spec.destination);
  std::swap(spec.source_mac, spec.destination_mac);
  spec.tos = tos_of_answer;
  spec.opcode = kAcknowledge;
  spec.psn = 8;
  spec.aeth = 0x1f000000;
  return {hello, test::build(spec).bytes};
}

/// Of a hello that has met congestion, only that frame is marked: all that the switch says to its
/// sender from then on is not (RFC 3168 §5: 3 is CE, 2 ECT(0), as hosts send it).
TEST(FrameTemplate, LeavesTheHellosCongestionMark) {
  struct Case {
    std::uint8_t hello;
    std::uint8_t answer;
  };

  for (const test::Network network : {test::Network::ipv4, test::Network::ipv6}) {
    for (const Case& each :
         {Case{0x6b, 0x6a}, Case{0x6a, 0x6a}, Case{0x69, 0x69}, Case{0x68, 0x68}}) {
      Exchange due = exchange_with(network, each.hello, each.answer);
      const wire::ParsedBytes hello = parsed(due.hello);
      Bytes room(kMostAnswerBytes);
      wire::ParsedBytes written{room.data(), static_cast<std::uint32_t>(room.size())};
      AnswerTemplate(hello, hello.packet.destination_qp).write(written, wire::kAckUnlimited, 9);
      room.resize(written.length);
      EXPECT_EQ(room, due.answer) << name_of(network) << ", " << int{each.hello};
    }
  }
}

} // namespace
} // namespace weir::recovery::frame_template_test
