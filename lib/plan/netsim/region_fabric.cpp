// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/region_fabric.hpp"

namespace weir::netsim {

RegionFabric::RegionFabric(const RegionNetwork& network, const RegionSettings& settings)
    : network_(network), settings_(settings), random_(settings.seed),
      pace_(network.bits_per_second), links_(std::size_t{2} * network.planes * network.groups *
                                             (network.gpus_per_group + lanes())) {}

std::uint32_t RegionFabric::gpu_link(std::uint32_t plane, std::uint32_t gpu) const {
  const std::uint32_t gpus = network_.groups * network_.gpus_per_group;
  return 2 * (plane * gpus + gpu);
}

std::uint32_t RegionFabric::across_link(std::uint32_t plane, SwitchId leaf,
                                        std::uint32_t lane) const {
  const std::uint32_t behind_gpus = network_.planes * network_.groups * network_.gpus_per_group;
  return 2 * (behind_gpus + (plane * network_.groups + leaf) * lanes() + lane);
}

Time RegionFabric::duration_on(std::uint32_t link, std::uint32_t bytes) {
  const Time duration = pace_.time_of(bytes);
  const std::uint32_t gpus = network_.groups * network_.gpus_per_group;
  const bool is_slow = network_.slow_gpu != kNobody && link / 2 < network_.planes * gpus &&
                       link / 2 % gpus == network_.slow_gpu;
  return is_slow ? 2 * duration : duration;
}

/// Returns when the link begins to send the packet.
Time RegionFabric::cross(std::uint32_t link, std::uint32_t back, const RegionPacket& packet,
                         Time now) {
  const std::uint32_t payload =
      packet.kind == RegionPacket::Kind::request ? 0 : settings_.payload_bytes;
  if (is_acknowledged(packet)) {
    links_[back].take(now, duration_on(back, settings_.header_bytes));
  }
  return links_[link].take(now, duration_on(link, settings_.header_bytes + payload));
}

void RegionFabric::arrive(Place place, std::uint32_t at, const RegionPacket& packet,
                          SwitchId came_from, Time time) {
  std::uint32_t id = 0;
  if (free_.empty()) {
    id = static_cast<std::uint32_t>(packets_.size());
    packets_.push_back(packet);
  } else {
    id = free_.back();
    free_.pop_back();
    packets_[id] = packet;
  }
  packets_[id].came_from = came_from;
  const auto plane = static_cast<std::uint16_t>(plane_of(packet.address));
  events_.push(time, {place, plane, at, id});
}

Time RegionFabric::send_up(std::uint32_t gpu, const RegionPacket& packet, Time now) {
  const std::uint32_t link = gpu_link(plane_of(packet.address), gpu);
  const Time begin = cross(link, link + 1, packet, now);
  const Time sent = links_[link].free_from();
  arrive(Place::at_switch, leaf_of(gpu), packet, packet.came_from, sent + network_.switch_latency);
  return begin;
}

void RegionFabric::send_down(std::uint32_t gpu, const RegionPacket& packet, Time now) {
  const std::uint32_t link = gpu_link(plane_of(packet.address), gpu);
  cross(link + 1, link, packet, now);
  arrive(Place::at_gpu, gpu, packet, packet.came_from, links_[link + 1].free_from());
}

void RegionFabric::send_across(SwitchId from, SwitchId to, std::uint32_t lane,
                               const RegionPacket& packet, Time now) {
  const std::uint32_t plane = plane_of(packet.address);
  std::uint32_t link = 0;
  std::uint32_t back = 0;
  if (network_.spines == 0) {
    link = across_link(plane, from, lane);
    back = across_link(plane, to, lane);
  } else if (is_leaf(from)) {
    link = across_link(plane, from, lane);
    back = link + 1;
  } else {
    back = across_link(plane, to, lane);
    link = back + 1;
  }
  cross(link, back, packet, now);
  arrive(Place::at_switch, to, packet, from, links_[link].free_from() + network_.switch_latency);
}

void RegionFabric::spread(SwitchId at, std::uint32_t lane, const RegionPacket& packet, Time now) {
  if (!is_leaf(at)) {
    for (SwitchId leaf = 0; leaf < network_.groups; ++leaf) {
      if (leaf != packet.came_from && members_of(leaf) != 0) {
        send_across(at, leaf, lane, packet, now);
      }
    }
    return;
  }
  for (std::uint32_t gpu = at; gpu < settings_.gpus; gpu += network_.groups) {
    if (gpu != packet.gpu) {
      send_down(gpu, packet, now);
    }
  }
  if (packet.came_from != kNobody) {
    return;
  }
  if (network_.spines != 0) {
    send_across(at, spine_of_lane(lane), lane, packet, now);
  } else if (members_of(1 - at) != 0) {
    send_across(at, 1 - at, lane, packet, now);
  }
}

void RegionFabric::send_towards(SwitchId at, SwitchId goal, std::uint32_t lane,
                                const RegionPacket& packet, Time now) {
  const bool climbs = network_.spines != 0 && is_leaf(at);
  send_across(at, climbs ? spine_of_lane(lane) : goal, lane, packet, now);
}

} // namespace weir::netsim
