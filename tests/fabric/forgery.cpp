// SPDX-License-Identifier: BSD-3-Clause
#include "forgery.hpp"

#include "wire/icrc.hpp"
#include "wire/parse.hpp"

namespace weir::fabric {

Forgery::Forgery(std::span<const std::uint8_t> bytes)
    : bytes_(bytes.begin(), bytes.end()), layout_(wire::parse(bytes_)) {}

wire::ParsedBytes Forgery::frame() {
  wire::ParsedBytes frame;
  frame.data = bytes_.data();
  frame.length = static_cast<std::uint32_t>(bytes_.size());
  frame.packet = layout_;
  return frame;
}

wire::IpAddress Forgery::source() {
  return frame().source();
}

wire::IpAddress Forgery::destination() {
  return frame().destination();
}

wire::InaHeader& Forgery::ina() {
  return wire::view_as<wire::InaHeader>(bytes_.data() + layout_.payload_offset);
}

wire::Bth& Forgery::bth() {
  return wire::view_as<wire::Bth>(bytes_.data() + layout_.bth_offset);
}

wire::EthernetHeader& Forgery::ethernet() {
  return wire::view_as<wire::EthernetHeader>(bytes_.data());
}

void Forgery::set_psn(std::uint32_t psn) {
  bth().psn.set(psn & 0xffffff);
}

void Forgery::set_queue_pair(std::uint32_t queue_pair) {
  bth().destination_qp.set(queue_pair & 0xffffff);
}

void Forgery::make_fragment() {
  auto& ip = wire::view_as<wire::Ipv4Header>(bytes_.data() + layout_.ip_offset);
  ip.fragment.set(0x2000);
}

void Forgery::sign() {
  wire::ParsedBytes forged = frame();
  forged.packet = wire::parse(bytes_);
  if (forged.packet.parsed == wire::Parsed::message ||
      forged.packet.parsed == wire::Parsed::transport) {
    wire::store_icrc(forged, wire::compute_icrc(forged));
  }
}

} // namespace weir::fabric
