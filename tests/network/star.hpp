// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "network/carrier.hpp"
#include "stage/inline_switch.hpp"

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weir::network {

/// Where a frame arrives: at the switch by this port, or at the station on the port.
struct StarPlace {
  enum class End : std::uint8_t { at_switch, at_station };
  End end{};
  std::uint16_t port = 0;
};

/// A switch with two links for each port, to and from its station. The switch is the real one
/// (stage::InlineSwitch) and takes no time.
template <class Pool>
class Star : public Carrier<Pool, StarPlace>, private stage::FrameSink {
 public:
  using typename Carrier<Pool, StarPlace>::Packet;

  Link& to_switch(std::uint16_t port) { return to_switch_[port]; }

  Link& from_switch(std::uint16_t port) { return from_switch_[port]; }

  const stage::InlineSwitch& engine() const { return *switch_; }

  /// Sends from the station to the switch.
  void send(std::uint16_t port, Packet& packet) {
    this->carry(to_switch_[port], packet, {StarPlace::End::at_switch, port});
  }

 protected:
  /// Traits are by port. Call install() next.
  Star(Pool& packets, Dice& dice, const std::vector<LinkTraits>& to_switch,
       const std::vector<LinkTraits>& from_switch)
      : Carrier<Pool, StarPlace>(packets, dice), to_switch_(to_switch.begin(), to_switch.end()),
        from_switch_(from_switch.begin(), from_switch.end()) {}

  /// Replaces the switch. `longest_frame` is by port.
  void install(std::vector<ring::RingSpec> rings, const std::vector<std::uint32_t>& longest_frame,
               const stage::InlineSwitch::Settings& settings) {
    stage::FrameSink& sink = *this;
    switch_ =
        std::make_unique<stage::InlineSwitch>(std::move(rings), longest_frame, settings, sink);
  }

  /// Drops all that the switch's rings hold.
  void reset_rings() {
    for (const std::uint16_t ring : switch_->rings().present()) {
      switch_->reset_ring(ring, frame::Instant{this->now()});
    }
  }

  stage::InlineSwitch& installed() { return *switch_; }

  std::uint16_t ports() const { return static_cast<std::uint16_t>(to_switch_.size()); }

  /// The switch sends the packet to these ports, one or more.
  virtual void depart(Packet& /*packet*/, l2::PortSet /*ports*/) {}

  /// The packet, or a copy of it, goes to one of them. Sends it at once.
  virtual void leave(std::uint16_t port, Packet& packet) {
    this->carry(from_switch_[port], packet, {StarPlace::End::at_station, port});
  }

  /// The switch has dropped or consumed the packet.
  virtual void give_back(Packet& /*packet*/) {}

  /// The switch makes the packet.
  virtual void make_own(Packet& /*packet*/) {}

 private:
  void transmit(frame::Frame& frame, l2::PortSet ports) final {
    auto& packet = static_cast<Packet&>(frame);
    depart(packet, ports);
    switch_->count(packet.departure);
    switch_->count_copies(static_cast<std::uint64_t>(std::popcount(ports)) - 1);
    const int last = std::bit_width(ports) - 1;
    l2::for_each_port(ports, [&](std::uint16_t port) {
      leave(port, port == last ? packet : this->packets().copy(packet));
    });
  }

  void release(frame::Frame& frame) final {
    auto& packet = static_cast<Packet&>(frame);
    give_back(packet);
    this->packets().free(packet);
  }

  frame::Frame* originate(std::uint32_t /*bytes*/) final {
    Packet& packet = this->packets().make();
    make_own(packet);
    return &packet;
  }

  std::vector<Link> to_switch_; // by port
  std::vector<Link> from_switch_;
  std::unique_ptr<stage::InlineSwitch> switch_;
};

} // namespace weir::network
