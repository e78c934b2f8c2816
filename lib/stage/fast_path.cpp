// SPDX-License-Identifier: BSD-3-Clause
#include "stage/fast_path.hpp"

#include "stage/graph_watch.hpp"

#include <bit>
#include <cstring>

namespace weir::stage {

FastPath::FastPath(const ring::CurrentRings& current, l2::Bridge& bridge, const Dispatch& dispatch,
                   const Forward& forward)
    : current_(current), bridge_(bridge), dispatch_(dispatch), forward_(forward) {}

void FastPath::begin_burst() {
  is_open_ = !forward_.is_watched();
  port_ = frame::kNoPort;
  addresses_of_stranger_ = 0;
  addresses_of_ring_ = 0;
}

std::uint16_t FastPath::short_way(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                                  std::uint64_t now) {
  if (!is_foreign(frame) || !forward_.fits_all(frame.size())) {
    return take_the_stages();
  }
  const Stations stations = stations_of(frame);
  if (port_ == frame::kNoPort || stations != stations_) {
    stations_ = stations;
    port_ = look_up(frame, ingress, now);
  }
  if (port_ != frame::kNoPort) {
    passes<StageId::receive, StageId::dispatch>();
    passes<StageId::dispatch, StageId::forward>();
    passes<StageId::forward, StageId::transmit>();
  }
  return port_;
}

FastPath::Stations FastPath::stations_of(std::span<const std::uint8_t> frame) {
  Stations stations;
  std::memcpy(&stations.first, frame.data(), sizeof stations.first);
  std::memcpy(&stations.rest, frame.data() + sizeof stations.first, sizeof stations.rest);
  return stations;
}

/// Whether Dispatch certainly leaves the frame to Forward.
bool FastPath::is_foreign(std::span<const std::uint8_t> frame) {
  switch (wire::glance_at(frame)) {
  case wire::Glance::other:
    return true;
  case wire::Glance::roce_v2: {
    const wire::RoceV2Glance roce(frame);
    return is_strangers(roce) && !roce.may_have_ina_header() && dispatch_.bars_nobody();
  }
  case wire::Glance::unclear:
    break;
  }
  return false;
}

bool FastPath::is_strangers(const wire::RoceV2Glance& roce) {
  const std::uint64_t addresses = roce.addresses();
  if (addresses == addresses_of_stranger_) {
    return true;
  }
  const bool is_rings = current_->pair_of(roce.source(), roce.destination()) != 0;
  (is_rings ? addresses_of_ring_ : addresses_of_stranger_) = addresses;
  return !is_rings;
}

std::uint16_t FastPath::look_up(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                                std::uint64_t now) {
  bridge_.learn(frame, ingress, now);
  const l2::PortSet ports = bridge_.egress_of(frame, ingress, now).ports;
  return std::has_single_bit(ports) ? static_cast<std::uint16_t>(std::countr_zero(ports))
                                    : frame::kNoPort;
}

} // namespace weir::stage
