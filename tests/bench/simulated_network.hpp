// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "netsim/event_queue.hpp"
#include "netsim/transmitter.hpp"
#include "stage/inline_switch.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <vector>

namespace weir::bench {

/// Virtual nanoseconds.
using Time = std::uint64_t;

/// For every link, in both directions.
struct LinkTraits {
  double bits_per_ns = 100;
  Time delay = 1000;
  double loss = 0; // share of frames
};

/// Bytes on the wire in addition to a frame's own: preamble, FCS and gap.
inline constexpr std::uint32_t kWireOverhead = 8 + 4 + 12;

/// What is connected to a port of the network.
class Station {
 public:
  virtual ~Station() = default;
  virtual void receive(std::span<std::uint8_t> frame) = 0;
  virtual void expire() = 0;
};

/// A star of stations around one InlineSwitch, in virtual time. Links carry frames one after the
/// other at their rate, and may lose them. The switch takes no time.
class SimulatedNetwork : private stage::FrameSink {
 public:
  static constexpr std::uint32_t kFrameBytes = 1280;

  SimulatedNetwork(std::uint16_t ports, const LinkTraits& traits, std::vector<ring::RingSpec> rings,
                   std::uint64_t seed);

  void attach(std::uint16_t port, Station& station) { stations_[port] = &station; }

  /// The switch learns a station's port, as from an earlier frame.
  void introduce(std::uint16_t port, const wire::MacAddress& mac);

  /// Sends a frame from the station to the switch.
  void send(std::uint16_t port, std::span<const std::uint8_t> frame);

  void wake(std::uint16_t port, Time time);

  /// Executes the next event. False when there is none.
  bool advance();

  Time now() const { return now_; }

 private:
  struct Packet : frame::Frame {
    std::array<std::uint8_t, kFrameBytes> storage{};
  };

  enum class EventKind : std::uint8_t { at_switch, at_station, wake };

  struct Event {
    EventKind kind{};
    std::uint16_t port = 0;
    Packet* packet = nullptr;
  };

  void transmit(frame::Frame& frame, l2::PortSet ports) override;
  void release(frame::Frame& frame) override;

  Packet& make(std::span<const std::uint8_t> bytes);
  void push(Time time, EventKind kind, std::uint16_t port, Packet* packet = nullptr);
  void carry(netsim::Transmitter& link, EventKind arrival, std::uint16_t port, Packet& packet);

  const LinkTraits traits_;
  Time now_ = 0;
  netsim::EventQueue<Event> events_;
  std::mt19937_64 random_;
  std::deque<Packet> packets_;
  std::vector<Packet*> free_;
  std::vector<Station*> stations_;
  std::vector<netsim::Transmitter> up_; // by port
  std::vector<netsim::Transmitter> down_;
  stage::InlineSwitch switch_;
};

} // namespace weir::bench
