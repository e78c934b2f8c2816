// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Builds RoCE frames from their fields and computes their ICRC without lib/core/wire's parse or
/// icrc. So an error in either shows.

#include "wire/address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::test {

using Bytes = std::vector<std::uint8_t>;

enum class Network : std::uint8_t { ipv4, ipv6, v1 };

inline constexpr std::array<Network, 3> kNetworks{Network::ipv4, Network::ipv6, Network::v1};

std::string_view name_of(Network network);

/// An 802.1Q or 802.1ad tag.
struct Tag {
  std::uint16_t tpid = 0x8100;
  std::uint16_t control = 0;
};

/// The fields of a RoCE frame; each has a plain default.
struct FrameSpec {
  Network network = Network::ipv4;
  wire::MacAddress destination_mac{{0x02, 0, 0, 0, 0, 0x02}};
  wire::MacAddress source_mac{{0x02, 0, 0, 0, 0, 0x01}};
  std::vector<Tag> tags;
  wire::IpAddress source; // an IPv4 address in an IPv6 or v1 frame stays mapped
  wire::IpAddress destination;
  Bytes ip_options;        // IPv4: a multiple of 4 bytes, at most 40
  Bytes ip_extensions;     // IPv6: whole extension headers, their next-header fields included
  std::uint8_t next = 0;   // IPv6: the fixed header's next header when there are extensions
  std::uint8_t tos = 0x02; // or traffic class
  std::uint8_t ttl = 64;   // or hop limit
  std::uint32_t flow = 0;  // IPv6 and GRH: flow label
  std::uint16_t id = 0;    // IPv4
  std::uint16_t fragment = 0x4000; // IPv4 flags and offset
  std::uint16_t udp_source = 0xc001;
  std::uint16_t udp_destination = 4791;
  std::uint16_t udp_checksum = 0;
  std::uint8_t opcode = 0x0a; // RC WRITE ONLY
  std::uint8_t bth_flags = 0; // SE and MigReq; the pad count comes from the payload
  std::uint8_t transport_version = 0;
  std::uint8_t variant = 0; // FECN, BECN and reserved
  std::uint32_t qp = 0x12;
  bool ack_request = false;
  std::uint32_t psn = 0;
  std::uint32_t dma_length = 0; // RETH; 0: the payload's length
  std::uint32_t immediate = 0xa1b2c3d4;
  std::uint32_t aeth = 0xe0e1e2e3; // syndrome and MSN of a response
  Bytes payload;
};

/// A frame and the offsets of its parts.
struct Built {
  Bytes bytes;
  std::size_t ip = 0;
  std::size_t udp = 0; // 0 in RoCE v1
  std::size_t bth = 0;
  std::size_t payload = 0;
  std::size_t payload_bytes = 0;
  std::size_t pad = 0;
  std::size_t icrc = 0;
};

Built build(const FrameSpec& spec);

/// Bytes of extended headers that an opcode has between BTH and payload (IBTA tables 38 and 39); 0
/// for opcodes not listed there.
std::size_t extension_bytes(std::uint8_t opcode);

/// docs/protocol.md §6, literally: a copy of the covered bytes in which each byte that may change
/// on the way is 0xff (by `mask`), summed one bit at a time.
std::uint32_t reference_icrc(const Built& frame);

/// True for bits that the ICRC covers.
bool is_covered(const Built& frame, std::size_t offset, unsigned bit);

/// Computes the ICRC again after a change to the bytes.
void seal(Built& frame);

bool has_valid_icrc(const Built& frame);

/// The fields of an INA header (docs/protocol.md §2).
struct InaSpec {
  std::uint32_t magic = 0x57454952;
  std::uint8_t version = 2;
  std::uint8_t operation = 0; // sum
  std::uint8_t data_type = 1; // i32
  std::uint8_t flags = 0;
  std::uint32_t ring = 1;
  std::uint16_t rank = 0;
  std::uint16_t world = 2;
  std::uint32_t message = 0;
  std::uint32_t length = 0;
  std::uint32_t epoch = 1;
  std::uint32_t session = 0;
  std::uint8_t collective = 0;
  std::uint8_t ack_timeout = 0;
  std::uint16_t root = 0;
  std::uint32_t qp = 0;
};

Bytes encode(const InaSpec& ina);

/// Offsets inside the INA header, for tests that change it.
inline constexpr std::size_t kInaVersionAt = 4;
inline constexpr std::size_t kInaOperationAt = 5;
inline constexpr std::size_t kInaTypeAt = 6;
inline constexpr std::size_t kInaFlagsAt = 7;
inline constexpr std::size_t kInaRingAt = 8;
inline constexpr std::size_t kInaRankAt = 12;
inline constexpr std::size_t kInaWorldAt = 14;
inline constexpr std::size_t kInaMessageAt = 16;
inline constexpr std::size_t kInaLengthAt = 20;
inline constexpr std::size_t kInaEpochAt = 24;
inline constexpr std::size_t kInaSessionAt = 28;
inline constexpr std::size_t kInaCollectiveAt = 32;
inline constexpr std::size_t kInaAckTimeoutAt = 33;
inline constexpr std::size_t kInaRootAt = 34;
inline constexpr std::size_t kInaQpAt = 36;

void put16(Bytes& bytes, std::size_t at, std::uint16_t value);
void put32(Bytes& bytes, std::size_t at, std::uint32_t value);
std::uint16_t get16(const Bytes& bytes, std::size_t at);
std::uint32_t get32(const Bytes& bytes, std::size_t at);

wire::IpAddress ip(std::string_view text);
wire::MacAddress mac(std::string_view text);

/// A copy on the heap of exactly its size, so that AddressSanitizer sees a read after its end.
class ExactCopy {
 public:
  explicit ExactCopy(std::span<const std::uint8_t> bytes);

  std::span<const std::uint8_t> bytes() const { return {copy_.get(), size_}; }

  std::uint8_t* data() { return copy_.get(); }

 private:
  std::unique_ptr<std::uint8_t[]> copy_;
  std::size_t size_;
};

} // namespace weir::test
