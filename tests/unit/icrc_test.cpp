// SPDX-License-Identifier: BSD-3-Clause

/// The ICRC compared with scapy's (icrc_vectors.txt), with a bytewise implementation of
/// docs/protocol.md §6, and with captures. CRC-32 compared with one bit at a time.

#include "support/frame_builder.hpp"
#include "wire/crc32.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::wire::icrc_test {
namespace {

using test::build;
using test::Built;
using test::Bytes;
using test::ExactCopy;
using test::FrameSpec;

const std::string kTests = WEIR_SOURCE_ROOT "/tests/";

/// A frame and what parse() finds in it.
struct Held {
  explicit Held(std::span<const std::uint8_t> bytes) : copy(bytes) {
    frame.data = copy.data();
    frame.length = static_cast<std::uint32_t>(bytes.size());
    frame.packet = parse(copy.bytes());
  }

  bool is_roce() const {
    return frame.packet.parsed == Parsed::transport || frame.packet.parsed == Parsed::message;
  }

  ExactCopy copy;
  ParsedBytes frame;
};

Bytes random_bytes(std::mt19937& random, std::size_t count) {
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

// ---- Vectors. ----

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(IcrcVectors, AreAllReproduced) {
  std::ifstream file(kTests + "unit/icrc_vectors.txt");
  std::string line;
  int vectors = 0;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) {
      continue;
    }
    std::istringstream fields(line);
    std::string source;
    std::string description;
    std::string hex;
    fields >> source >> description >> hex;
    Held held(from_hex(hex));
    SCOPED_TRACE(source + " " + description);
    ASSERT_TRUE(held.is_roce());
    EXPECT_EQ(compute_icrc(held.frame), stored_icrc(held.frame));
    EXPECT_TRUE(icrc_is_valid(held.frame));
    EXPECT_EQ(held.frame.packet.icrc_offset + 4u, held.frame.length);
    // The vectors' author counted these bytes, too.
    if (held.frame.packet.parsed == Parsed::message) {
      const Packet& packet = held.frame.packet;
      const std::string counted =
          "/payload" + std::to_string(packet.payload_bytes) + "/pad" + std::to_string(packet.pad);
      EXPECT_TRUE(description.ends_with(counted)) << counted;
    }
    ++vectors;
  }
  EXPECT_EQ(vectors, 209);
}

// ---- The bytewise reading. ----

struct Header {
  test::Network network;
  std::size_t tags;
  std::size_t options;
};

constexpr Header kHeaders[] = {
    {test::Network::ipv4, 0, 0},  {test::Network::ipv4, 2, 0}, {test::Network::ipv4, 1, 4},
    {test::Network::ipv4, 0, 40}, {test::Network::ipv6, 0, 0}, {test::Network::ipv6, 2, 0},
    {test::Network::v1, 0, 0},    {test::Network::v1, 1, 0},
};

/// Random values in every field, so that each masked byte differs from its mask.
FrameSpec random_spec(std::mt19937& random, const Header& header, std::uint8_t opcode,
                      std::size_t payload) {
  FrameSpec spec;
  spec.network = header.network;
  spec.tags.resize(header.tags);
  spec.ip_options = random_bytes(random, header.options);
  std::copy_n(random_bytes(random, 16).begin(), 16, spec.source.bytes.begin());
  std::copy_n(random_bytes(random, 16).begin(), 16, spec.destination.bytes.begin());
  spec.tos = static_cast<std::uint8_t>(random());
  spec.ttl = static_cast<std::uint8_t>(random());
  spec.flow = random() & 0xfffff;
  spec.id = static_cast<std::uint16_t>(random());
  spec.udp_source = static_cast<std::uint16_t>(random());
  spec.udp_checksum = static_cast<std::uint16_t>(random());
  spec.opcode = opcode;
  spec.bth_flags = static_cast<std::uint8_t>(random() & 0xc0);
  spec.variant = static_cast<std::uint8_t>(random());
  spec.qp = random() & 0xffffff;
  spec.psn = random() & 0xffffff;
  spec.payload = random_bytes(random, payload);
  return spec;
}

TEST(Icrc, EqualsTheBytewiseReadingForEveryLength) {
  std::mt19937 random(3);
  std::size_t turn = 0;
  for (std::size_t payload = 0; payload <= 4096; ++payload) {
    // Short payloads with every header; long ones with one header each, because one bit at a time
    // is slow.
    const std::size_t headers = payload <= 64 ? std::size(kHeaders) : 1;
    for (std::size_t i = 0; i < headers; ++i, ++turn) {
      const Header& header = kHeaders[turn % std::size(kHeaders)];
      const auto opcode = static_cast<std::uint8_t>(turn / std::size(kHeaders) % 12);
      const Built built = build(random_spec(random, header, opcode, payload));
      Held held(built.bytes);
      ASSERT_EQ(held.frame.packet.parsed, Parsed::message);
      ASSERT_EQ(compute_icrc(held.frame), test::reference_icrc(built))
          << payload << " bytes, opcode " << int{opcode} << ", header "
          << turn % std::size(kHeaders);
    }
  }
}

TEST(Icrc, EveryOpcodeUnderEveryHeader) {
  std::mt19937 random(4);
  for (const Header& header : kHeaders) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      const Built built =
          build(random_spec(random, header, static_cast<std::uint8_t>(opcode), 40 + opcode % 5));
      Held held(built.bytes);
      ASSERT_TRUE(held.is_roce());
      EXPECT_TRUE(icrc_is_valid(held.frame)) << opcode;
    }
  }
}

/// The CRC of payload and pad, summed one bit at a time.
std::uint32_t payload_crc_of(const Built& built) {
  return crc32_reference(0,
                         std::span(built.bytes).subspan(built.payload, built.icrc - built.payload));
}

TEST(Icrc, TellsThePayloadsShareOfAValidOne) {
  std::mt19937 random(11);
  unsigned turn = 0;
  for (const std::size_t payload : {0, 1, 2, 3, 4, 255, 1024, 4096, 4099, 4100, 4101, 8000}) {
    for (const Header& header : kHeaders) {
      const auto opcode = static_cast<std::uint8_t>(turn++ % 12);
      const Built built = build(random_spec(random, header, opcode, payload));
      Held held(built.bytes);
      ASSERT_EQ(held.frame.packet.parsed, Parsed::message);
      EXPECT_TRUE(verify_icrc(held.frame)) << payload;
      EXPECT_EQ(held.frame.payload_crc, payload_crc_of(built)) << payload;
      held.copy.data()[built.payload + payload / 2] ^= 1; // the ICRC itself when all is empty
      EXPECT_TRUE(verify_icrc(held.frame)) << "was verified before";
      held.frame.icrc = IcrcState::unverified;
      EXPECT_FALSE(verify_icrc(held.frame)) << payload;
    }
  }
}

TEST(Icrc, ChangesByTheDifferenceOfPayloads) {
  std::mt19937 random(12);
  for (const Header& header : kHeaders) {
    const FrameSpec before = random_spec(random, header, 0x07, 333);
    FrameSpec after = before;
    after.payload = random_bytes(random, 333);
    const Built old_frame = build(before);
    const Built new_frame = build(after);
    EXPECT_EQ(stored_icrc(Held(old_frame.bytes).frame) ^ payload_crc_of(old_frame) ^
                  payload_crc_of(new_frame),
              test::reference_icrc(new_frame));
  }
}

/// An earlier packet's headers tell of a later one's what a look at all of them tells, whatever bit
/// of the later one is wrong. The bits that templates compare stay right.
TEST(HeaderIcrc, SaysWhatAWholeCheckSays) {
  std::mt19937 random(12);
  constexpr std::uint8_t kWriteMiddle = 0x07;
  constexpr std::uint8_t kSendLastImmediate = 0x03;
  for (const Header& header : kHeaders) {
    for (const std::uint8_t opcode : {kWriteMiddle, kSendLastImmediate}) {
      FrameSpec spec = random_spec(random, header, opcode, 128 + random() % 5);
      Held first(build(spec).bytes);
      ASSERT_TRUE(HeaderIcrc::fits(first.frame.packet));
      ASSERT_TRUE(verify_icrc(first.frame));
      HeaderIcrc headers;
      headers.learn(first.frame);
      spec.id = static_cast<std::uint16_t>(random());
      spec.psn = random() & 0xffffff;
      spec.ack_request = !spec.ack_request;
      spec.variant = static_cast<std::uint8_t>(random());
      spec.payload = random_bytes(random, spec.payload.size());
      const Built later = build(spec);
      Held good(later.bytes);
      EXPECT_TRUE(headers.verify(good.frame));
      EXPECT_EQ(good.frame.payload_crc,
                crc32_reference(
                    0, std::span(later.bytes).subspan(later.payload, later.icrc - later.payload)));
      for (std::size_t bit = 8 * (good.frame.packet.bth_offset + offsetof(Bth, ack_request));
           bit < 8 * later.bytes.size(); ++bit) {
        Bytes wrong = later.bytes;
        wrong[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        Held held(wrong);
        held.frame.packet = good.frame.packet;
        Held whole(wrong);
        whole.frame.packet = good.frame.packet;
        ASSERT_FALSE(headers.verify(held.frame)) << bit;
        ASSERT_FALSE(verify_icrc(whole.frame)) << bit;
      }
    }
  }
}

/// Whatever PSN came before: the one before it, over the largest too, a near one or any other.
TEST(HeaderIcrc, FollowsAConnectionsPackets) {
  std::mt19937 random(13);
  for (std::size_t kind = 0; kind < 2 * std::size(kHeaders); ++kind) {
    const std::uint8_t opcode =
        kind % 2 == 0 ? 0x07 : 0x03; // WRITE MIDDLE, SEND LAST with immediate
    FrameSpec spec = random_spec(random, kHeaders[kind / 2], opcode, 96);
    Held first(build(spec).bytes);
    ASSERT_TRUE(verify_icrc(first.frame));
    HeaderIcrc headers;
    headers.learn(first.frame);
    spec.psn = 0xffffff - 70;
    for (unsigned packet = 0; packet < 400; ++packet) {
      const std::uint32_t step = packet % 7 == 6 ? 1 + random() % 15 : 1;
      spec.psn = (packet % 50 == 49 ? random() : spec.psn + step) & 0xffffff;
      spec.ack_request = packet % 16 == 15;
      spec.id = static_cast<std::uint16_t>(spec.id + packet % 3);
      spec.immediate += packet % 2;
      Built built = build(spec);
      if (const bool is_damaged = packet % 5 == 4; is_damaged) {
        Bytes wrong = built.bytes;
        wrong[built.payload + packet % 96] ^= 0x10;
        Held held(wrong);
        ASSERT_FALSE(headers.verify(held.frame)) << packet;
        continue;
      }
      Held held(built.bytes);
      ASSERT_TRUE(headers.verify(held.frame)) << packet;
    }
  }
}

TEST(Icrc, NoticesEveryCoveredBitAndNoOther) {
  std::mt19937 random(5);
  for (const Header& header : kHeaders) {
    const Built built = build(random_spec(random, header, 0x0b, 41));
    Held held(built.bytes);
    ASSERT_TRUE(icrc_is_valid(held.frame));
    for (std::size_t at = 0; at < built.bytes.size(); ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        held.copy.data()[at] ^= static_cast<std::uint8_t>(1u << bit);
        EXPECT_EQ(icrc_is_valid(held.frame), !test::is_covered(built, at, bit))
            << "byte " << at << " bit " << bit;
        held.copy.data()[at] ^= static_cast<std::uint8_t>(1u << bit);
      }
    }
  }
}

TEST(Icrc, IsStoredLeastSignificantByteFirst) {
  const Built built = build(FrameSpec{.payload = Bytes(8)});
  Held held(built.bytes);
  store_icrc(held.frame, 0x04030201);
  const auto bytes = held.copy.bytes();
  EXPECT_EQ(Bytes(bytes.end() - 4, bytes.end()), (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(stored_icrc(held.frame), 0x04030201u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end() - 4, built.bytes.begin()));
}

TEST(Icrc, PrefixJoinsWithTheRest) {
  std::mt19937 random(6);
  for (const Header& header : kHeaders) {
    for (const std::uint8_t opcode : {0x00, 0x05, 0x06, 0x09, 0x0b}) {
      const Built built = build(random_spec(random, header, opcode, 200));
      Held held(built.bytes);
      for (std::size_t end = built.bth + 12; end <= built.payload + 40; ++end) {
        const std::uint32_t whole = crc32_reference(icrc_prefix(held.frame, end),
                                                    {held.copy.data() + end, built.icrc - end});
        ASSERT_EQ(whole, stored_icrc(held.frame)) << "prefix to " << end;
      }
    }
  }
}

// ---- CRC-32. ----

TEST(Crc32, HasTheCheckValue) { // of CRC-32/ISO-HDLC in the catalogue of parametrised CRCs
  const std::string_view check = "123456789";
  const Bytes bytes(check.begin(), check.end());
  EXPECT_EQ(crc32(0, bytes), 0xcbf43926u);
  EXPECT_EQ(crc32_reference(0, bytes), 0xcbf43926u);
  EXPECT_EQ(crc32(0, {}), 0u);
}

TEST(Crc32, EqualsTheReference) {
  std::mt19937 random(7);
  for (std::size_t length = 0; length <= 600; ++length) {
    const ExactCopy bytes(random_bytes(random, length));
    const std::uint32_t start = random();
    ASSERT_EQ(crc32(0, bytes.bytes()), crc32_reference(0, bytes.bytes())) << length;
    ASSERT_EQ(crc32(start, bytes.bytes()), crc32_reference(start, bytes.bytes())) << length;
  }
}

TEST(Crc32, ReadsItsFirstBytesAsOnesWhereAsked) {
  std::mt19937 random(9);
  for (std::size_t length = 0; length <= 700; ++length) {
    Bytes bytes = random_bytes(random, length);
    Ones ones;
    ones.bytes = random() % (kMaxOnes + 1);
    for (std::size_t i = 0; i < ones.bytes; ++i) {
      ones.padded[kFoldBytes + i] = static_cast<std::uint8_t>(random());
    }
    const std::uint32_t start = random();
    const std::uint32_t found = crc32_with_ones(start, ExactCopy(bytes).bytes(), ones);
    for (std::size_t i = 0; i < std::min(length, ones.bytes); ++i) {
      bytes[i] |= ones.padded[kFoldBytes + i];
    }
    ASSERT_EQ(found, crc32_reference(start, bytes)) << length << " bytes, ones in " << ones.bytes;
  }
}

TEST(Crc32, StartsFromAZeroRegister) {
  EXPECT_EQ(crc32_reference(kCrcOfZeroRegister, Bytes(5)), kCrcOfZeroRegister);
}

TEST(Crc32, JoinsPieces) {
  std::mt19937 random(8);
  for (int round = 0; round < 2000; ++round) {
    const Bytes bytes = random_bytes(random, random() % 5000);
    const std::size_t split = random() % (bytes.size() + 1);
    const std::span all(bytes);
    const std::uint32_t head = crc32(0, all.first(split));
    const std::uint32_t tail = crc32(0, all.subspan(split));
    const Crc32Shift shift(bytes.size() - split);
    ASSERT_EQ(shift.combine(head, tail), crc32(0, all)) << split << " of " << bytes.size();
    ASSERT_EQ(crc32(head, all.subspan(split)), crc32(0, all));
  }
  EXPECT_EQ(Crc32Shift(0).combine(0x12345678, 0), 0x12345678u);
}

// ---- Captures. ----

struct ClosePcap {
  void operator()(pcap_t* pcap) const { pcap_close(pcap); }
};

std::vector<Bytes> read_capture(const std::filesystem::path& file) {
  char error[PCAP_ERRBUF_SIZE];
  const std::unique_ptr<pcap_t, ClosePcap> pcap(pcap_open_offline(file.c_str(), error));
  if (!pcap) {
    throw std::runtime_error(error);
  }
  std::vector<Bytes> frames;
  pcap_pkthdr* header = nullptr;
  const std::uint8_t* bytes = nullptr;
  while (pcap_next_ex(pcap.get(), &header, &bytes) == 1) {
    frames.emplace_back(bytes, bytes + header->caplen);
  }
  return frames;
}

/// The count in tests/replay/expected/NAME.txt; 0 when it has none.
std::size_t expected_bad_icrcs(const std::filesystem::path& capture) {
  const auto name = capture.stem().string() + ".txt";
  std::ifstream file(capture.parent_path().parent_path() / "expected" / name);
  std::string line;
  const std::string key = "counter drop.bad_icrc ";
  while (std::getline(file, line)) {
    if (line.starts_with(key)) {
      return std::stoul(line.substr(key.size()));
    }
  }
  return 0;
}

/// The offsets for the mask; the captures have no IP options.
Built layout_of(const Held& held) {
  const Packet& packet = held.frame.packet;
  const auto bytes = held.copy.bytes();
  Built built;
  built.bytes.assign(bytes.begin(), bytes.end());
  built.ip = packet.ip_offset;
  built.bth = packet.bth_offset;
  built.udp = packet.encapsulation == Encapsulation::v1_grh ? 0 : packet.bth_offset - 8u;
  built.icrc = packet.icrc_offset;
  return built;
}

TEST(Captures, EveryFrameVerifiesAndAnyFlippedBitIsNoticed) {
  std::mt19937 random(9);
  std::size_t captures = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTests + "replay/captures")) {
    if (entry.path().extension() != ".pcap") {
      continue;
    }
    SCOPED_TRACE(entry.path().filename().string());
    ++captures;
    std::size_t roce = 0;
    std::size_t bad = 0;
    for (const Bytes& bytes : read_capture(entry.path())) {
      Held held(bytes);
      if (!held.is_roce()) {
        continue;
      }
      ++roce;
      if (!icrc_is_valid(held.frame)) {
        ++bad;
        continue;
      }
      const Built built = layout_of(held);
      for (int flip = 0; flip < 16; ++flip) {
        const std::size_t header_bytes = built.bth + 28 - built.ip;
        const std::size_t span = flip < 8 ? header_bytes : built.icrc + 4 - built.ip;
        const std::size_t at = std::min(built.ip + random() % span, built.icrc + 3);
        const unsigned bit = random() % 8;
        held.copy.data()[at] ^= static_cast<std::uint8_t>(1u << bit);
        EXPECT_EQ(icrc_is_valid(held.frame), !test::is_covered(built, at, bit))
            << "byte " << at << " bit " << bit;
        held.copy.data()[at] ^= static_cast<std::uint8_t>(1u << bit);
      }
    }
    if (entry.path().filename() == "ring3-i32-mtu256-trailer.pcap") {
      EXPECT_EQ(roce, 60u); // the beginning of another capture
    } else {
      EXPECT_GT(roce, 100u);
    }
    EXPECT_EQ(bad, expected_bad_icrcs(entry.path()));
  }
  EXPECT_GE(captures, 5u);
}

} // namespace
} // namespace weir::wire::icrc_test
