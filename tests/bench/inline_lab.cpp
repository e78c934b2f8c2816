// SPDX-License-Identifier: BSD-3-Clause
#include "inline_lab.hpp"

#include "lcore/prefetch.hpp"
#include "measurement.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

namespace weir::bench {
namespace {

constexpr unsigned kBurst = 32;

} // namespace

std::uint32_t most_on_a_port(const std::vector<Arrival>& arrivals) {
  std::array<std::uint32_t, Workload::kMaxPorts> counts{};
  for (const Arrival& arrival : arrivals) {
    ++counts[arrival.port];
  }
  return *std::max_element(counts.begin(), counts.end());
}

InlineLab::InlineLab(const Workload& workload, std::uint32_t depth, std::uint32_t queue_room)
    : workload_(workload), ports_(workload.ports(), depth), tables_(workload, queue_room) {
  restart();
}

void InlineLab::restart() {
  lcore_.reset();
  lcore_ = std::make_unique<lcore::Lcore>(0, lcore::Idle::spin, tables_.shared);
  for (std::uint16_t port = 0; port < ports_.size(); ++port) {
    lcore_->add_rx_queue({port, ports_.device(port), 0});
    lcore_->add_tx_port(port, {.device = ports_.device(port)});
  }
  lcore_->make_worker(all_rings(workload_), tables_.worker_settings());
}

std::string InlineLab::what_was_dropped() const {
  std::string drops;
  const auto& dropped = lcore_->counters().dropped;
  for (std::size_t reason = 0; reason < dropped.size(); ++reason) {
    if (dropped[reason] != 0) {
      drops += fmt::format(" {} {}", name_of(static_cast<DropReason>(reason)), dropped[reason]);
    }
  }
  return drops;
}

void InlineLab::fail(std::uint64_t sent, std::uint64_t frames) const {
  throw std::runtime_error(fmt::format("the switch sent {} of {} frames; it dropped:{}", sent,
                                       frames, what_was_dropped()));
}

void InlineLab::run_until_sent(std::uint64_t frames) {
  std::uint64_t sent = 0;
  for (unsigned idle = 0; sent < frames;) {
    idle = lcore_->round(clock_.now()) == 0 ? idle + 1 : 0;
    sent += ports_.take_transmitted();
    if (idle > 2) {
      fail(sent, frames);
    }
  }
}

void InlineLab::run_stock(const FrameStock& stock, std::size_t backlog) {
  std::size_t arrived = 0;
  std::size_t sent = 0;
  while (sent < stock.size()) {
    const std::size_t until = std::min(stock.size(), sent + backlog);
    for (; arrived < until; ++arrived) {
      ports_.put(stock.port_of(arrived), stock.frame(arrived));
    }
    const unsigned work = lcore_->round(clock_.now());
    const std::size_t left = ports_.take_transmitted();
    if (work == 0 && left == 0) {
      fail(sent, stock.size());
    }
    sent += left;
  }
}

double InlineLab::seconds_of_ring(const FrameStock& stock, std::uint16_t ring) {
  const auto results = [&] { return lcore_->worker()->counters_of(ring).results; };
  std::uint64_t due = results();
  for (std::size_t frame = 0; frame < stock.size(); ++frame) {
    due += stock.ring_of(frame) == ring ? 1 : 0;
  }
  stock.arrive_at(ports_);
  std::uint64_t sent = 0;
  const double seconds = seconds_of([&] {
    while (results() != due) {
      const unsigned work = lcore_->round(clock_.now());
      const std::uint64_t left = ports_.take_transmitted();
      if (work == 0 && left == 0) {
        fail(sent, stock.size());
      }
      sent += left;
    }
  });
  run_until_sent(stock.size() - sent);
  return seconds;
}

void InlineLab::introduce_senders_of(const std::vector<Arrival>& frames) {
  for (const Arrival& frame : frames) {
    tables_.bridge.learn(frame.bytes, frame.port, clock_.now().ms());
  }
}

void InlineLab::open_connections() {
  send(workload_.hellos(), Sessions::as_told);
  if (!workload_.before().empty()) {
    send(workload_.before(), Sessions::entered);
  }
}

void InlineLab::send(const std::vector<Arrival>& arrivals, Sessions sessions) {
  const Pool pool = make_pool("bench_before", arrivals.size(), longest_of(arrivals));
  FrameStock stock(arrivals, pool.get());
  if (sessions == Sessions::entered) {
    stock.enter_sessions([&](std::uint16_t ring) { return session_of(ring); });
  }
  stock.arrive_at(ports_);
  run_until_sent(stock.size());
}

namespace {

void swap_addresses(rte_mbuf* frame) {
  auto* ethernet = rte_pktmbuf_mtod(frame, rte_ether_hdr*);
  std::swap(ethernet->src_addr, ethernet->dst_addr);
}

/// Adds up the frame in words of 64 bytes. The sum goes where the compiler cannot see that it is
/// not used.
void read_all(const rte_mbuf* frame) {
  using Line = std::uint64_t __attribute__((vector_size(64), aligned(1)));
  const auto* lines = rte_pktmbuf_mtod(frame, const Line*);
  Line sum{};
  for (unsigned line = 0; line < frame->data_len / sizeof(Line); ++line) {
    sum ^= lines[line];
  }
  asm volatile("" ::"m"(sum));
}

/// Receives, does `work` to each frame, transmits.
template <typename Work>
void turn_around(RingPorts& ports, std::uint64_t frames, Work&& work) {
  std::array<rte_mbuf*, kBurst> burst;
  for (std::uint64_t sent = 0; sent < frames; sent += ports.take_transmitted()) {
    for (std::uint16_t port = 0; port < ports.size(); ++port) {
      const std::uint16_t count = rte_eth_rx_burst(ports.device(port), 0, burst.data(), kBurst);
      const std::span received(burst.data(), count);
      lcore::prefetch_headers(received);
      work(received, port);
      rte_eth_tx_burst(ports.device(port), 0, burst.data(), count);
    }
  }
}

} // namespace

void macswap_until_sent(RingPorts& ports, std::uint64_t frames) {
  turn_around(ports, frames, [](std::span<rte_mbuf* const> burst, std::uint16_t) {
    std::for_each(burst.begin(), burst.end(), swap_addresses);
  });
}

void InlineLab::bridge_until_sent(std::uint64_t frames) {
  turn_around(ports_, frames, [&](std::span<rte_mbuf* const> burst, std::uint16_t port) {
    const std::uint64_t now = clock_.now().ms();
    l2::PortSet all = 0;
    for (rte_mbuf* frame : burst) {
      const std::span bytes(rte_pktmbuf_mtod(frame, const std::uint8_t*), frame->data_len);
      tables_.bridge.learn(bytes, port, now);
      all |= tables_.bridge.egress_of(bytes, port, now).ports;
    }
    asm volatile("" ::"r"(all));
  });
}

void read_until_sent(RingPorts& ports, std::uint64_t frames) {
  turn_around(ports, frames, [](std::span<rte_mbuf* const> burst, std::uint16_t) {
    for (rte_mbuf* frame : burst) {
      swap_addresses(frame);
      read_all(frame);
    }
  });
}

} // namespace weir::bench
