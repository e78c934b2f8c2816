// SPDX-License-Identifier: BSD-3-Clause

/// One frame: all offsets that parse() returns are inside it, and a prediction from it says of a
/// frame that differs in one byte what parse() says.

#include "frame/frame.hpp"
#include "frame_script.hpp"
#include "wire/glance.hpp"
#include "wire/header_prediction.hpp"
#include "wire/parse.hpp"

using namespace weir;

namespace {

void predict(std::vector<std::uint8_t> bytes) {
  wire::HeaderPrediction prediction;
  wire::Packet packet;
  prediction.parse(bytes, packet);
  if (bytes.size() >= 2) {
    bytes[bytes.front() % bytes.size()] ^= bytes.back();
  }
  prediction.parse(bytes, packet);
  fuzz::require(packet == wire::parse(bytes), "a prediction is not what parse() says");
}

/// A glance knows less than parse(), and nothing else.
void look(const frame::Frame& frame) {
  const wire::Glance glance = wire::glance_at(frame.bytes());
  fuzz::require(glance != wire::Glance::other || frame.packet.parsed == wire::Parsed::other,
                "a glance misses RoCE");
  if (glance == wire::Glance::roce_v2 && wire::find_ina_header(frame) != nullptr) {
    fuzz::require(wire::RoceV2Glance(frame.bytes()).may_have_ina_header(),
                  "a glance misses an INA header");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  predict(bytes);
  frame::Frame frame;
  frame.data = bytes.data();
  frame.length = static_cast<std::uint32_t>(size);
  frame.packet = wire::parse(frame.bytes());
  const wire::Packet& packet = frame.packet;
  look(frame);
  if (packet.parsed == wire::Parsed::other || packet.parsed == wire::Parsed::malformed) {
    fuzz::require(wire::find_ina_header(frame) == nullptr, "an INA header outside a message");
    return 0;
  }
  fuzz::require(packet.ip_offset < packet.bth_offset, "BTH before IP");
  fuzz::require(packet.icrc_offset + wire::kIcrcBytes <= size, "ICRC outside the frame");
  if (packet.parsed == wire::Parsed::message) {
    fuzz::require(packet.payload_offset + packet.payload_bytes + packet.pad == packet.icrc_offset,
                  "payload and pad do not end at the ICRC");
    fuzz::require((packet.payload_bytes + packet.pad) % 4 == 0, "payload not padded to 4 bytes");
    const wire::InaHeader* ina = wire::find_ina_header(frame);
    fuzz::require(ina == nullptr || packet.payload_bytes >= kInaHeaderBytes,
                  "INA header cut short");
  }
  wire::store_icrc(frame, wire::compute_icrc(frame));
  fuzz::require(wire::icrc_is_valid(frame), "a computed ICRC is not valid");
  return 0;
}
