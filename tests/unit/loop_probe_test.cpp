// SPDX-License-Identifier: BSD-3-Clause

/// The frame by which a switch finds loops (docs/operating.md, "Loops").

#include "wire/loop_probe.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace weir::wire::loop_probe_test {
namespace {

using Frame = std::vector<std::uint8_t>;

LoopProbe probe() {
  return loop_probe(0x0123'4567'89ab'cdef, 5, 0xfedc'ba98'7654'3210);
}

Frame frame() {
  const LoopProbeFrame bytes = frame_of(probe());
  return {bytes.begin(), bytes.end()};
}

/// With a tag behind the addresses.
Frame tagged(Frame frame, std::uint8_t high, std::uint8_t low) {
  const Frame tag{high, low, 0, 7};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

TEST(LoopProbe, LiesOnTheWireAsWritten) {
  Frame expected{0x03, 0x57, 0x45, 0x49, 0x52, 0x01, 0x02, 0x57, 0x01, 0x23, 0x45, 0x67, 0x88,
                 0xb5, 'W',  'E',  'I',  'L',  0,    1,    0,    5,    0x01, 0x23, 0x45, 0x67,
                 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
  expected.resize(60);
  EXPECT_EQ(frame(), expected);
}

TEST(LoopProbe, IsFoundBehindTagsOfOtherSwitches) {
  const Frame once = tagged(frame(), 0x81, 0x00);
  for (const Frame& found : {frame(), once, tagged(once, 0x88, 0xa8)}) {
    const LoopProbe* read = find_loop_probe(found);
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->port.get(), 5);
    EXPECT_EQ(read->sender.get(), probe().sender.get());
    EXPECT_EQ(read->token.get(), probe().token.get());
  }
  EXPECT_EQ(find_loop_probe(tagged(tagged(once, 0x81, 0x00), 0x88, 0xa8)), nullptr)
      << "behind three";
}

TEST(LoopProbe, IsNoOtherFrame) {
  const Frame good = frame();
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(find_loop_probe(std::span(good).first(length)), nullptr) << length;
  }
  constexpr std::size_t first_of_port = 20;
  for (std::size_t byte = 0; byte < first_of_port; ++byte) {
    const bool is_source = byte >= 6 && byte < 12;
    Frame other = good;
    other[byte] ^= 0x01;
    EXPECT_EQ(find_loop_probe(other) != nullptr, is_source) << byte;
  }
}

} // namespace
} // namespace weir::wire::loop_probe_test
