// SPDX-License-Identifier: BSD-3-Clause
#include "wire/header_prediction.hpp"

#include "wire/parse.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

namespace weir::wire {
namespace {

/// Ones where parse() reads; not the PSN, nor what the network may change on the way.
template <std::size_t kBytes>
std::array<std::uint8_t, kBytes> bytes_read_of(const Packet& packet) {
  std::array<std::uint8_t, kBytes> read{};
  std::fill_n(read.begin(), packet.bth_offset + sizeof(Bth), std::uint8_t{0xff});
  if (packet.encapsulation == Encapsulation::v2_ipv4) {
    auto& ip = view_as<Ipv4Header>(read.data() + packet.ip_offset);
    ip.tos = 0;
    ip.id = {};
    ip.checksum = {};
  }
  if (packet.encapsulation != Encapsulation::v1_grh) {
    view_as<UdpHeader>(read.data() + packet.bth_offset - sizeof(UdpHeader)).checksum = {};
  }
  auto& bth = view_as<Bth>(read.data() + packet.bth_offset);
  bth.reserved_variant = 0;
  bth.ack_request = 0;
  bth.psn = {};
  return read;
}

} // namespace

HeaderPrediction::Outcome HeaderPrediction::parse(std::span<const std::uint8_t> frame,
                                                  Packet& packet) {
  if (const Learnt& learnt = nearest_to(frame); learnt.predicts(frame)) [[likely]] {
    packet = learnt.packet;
    packet.psn = view_as<Bth>(frame.data() + packet.bth_offset).psn.get();
    return Outcome::as_learnt;
  }
  wire::parse(frame, packet);
  const bool fits = packet.bth_offset + sizeof(Bth) <= kBytes && frame.size() >= kBytes;
  if (packet.parsed != Parsed::message || !fits) {
    return Outcome::parsed;
  }
  learn(frame, packet);
  return Outcome::learnt;
}

/// What was learnt for the frame's opcode, if that stands where it stood the last time.
const HeaderPrediction::Learnt&
HeaderPrediction::nearest_to(std::span<const std::uint8_t> frame) const {
  const std::uint8_t opcode = bth_offset_ < frame.size() ? frame[bth_offset_] : 0;
  return learnt_[static_cast<std::size_t>(info_of(opcode).position)];
}

bool HeaderPrediction::Learnt::predicts(std::span<const std::uint8_t> frame) const {
  if (frame.size() != frame_bytes) {
    return false;
  }
  Headers found;
  std::memcpy(found.data(), frame.data(), kBytes);
  const auto difference = [&]<std::size_t... i>(std::index_sequence<i...>) { // without a loop
    return (((found[i] ^ headers[i]) & read[i]) | ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Headers>>{});
  return (difference[0] | difference[1]) == 0;
}

void HeaderPrediction::learn(std::span<const std::uint8_t> frame, const Packet& packet) {
  Learnt& learnt = learnt_[static_cast<std::size_t>(packet.opcode.position)];
  learnt.frame_bytes = frame.size();
  std::memcpy(learnt.headers.data(), frame.data(), kBytes);
  const auto read = bytes_read_of<kBytes>(packet);
  std::memcpy(learnt.read.data(), read.data(), kBytes);
  wire::parse(frame, learnt.packet); // a copy would wait for the stores that wrote `packet`
  bth_offset_ = packet.bth_offset;
}

} // namespace weir::wire
