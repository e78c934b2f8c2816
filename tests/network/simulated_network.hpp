// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/event_queue.hpp"
#include "network/deadline_timer.hpp"
#include "network/egress_queue.hpp"
#include "network/packet_pool.hpp"
#include "network/star.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::network {

/// Anything that is connected to a port of the network.
class Station {
 public:
  virtual ~Station() = default;
  virtual void receive(std::span<std::uint8_t> frame) = 0;
  /// The time that it asked for has come.
  virtual void expire() = 0;
};

/// Packets and dice of a network. A base class, so that they exist before their users.
struct NetworkParts {
  PacketPool<Packet> pool;
  Dice link_dice;
};

/// A star of stations in virtual time. At the switch, each link to a station has a queue for each
/// class of traffic.
class SimulatedNetwork : private NetworkParts, public Star<PacketPool<Packet>> {
 public:
  struct Plan {
    std::vector<LinkTraits> links;   // by port, each for both directions
    std::uint32_t longest_frame = 0; // bytes
    std::uint64_t seed = 1;          // of what happens on the links
  };

  SimulatedNetwork(const Plan& plan, std::vector<ring::RingSpec> rings,
                   const stage::InlineSwitch::Settings& settings);

  void attach(std::uint16_t port, Station& station) { stations_[port] = &station; }

  /// Replaces the switch by one that has learnt nothing yet.
  void replace_switch(std::vector<ring::RingSpec> rings,
                      const stage::InlineSwitch::Settings& settings);

  /// Of the switch that there is now. It comes to the switch's timers by itself.
  region::RegionTable& regions() { return installed().regions(); }

  /// As stage::InlineSwitch::add_region, of nobody's.
  region::Region& add_region(const region::RegionSpec& spec, const region::RegionBirth& birth);

  /// From now on frames wait for their turn until serve(), if `backlog` is likely.
  void expect(stage::Backlog backlog) { installed().queue().expect(backlog); }

  /// Lets so many of the frames that wait go on.
  void serve(unsigned frames);

  /// Makes the switch learn the station's port, as from an earlier frame.
  void introduce(std::uint16_t port, const wire::MacAddress& mac);

  /// Sends from the station to the switch.
  void send(std::uint16_t port, std::span<const std::uint8_t> frame);

  /// When the station's link to the switch has sent all frames.
  Time link_free_from(std::uint16_t port) { return to_switch(port).free_from(); }

  void wake(std::uint16_t port, Time time);

  /// Makes the next event happen. False if there is none.
  bool advance();

  /// Makes all happen that is due until then. For callers with a clock of their own.
  void advance_to(Time time);

  Time now() const override { return now_; }

  /// Frames that found the queue at the switch full.
  std::uint64_t refused() const { return refused_; }

 private:
  enum class EventKind : std::uint8_t { arrival, wake, look, link_free };

  struct Event {
    EventKind kind{};
    StarPlace place;
    Packet* packet = nullptr;
  };

  void arrive(Time time, Packet& packet, const StarPlace& place) override;
  void take(Packet& packet, const StarPlace& place);
  void leave(std::uint16_t port, Packet& packet) override;
  void send_waiting(std::uint16_t port);
  void install_alike(std::vector<ring::RingSpec> rings,
                     const stage::InlineSwitch::Settings& settings);

  void happen(const Event& event);
  void poll_timers();
  void expect_timer();

  const std::uint32_t longest_frame_;
  Time now_ = 0;
  DeadlineTimer switch_timer_;
  netsim::EventQueue<Event> events_;
  std::vector<Station*> stations_;           // by port
  std::vector<EgressQueue<Packet>> waiting_; // by port; while one is not empty, an event is due
  std::uint64_t refused_ = 0;
};

} // namespace weir::network
