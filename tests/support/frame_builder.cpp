// SPDX-License-Identifier: BSD-3-Clause
#include "support/frame_builder.hpp"

#include "wire/crc32.hpp"

#include <algorithm>
#include <stdexcept>

namespace weir::test {
namespace {

constexpr std::size_t kBthBytes = 12;
constexpr std::size_t kIcrcBytes = 4;
constexpr std::size_t kMostInFront = 128; // of a usual frame, before its BTH

void add16(Bytes& bytes, std::uint32_t value) {
  bytes.push_back(static_cast<std::uint8_t>(value >> 8));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

void add32(Bytes& bytes, std::uint32_t value) {
  add16(bytes, value >> 16);
  add16(bytes, value & 0xffff);
}

template <typename Range>
void add(Bytes& bytes, const Range& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

std::uint16_t ethertype_of(Network network) {
  switch (network) {
  case Network::ipv4:
    return 0x0800;
  case Network::ipv6:
    return 0x86dd;
  case Network::v1:
    return 0x8915;
  }
  return 0;
}

/// The checksum of RFC 1071.
std::uint16_t internet_checksum(std::span<const std::uint8_t> header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < header.size(); i += 2) {
    sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

Bytes ipv4_header(const FrameSpec& spec, std::size_t rest) {
  const std::size_t header_bytes = 20 + spec.ip_options.size();
  Bytes header{static_cast<std::uint8_t>(0x40 | header_bytes / 4), spec.tos};
  add16(header, static_cast<std::uint32_t>(header_bytes + rest));
  add16(header, spec.id);
  add16(header, spec.fragment);
  header.push_back(spec.ttl);
  header.push_back(17);
  add16(header, 0);
  add(header, std::span(spec.source.bytes).subspan(12));
  add(header, std::span(spec.destination.bytes).subspan(12));
  add(header, spec.ip_options);
  put16(header, 10, internet_checksum(header));
  return header;
}

Bytes ipv6_header(const FrameSpec& spec, std::size_t rest) {
  Bytes header;
  add32(header, 6u << 28 | std::uint32_t{spec.tos} << 20 | spec.flow);
  add16(header, static_cast<std::uint32_t>(rest + spec.ip_extensions.size()));
  const std::uint8_t upper = spec.network == Network::v1 ? 0x1b : 17;
  header.push_back(spec.ip_extensions.empty() ? upper : spec.next);
  header.push_back(spec.ttl);
  add(header, spec.source.bytes);
  add(header, spec.destination.bytes);
  add(header, spec.ip_extensions);
  return header;
}

/// The extended headers: RETH, immediate and AETH where the opcode has them, else a fixed pattern.
Bytes extended_headers(const FrameSpec& spec) {
  Bytes bytes;
  const bool has_reth = spec.opcode == 0x06 || spec.opcode == 0x0a || spec.opcode == 0x0b;
  const bool has_immediate =
      spec.opcode == 0x03 || spec.opcode == 0x05 || spec.opcode == 0x09 || spec.opcode == 0x0b;
  if (has_reth) {
    add32(bytes, 0x7f00);
    add32(bytes, 0x10203040);
    add32(bytes, 0x5eed);
    add32(bytes,
          spec.dma_length != 0 ? spec.dma_length : static_cast<std::uint32_t>(spec.payload.size()));
  }
  const bool has_aeth = (spec.opcode >= 0x0d && spec.opcode <= 0x12) && spec.opcode != 0x0e;
  if (has_immediate) {
    add32(bytes, spec.immediate);
  }
  if (has_aeth) {
    add32(bytes, spec.aeth);
  }
  while (bytes.size() < extension_bytes(spec.opcode)) {
    bytes.push_back(static_cast<std::uint8_t>(0xe0 + bytes.size()));
  }
  return bytes;
}

/// Which bits of the byte at `offset` the CRC reads as ones.
std::uint8_t mask_at(const Built& frame, std::size_t offset) {
  const std::size_t in_ip = offset - frame.ip;
  const bool is_ipv4 = frame.bytes[frame.ip] >> 4 == 4;
  if (offset >= frame.bth) {
    return offset == frame.bth + 4 ? 0xff : 0x00;
  }
  if (frame.udp != 0 && offset >= frame.udp) {
    return offset >= frame.udp + 6 ? 0xff : 0x00;
  }
  if (is_ipv4) {
    const bool is_variant = in_ip == 1 || in_ip == 8 || in_ip == 10 || in_ip == 11;
    return is_variant ? 0xff : 0x00;
  }
  if (in_ip == 0) {
    return 0x0f;
  }
  return in_ip <= 3 || in_ip == 7 ? 0xff : 0x00;
}

/// The register after each byte, from zero.
std::array<std::uint32_t, 256> registers_of_bytes() {
  std::array<std::uint32_t, 256> registers{};
  for (std::size_t value = 0; value < registers.size(); ++value) {
    const auto byte = static_cast<std::uint8_t>(value);
    registers[value] = ~wire::crc32_reference(~std::uint32_t{0}, {&byte, 1});
  }
  return registers;
}

/// What wire::crc32_reference() gives from 0 on. Tests build so many frames that bits would take
/// too long.
std::uint32_t crc32_by_bytes(std::span<const std::uint8_t> bytes) {
  static const std::array<std::uint32_t, 256> registers = registers_of_bytes();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) {
    crc = (crc >> 8) ^ registers[(crc ^ byte) & 0xff];
  }
  return ~crc;
}

} // namespace

std::string_view name_of(Network network) {
  switch (network) {
  case Network::ipv4:
    return "ipv4";
  case Network::ipv6:
    return "ipv6";
  case Network::v1:
    return "v1";
  }
  return "?";
}

std::size_t extension_bytes(std::uint8_t opcode) {
  switch (opcode) {
  case 0x03: // RC SEND LAST, ONLY with immediate; RDMA WRITE LAST with immediate: ImmDt
  case 0x05:
  case 0x09:
  case 0x0d: // RDMA READ response FIRST, LAST, ONLY; ACK: AETH
  case 0x0f:
  case 0x10:
  case 0x11:
  case 0x16: // SEND with invalidate: IETH
  case 0x17:
    return 4;
  case 0x06: // RDMA WRITE FIRST, ONLY; READ request: RETH
  case 0x0a:
  case 0x0c:
    return 16;
  case 0x0b: // RDMA WRITE ONLY with immediate: both
    return 20;
  case 0x12: // atomic ACK: AETH, AtomicAckETH
    return 12;
  case 0x13: // atomics: AtomicETH
  case 0x14:
    return 28;
  case 0x64: // UD SEND: DETH, and ImmDt
    return 8;
  case 0x65:
    return 12;
  case 0x81: // CNP: 16 reserved bytes
    return 16;
  default:
    return 0;
  }
}

Built build(const FrameSpec& spec) {
  const Bytes extended = extended_headers(spec);
  const std::size_t pad = (4 - spec.payload.size() % 4) % 4;
  const std::size_t transport =
      kBthBytes + extended.size() + spec.payload.size() + pad + kIcrcBytes;
  const std::size_t udp_bytes = spec.network == Network::v1 ? 0 : 8;

  Built built;
  Bytes& bytes = built.bytes;
  bytes.reserve(kMostInFront + transport);
  add(bytes, spec.destination_mac.bytes);
  add(bytes, spec.source_mac.bytes);
  for (const Tag& tag : spec.tags) {
    add16(bytes, tag.tpid);
    add16(bytes, tag.control);
  }
  add16(bytes, ethertype_of(spec.network));
  built.ip = bytes.size();
  add(bytes, spec.network == Network::ipv4 ? ipv4_header(spec, udp_bytes + transport)
                                           : ipv6_header(spec, udp_bytes + transport));
  if (spec.network != Network::v1) {
    built.udp = bytes.size();
    add16(bytes, spec.udp_source);
    add16(bytes, spec.udp_destination);
    add16(bytes, static_cast<std::uint32_t>(udp_bytes + transport));
    add16(bytes, spec.udp_checksum);
  }
  built.bth = bytes.size();
  bytes.push_back(spec.opcode);
  bytes.push_back(static_cast<std::uint8_t>(spec.bth_flags | pad << 4 | spec.transport_version));
  add16(bytes, 0xffff);
  add32(bytes, std::uint32_t{spec.variant} << 24 | (spec.qp & 0xffffff));
  add32(bytes, std::uint32_t{spec.ack_request} << 31 | (spec.psn & 0xffffff));
  add(bytes, extended);
  built.payload = bytes.size();
  built.payload_bytes = spec.payload.size();
  built.pad = pad;
  add(bytes, spec.payload);
  bytes.resize(bytes.size() + pad);
  built.icrc = bytes.size();
  bytes.resize(bytes.size() + kIcrcBytes);
  seal(built);
  return built;
}

std::uint32_t reference_icrc(const Built& frame) {
  Bytes covered(8, 0xff);
  covered.insert(covered.end(), frame.bytes.begin() + static_cast<std::ptrdiff_t>(frame.ip),
                 frame.bytes.begin() + static_cast<std::ptrdiff_t>(frame.icrc));
  for (std::size_t offset = frame.ip; offset < std::min(frame.bth + kBthBytes, frame.icrc);
       ++offset) {
    covered[8 + offset - frame.ip] |= mask_at(frame, offset);
  }
  return crc32_by_bytes(covered);
}

bool is_covered(const Built& frame, std::size_t offset, unsigned bit) {
  return offset >= frame.ip && offset < frame.icrc + kIcrcBytes &&
         (offset >= frame.icrc || (mask_at(frame, offset) >> bit & 1) == 0);
}

void seal(Built& frame) {
  const std::uint32_t icrc = reference_icrc(frame);
  for (std::size_t i = 0; i < kIcrcBytes; ++i) {
    frame.bytes[frame.icrc + i] = static_cast<std::uint8_t>(icrc >> 8 * i);
  }
}

bool has_valid_icrc(const Built& frame) {
  Built copy = frame;
  seal(copy);
  return copy.bytes == frame.bytes;
}

Bytes encode(const InaSpec& ina) {
  Bytes bytes;
  add32(bytes, ina.magic);
  add(bytes, std::array{ina.version, ina.operation, ina.data_type, ina.flags});
  add32(bytes, ina.ring);
  add16(bytes, ina.rank);
  add16(bytes, ina.world);
  add32(bytes, ina.message);
  add32(bytes, ina.length);
  add32(bytes, ina.epoch);
  add32(bytes, ina.session);
  add(bytes, std::array{ina.collective, ina.ack_timeout});
  add16(bytes, ina.root);
  add32(bytes, ina.qp);
  return bytes;
}

void put16(Bytes& bytes, std::size_t at, std::uint16_t value) {
  bytes.at(at) = static_cast<std::uint8_t>(value >> 8);
  bytes.at(at + 1) = static_cast<std::uint8_t>(value);
}

void put32(Bytes& bytes, std::size_t at, std::uint32_t value) {
  put16(bytes, at, static_cast<std::uint16_t>(value >> 16));
  put16(bytes, at + 2, static_cast<std::uint16_t>(value));
}

std::uint16_t get16(const Bytes& bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes.at(at) << 8 | bytes.at(at + 1));
}

std::uint32_t get32(const Bytes& bytes, std::size_t at) {
  return std::uint32_t{get16(bytes, at)} << 16 | get16(bytes, at + 2);
}

wire::IpAddress ip(std::string_view text) {
  const auto address = wire::parse_ip(text);
  if (!address) {
    throw std::invalid_argument("no IP address: " + std::string(text));
  }
  return *address;
}

wire::MacAddress mac(std::string_view text) {
  const auto address = wire::parse_mac(text);
  if (!address) {
    throw std::invalid_argument("no MAC address: " + std::string(text));
  }
  return *address;
}

ExactCopy::ExactCopy(std::span<const std::uint8_t> bytes)
    : copy_(std::make_unique<std::uint8_t[]>(bytes.size())), size_(bytes.size()) {
  std::copy(bytes.begin(), bytes.end(), copy_.get());
}

} // namespace weir::test
