// SPDX-License-Identifier: BSD-3-Clause
#include "stage/l2_fast_path.hpp"

#include "l2/port_set.hpp"

#include <bit>

namespace weir::stage {

L2FastPath::L2FastPath(const ring::CurrentRings& current, l2::Bridge& bridge,
                       const Dispatch& dispatch, const Forward& forward)
    : current_(current), bridge_(bridge), dispatch_(dispatch), forward_(forward) {}

void L2FastPath::begin_burst() {
  is_open_ = !forward_.is_watched();
  port_ = frame::kNoPort;
  addresses_of_stranger_ = kNone;
  addresses_of_ring_ = kNone;
}

std::uint16_t L2FastPath::check(std::span<const std::uint8_t> frame, const Signature& signature,
                                std::uint16_t ingress, std::uint64_t now) {
  if (!is_foreign(frame, ingress) || !forward_.fits_all(frame.size())) {
    return take_the_stages();
  }
  if (port_ == frame::kNoPort || !signature.has_stations_of(last_)) {
    port_ = look_up(frame, ingress, now);
  }
  last_ = signature;
  return port_ == frame::kNoPort ? port_ : passed();
}

/// Whether Dispatch certainly leaves the frame to Forward.
bool L2FastPath::is_foreign(std::span<const std::uint8_t> frame, std::uint16_t ingress) {
  const wire::Glance glance = wire::glance_at(frame);
  is_last_roce_ = glance == wire::Glance::roce_v2;
  switch (glance) {
  case wire::Glance::other:
    return true;
  case wire::Glance::roce_v2: {
    const wire::RoceV2Glance roce(frame);
    return is_strangers(roce) && !roce.may_have_ina_header() && dispatch_.remembers_nobody(ingress);
  }
  case wire::Glance::unclear:
    break;
  }
  return false;
}

bool L2FastPath::is_strangers(const wire::RoceV2Glance& roce) {
  const std::uint64_t addresses = roce.addresses();
  if (addresses == addresses_of_stranger_) {
    return true;
  }
  const bool is_known = current_->pair_of(roce.source(), roce.destination()) != 0 ||
                        dispatch_.is_of_regions(roce.source());
  (is_known ? addresses_of_ring_ : addresses_of_stranger_) = addresses;
  return !is_known;
}

std::uint16_t L2FastPath::look_up(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                                  std::uint64_t now) {
  if (dispatch_.may_concern_regions(wire::view_as<wire::EthernetHeader>(frame.data()))) {
    return frame::kNoPort;
  }
  bridge_.learn(frame, ingress, now);
  if (bridge_.is_tied_elsewhere(frame, ingress)) {
    return frame::kNoPort;
  }
  const l2::PortSet ports = bridge_.egress_of(frame, ingress, now).ports;
  return std::has_single_bit(ports) ? static_cast<std::uint16_t>(std::countr_zero(ports))
                                    : frame::kNoPort;
}

} // namespace weir::stage
