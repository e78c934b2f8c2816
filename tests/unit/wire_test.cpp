// SPDX-License-Identifier: BSD-3-Clause

/// What parse() finds in frames, and the small types of lib/core/wire. Offsets and numbers here are
/// counted by hand from the header layouts, not taken from lib/core/wire's structs.

#include "support/frame_builder.hpp"
#include "weir/ina.hpp"
#include "weir/reasons.hpp"
#include "wire/headers.hpp"
#include "wire/message_shape.hpp"
#include "wire/opcode.hpp"
#include "wire/parse.hpp"
#include "wire/psn.hpp"
#include "wire/siphash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace weir::wire::wire_test {
namespace {

using test::build;
using test::Built;
using test::Bytes;
using test::ExactCopy;
using test::FrameSpec;
using test::ip;
using test::kNetworks;
using test::Network;
using test::put16;

Bytes pattern(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 11 + 5);
  }
  return bytes;
}

FrameSpec spec_of(Network network, std::size_t payload_bytes = 8, std::uint8_t opcode = 0x0a) {
  FrameSpec spec;
  spec.network = network;
  spec.source = ip(network == Network::ipv4 ? "10.0.0.1" : "fd00::1");
  spec.destination = ip(network == Network::ipv4 ? "10.0.0.2" : "fd00::2");
  spec.opcode = opcode;
  spec.qp = 0xabcdef;
  spec.psn = 0xfedcba;
  spec.payload = pattern(payload_bytes);
  return spec;
}

Packet parse_exact(const Bytes& bytes) {
  const ExactCopy copy(bytes);
  return parse(copy.bytes());
}

/// That a frame's addresses are found, which only its bytes have.
void expect_addresses(Bytes bytes, const Packet& packet, const FrameSpec& spec) {
  ParsedBytes frame;
  frame.data = bytes.data();
  frame.length = static_cast<std::uint32_t>(bytes.size());
  frame.packet = packet;
  EXPECT_EQ(frame.source(), spec.source);
  EXPECT_EQ(frame.destination(), spec.destination);
}

// ---- What a good frame is taken for. ----

struct Good {
  const char* description;
  FrameSpec spec;
  Encapsulation encapsulation;
  unsigned ip_offset;
  unsigned bth_offset;
  unsigned payload_offset;
  unsigned payload_bytes;
  unsigned pad;
  unsigned icrc_offset;
};

FrameSpec with_tags(FrameSpec spec, std::vector<test::Tag> tags) {
  spec.tags = std::move(tags);
  return spec;
}

FrameSpec with_options(FrameSpec spec, std::size_t bytes) {
  spec.ip_options = Bytes(bytes, 0x01);
  return spec;
}

TEST(Parse, TakesMessagesForWhatTheyAre) {
  using enum Network;
  using enum Encapsulation;
  const std::vector<Good> rows{
      {"WRITE ONLY", spec_of(ipv4, 8), v2_ipv4, 14, 42, 70, 8, 0, 78},
      {"no payload", spec_of(ipv4, 0), v2_ipv4, 14, 42, 70, 0, 0, 70},
      {"pad 3", spec_of(ipv4, 9), v2_ipv4, 14, 42, 70, 9, 3, 82},
      {"pad 2", spec_of(ipv4, 10), v2_ipv4, 14, 42, 70, 10, 2, 82},
      {"pad 1", spec_of(ipv4, 11), v2_ipv4, 14, 42, 70, 11, 1, 82},
      {"SEND FIRST of 4096", spec_of(ipv4, 4096, 0x00), v2_ipv4, 14, 42, 54, 4096, 0, 4150},
      {"WRITE ONLY imm", spec_of(ipv4, 4, 0x0b), v2_ipv4, 14, 42, 74, 4, 0, 78},
      {"4 bytes of options", with_options(spec_of(ipv4), 4), v2_ipv4, 14, 46, 74, 8, 0, 82},
      {"40 bytes of options", with_options(spec_of(ipv4), 40), v2_ipv4, 14, 82, 110, 8, 0, 118},
      {"one tag", with_tags(spec_of(ipv4), {{0x8100, 5}}), v2_ipv4, 18, 46, 74, 8, 0, 82},
      {"two tags", with_tags(spec_of(ipv4), {{0x88a8, 1}, {0x8100, 5}}), v2_ipv4, 22, 50, 78, 8, 0,
       86},
      {"old QinQ", with_tags(spec_of(ipv4), {{0x9100, 1}, {0x8100, 5}}), v2_ipv4, 22, 50, 78, 8, 0,
       86},
      {"four tags", with_tags(spec_of(ipv4), {{}, {}, {}, {}}), v2_ipv4, 30, 58, 86, 8, 0, 94},
      {"IPv6", spec_of(ipv6, 8), v2_ipv6, 14, 62, 90, 8, 0, 98},
      {"IPv6, tag, SEND MIDDLE", with_tags(spec_of(ipv6, 256, 0x01), {{}}), v2_ipv6, 18, 66, 78,
       256, 0, 334},
      {"v1", spec_of(v1, 8), v1_grh, 14, 54, 82, 8, 0, 90},
      {"v1, two tags, LAST imm, pad", with_tags(spec_of(v1, 5, 0x09), {{0x88a8, 1}, {0x8100, 5}}),
       v1_grh, 22, 62, 78, 5, 3, 86},
  };
  for (const Good& row : rows) {
    const Built built = build(row.spec);
    const Packet packet = parse_exact(built.bytes);
    SCOPED_TRACE(row.description);
    EXPECT_EQ(packet.parsed, Parsed::message);
    EXPECT_EQ(packet.defect, Defect::none);
    EXPECT_EQ(packet.encapsulation, row.encapsulation);
    EXPECT_EQ(packet.ip_offset, row.ip_offset);
    EXPECT_EQ(packet.bth_offset, row.bth_offset);
    EXPECT_EQ(packet.payload_offset, row.payload_offset);
    EXPECT_EQ(packet.payload_bytes, row.payload_bytes);
    EXPECT_EQ(packet.pad, row.pad);
    EXPECT_EQ(packet.icrc_offset, row.icrc_offset);
    EXPECT_EQ(packet.destination_qp, 0xabcdefu);
    EXPECT_EQ(packet.psn, 0xfedcbau);
    expect_addresses(built.bytes, packet, row.spec);
  }
}

TEST(Parse, FieldsThatMayBeAnythingChangeNothing) {
  for (const Network network : kNetworks) {
    FrameSpec spec = spec_of(network);
    spec.tos = 0xff;
    spec.ttl = 0;
    spec.flow = 0xfffff;
    spec.fragment = 0x8000; // the reserved bit, and no DF
    spec.udp_source = 0;
    spec.udp_checksum = 0x1234;
    spec.bth_flags = 0xc0; // SE, MigReq
    spec.variant = 0xff;
    spec.ack_request = true;
    const Packet packet = parse_exact(build(spec).bytes);
    SCOPED_TRACE(test::name_of(network));
    EXPECT_EQ(packet.parsed, Parsed::message);
    EXPECT_EQ(packet.destination_qp, 0xabcdefu);
    EXPECT_EQ(packet.psn, 0xfedcbau);
  }
}

/// A frame's Packet lies where that of an earlier frame lay.
TEST(Parse, LeavesNothingOfAnEarlierPacket) {
  using enum Network;
  FrameSpec fragment = spec_of(ipv4);
  fragment.fragment = 0x2000;
  FrameSpec foreign = spec_of(ipv4);
  foreign.udp_destination = 53;
  const std::vector<Bytes> frames{
      build(with_tags(spec_of(ipv4, 9), {{0x88a8, 1}, {0x8100, 5}})).bytes,
      build(spec_of(ipv6, 256, 0x01)).bytes,
      build(spec_of(ipv4, 0, 0x11)).bytes,
      build(fragment).bytes,
      build(foreign).bytes,
      Bytes(60),
      Bytes(13),
  };
  for (const Bytes& earlier : frames) {
    for (const Bytes& later : frames) {
      Packet packet = parse_exact(earlier);
      parse(later, packet);
      EXPECT_EQ(packet, parse_exact(later));
    }
  }
}

// ---- Opcodes (IBTA table 38). ----

struct OpcodeRow {
  std::uint8_t opcode;
  Position position;
  unsigned extension;
  bool reth;
  bool immediate;
};

constexpr std::array<OpcodeRow, 12> kMessageOpcodes{{
    {0x00, Position::first, 0, false, false},
    {0x01, Position::middle, 0, false, false},
    {0x02, Position::last, 0, false, false},
    {0x03, Position::last, 4, false, true},
    {0x04, Position::only, 0, false, false},
    {0x05, Position::only, 4, false, true},
    {0x06, Position::first, 16, true, false},
    {0x07, Position::middle, 0, false, false},
    {0x08, Position::last, 0, false, false},
    {0x09, Position::last, 4, false, true},
    {0x0a, Position::only, 16, true, false},
    {0x0b, Position::only, 20, true, true},
}};

TEST(Opcodes, AreThoseOfTheList) {
  for (const OpcodeRow& row : kMessageOpcodes) {
    const OpcodeInfo& info = info_of(row.opcode);
    SCOPED_TRACE(static_cast<unsigned>(row.opcode));
    EXPECT_EQ(info.position, row.position);
    EXPECT_EQ(info.extension_bytes, row.extension);
    EXPECT_EQ(info.has_reth != 0, row.reth);
    EXPECT_EQ(info.has_immediate != 0, row.immediate);
    EXPECT_TRUE(info.carries_message());
    EXPECT_EQ(info.starts_message(),
              row.position == Position::first || row.position == Position::only);
    EXPECT_EQ(info.ends_message(),
              row.position == Position::last || row.position == Position::only);
  }
  for (unsigned opcode = kMessageOpcodes.size(); opcode < 256; ++opcode) {
    const OpcodeInfo& info = info_of(static_cast<std::uint8_t>(opcode));
    EXPECT_FALSE(info.carries_message()) << opcode;
    EXPECT_FALSE(info.starts_message() || info.ends_message()) << opcode;
  }
}

TEST(Opcodes, RequestsAreWhatTheRequesterSends) {
  const std::vector<std::uint8_t> requests{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                           0x09, 0x0a, 0x0b, 0x0c, 0x13, 0x14, 0x16, 0x17};
  for (const std::uint8_t opcode : requests) {
    EXPECT_NE(info_of(opcode).position, Position::none) << int{opcode};
  }
  // READ responses, ACK, atomic ACK; a CNP.
  for (const std::uint8_t opcode : {0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x81}) {
    EXPECT_EQ(info_of(opcode).position, Position::none) << int{opcode};
  }
}

TEST(Parse, TakesEveryOtherOpcodeForTransport) {
  for (const Network network : kNetworks) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      const Built built = build(spec_of(network, 24, static_cast<std::uint8_t>(opcode)));
      const Packet packet = parse_exact(built.bytes);
      SCOPED_TRACE(std::to_string(opcode) + " over " + std::string(test::name_of(network)));
      EXPECT_EQ(packet.parsed,
                opcode < kMessageOpcodes.size() ? Parsed::message : Parsed::transport);
      EXPECT_EQ(packet.bth_offset, built.bth);
      EXPECT_EQ(packet.icrc_offset, built.icrc);
    }
  }
}

// ---- Frames cut short. ----

TEST(Parse, NeverTrustsATruncatedFrame) {
  std::vector<FrameSpec> specs;
  for (const Network network : kNetworks) {
    for (const std::uint8_t opcode : {0x00, 0x04, 0x09, 0x0a, 0x0b, 0x11, 0x81}) {
      specs.push_back(spec_of(network, 45, opcode));
      specs.push_back(with_tags(spec_of(network, 45, opcode), {{0x88a8, 1}, {0x8100, 2}}));
    }
  }
  specs.push_back(with_options(spec_of(Network::ipv4, 45), 40));
  FrameSpec extended = spec_of(Network::ipv6, 45);
  extended.next = 0;
  extended.ip_extensions = {17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  specs.push_back(extended);
  for (const FrameSpec& spec : specs) {
    const Built built = build(spec);
    const std::size_t known_for_roce = built.udp != 0 ? built.udp + 8 : built.bth;
    for (std::size_t length = 0; length < built.bytes.size(); ++length) {
      const Bytes cut(built.bytes.begin(),
                      built.bytes.begin() + static_cast<std::ptrdiff_t>(length));
      const Packet packet = parse_exact(cut);
      ASSERT_EQ(packet.parsed, length < known_for_roce ? Parsed::other : Parsed::malformed)
          << length << " of " << built.bytes.size() << " bytes, opcode " << int{spec.opcode};
    }
  }
}

TEST(Parse, ReadsNothingBeyondRandomBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    FrameSpec spec =
        spec_of(kNetworks[random() % 3], random() % 64, static_cast<std::uint8_t>(random() % 16));
    Bytes bytes = build(spec).bytes;
    for (unsigned flips = random() % 4 + 1; flips-- > 0;) {
      bytes[12 + random() % (bytes.size() - 12)] = static_cast<std::uint8_t>(random());
    }
    bytes.resize(random() % (bytes.size() + 4));
    const Packet packet = parse_exact(bytes);
    if (packet.parsed == Parsed::message) {
      ASSERT_LE(packet.icrc_offset + 4u, bytes.size());
      ASSERT_EQ(packet.payload_offset + packet.payload_bytes + packet.pad, packet.icrc_offset);
    }
  }
}

// ---- Lengths that contradict each other, fragments, extension headers, and what is not RoCE. ----

struct Mutated {
  const char* description;
  FrameSpec spec;
  std::function<void(Built&)> change;
  Parsed parsed;
  Defect defect = Defect::none;
};

void add_to(Bytes& bytes, std::size_t at, int delta) {
  put16(bytes, at, static_cast<std::uint16_t>(test::get16(bytes, at) + delta));
}

std::vector<Mutated> length_rows() {
  using enum Network;
  const auto bad = [](const char* description, FrameSpec spec, std::function<void(Built&)> change) {
    return Mutated{description, std::move(spec), std::move(change), Parsed::malformed,
                   Defect::length_mismatch};
  };
  const auto ip_length = [](int delta) {
    return [delta](Built& b) { add_to(b.bytes, b.ip + (b.bytes[b.ip] >> 4 == 4 ? 2 : 4), delta); };
  };
  const auto udp_length = [](int delta) {
    return [delta](Built& b) { add_to(b.bytes, b.udp + 4, delta); };
  };
  const auto both_lengths = [=](int delta) {
    return [=](Built& b) {
      ip_length(delta)(b);
      if (b.udp != 0) {
        udp_length(delta)(b);
      }
    };
  };
  const auto longer = [](std::size_t bytes) {
    return [bytes](Built& b) { b.bytes.resize(b.bytes.size() + bytes); };
  };
  const auto pad_field = [](unsigned pad) {
    return [pad](Built& b) {
      std::uint8_t& flags = b.bytes[b.bth + 1];
      flags = static_cast<std::uint8_t>((flags & 0xcf) | pad << 4);
    };
  };
  std::vector<Mutated> rows;
  for (const Network network : kNetworks) {
    for (const int delta : {-40, -8, -4, -1, 1, 4, 1000}) {
      if (network != v1) {
        rows.push_back(bad("IP length", spec_of(network, 40), ip_length(delta)));
        rows.push_back(bad("UDP length", spec_of(network, 40), udp_length(delta)));
      }
    }
    for (const int delta : {-1, 1, 4, 1000}) {
      rows.push_back(bad("all lengths", spec_of(network, 40), both_lengths(delta)));
    }
    for (const int delta : {-40, -8, -4}) { // its ICRC will tell
      rows.push_back({"a shorter message, by all lengths", spec_of(network, 40),
                      both_lengths(delta), Parsed::message});
    }
    for (const std::size_t bytes : {1, 2, 3, 4, 8, 64}) {
      rows.push_back(
          {"bytes behind the ICRC", spec_of(network, 40), longer(bytes), Parsed::message});
      rows.push_back({"bytes behind an ACK's ICRC", spec_of(network, 0, 0x11), longer(bytes),
                      Parsed::transport});
    }
    for (const unsigned pad : {1u, 2u, 3u}) {
      rows.push_back(bad("pad of no payload", spec_of(network, 0), pad_field(pad)));
    }
    for (const int missing :
         {1, 2, 3}) { // every length agrees, but PadCnt leaves the sum unaligned
      rows.push_back(bad("payload and pad unaligned", spec_of(network, 40), [=](Built& b) {
        both_lengths(-missing)(b);
        b.bytes.erase(b.bytes.end() - missing, b.bytes.end());
      }));
    }
    rows.push_back(bad("length 0", spec_of(network, 40),
                       [](Built& b) { put16(b.bytes, b.ip + (b.udp == b.ip + 20 ? 2 : 4), 0); }));
    rows.push_back(bad("no room for the RETH", spec_of(network, 12, 0x04),
                       [](Built& b) { b.bytes[b.bth] = 0x0a; }));
    rows.push_back(bad("no room for RETH and immediate", spec_of(network, 16, 0x04),
                       [](Built& b) { b.bytes[b.bth] = 0x0b; }));
    rows.push_back(bad("ACK shorter than its IP length", spec_of(network, 0, 0x11),
                       [](Built& b) { b.bytes.pop_back(); }));
  }
  rows.push_back(bad("UDP length below 8, IP agrees", spec_of(ipv4, 0, 0x04), [](Built& b) {
    put16(b.bytes, b.ip + 2, 24);
    put16(b.bytes, b.udp + 4, 4);
  }));
  rows.push_back(bad("room for a BTH and no ICRC", spec_of(ipv4, 0, 0x04), [](Built& b) {
    put16(b.bytes, b.ip + 2, 20 + 8 + 12);
    put16(b.bytes, b.udp + 4, 8 + 12);
    b.bytes.resize(b.bth + 12);
  }));
  // IEEE 802.3 §4.2.3.3: short frames are padded to 60 bytes, 64 with a tag. An empty SEND over
  // IPv4 has 58 bytes.
  rows.push_back({"SEND of nothing", spec_of(ipv4, 0, 0x04), longer(0), Parsed::message});
  rows.push_back({"padded SEND of nothing", spec_of(ipv4, 0, 0x04), longer(2), Parsed::message});
  rows.push_back({"tagged, padded SEND of nothing", with_tags(spec_of(ipv4, 0, 0x04), {{}}),
                  longer(2), Parsed::message});
  rows.push_back(
      {"padded SEND of nothing with an FCS", spec_of(ipv4, 0, 0x04), longer(6), Parsed::message});
  return rows;
}

std::vector<Mutated> encapsulation_rows() {
  using enum Network;
  const auto fragment = [](std::uint16_t value) {
    return [value](Built& b) { put16(b.bytes, b.ip + 6, value); };
  };
  const auto set = [](std::size_t Built::*base, std::size_t at, std::uint8_t value) {
    return [=](Built& b) { b.bytes[b.*base + at] = value; };
  };
  const auto nothing = [](Built&) {};
  const auto extensions = [](std::uint8_t next, Bytes headers) {
    FrameSpec spec = spec_of(ipv6);
    spec.next = next;
    spec.ip_extensions = std::move(headers);
    return spec;
  };
  const auto chain = [](std::size_t count) { // destination options
    Bytes headers;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t next = i + 1 == count ? 17 : 60;
      const Bytes one{next, 0, 1, 4, 0, 0, 0, 0};
      headers.insert(headers.end(), one.begin(), one.end());
    }
    return headers;
  };
  FrameSpec tver = spec_of(ipv4);
  tver.transport_version = 1;
  FrameSpec tver_ack = spec_of(ipv4, 0, 0x11);
  tver_ack.transport_version = 1;
  FrameSpec another_port = spec_of(ipv4);
  another_port.udp_destination = 4790;
  FrameSpec from_roce_port = another_port;
  from_roce_port.udp_source = 4791;
  using enum Parsed;
  return {
      {"more fragments", spec_of(ipv4), fragment(0x2000), malformed, Defect::fragment},
      {"more fragments and DF", spec_of(ipv4), fragment(0x6000), malformed, Defect::fragment},
      {"a later fragment has no UDP header", spec_of(ipv4), fragment(0x2001), other},
      {"the last fragment", spec_of(ipv4), fragment(0x1fff), other},
      {"a fragment of something else", another_port, fragment(0x2000), other},
      {"hop-by-hop", extensions(0, {17, 0, 1, 4, 0, 0, 0, 0}), nothing, malformed,
       Defect::ipv6_extension},
      {"routing of 16 bytes", extensions(43, {17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
       nothing, malformed, Defect::ipv6_extension},
      {"fragment header, its reserved byte no length", extensions(44, {17, 9, 0, 0, 0, 0, 0, 1}),
       nothing, malformed, Defect::ipv6_extension},
      {"destination options twice", extensions(60, chain(2)), nothing, malformed,
       Defect::ipv6_extension},
      {"seven of them", extensions(60, chain(7)), nothing, malformed, Defect::ipv6_extension},
      {"more than anybody sends", extensions(60, chain(40)), nothing, other},
      {"an extension longer than the frame", extensions(60, {17, 200, 0, 0, 0, 0, 0, 0}), nothing,
       other},
      {"authentication header", extensions(51, {17, 4, 0, 0, 0, 0, 0, 0}), nothing, other},
      {"transport version", tver, nothing, malformed, Defect::transport_version},
      {"transport version of an ACK", tver_ack, nothing, transport},
      {"another UDP port", another_port, nothing, other},
      {"RoCE's port as the source", from_roce_port, nothing, other},
      {"IPv4 says version 5", spec_of(ipv4), set(&Built::ip, 0, 0x55), other},
      {"IHL below 5", spec_of(ipv4), set(&Built::ip, 0, 0x44), other},
      {"TCP", spec_of(ipv4), set(&Built::ip, 9, 6), other},
      {"IPv6 says version 4", spec_of(ipv6), set(&Built::ip, 0, 0x40), other},
      {"TCP over IPv6", spec_of(ipv6), set(&Built::ip, 6, 6), other},
      {"GRH says version 4", spec_of(v1), set(&Built::ip, 0, 0x40), other},
      {"GRH without IBA behind it", spec_of(v1), set(&Built::ip, 6, 17), other},
      {"ARP", spec_of(ipv4), [](Built& b) { put16(b.bytes, 12, 0x0806); }, other},
      {"IPv4 under IPv6's type", spec_of(ipv4), [](Built& b) { put16(b.bytes, 12, 0x86dd); },
       other},
      {"five tags", with_tags(spec_of(ipv4), {{}, {}, {}, {}, {}}), nothing, other},
      {"802.3 length field", spec_of(ipv4), [](Built& b) { put16(b.bytes, 12, 46); }, other},
  };
}

void expect_parsed(const std::vector<Mutated>& rows) {
  for (const Mutated& row : rows) {
    Built built = build(row.spec);
    row.change(built);
    const Packet packet = parse_exact(built.bytes);
    SCOPED_TRACE(std::string(row.description) + " over " +
                 std::string(test::name_of(row.spec.network)));
    EXPECT_EQ(packet.parsed, row.parsed);
    if (row.parsed == Parsed::malformed) {
      EXPECT_EQ(packet.defect, row.defect);
      expect_addresses(built.bytes, packet, row.spec); // what rx asks the directory for
    }
  }
}

TEST(Parse, SeesLengthsThatContradictEachOther) {
  expect_parsed(length_rows());
}

TEST(Parse, SeesEncapsulationsThatItCannotFollow) {
  expect_parsed(encapsulation_rows());
}

TEST(Parse, TakesFramesTooLongForItsOffsetsForOther) {
  Built built = build(spec_of(Network::ipv4, 65492, 0x00));
  EXPECT_EQ(parse_exact(built.bytes).parsed, Parsed::other);
}

// ---- The INA header. ----

TEST(FindInaHeader, WantsTheMagicAtTheStartOfAMessage) {
  struct Row {
    const char* description;
    std::uint8_t opcode;
    std::size_t payload_bytes;
    std::uint32_t magic;
    bool found;
  };

  constexpr std::uint32_t magic = 0x57454952;
  const std::vector<Row> rows{
      {"SEND FIRST", 0x00, 256, magic, true},
      {"SEND MIDDLE", 0x01, 256, magic, false},
      {"SEND LAST", 0x02, 256, magic, false},
      {"SEND LAST imm", 0x03, 256, magic, false},
      {"SEND ONLY", 0x04, 40, magic, true},
      {"SEND ONLY imm", 0x05, 40, magic, true},
      {"WRITE FIRST", 0x06, 256, magic, true},
      {"WRITE MIDDLE", 0x07, 256, magic, false},
      {"WRITE LAST", 0x08, 256, magic, false},
      {"WRITE LAST imm", 0x09, 256, magic, false},
      {"WRITE ONLY", 0x0a, 40, magic, true},
      {"WRITE ONLY imm", 0x0b, 40, magic, true},
      {"39 bytes", 0x0a, 39, magic, false},
      {"nothing", 0x0a, 0, magic, false},
      {"magic in the other order", 0x0a, 40, 0x52494557, false},
      {"READ response FIRST", 0x0d, 256, magic, false},
      {"UC WRITE ONLY", 0x2a, 256, magic, false},
  };
  for (const Row& row : rows) {
    FrameSpec spec = spec_of(Network::ipv4, 0, row.opcode);
    spec.payload = test::encode({.magic = row.magic, .rank = 3, .world = 7, .message = 0x01020304});
    spec.payload.resize(row.payload_bytes);
    ExactCopy copy(build(spec).bytes);
    ParsedBytes frame;
    frame.data = copy.data();
    frame.length = static_cast<std::uint32_t>(copy.bytes().size());
    frame.packet = parse(copy.bytes());
    const InaHeader* ina = find_ina_header(frame);
    SCOPED_TRACE(row.description);
    ASSERT_EQ(ina != nullptr, row.found);
    if (row.found) {
      EXPECT_EQ(ina->rank.get(), 3);
      EXPECT_EQ(ina->world.get(), 7);
      EXPECT_EQ(ina->message_id.get(), 0x01020304u);
    }
  }
}

TEST(MessageShape, IsWhatTheHeaderSays) {
  const Bytes bytes = test::encode(
      {.operation = 2, .data_type = 9, .length = 0xffffffff, .collective = 1, .root = 0x1234});
  const MessageShape shape = MessageShape::of(view_as<InaHeader>(bytes.data()));
  EXPECT_EQ(shape.operation, Operation::max);
  EXPECT_EQ(shape.data_type, DataType::u32);
  EXPECT_EQ(shape.collective, Collective::hello);
  EXPECT_EQ(shape.root, 0x1234);
  EXPECT_EQ(shape.data_bytes, 0xffffffffu);
  EXPECT_EQ(shape.message_bytes(), 0x100000027u); // no wrap
}

TEST(InaHeader, EveryFieldLiesWhereThePageSays) {
  Bytes bytes(40);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i);
  }
  const auto& ina = view_as<InaHeader>(bytes.data());
  EXPECT_EQ(ina.magic.get(), 0x00010203u);
  EXPECT_EQ(ina.version, 4);
  EXPECT_EQ(ina.operation, 5);
  EXPECT_EQ(ina.data_type, 6);
  EXPECT_EQ(ina.flags, 7);
  EXPECT_EQ(ina.ring_id.get(), 0x08090a0bu);
  EXPECT_EQ(ina.rank.get(), 0x0c0d);
  EXPECT_EQ(ina.world.get(), 0x0e0f);
  EXPECT_EQ(ina.message_id.get(), 0x10111213u);
  EXPECT_EQ(ina.message_length.get(), 0x14151617u);
  EXPECT_EQ(ina.epoch.get(), 0x18191a1bu);
  EXPECT_EQ(ina.session.get(), 0x1c1d1e1fu);
  EXPECT_EQ(ina.collective, 0x20);
  EXPECT_EQ(ina.ack_timeout, 0x21);
  EXPECT_EQ(ina.root.get(), 0x2223);
  EXPECT_EQ(ina.qp.get(), 0x24252627u);
}

// ---- Types and operations. ----

TEST(Ina, TypesAndOperationsAreThoseOfThePage) {
  struct Row {
    std::uint8_t number;
    const char* name;
    std::size_t bytes;
    bool is_float;
  };

  const std::vector<Row> types{
      {0, "f32", 4, true},     {1, "i32", 4, false},    {2, "f16", 2, true},
      {3, "bf16", 2, true},    {4, "f64", 8, true},     {5, "i8", 1, false},
      {6, "u8", 1, false},     {7, "i16", 2, false},    {8, "u16", 2, false},
      {9, "u32", 4, false},    {10, "i64", 8, false},   {11, "u64", 8, false},
      {12, "f8e4m3", 1, true}, {13, "f8e5m2", 1, true},
  };
  const std::vector<const char*> operations{"sum", "min", "max", "product", "and", "or", "xor"};
  ASSERT_EQ(types.size(), kDataTypes);
  ASSERT_EQ(operations.size(), kOperations);
  for (const Row& row : types) {
    const auto type = static_cast<DataType>(row.number);
    EXPECT_EQ(name_of(type), row.name);
    EXPECT_EQ(element_size(type), row.bytes) << row.name;
    EXPECT_EQ(data_type_named(row.name), type);
    for (std::uint8_t number = 0; number < kOperations; ++number) {
      EXPECT_EQ(is_reducible(type, static_cast<Operation>(number)), !row.is_float || number < 4)
          << row.name << " " << operations[number];
    }
  }
  for (std::uint8_t number = 0; number < kOperations; ++number) {
    EXPECT_EQ(name_of(static_cast<Operation>(number)), operations[number]);
    EXPECT_EQ(operation_named(operations[number]), static_cast<Operation>(number));
  }
  for (const unsigned number : {14u, 127u, 128u, 255u}) {
    const auto type = static_cast<DataType>(number);
    const auto operation = static_cast<Operation>(number);
    EXPECT_EQ(element_size(type), 0u);
    EXPECT_EQ(name_of(type), "unknown");
    EXPECT_EQ(name_of(operation), "unknown");
    EXPECT_FALSE(is_reducible(type, Operation::sum));
    EXPECT_FALSE(is_reducible(DataType::i32, operation));
  }
  EXPECT_FALSE(is_reducible(DataType::i32, static_cast<Operation>(operations.size())));
  EXPECT_FALSE(data_type_named("").has_value());
  EXPECT_FALSE(operation_named("bitwise_and").has_value());
}

// ---- Big-endian integers. ----

TEST(BigEndian, LiesAsItShould) {
  const auto bytes_of = [](const auto& value) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(&value);
    return Bytes(first, first + sizeof value);
  };
  EXPECT_EQ(bytes_of(be16(0x0102)), (Bytes{1, 2}));
  EXPECT_EQ(bytes_of(be24(0x010203)), (Bytes{1, 2, 3}));
  EXPECT_EQ(bytes_of(be32(0xfe020304)), (Bytes{0xfe, 2, 3, 4}));
  EXPECT_EQ(bytes_of(be64(0xfe02030405060708)), (Bytes{0xfe, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(bytes_of(be24(0xff010203)), (Bytes{1, 2, 3})) << "the high byte has no place";
  EXPECT_EQ(be16(0xffff).get(), 0xffff);
  EXPECT_EQ(be24(0xfedcba).get(), 0xfedcbau);
  EXPECT_EQ(be32(0xfedcba98).get(), 0xfedcba98u);
  EXPECT_EQ(be64(0xfedcba9876543210).get(), 0xfedcba9876543210u);
  EXPECT_EQ(be32().get(), 0u);
  be16 changed(1);
  changed.set(0x8001);
  EXPECT_EQ(changed.get(), 0x8001);
  EXPECT_EQ(changed, be16(0x8001));
  EXPECT_NE(changed, be16(1));
}

// ---- Packet sequence numbers. ----

TEST(Psn, ComparesSerially) {
  struct Row {
    std::uint32_t from;
    std::uint32_t to;
    std::int32_t distance;
  };

  const std::vector<Row> rows{
      {0, 0, 0},
      {0, 1, 1},
      {1, 0, -1},
      {0xffffff, 0, 1},
      {0, 0xffffff, -1},
      {0xfffff0, 0x10, 0x20},
      {0, 0x7fffff, 0x7fffff},
      {0, 0x800000, -0x800000},
      {0x800000, 0, -0x800000},
      {0x800001, 0, 0x7fffff},
      {0x400000, 0xc00001, -0x7fffff},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(psn_distance(row.from, row.to), row.distance) << row.from << " to " << row.to;
    EXPECT_EQ(psn_before(row.from, row.to), row.distance > 0) << row.from << " to " << row.to;
    EXPECT_EQ(psn_add(row.from, row.distance), row.to);
  }
}

TEST(Psn, FollowsNumbersThatNeverWrap) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100000; ++round) {
    const std::uint64_t from = random() % (std::uint64_t{1} << 40) + (1u << 24);
    const auto ahead = static_cast<std::int64_t>(random() % (1u << 24)) - (1 << 23);
    const std::uint64_t to = from + static_cast<std::uint64_t>(ahead);
    const auto from24 = static_cast<std::uint32_t>(from & 0xffffff);
    const auto to24 = static_cast<std::uint32_t>(to & 0xffffff);
    ASSERT_EQ(psn_add(from24, ahead), to24);
    ASSERT_EQ(psn_distance(from24, to24), ahead);
    ASSERT_EQ(psn_before(from24, to24), ahead > 0);
  }
  EXPECT_EQ(psn_add(0, -1), 0xffffffu);
}

// ---- Addresses. ----

TEST(Addresses, AreReadAndWritten) {
  struct Row {
    const char* text;
    const char* canonical; // nullptr: refused
  };

  const std::vector<Row> addresses{
      {"10.0.0.1", "10.0.0.1"},
      {"::ffff:10.0.0.1", "10.0.0.1"},
      {"::FFFF:0a00:0001", "10.0.0.1"},
      {"fd00:0:0:0::1", "fd00::1"},
      {"::", "::"},
      {"::1", "::1"},
      {"::10.0.0.1", "::10.0.0.1"},
      {"", nullptr},
      {"10.0.0", nullptr},
      {"10.0.0.256", nullptr},
      {"10.0.0.1 ", nullptr},
      {"10.0.0.1/24", nullptr},
      {"fd00::1::2", nullptr},
      {"fd00::1%eth0", nullptr},
      {"host", nullptr},
  };
  for (const Row& row : addresses) {
    const auto address = parse_ip(row.text);
    ASSERT_EQ(address.has_value(), row.canonical != nullptr) << row.text;
    if (address) {
      EXPECT_EQ(to_string(*address), row.canonical);
      EXPECT_EQ(parse_ip(to_string(*address)), address);
    }
  }
  EXPECT_TRUE(ip("10.0.0.1").is_v4());
  EXPECT_FALSE(ip("fd00::1").is_v4());
  EXPECT_FALSE(ip("::10.0.0.1").is_v4());
  const std::vector<Row> stations{
      {"02:00:00:00:00:01", "02:00:00:00:00:01"},
      {"AA:bb:Cc:dD:ee:Ff", "aa:bb:cc:dd:ee:ff"},
      {"02-00-00-00-00-01", nullptr},
      {"02:00:00:00:00:1", nullptr},
      {"02:00:00:00:00:01:", nullptr},
      {"02:00:00:00:00:0g", nullptr},
      {"02:00:00:00:00", nullptr},
      {"0200.0000.0001abc", nullptr},
      {"", nullptr},
  };
  for (const Row& row : stations) {
    const auto station = parse_mac(row.text);
    ASSERT_EQ(station.has_value(), row.canonical != nullptr) << row.text;
    if (station) {
      EXPECT_EQ(to_string(*station), row.canonical);
    }
  }
  EXPECT_TRUE(test::mac("01:00:5e:00:00:01").is_group());
  EXPECT_TRUE(test::mac("ff:ff:ff:ff:ff:ff").is_group());
  EXPECT_FALSE(test::mac("02:00:00:00:00:01").is_group());
}

// ---- SipHash. ----

/// Made by `openssl mac -macopt hexkey:000102030405060708090a0b0c0d0e0f -macopt size:8 SIPHASH` of
/// the bytes 0, 1, …; that of 15 bytes stands in the paper's appendix A, too.
TEST(SipHash, IsThatOfOthers) {
  const HashKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  const std::map<std::size_t, std::uint64_t> hashes{
      {0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd},  {7, 0xab0200f58b01d137},
      {8, 0x93f5f5799a932462},  {15, 0xa129ca6149be45e5}, {16, 0x3f2acc7f57c29bdb},
      {63, 0x958a324ceb064572},
  };
  for (const auto& [length, hash] : hashes) {
    std::vector<std::uint8_t> message(length);
    std::iota(message.begin(), message.end(), std::uint8_t{0});
    EXPECT_EQ(siphash(key, message), hash) << length;
  }
}

// ---- Reasons. ----

template <typename Reason>
void expect_distinct_names(std::size_t count, std::set<std::string_view>& names) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_TRUE(names.insert(name_of(reason)).second) << name_of(reason);
    EXPECT_EQ(name_of(reason).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string_view::npos)
        << name_of(reason);
    EXPECT_FALSE(text_of(reason).empty()) << name_of(reason);
  }
  EXPECT_ANY_THROW(static_cast<void>(name_of(static_cast<Reason>(count))));
}

TEST(Reasons, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names; // together: telemetry shows both lists
  expect_distinct_names<DropReason>(kDropReasons, names);
  expect_distinct_names<ForeignReason>(kForeignReasons, names);
  EXPECT_EQ(name_of(DropReason::fragment), "fragment");
  EXPECT_EQ(name_of(DropReason::tx_backlog_full), "tx_backlog_full");
  EXPECT_EQ(name_of(ForeignReason::source_mismatch), "source_mismatch");
}

} // namespace
} // namespace weir::wire::wire_test
