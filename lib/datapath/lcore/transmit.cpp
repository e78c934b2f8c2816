// SPDX-License-Identifier: BSD-3-Clause
#include "lcore/transmit.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace weir::lcore {
namespace {

/// The frame's mbuf, as long as the frame: a result has no trailer any more, and how long the
/// switch's own frames are is known only now.
rte_mbuf* mbuf_to_send(frame::Frame& frame) {
  rte_mbuf* mbuf = mbuf_of(frame);
  assert(frame.data == rte_pktmbuf_mtod(mbuf, const std::uint8_t*) && mbuf->nb_segs == 1);
  mbuf->pkt_len = frame.length;
  mbuf->data_len = static_cast<std::uint16_t>(frame.length);
  return mbuf;
}

/// The result leaves by this port.
TxRequest request_for(frame::Frame& result, std::uint16_t port) {
  return {mbuf_to_send(result), port, frame::Departure::consumed, frame::TrafficClass::ring,
          result.length};
}

} // namespace

Transmitter::Transmitter(Handoffs& handoffs, stage::Forward& forward, rte_mempool* pool,
                         frame::FrameCounters& counters, PortCounters& ports)
    : handoffs_(handoffs), forward_(forward), pool_(pool), counters_(counters),
      port_counters_(ports) {}

void Transmitter::add_port(std::uint16_t port, std::unique_ptr<TxPort> queues) {
  assert(!ports_[port] || ports_[port]->is_closed());
  ports_[port] = std::move(queues);
  own_ports_ |= l2::set_of(port);
}

void Transmitter::close_port(std::uint16_t port) {
  if (ports_[port]) {
    set_busy(port);
    ports_[port]->close(counters_, port_counters_[port]);
  }
}

bool Transmitter::has_open_port() const {
  return std::ranges::any_of(ports_, [](const auto& port) { return port && !port->is_closed(); });
}

unsigned Transmitter::flush() {
  unsigned sent = 0;
  l2::for_each_port(own_ports_ & ~idle_ports_, [&](std::uint16_t index) {
    TxPort& port = *ports_[index];
    sent += port.flush(counters_, port_counters_[index]);
    const bool may_tx_burst =
        handoffs_.is_own_port(frame::TrafficClass::ring, index) && port.may_tx_burst();
    idle_ports_ |= l2::PortSet{may_tx_burst} << index;
  });
  return sent;
}

void Transmitter::transmit(frame::Frame& frame, l2::PortSet ports) {
  rte_mbuf* mbuf = mbuf_to_send(frame);
  frame::Departure departure = frame.departure;
  // Read now: after the first send the frame may be gone.
  const frame::TrafficClass traffic = frame.traffic;
  const std::uint32_t bytes = frame.length;
  if (std::has_single_bit(ports)) [[likely]] {
    const auto port = static_cast<std::uint16_t>(std::countr_zero(ports));
    return transmit({mbuf, port, departure, traffic, bytes});
  }
  const int extra = std::popcount(ports) - 1;
  rte_pktmbuf_refcnt_update(mbuf, static_cast<std::int16_t>(extra));
  l2::for_each_port(ports, [&](std::uint16_t port) {
    transmit({mbuf, port, departure, traffic, bytes});
    departure = frame::Departure::copy;
  });
}

void Transmitter::transmit_results(std::span<frame::Frame* const> results,
                                   std::span<const std::optional<std::uint16_t>> ports) {
  assert(results.size() == ports.size());
  if (results_ == Results::next_at_once) {
    return tx_burst_results(results, ports);
  }
  for (std::size_t place = 0; place < results.size(); ++place) {
    enqueue_or_handoff(request_for(*results[place], *ports[place]));
  }
}

/// The results of a slot that a frame completed which came alone: no others will follow soon that
/// they could leave with. All queues are loaded first, so that what one waits for comes together
/// with the others'.
[[gnu::noinline]] void
Transmitter::tx_burst_results(std::span<frame::Frame* const> results,
                              std::span<const std::optional<std::uint16_t>> ports) {
  results_ = Results::together;
  for (const std::optional<std::uint16_t>& port : ports) {
    if (is_idle(*port)) {
      ports_[*port]->load_queue(frame::TrafficClass::ring);
    }
  }
  for (std::size_t place = 0; place < results.size(); ++place) {
    const TxRequest request = request_for(*results[place], *ports[place]);
    if (!tx_burst(request)) {
      enqueue_or_handoff(request);
    }
  }
}

/// For a frame that is no copy. False when the port is not idle or the device does not take it.
[[gnu::always_inline]] inline bool Transmitter::tx_burst(const TxRequest& request) {
  const auto& [mbuf, port, departure, traffic, bytes] = request;
  if (!is_idle(port) || !ports_[port]->tx_burst(mbuf, traffic)) {
    return false;
  }
  port_counters_[port].count_sent(traffic, 1, bytes);
  counters_.count(departure);
  return true;
}

std::size_t Transmitter::tx_burst(std::span<rte_mbuf* const> mbufs, std::uint64_t bytes,
                                  std::uint16_t port) {
  return handoffs_.is_own_port(frame::TrafficClass::other, port)
             ? ports_[port]->tx_burst(mbufs, bytes, counters_, port_counters_[port])
             : 0;
}

std::size_t Transmitter::enqueue(std::span<rte_mbuf* const> mbufs, std::uint16_t port) {
  constexpr auto traffic = frame::TrafficClass::other;
  return handoffs_.is_own_port(traffic, port)
             ? busy_port(port).enqueue(mbufs, frame::Departure::forwarded, traffic)
             : 0;
}

/// As transmit(), with a short way for the usual case: the port is this lcore's, and its backlog
/// has room.
[[gnu::always_inline]] inline void Transmitter::enqueue_or_handoff(const TxRequest& request) {
  const auto& [mbuf, port, departure, traffic, bytes] = request;
  if (!handoffs_.is_own_port(traffic, port) ||
      !busy_port(port).enqueue(mbuf, bytes, departure, traffic)) [[unlikely]] {
    enqueue_on_full_or_handoff(request);
  }
}

[[gnu::noinline]] void Transmitter::enqueue_on_full_or_handoff(const TxRequest& request) {
  transmit(request);
}

void Transmitter::enqueue_on_full(TxPort& port, const TxRequest& request) {
  port.flush(counters_, port_counters_[request.port]);
  if (!port.enqueue(request.mbuf, request.bytes, request.departure, request.traffic)) {
    drop(request, port.why_refused(request.traffic));
  }
}

void Transmitter::drop(const TxRequest& request, DropReason reason) {
  forward_.note(frame_of(request.mbuf), now_, [&] {
    return frame::TraceRecord{.egress = l2::set_of(request.port),
                              .event = frame::TraceEvent::dropped,
                              .drop = reason,
                              .dropped_by = stage::number_of(stage::StageId::transmit)};
  });
  count_undelivered(request.departure, reason, counters_);
  port_counters_[request.port].count_dropped(request.traffic);
  free_mbuf(request.mbuf);
}

void Transmitter::release(frame::Frame& frame) {
  free_mbuf(mbuf_of(frame));
}

frame::Frame* Transmitter::originate(std::uint32_t bytes) {
  rte_mbuf* mbuf = pool_ == nullptr ? nullptr : rte_pktmbuf_alloc(pool_);
  if (mbuf == nullptr) {
    return nullptr;
  }
  if (rte_pktmbuf_tailroom(mbuf) < bytes) {
    rte_pktmbuf_free(mbuf);
    return nullptr;
  }
  return &make_frame(mbuf, frame::kNoPort);
}

std::uint64_t Transmitter::frames_waiting() const {
  std::uint64_t frames = 0;
  for (const auto& port : ports_) {
    frames += port ? port->frames_waiting() : 0;
  }
  return frames;
}

void Transmitter::discard() {
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    if (ports_[port]) {
      ports_[port]->discard(counters_, port_counters_[port]);
    }
  }
}

} // namespace weir::lcore
