// SPDX-License-Identifier: BSD-3-Clause

/// How long an all-reduce takes in a network of equal links, through the switch and round the ring,
/// in virtual time: hosts' queue pairs and the switch are the real ones, links have a rate, a delay
/// and a loss rate, and computing takes no time. A round is a seed of what gets lost.

#include "exchange.hpp"
#include "measurement.hpp"
#include "simulated_host.hpp"
#include "simulated_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "allreduce";
constexpr double kBitsPerNs = 100; // 100 Gbit/s
constexpr Time kDelay = 1000;      // of each link, ns
constexpr std::uint32_t kWindow = kInboxes / 2;
constexpr std::uint32_t kFrameHeaders = 14 + 20 + 8 + 12 + 4; // Ethernet, IPv4, UDP, BTH; ICRC

struct Setting {
  Case parameters;
  std::uint16_t ranks = 2;
  std::size_t bytes = 0;
  double loss = 0;
};

struct Outcome {
  Time duration = 0;
  std::uint64_t repeated = 0; // packets, of all ranks
  bool is_finished = false;   // else a queue pair has failed
};

conn::RingSpec ring_of(std::uint16_t ranks) {
  conn::RingSpec ring{.id = 1, .window = kWindow, .max_message_bytes = kMessageBytes, .mtu = kMtu};
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    ring.members.push_back({ip_of(rank), rank});
  }
  return ring;
}

std::int32_t element_of(std::uint16_t rank, std::size_t index) {
  return static_cast<std::int32_t>(index % 9973) * (rank + 1);
}

using Tensors = std::vector<std::vector<std::uint8_t>>; // by rank

Tensors make_tensors(const Setting& setting) {
  Tensors tensors(setting.ranks, std::vector<std::uint8_t>(setting.bytes));
  for (std::uint16_t rank = 0; rank < setting.ranks; ++rank) {
    for (std::size_t i = 0; i < setting.bytes / sizeof(std::int32_t); ++i) {
      const std::int32_t element = element_of(rank, i);
      std::memcpy(&tensors[rank][i * sizeof element], &element, sizeof element);
    }
  }
  return tensors;
}

/// A fast wrong all-reduce is worth nothing.
void expect_sums(const Tensors& tensors) {
  const auto ranks = static_cast<std::int32_t>(tensors.size());
  for (const std::vector<std::uint8_t>& tensor : tensors) {
    for (std::size_t i = 0; i < tensor.size() / sizeof(std::int32_t); ++i) {
      std::int32_t found = 0;
      std::memcpy(&found, &tensor[i * sizeof found], sizeof found);
      if (found != element_of(0, i) * (ranks * (ranks + 1) / 2)) {
        throw std::logic_error("an all-reduce gave a wrong sum");
      }
    }
  }
}

std::deque<SimulatedHost> make_hosts(SimulatedNetwork& network, auto& exchanges) {
  const auto ranks = static_cast<std::uint16_t>(exchanges.size());
  std::deque<SimulatedHost> hosts;
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    hosts.emplace_back(network, exchanges[rank], rank, ranks);
  }
  return hosts;
}

/// Lets the hosts begin and things happen until every exchange is done, or a queue pair fails.
bool run(SimulatedNetwork& network, std::deque<SimulatedHost>& hosts, const auto& exchanges) {
  const auto is_done = [](const Exchange& exchange) { return exchange.is_done(); };
  try {
    for (SimulatedHost& host : hosts) {
      host.pump();
    }
    while (!std::all_of(exchanges.begin(), exchanges.end(), is_done)) {
      if (!network.advance()) {
        throw std::logic_error("an all-reduce came to a stop");
      }
    }
    return true;
  } catch (const QueuePairFailed&) {
    return false;
  }
}

std::uint64_t repeated_by(const std::deque<SimulatedHost>& hosts) {
  std::uint64_t packets = 0;
  for (const SimulatedHost& host : hosts) {
    packets += host.repeated();
  }
  return packets;
}

Outcome reduce_in_switch(const Setting& setting, std::uint64_t seed) {
  Tensors tensors = make_tensors(setting);
  SimulatedNetwork network(setting.ranks, {kBitsPerNs, kDelay, setting.loss},
                           {ring_of(setting.ranks)}, seed);
  std::deque<SwitchExchange> exchanges;
  for (std::uint16_t rank = 0; rank < setting.ranks; ++rank) {
    const host::WindowConfig config{.ring = 1,
                                    .rank = rank,
                                    .world = setting.ranks,
                                    .window = kWindow,
                                    .message_bytes = kMessageBytes,
                                    .epoch = 1};
    exchanges.emplace_back(config, tensors[rank]);
  }
  std::deque<SimulatedHost> hosts = make_hosts(network, exchanges);
  if (!run(network, hosts, exchanges)) { // the hellos
    return {network.now(), repeated_by(hosts)};
  }
  const Time start = network.now();
  for (SwitchExchange& exchange : exchanges) {
    exchange.begin();
  }
  const bool is_finished = run(network, hosts, exchanges);
  if (is_finished) {
    expect_sums(tensors);
  }
  return {network.now() - start, repeated_by(hosts), is_finished};
}

Outcome reduce_round_the_ring(const Setting& setting, std::uint64_t seed) {
  Tensors tensors = make_tensors(setting);
  SimulatedNetwork network(setting.ranks, {kBitsPerNs, kDelay, setting.loss}, {}, seed);
  std::deque<RingExchange> exchanges;
  for (std::uint16_t rank = 0; rank < setting.ranks; ++rank) {
    exchanges.emplace_back(rank, setting.ranks, tensors[rank]);
  }
  std::deque<SimulatedHost> hosts = make_hosts(network, exchanges);
  const bool is_finished = run(network, hosts, exchanges);
  if (is_finished) {
    expect_sums(tensors);
  }
  return {network.now(), repeated_by(hosts), is_finished};
}

struct Job {
  double us = 0; // with the attempts that failed
  double repeated = 0;
  double restarts = 0;
};

/// A job starts again when a queue pair fails.
Job run_job(Outcome (*reduce)(const Setting&, std::uint64_t), const Setting& setting,
            std::uint64_t seed) {
  constexpr std::uint64_t kSeedsApart = 1000;
  constexpr double kMostRestarts = 100;
  Job job;
  while (job.restarts <= kMostRestarts) {
    const Outcome outcome = reduce(setting, seed);
    job.us += static_cast<double>(outcome.duration) / 1e3;
    job.repeated += static_cast<double>(outcome.repeated);
    if (outcome.is_finished) {
      return job;
    }
    ++job.restarts;
    seed += kSeedsApart;
  }
  throw std::runtime_error("a job that never finishes: " + setting.parameters.text());
}

/// What a link needs for the tensor in frames of full payload.
double link_time_ns(std::size_t bytes) {
  const double frames = static_cast<double>(bytes) / kMtu;
  return frames * 8 * (kMtu + kFrameHeaders + kWireOverhead) / kBitsPerNs;
}

void measure(const Setting& setting, unsigned round) {
  const std::uint64_t seed = round + 1;
  const Job in_switch = run_job(reduce_in_switch, setting, seed);
  const Job on_ring = run_job(reduce_round_the_ring, setting, seed);
  report(kPart, setting.parameters, round,
         {{"switch", in_switch.us, "us", "link"},
          {"ring", on_ring.us, "us", "link"},
          {"link", link_time_ns(setting.bytes) / 1e3, "us"},
          {"gain", on_ring.us / in_switch.us, "times", "bound"},
          {"bound", 2.0 * (setting.ranks - 1) / setting.ranks, "times"},
          {"switch repeats", in_switch.repeated, "packets"},
          {"ring repeats", on_ring.repeated, "packets"},
          {"switch restarts", in_switch.restarts, "times"},
          {"ring restarts", on_ring.restarts, "times"}});
}

class Settings {
 public:
  explicit Settings(const Options& options) : options_(options) {
    const bool is_full = options.effort == Effort::full;
    for (const std::uint16_t ranks : {2, 3, 4, 6, 8, 12, 16}) {
      for (const std::size_t kib : {64, 1024, 4096}) {
        if (is_full || (ranks <= 8 && kib <= 1024)) {
          add("size", ranks, kib, 0);
        }
      }
    }
    for (const std::uint16_t ranks : {2, 4, 8, 16}) {
      for (const unsigned loss_ppm : {0, 10, 100, 1000, 10000}) {
        if (is_full || ranks <= 4) {
          add("loss", ranks, kLossKib, loss_ppm);
        }
      }
    }
  }

  const std::vector<Setting>& all() const { return settings_; }

 private:
  static constexpr std::size_t kLossKib = 2048;

  void add(std::string_view about, std::uint16_t ranks, std::size_t kib, unsigned loss_ppm) {
    Setting setting{.ranks = ranks, .bytes = kib << 10, .loss = loss_ppm / 1e6};
    setting.parameters.with("about", about)
        .with("ranks", ranks)
        .with("tensor KiB", kib)
        .with("loss ppm", loss_ppm);
    if (setting.parameters.is_wanted(options_)) {
      settings_.push_back(std::move(setting));
    }
  }

  const Options& options_;
  std::vector<Setting> settings_;
};

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const Options options = read_options(argc, argv, {kPart}, {.full = 7, .quick = 3});
  const Settings settings(options);
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kPart, round, options);
    for (const Setting& setting : settings.all()) {
      measure(setting, round);
    }
  }
  return 0;
}
