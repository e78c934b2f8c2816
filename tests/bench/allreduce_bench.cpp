// SPDX-License-Identifier: BSD-3-Clause

/// The time of an all-reduce in a network of equal links, through the switch and on the hosts'
/// ring, in virtual time. The hosts' queue pairs and the switch are the real ones; links have a
/// rate, a delay and a loss rate; computing takes no time. A round is a seed of the losses.

#include "allreduce_job.hpp"
#include "measurement.hpp"
#include "simulated_host.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "allreduce";
constexpr std::uint32_t kFrameHeaders = 14 + 20 + 8 + 12 + 4; // Ethernet, IPv4, UDP, BTH; ICRC

struct Setting {
  Case parameters;
  AllReduce wanted;
};

struct Job {
  double us = 0; // includes failed attempts
  double repeated = 0;
  double restarts = 0;
};

/// A job starts again when a queue pair fails.
Job run_job(Outcome (*reduce)(const AllReduce&, std::uint64_t), const Setting& setting,
            std::uint64_t seed) {
  constexpr std::uint64_t kSeedsApart = 1000;
  constexpr double kMostRestarts = 100;
  Job job;
  while (job.restarts <= kMostRestarts) {
    const Outcome outcome = reduce(setting.wanted, seed);
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

/// Time of a link for the tensor in frames of full payload.
double link_time_ns(std::size_t bytes) {
  const double frames = static_cast<double>(bytes) / kMtu;
  return frames * 8 * (kMtu + kFrameHeaders + network::kWireOverhead) / kBitsPerNs;
}

void measure(const Setting& setting, unsigned round) {
  const std::uint64_t seed = round + 1;
  const Job in_switch = run_job(reduce_in_switch, setting, seed);
  const Job on_ring = run_job(reduce_round_the_ring, setting, seed);
  report(kPart, setting.parameters, round,
         {{"switch", in_switch.us, "us", "link"},
          {"ring", on_ring.us, "us", "link"},
          {"link", link_time_ns(setting.wanted.bytes) / 1e3, "us"},
          {"gain", on_ring.us / in_switch.us, "times", "bound"},
          {"bound", 2.0 * (setting.wanted.ranks - 1) / setting.wanted.ranks, "times"},
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
      for (const network::Ppm loss_ppm : {0, 10, 100, 1000, 10000}) {
        if (is_full || ranks <= 4) {
          add("loss", ranks, kLossKib, loss_ppm);
        }
      }
    }
  }

  const std::vector<Setting>& all() const { return settings_; }

 private:
  static constexpr std::size_t kLossKib = 2048;

  void add(std::string_view about, std::uint16_t ranks, std::size_t kib, network::Ppm loss_ppm) {
    Setting setting{.wanted = {.ranks = ranks, .bytes = kib << 10, .loss = loss_ppm}};
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
