// SPDX-License-Identifier: BSD-3-Clause
#include "recovery/answer_template.hpp"
#include "recovery/result_template.hpp"
#include "support/frame_builder.hpp"
#include "wire/parse.hpp"

#include <gtest/gtest.h>

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

} // namespace
} // namespace weir::recovery::frame_template_test
