// SPDX-License-Identifier: BSD-3-Clause
#include "wire/header_template.hpp"

#include "wire/parse.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace weir::wire {
namespace {

constexpr std::size_t kVectorBytes = 16;
constexpr std::size_t kMostTags = 3;
constexpr std::size_t kEncapsulations = 4;

std::size_t tags_before(const Packet& packet) {
  return (packet.ip_offset - sizeof(EthernetHeader)) / sizeof(VlanTag);
}

std::size_t ip_bytes_of(Encapsulation encapsulation) {
  return encapsulation == Encapsulation::v2_ipv4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
}

std::size_t udp_bytes_of(Encapsulation encapsulation) {
  return encapsulation == Encapsulation::v1_grh ? 0 : sizeof(UdpHeader);
}

} // namespace

/// Ones up to the BTH's end, but for what parse() does not read and the network or the next packet
/// changes, and the PSN.
HeaderTemplate::Layout HeaderTemplate::make_layout(Encapsulation encapsulation, std::size_t tags) {
  constexpr std::size_t most = kVectors * kVectorBytes;
  const std::size_t ip_offset = sizeof(EthernetHeader) + tags * sizeof(VlanTag);
  const std::size_t udp_offset = ip_offset + ip_bytes_of(encapsulation);
  const std::size_t bth_offset = udp_offset + udp_bytes_of(encapsulation);
  const std::size_t end = bth_offset + sizeof(Bth);
  if (encapsulation == Encapsulation::none || end > most) {
    return {};
  }
  std::array<std::uint8_t, most> compared{};
  std::fill_n(compared.begin(), end, std::uint8_t{0xff});
  if (encapsulation == Encapsulation::v2_ipv4) {
    auto& ip = view_as<Ipv4Header>(compared.data() + ip_offset);
    ip.tos = 0;
    ip.id = {};
    ip.checksum = {};
  }
  if (encapsulation != Encapsulation::v1_grh) {
    view_as<UdpHeader>(compared.data() + udp_offset).checksum = {};
  }
  auto& bth = view_as<Bth>(compared.data() + bth_offset);
  bth.reserved_variant = 0;
  bth.ack_request = 0;
  bth.psn = {};
  Layout layout;
  layout.bth_offset = static_cast<std::uint8_t>(bth_offset);
  for (std::size_t i = 0; i < kVectors; ++i) {
    layout.at[i] = static_cast<std::uint8_t>(std::min(i * kVectorBytes, end - kVectorBytes));
    std::memcpy(&layout.compared[i], compared.data() + layout.at[i], kVectorBytes);
  }
  return layout;
}

const HeaderTemplate::Layout& HeaderTemplate::layout_of(const Packet& packet) {
  using Layouts = std::array<std::array<Layout, kMostTags + 1>, kEncapsulations>;
  static const Layouts layouts = [] {
    Layouts all;
    for (std::size_t encapsulation = 0; encapsulation < kEncapsulations; ++encapsulation) {
      for (std::size_t tags = 0; tags <= kMostTags; ++tags) {
        all[encapsulation][tags] = make_layout(static_cast<Encapsulation>(encapsulation), tags);
      }
    }
    return all;
  }();
  static const Layout none;
  const std::size_t tags = tags_before(packet);
  return tags <= kMostTags ? layouts[static_cast<std::size_t>(packet.encapsulation)][tags] : none;
}

bool HeaderTemplate::fits(const Packet& packet) {
  const bool has_bth = packet.parsed == Parsed::message || packet.parsed == Parsed::transport;
  return has_bth && layout_of(packet).bth_offset == packet.bth_offset;
}

void HeaderTemplate::learn(std::span<const std::uint8_t> frame) {
  wire::parse(frame, packet_);
  layout_ = &layout_of(packet_);
  frame_bytes_ = static_cast<std::uint32_t>(frame.size());
  for (std::size_t i = 0; i < kVectors; ++i) {
    std::memcpy(&headers_[i], frame.data() + layout_->at[i], kVectorBytes);
  }
}

} // namespace weir::wire
