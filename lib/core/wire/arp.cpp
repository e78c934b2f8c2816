// SPDX-License-Identifier: BSD-3-Clause
#include "wire/arp.hpp"

namespace weir::wire {
namespace {

constexpr std::uint16_t kEthernet = 1; // RFC 826; IANA's numbers
constexpr std::uint16_t kRequest = 1;
constexpr std::uint16_t kReply = 2;

/// Where the message begins; 0: there is none.
std::size_t find_arp(std::span<const std::uint8_t> frame) {
  std::size_t at = sizeof(EthernetHeader);
  while (at + sizeof(ArpMessage) <= frame.size()) {
    const auto type = static_cast<EtherType>(view_as<be16>(frame.data() + at - sizeof(be16)).get());
    if (type == EtherType::arp) {
      return at;
    }
    if (!is_tag(type)) {
      return 0;
    }
    at += sizeof(VlanTag);
  }
  return 0;
}

/// The same, for IPv4 and addresses like Ethernet's.
std::size_t find_message(std::span<const std::uint8_t> frame) {
  const std::size_t at = find_arp(frame);
  if (at == 0) {
    return 0;
  }
  const auto& message = view_as<ArpMessage>(frame.data() + at);
  const bool is_ours = message.protocol.get() == static_cast<std::uint16_t>(EtherType::ipv4) &&
                       message.hardware_bytes == sizeof(MacAddress) && message.protocol_bytes == 4;
  return is_ours ? at : 0;
}

} // namespace

ArpRequest find_arp_request(std::span<const std::uint8_t> frame) {
  const std::size_t at = find_message(frame);
  if (at == 0) {
    return {};
  }
  const auto& message = view_as<ArpMessage>(frame.data() + at);
  return message.hardware.get() == kEthernet && message.operation.get() == kRequest
             ? ArpRequest{at, IpAddress::from_v4(message.target_ip.data())}
             : ArpRequest{};
}

std::optional<IpAddress> claimed_by_arp(std::span<const std::uint8_t> frame) {
  const std::size_t at = find_message(frame);
  if (at == 0) {
    return std::nullopt;
  }
  return IpAddress::from_v4(view_as<ArpMessage>(frame.data() + at).sender_ip.data());
}

void answer_arp(std::span<std::uint8_t> frame, const ArpRequest& request, const MacAddress& mac) {
  auto& message = view_as<ArpMessage>(frame.data() + request.at);
  const std::array<std::uint8_t, 4> asker_ip = message.sender_ip;
  message.operation.set(kReply);
  message.target_mac = message.sender_mac;
  message.sender_ip = message.target_ip;
  message.target_ip = asker_ip;
  message.sender_mac = mac;
  auto& ethernet = view_as<EthernetHeader>(frame.data());
  ethernet.destination = ethernet.source;
  ethernet.source = mac;
}

} // namespace weir::wire
