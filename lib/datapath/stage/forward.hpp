// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "frame/instant.hpp"
#include "frame/trace.hpp"
#include "l2/bridge.hpp"
#include "stage/graph_watch.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::stage {

/// Longest frame of a port with this MTU: with an Ethernet header and two VLAN tags.
constexpr std::uint32_t max_frame_bytes(std::uint16_t mtu) {
  return mtu + 14u + 2 * 4u;
}

/// Where frames go after the last stage: rte_rings and ports in the switch, a capture in
/// weir-replay, links in the simulation. Each frame ends in exactly one of the three calls.
class FrameSink {
 public:
  virtual ~FrameSink() = default;

  /// Sends the frame once by each port of the (non-empty) set, and counts its departure when it has
  /// left.
  virtual void transmit(frame::Frame& frame, l2::PortSet ports) = 0;

  /// The same for a slot's results, each by the port at its place, which is known.
  virtual void transmit_results(std::span<frame::Frame* const> results,
                                std::span<const std::optional<std::uint16_t>> ports) {
    for (std::size_t place = 0; place < results.size(); ++place) {
      transmit(*results[place], l2::PortSet{1} << *ports[place]);
    }
  }

  virtual void release(frame::Frame& frame) = 0;

  /// An empty frame with room for so many bytes; nullptr when there is none. Its ingress is
  /// frame::kNoPort.
  virtual frame::Frame* originate(std::uint32_t bytes) = 0;
};

/// The last stage before transmit. Finds the frame's egress ports, or drops it under a named
/// reason. One per lcore.
class Forward {
 public:
  static constexpr frame::TraceRecord kForwarded{.event = frame::TraceEvent::forwarded};

  /// `max_frame_bytes`: the longest frame that each port sends, by port.
  Forward(const l2::Bridge& bridge, std::vector<std::uint32_t> max_frame_bytes, FrameSink& sink,
          frame::FrameCounters& counters, frame::Trace& trace);

  /// `bytes`: the longest frame that this port sends from now on; nothing: it sends none.
  void set_frame_limit(std::uint16_t port, std::optional<std::uint32_t> bytes);

  /// By `port` if it is given, else as the bridge has learnt.
  void send(frame::Frame& frame, frame::Departure departure, frame::Instant now,
            const frame::TraceRecord& record = kForwarded,
            std::optional<std::uint16_t> port = std::nullopt);

  /// A slot's results, each by the port of its receiver if that is known. `leave` is called with
  /// each place before any of them is sent. `describe` as for note(), by place.
  template <typename Leave, typename Describe>
  void send_results(std::span<frame::Frame* const> results,
                    std::span<const std::optional<std::uint16_t>> ports, frame::Instant now,
                    Leave&& leave, Describe&& describe) {
    bool are_usual = !is_watched();
    for (std::size_t place = 0; place < results.size(); ++place) {
      frame::Frame& result = *results[place];
      leave(place);
      result.departure = frame::Departure::consumed;
      result.traffic = frame::TrafficClass::ring;
      are_usual &= ports[place] && *ports[place] != result.ingress && fits_all(result.length);
    }
    if (are_usual) [[likely]] {
      return transmit(results, ports);
    }
    for (std::size_t place = 0; place < results.size(); ++place) {
      send(*results[place], frame::Departure::consumed, now, describe(place), ports[place]);
    }
  }

  /// By these ports.
  void send_by(l2::PortSet ports, frame::Frame& frame, frame::Instant now);

  const l2::Bridge& bridge() const { return bridge_; }

  /// Whether all ports send frames of this length.
  bool fits_all(std::size_t bytes) const { return bytes <= always_fits_; }

  /// Whether somebody wants to know what becomes of frames.
  bool is_watched() const { return trace_.is_on(); }

  /// A frame that the switch makes itself, to be sent by send(). nullptr when there is no room.
  frame::Frame* originate(std::uint32_t bytes) {
    frame::Frame* frame = sink_.originate(bytes);
    counters_.originated += frame == nullptr ? 0 : 1;
    return frame;
  }

  /// Ends a frame whose data have left in another.
  void consume(frame::Frame& frame) {
    counters_.count(frame::Departure::consumed);
    sink_.release(frame);
  }

  /// Ends a frame that this stage drops.
  template <StageId kStage>
  void drop(frame::Frame& frame, DropReason reason, frame::Instant now) {
    count_drop(kStage, reason);
    end(frame, kStage, reason, now);
  }

  /// Records what happened to a frame when tracing is on. Only then `describe` is called, for the
  /// record.
  template <typename Describe>
  void note(const frame::Frame& frame, frame::Instant now, Describe&& describe) {
    if (trace_.is_on()) [[unlikely]] {
      write_down(frame, describe(), now);
    }
  }

 private:
  void send_by(l2::PortSet ports, frame::Frame& frame, frame::Departure departure,
               frame::Instant now, const frame::TraceRecord& record);
  void transmit(std::span<frame::Frame* const> results,
                std::span<const std::optional<std::uint16_t>> ports);
  void end(frame::Frame& frame, StageId stage, DropReason reason, frame::Instant now);
  void write_down(const frame::Frame& frame, frame::TraceRecord record, frame::Instant now);
  l2::PortSet that_take(l2::PortSet ports, std::uint32_t frame_bytes) const;

  const l2::Bridge& bridge_;
  std::vector<std::uint32_t> max_frame_bytes_;
  std::uint32_t always_fits_; // the smallest of them
  FrameSink& sink_;
  frame::FrameCounters& counters_;
  frame::Trace& trace_;
};

} // namespace weir::stage
