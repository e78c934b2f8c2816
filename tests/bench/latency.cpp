// SPDX-License-Identifier: BSD-3-Clause
#include "bare_switch.hpp"
#include "inline_lab.hpp"
#include "pipeline.hpp"

#include <rte_cycles.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr Shape kShape{.bytes = kInMemory / 8};

double ns_of(std::uint64_t ticks) {
  return static_cast<double>(ticks) * 1e9 / static_cast<double>(rte_get_tsc_hz());
}

/// The smallest of the sorted times such that this share of them is not larger.
double quantile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

Case case_of(const char* load) {
  return Case().with("load", load);
}

/// Reports the times, and the lateness of the machine (empty: not measured).
void report_times(std::vector<double> times, std::vector<double> machine, const char* load,
                  unsigned round) {
  std::sort(times.begin(), times.end());
  std::sort(machine.begin(), machine.end());
  std::vector<Figure> figures{{"p50", quantile(times, 0.5), "ns"},
                              {"p99", quantile(times, 0.99), "ns"},
                              {"p99.9", quantile(times, 0.999), "ns"}};
  if (!machine.empty()) {
    figures.push_back({"machine_p99", quantile(machine, 0.99), "ns"});
    figures.push_back({"machine_p99.9", quantile(machine, 0.999), "ns"});
  }
  report("latency", case_of(load), round, figures);
}

/// How late a loop is that only waits for the times at which slots would be complete: the time that
/// hypervisor and kernel take away. A loop that keeps a pace sees all of it, because later slots
/// are late too. Where one slot is timed at a time, few slots see it.
std::vector<double> lateness_of_nothing(std::size_t slots, double ticks_between_slots) {
  std::vector<double> times;
  const std::uint64_t start = rte_rdtsc();
  for (std::size_t slot = 1; slot <= slots; ++slot) {
    const std::uint64_t due =
        start + static_cast<std::uint64_t>(static_cast<double>(slot) * ticks_between_slots);
    std::uint64_t now = rte_rdtsc();
    while (now < due) {
      now = rte_rdtsc();
    }
    times.push_back(ns_of(now - due));
  }
  return times;
}

/// Contributions slot by slot, all ranks of a slot in a row: the order in which they arrive from
/// hosts in step.
std::vector<std::size_t> slot_by_slot(const Workload& workload) {
  const Shape& shape = workload.shape();
  const std::size_t message = std::size_t{shape.world} * shape.packets;
  std::vector<std::size_t> order;
  for (std::size_t first = 0; first < workload.data().size(); first += message) {
    for (std::size_t packet = 0; packet < shape.packets; ++packet) {
      for (std::size_t rank = 0; rank < shape.world; ++rank) {
        order.push_back(first + rank * shape.packets + packet);
      }
    }
  }
  return order;
}

/// A job whose every port emits one result of each slot, in slot order.
class LatencyLab {
 public:
  explicit LatencyLab(const Workload& workload)
      : workload_(workload), world_(workload.shape().world), order_(slot_by_slot(workload)),
        pool_(make_pool("bench_data", workload.data().size(), longest_of(workload.data()))),
        stock_(workload.data(), pool_.get()), lab_(workload, most_on_a_port(workload.data())),
        emitted_(world_) {
    lab_.open_connections();
    stock_.enter_sessions([this](std::uint16_t ring) { return lab_.session_of(ring); });
  }

  std::size_t slots() const { return order_.size() / world_; }

  /// Times one slot after the other, with nothing else under way.
  std::vector<double> idle() {
    return idle([this] { return lab_.lcore().round(clock_.now()); });
  }

  /// The same in the bare switch, in the same places of memory.
  std::vector<double> idle_bare() {
    stock_.refill();
    BareSwitch::describe(stock_);
    emitted_.assign(world_, 0);
    BareSwitch bare(workload_);
    return idle([&] { return bare.round(lab_.ports()); });
  }

  /// Contributions come at this interval, whatever the switch does. Times count from when a frame
  /// was due, so a switch that falls behind shows it.
  std::vector<double> paced(double ticks_between_frames) {
    std::vector<double> times;
    const std::uint64_t start = rte_rdtsc();
    const auto due = [&](std::size_t frame) {
      return start + static_cast<std::uint64_t>(static_cast<double>(frame) * ticks_between_frames);
    };
    unsigned rounds_without_result = 0;
    for (std::size_t next = 0; times.size() < slots(); ++rounds_without_result) {
      for (; next < order_.size() && due(next) <= rte_rdtsc(); ++next) {
        put(next);
      }
      lab_.lcore().round(clock_.now());
      for (const std::size_t done = take_results(); times.size() < done;) {
        times.push_back(ns_of(rte_rdtsc() - due((times.size() + 1) * world_ - 1)));
        rounds_without_result = 0;
      }
      expect_to_go_on(rounds_without_result);
    }
    return times;
  }

 private:
  /// `round` takes what has come, and returns how much there was to do.
  template <typename Round>
  std::vector<double> idle(Round&& round) {
    std::vector<double> times;
    for (std::size_t slot = 0; slot < slots(); ++slot) {
      for (std::uint16_t rank = 0; rank + 1 < world_; ++rank) {
        put(slot * world_ + rank);
      }
      while (round() != 0) {
      }
      const std::uint64_t start = rte_rdtsc();
      put((slot + 1) * world_ - 1);
      for (unsigned rounds = 0; take_results() <= slot; ++rounds) {
        round();
        expect_to_go_on(rounds);
      }
      times.push_back(ns_of(rte_rdtsc() - start));
    }
    return times;
  }

  void put(std::size_t position) {
    const std::size_t frame = order_[position];
    lab_.ports().put(stock_.port_of(frame), stock_.frame(frame));
  }

  /// Throws when the switch drops what it should add, instead of waiting for ever.
  void expect_to_go_on(unsigned rounds_without_result) const {
    constexpr unsigned most = 100'000'000; // some seconds
    if (rounds_without_result == most) {
      throw std::runtime_error("latency: the switch has stopped sending results");
    }
  }

  /// Takes the slots' results that have left by all ports; returns their number.
  std::size_t take_results() {
    std::array<rte_mbuf*, 64> frames;
    for (std::uint16_t port = 0; port < world_; ++port) {
      emitted_[port] += lab_.ports().take(port, frames.data(), frames.size());
    }
    return *std::min_element(emitted_.begin(), emitted_.end());
  }

  const Workload& workload_;
  std::uint16_t world_;
  std::vector<std::size_t> order_;
  Pool pool_;
  FrameStock stock_;
  InlineLab lab_;
  lcore::Clock clock_;
  std::vector<std::size_t> emitted_; // by port
};

/// Time per frame of a switch that always has frames waiting.
double ticks_per_frame_at_capacity(const Workload& workload) {
  LatencyLab lab(workload);
  const std::uint64_t start = rte_rdtsc();
  const std::size_t frames = lab.paced(0).size() * workload.shape().world;
  return static_cast<double>(rte_rdtsc() - start) / static_cast<double>(frames);
}

void measure_idle(const Workload& workload, const Options& options, unsigned round) {
  LatencyLab lab(workload);
  if (case_of("idle").is_wanted(options)) {
    report_times(lab.idle(), {}, "idle", round);
  }
  if (case_of("idle, bare").is_wanted(options)) {
    report_times(lab.idle_bare(), {}, "idle, bare", round);
  }
}

void measure_paced(const Workload& workload, const Options& options, unsigned round) {
  const double busy = ticks_per_frame_at_capacity(workload);
  for (const auto& [load, interval] : {std::pair{"half", 2 * busy}, {"quarter", 4 * busy}}) {
    if (case_of(load).is_wanted(options)) {
      const std::vector<double> times = LatencyLab(workload).paced(interval);
      const std::uint16_t world = workload.shape().world;
      report_times(times, lateness_of_nothing(times.size(), interval * world), load, round);
    }
  }
}

} // namespace

void measure_latency(const Options& options) {
  const Workload workload(kShape);
  const bool has_paced =
      case_of("half").is_wanted(options) || case_of("quarter").is_wanted(options);
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("latency", round, options);
    measure_idle(workload, options, round);
    if (has_paced) {
      measure_paced(workload, options, round);
    }
  }
}

} // namespace weir::bench
