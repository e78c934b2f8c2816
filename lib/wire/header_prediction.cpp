// SPDX-License-Identifier: BSD-3-Clause
#include "wire/header_prediction.hpp"

#include "wire/parse.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace weir::wire {
namespace {

constexpr std::size_t kVectorBytes = 16;

/// Where packets of several connections take turns, few are as what was learnt. So that learning
/// costs little, only each eighth packet that is not is learnt.
constexpr std::uint8_t kMissesBeforeLearning = 8;

/// Ones where packets are compared: up to the BTH's end, but for what parse() does not read and
/// the network or the next packet changes, and the PSN.
template <std::size_t kBytes>
std::array<std::uint8_t, kBytes> bytes_compared_of(const Packet& packet) {
  std::array<std::uint8_t, kBytes> compared{};
  std::fill_n(compared.begin(), packet.bth_offset + sizeof(Bth), std::uint8_t{0xff});
  if (packet.encapsulation == Encapsulation::v2_ipv4) {
    auto& ip = view_as<Ipv4Header>(compared.data() + packet.ip_offset);
    ip.tos = 0;
    ip.id = {};
    ip.checksum = {};
  }
  if (packet.encapsulation != Encapsulation::v1_grh) {
    view_as<UdpHeader>(compared.data() + packet.bth_offset - sizeof(UdpHeader)).checksum = {};
  }
  auto& bth = view_as<Bth>(compared.data() + packet.bth_offset);
  bth.reserved_variant = 0;
  bth.ack_request = 0;
  bth.psn = {};
  return compared;
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
  const bool has_bth = packet.parsed == Parsed::message || packet.parsed == Parsed::transport;
  const bool fits = packet.bth_offset + sizeof(Bth) <= kVectors * kVectorBytes;
  return has_bth && fits ? learn(frame, packet) : Outcome::parsed;
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
  const auto vector_at = [frame](std::size_t offset) {
    Vector vector;
    std::memcpy(&vector, frame.data() + offset, sizeof vector);
    return vector;
  };
  const auto difference = [&]<std::size_t... i>(std::index_sequence<i...>) { // without a loop
    return (((vector_at(at[i]) ^ headers[i]) & compared[i]) | ...);
  }
  (std::make_index_sequence<kVectors>{});
  return (difference[0] | difference[1]) == 0;
}

HeaderPrediction::Outcome HeaderPrediction::learn(std::span<const std::uint8_t> frame,
                                                  const Packet& packet) {
  Learnt& learnt = learnt_[static_cast<std::size_t>(packet.opcode.position)];
  if (learnt.frame_bytes != SIZE_MAX && ++learnt.misses < kMissesBeforeLearning) {
    return Outcome::parsed;
  }
  learnt.misses = 0;
  learnt.frame_bytes = frame.size();
  const auto compared = bytes_compared_of<kVectors * kVectorBytes>(packet);
  const std::size_t last = packet.bth_offset + sizeof(Bth) - kVectorBytes;
  for (std::size_t i = 0; i < kVectors; ++i) {
    const std::size_t offset = std::min(i * kVectorBytes, last);
    learnt.at[i] = static_cast<std::uint8_t>(offset);
    std::memcpy(&learnt.headers[i], frame.data() + offset, kVectorBytes);
    std::memcpy(&learnt.compared[i], compared.data() + offset, kVectorBytes);
  }
  wire::parse(frame, learnt.packet); // a copy would wait for the stores that wrote `packet`
  bth_offset_ = packet.bth_offset;
  return Outcome::learnt;
}

} // namespace weir::wire
