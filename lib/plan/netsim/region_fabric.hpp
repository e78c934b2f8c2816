// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/event_queue.hpp"
#include "netsim/latency_histogram.hpp"
#include "netsim/region_run.hpp"
#include "netsim/transmitter.hpp"

#include <cstdint>
#include <random>
#include <vector>

namespace weir::netsim {

/// A switch of one plane: leaf switches, then spines.
using SwitchId = std::uint32_t;

/// A packet on the planes. Its address is its number in the message.
struct RegionPacket {
  enum class Kind : std::uint8_t {
    contribution, // push: to the address's home
    partial,      // push: an evicted sum, to the home GPU
    result,       // to all GPUs
    request,      // pull: to all GPUs but `gpu`
    response,     // pull: to `gpu`
  };

  Kind kind{};
  std::uint32_t address = 0;
  std::uint32_t gpu = kNobody;  // the one that asked, or that gets it, or whose result it is
  std::uint32_t count = 1;      // contributions in it
  SwitchId came_from = kNobody; // the switch that sent it; kNobody: a GPU or a table
  Time sent = 0;
};

/// The planes' links, numbered, and routing. All planes are alike; a packet stays on the plane of
/// its address.
class RegionFabric {
 public:
  enum class Place : std::uint16_t { at_switch, at_gpu, from_memory, timeout };

  struct Event {
    Place place{};
    std::uint16_t plane = 0;
    std::uint32_t at = 0;     // switch or GPU
    std::uint32_t packet = 0; // index in the pool, or a program's number
  };

  RegionFabric(const RegionNetwork& network, const RegionSettings& settings);

  EventQueue<Event>& events() { return events_; }

  std::uint32_t plane_of(std::uint32_t address) const { return address % network_.planes; }

  SwitchId leaf_of(std::uint32_t gpu) const { return gpu % network_.groups; }

  std::uint32_t switches() const { return network_.groups + network_.spines; }

  bool is_leaf(SwitchId id) const { return id < network_.groups; }

  /// Participating GPUs of a group.
  std::uint32_t members_of(SwitchId leaf) const {
    return (settings_.gpus + network_.groups - 1 - leaf) / network_.groups;
  }

  /// The port by which a GPU's leaf switch reaches it, and the port from a leaf to the other leaves
  /// in that lane.
  std::uint32_t port_of(std::uint32_t gpu) const { return gpu / network_.groups; }

  std::uint32_t port_of_lane(std::uint32_t lane) const { return network_.gpus_per_group + lane; }

  /// A lane is one of the parallel links between two leaves, or one of the spines.
  std::uint32_t lanes() const {
    return network_.spines == 0 ? network_.gpus_per_group : network_.spines;
  }

  SwitchId spine_of_lane(std::uint32_t lane) const { return network_.groups + lane; }

  /// Sends from a GPU to its leaf. Returns when its port begins to send it.
  Time send_up(std::uint32_t gpu, const RegionPacket& packet, Time now);
  /// Sends from a leaf to a GPU.
  void send_down(std::uint32_t gpu, const RegionPacket& packet, Time now);

  /// Sends to every participating GPU but packet.gpu. A leaf sends to the GPUs of its group and,
  /// unless another switch sent the packet, in that lane to the others. A spine sends to all leaves
  /// but the sender.
  void spread(SwitchId at, std::uint32_t lane, const RegionPacket& packet, Time now);

  /// Sends one hop towards another switch, in that lane.
  void send_towards(SwitchId at, SwitchId goal, std::uint32_t lane, const RegionPacket& packet,
                    Time now);

  const RegionPacket& operator[](std::uint32_t packet) const { return packets_[packet]; }

  /// Asks for the packet of the event after the next one.
  void prefetch_soon() const {
    const Event* event = events_.after_next();
    if (event != nullptr && event->packet < packets_.size()) { // else it is a program's number
      __builtin_prefetch(&packets_[event->packet]);
    }
  }

  void release(std::uint32_t packet) { free_.push_back(packet); }

  Time memory_latency() {
    const Time more = network_.memory_spread == 0 ? 0 : random_() % network_.memory_spread;
    return network_.memory_latency + more;
  }

 private:
  static bool is_acknowledged(const RegionPacket& packet) {
    return packet.kind != RegionPacket::Kind::request &&
           packet.kind != RegionPacket::Kind::response;
  }

  void send_across(SwitchId from, SwitchId to, std::uint32_t lane, const RegionPacket& packet,
                   Time now);
  Time cross(std::uint32_t link, std::uint32_t back, const RegionPacket& packet, Time now);
  void arrive(Place place, std::uint32_t at, const RegionPacket& packet, SwitchId came_from,
              Time time);
  std::uint32_t gpu_link(std::uint32_t plane, std::uint32_t gpu) const;
  std::uint32_t across_link(std::uint32_t plane, SwitchId leaf, std::uint32_t lane) const;
  Time duration_on(std::uint32_t link, std::uint32_t bytes);

  const RegionNetwork network_;
  const RegionSettings settings_;
  std::mt19937_64 random_; // the standard fixes its numbers
  Pace pace_;
  EventQueue<Event> events_;
  std::vector<Transmitter> links_; // even: up or forward; odd: down or back
  std::vector<RegionPacket> packets_;
  std::vector<std::uint32_t> free_;
};

} // namespace weir::netsim
