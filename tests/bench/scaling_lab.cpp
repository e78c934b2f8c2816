// SPDX-License-Identifier: BSD-3-Clause
#include "scaling_lab.hpp"

#include "control/lcores.hpp"
#include "measurement.hpp"

#include <rte_launch.h>
#include <rte_lcore.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

namespace weir::bench {
namespace {

constexpr unsigned kArriving = 32;
constexpr std::size_t kLeastFrames = 60'000;
constexpr std::uint64_t kTimeoutNs = 20'000'000'000;

control::Placement place(const Workload& workload, const Team& team, const ring::RingSet& rings) {
  config::Config config;
  config.ports.resize(workload.ports());
  for (auto& port : config.ports) {
    port.rx_queues = team.rx_queues();
  }
  for (unsigned id = 0; id < team.lcores.size(); ++id) {
    config.lcores.push_back({.id = id, .roles = team.lcores[id]});
  }
  config.rings = workload.rings();
  return control::place(config, rings);
}

std::vector<lcore::TxQueues> queues_of(const RingPorts& ports) {
  std::vector<lcore::TxQueues> queues;
  for (std::uint16_t port = 0; port < ports.size(); ++port) {
    queues.push_back({.device = ports.device(port)});
  }
  return queues;
}

} // namespace

ScalingLab::ScalingLab(const Workload& workload, const Team& team)
    : workload_(workload), ports_(workload.ports(), 2 * kWindow, team.rx_queues()),
      tables_(workload), placement_(place(workload, team, *tables_.rings)),
      queues_(queues_of(ports_)), hosts_(workload.ports()) {
  for (Host& host : hosts_) {
    host.wires.resize(team.rx_queues());
  }
}

double ScalingLab::seconds_of(FrameStock& stock) {
  restart();
  const Pool pool =
      make_pool("bench_hellos", workload_.hellos().size(), longest_of(workload_.hellos()));
  run(FrameStock(workload_.hellos(), pool.get()));
  stock.enter_sessions([this](std::uint16_t ring) { return session_of(ring); });
  return bench::seconds_of([&] { run(stock); });
}

double ScalingLab::frames_per_second(FrameStock& stock) {
  std::size_t frames = 0;
  double seconds = 0;
  do {
    stock.refill();
    seconds += seconds_of(stock);
    frames += stock.size();
  } while (frames < kLeastFrames);
  return static_cast<double>(frames) / seconds;
}

void ScalingLab::restart() {
  lcores_.clear();
  const bool is_team = placement_.workers() > 1;
  lcores_ =
      control::make_lcores(placement_, tables_.shared,
                           is_team ? tables_.team_settings() : tables_.worker_settings(), queues_);
}

std::uint32_t ScalingLab::session_of(std::uint16_t ring) const {
  for (const auto& lcore : lcores_) {
    const stage::Worker* worker = lcore->worker();
    const std::span<const std::uint16_t> rings =
        worker == nullptr ? std::span<const std::uint16_t>() : worker->rings();
    if (std::find(rings.begin(), rings.end(), ring) != rings.end()) {
      return worker->incarnations().session_of(ring);
    }
  }
  throw std::logic_error("no worker has the ring");
}

void ScalingLab::run(const FrameStock& stock) {
  for (Host& host : hosts_) {
    host.frames = 0;
    host.answered = 0;
    for (Wire& wire : host.wires) {
      wire.frames.clear();
      wire.arrived = 0;
    }
  }
  for (std::size_t i = 0; i < stock.size(); ++i) {
    const std::uint16_t port = stock.port_of(i);
    Host& host = hosts_[port];
    Wire& wire = host.wires[queue_of(port, stock.ring_of(i))];
    wire.frames.push_back({host.frames++, stock.frame(i)});
  }
  left_ = stock.size();
  std::vector<Driver> drivers;
  for (std::size_t lcore = 0; lcore < lcores_.size(); ++lcore) {
    drivers.push_back({this, lcore});
  }
  unsigned next = 1;
  unsigned id = 0;
  RTE_LCORE_FOREACH_WORKER(id) {
    if (next < drivers.size()) {
      rte_eal_remote_launch(drive, &drivers[next++], id);
    }
  }
  drive(&drivers.front());
  rte_eal_mp_wait_lcore();
  if (stuck_) {
    throw std::runtime_error("the switch did not send every frame of the workload");
  }
}

int ScalingLab::drive(void* driver) {
  const auto& [lab, lcore] = *static_cast<Driver*>(driver);
  lab->drive_lcore(lcore);
  return 0;
}

void ScalingLab::drive_lcore(std::size_t index) {
  const lcore::Clock clock;
  const control::Placement::DataLcore& place = placement_.lcores[index];
  const std::uint64_t deadline = clock.now().ns + kTimeoutNs;
  while (left_.load(std::memory_order_relaxed) != 0 && !stuck_) {
    for (const auto& queue : place.receives) {
      feed(queue);
    }
    const frame::Instant now = clock.now();
    lcores_[index]->round(now);
    for (const std::uint16_t port : place.transmits) {
      if (const std::size_t drained = drain(port); drained != 0) {
        left_.fetch_sub(drained, std::memory_order_relaxed);
      }
    }
    stuck_ = stuck_ || now.ns > deadline;
  }
}

/// A rank's frames leave by its successor's port.
std::uint16_t ScalingLab::predecessor_of(std::uint16_t port) const {
  return static_cast<std::uint16_t>((port + ports_.size() - 1) % ports_.size());
}

/// The port's only one, or the one that the ring's worker receives from.
std::uint16_t ScalingLab::queue_of(std::uint16_t port, std::uint16_t ring) const {
  if (hosts_[port].wires.size() == 1) {
    return 0;
  }
  const auto& queues = placement_.lcores[placement_.worker_of_ring[ring]].receives;
  const auto queue = std::ranges::find(queues, port, &control::Placement::Queue::port);
  if (queue == queues.end()) {
    throw std::logic_error("a worker has no queue of a port");
  }
  return queue->queue;
}

void ScalingLab::feed(const control::Placement::Queue& queue) {
  const Host& host = hosts_[queue.port];
  Wire& wire = hosts_[queue.port].wires[queue.queue];
  const std::size_t end_of_window = host.answered.load(std::memory_order_acquire) + kWindow;
  const std::size_t end = std::min(wire.frames.size(), wire.arrived + kArriving);
  for (; wire.arrived < end && wire.frames[wire.arrived].number < end_of_window; ++wire.arrived) {
    ports_.put(queue.port, wire.frames[wire.arrived].frame, queue.queue);
  }
}

std::size_t ScalingLab::drain(std::uint16_t port) {
  std::array<rte_mbuf*, 2 * kArriving> frames;
  const unsigned count = ports_.take(port, frames.data(), frames.size());
  std::atomic<std::size_t>& answered = hosts_[predecessor_of(port)].answered;
  answered.store(answered.load(std::memory_order_relaxed) + count, std::memory_order_release);
  return count;
}

} // namespace weir::bench
