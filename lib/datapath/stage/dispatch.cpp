// SPDX-License-Identifier: BSD-3-Clause
#include "stage/dispatch.hpp"

#include "stage/graph_watch.hpp"

#include <utility>

namespace weir::stage {

Dispatch::Dispatch(const ring::CurrentRings& current, const conn::MagicRule::Settings& magic_rule,
                   Forward& forward, WorkerSink& workers, const SentProbes& sent,
                   const std::optional<region::Address>& regions)
    : current_(current), magic_rule_(magic_rule), forward_(forward), workers_(workers), sent_(sent),
      regions_(regions) {}

void Dispatch::accept(frame::Frame& frame, frame::Instant now) {
  if (frame.pair == 0) {
    return forward_foreign(frame, now);
  }
  if (!current_->may_enter(frame.pair, frame.ingress)) {
    return drop(frame, DropReason::wrong_port, now);
  }
  passes<StageId::dispatch, StageId::queue>();
  workers_.to_worker(frame, current_->ring_group_of_pair(frame.pair), now);
}

/// What comes by a shut port teaches the magic rule nothing.
[[gnu::always_inline]] inline std::optional<DropReason>
Dispatch::why_not_forwarded(frame::Frame& frame, frame::Instant now) {
  const l2::Bridge& bridge = forward_.bridge();
  if (bridge.is_shut(frame.ingress)) {
    return DropReason::not_bridged;
  }
  if (bridge.is_tied_elsewhere(frame.bytes(), frame.ingress)) {
    return DropReason::tied_elsewhere;
  }
  return frame.packet.parsed == wire::Parsed::other
             ? std::nullopt
             : magic_rule_.why_not_forwarded(frame, now.ms());
}

[[gnu::always_inline]] inline const wire::LoopProbe*
Dispatch::find_probe(const frame::Frame& frame) const {
  const bool may_be_one = frame.packet.parsed == wire::Parsed::other && sent_.are_sent;
  return may_be_one ? wire::find_loop_probe(frame.bytes()) : nullptr;
}

void Dispatch::forward_foreign(frame::Frame& frame, frame::Instant now) {
  if (const wire::LoopProbe* probe = find_probe(frame)) [[unlikely]] {
    return accept_probe(frame, *probe, now);
  }
  if (regions_) [[unlikely]] {
    if (is_impostor_of_regions(frame)) {
      return forward_.drop<StageId::dispatch>(frame, DropReason::region_impostor, now);
    }
    if (is_for_regions(frame)) {
      return accept_for_regions(frame, now);
    }
  }
  if (const auto reason = why_not_forwarded(frame, now)) {
    return drop(frame, *reason, now);
  }
  passes<StageId::dispatch, StageId::forward>();
  forward_.send(frame, frame::Departure::forwarded, now);
}

[[gnu::cold, gnu::noinline]] bool Dispatch::is_for_regions(const frame::Frame& frame) const {
  if (frame.length < sizeof(wire::EthernetHeader)) {
    return false;
  }
  const auto& ethernet = wire::view_as<wire::EthernetHeader>(frame.data);
  return ethernet.destination == regions_->mac ||
         (ethernet.destination.is_group() && find_request_for_regions(frame).at != 0);
}

/// The switch itself sends nothing to its own ports. Who could speak for the regions would
/// acknowledge in their name, or have a member's packets sent to itself.
[[gnu::cold, gnu::noinline]] bool
Dispatch::is_impostor_of_regions(const frame::Frame& frame) const {
  if (frame.length < sizeof(wire::EthernetHeader)) {
    return false;
  }
  if (wire::view_as<wire::EthernetHeader>(frame.data).source == regions_->mac) {
    return true;
  }
  return frame.packet.parsed == wire::Parsed::other
             ? wire::claimed_by_arp(frame.bytes()) == regions_->ip
             : is_of_regions(frame.source());
}

/// at: 0 when it does not ask for the regions' address.
wire::ArpRequest Dispatch::find_request_for_regions(const frame::Frame& frame) const {
  const wire::ArpRequest request = wire::find_arp_request(frame.bytes());
  return request.wanted == regions_->ip ? request : wire::ArpRequest{};
}

/// What asks for the address leaves as the answer, by the port that it came from. Nothing else to
/// the regions' MAC address is anybody else's.
[[gnu::cold, gnu::noinline]] void Dispatch::accept_for_regions(frame::Frame& frame,
                                                               frame::Instant now) {
  if (const wire::ArpRequest request = find_request_for_regions(frame); request.at != 0) {
    wire::answer_arp({frame.data, frame.length}, request, regions_->mac);
    passes<StageId::dispatch, StageId::forward>();
    const std::uint16_t asker = std::exchange(frame.ingress, frame::kNoPort);
    return forward_.send(frame, frame::Departure::consumed, now, Forward::kForwarded, asker);
  }
  const bool is_roce = frame.packet.parsed != wire::Parsed::other;
  if (!is_roce || frame.destination() != regions_->ip) {
    return forward_.drop<StageId::dispatch>(frame, DropReason::region_unknown, now);
  }
  passes<StageId::dispatch, StageId::queue>();
  workers_.to_region(frame, now);
}

[[gnu::cold, gnu::noinline]] void Dispatch::drop(frame::Frame& frame, DropReason reason,
                                                 frame::Instant now) {
  refused_.note(*current_, frame, reason, now.ns);
  forward_.drop<StageId::dispatch>(frame, reason, now);
}

[[gnu::cold]] void Dispatch::accept_probe(frame::Frame& frame, const wire::LoopProbe& probe,
                                          frame::Instant now) {
  const l2::PortSet ports = note_probe(probe, frame.ingress);
  if (ports == 0) {
    return forward_.drop<StageId::dispatch>(frame, DropReason::loop_probe, now);
  }
  passes<StageId::dispatch, StageId::forward>();
  forward_.send_by(ports, frame, now);
}

/// Returns where the probe goes on: another switch's to further switches, since a loop may lead
/// through several. Hosts need none but this switch's. One that bears this switch's number and was
/// not sent of late is an old one, or a forged one.
l2::PortSet Dispatch::note_probe(const wire::LoopProbe& probe, std::uint16_t ingress) {
  if (probe.sender.get() != sent_.sender) {
    seen_.add_other(ingress, probe.sender.get());
    return forward_.bridge().others_of(ingress) & sent_.to_switches;
  }
  if (sent_.has_sent(probe) && probe.port.get() != ingress) {
    seen_.add_own(ingress, probe.port.get());
  }
  return 0;
}

} // namespace weir::stage
