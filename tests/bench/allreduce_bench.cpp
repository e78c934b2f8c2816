// SPDX-License-Identifier: BSD-3-Clause

/// The time of an all-reduce in a star of links, through the switch and on the hosts' ring, in
/// virtual time. The hosts' queue pairs and the switch are the real ones; links have a rate and a
/// delay and lose, delay or share frames as the case says; computing takes no time. A round is a
/// seed of what happens on the links.

#include "allreduce_job.hpp"
#include "allreduce_settings.hpp"
#include "measurement.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "allreduce";

struct Job {
  double us = 0; // includes failed attempts
  double repeated = 0;
  double refused = 0;
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
    job.refused += static_cast<double>(outcome.refused);
    if (outcome.is_finished) {
      return job;
    }
    ++job.restarts;
    seed += kSeedsApart;
  }
  throw std::runtime_error("a job that never finishes: " + setting.parameters.text());
}

void measure(const Setting& setting, unsigned round) {
  const std::uint64_t seed = round + 1;
  const Job in_switch = run_job(reduce_in_switch, setting, seed);
  const Job on_ring = run_job(reduce_round_the_ring, setting, seed);
  report(kPart, setting.parameters, round,
         {{"switch", in_switch.us, "us", "link"},
          {"ring", on_ring.us, "us", "link"},
          {"link", setting.wanted.link_time() / 1e3, "us"},
          {"gain", on_ring.us / in_switch.us, "times", "bound"},
          {"bound", 2.0 * (setting.wanted.ranks - 1) / setting.wanted.ranks, "times"},
          {"switch repeats", in_switch.repeated, "packets"},
          {"ring repeats", on_ring.repeated, "packets"},
          {"switch restarts", in_switch.restarts, "times"},
          {"ring restarts", on_ring.restarts, "times"},
          {"switch full ports", in_switch.refused, "frames"},
          {"ring full ports", on_ring.refused, "frames"}});
}

std::vector<NumberOption> host_options(HostTraits& hosts) {
  return {{"--in-flight", &hosts.packets_in_flight, 1, 1 << 20},
          {"--window", &hosts.window, 1, 1024},
          {"--message", &hosts.message_bytes, 64, 1 << 19},
          {"--mtu", &hosts.mtu, 256, 4096}};
}

void run(int argc, char** argv) {
  HostTraits hosts;
  const Options options =
      read_options(argc, argv, {kPart}, {.full = 7, .quick = 3}, host_options(hosts));
  const std::vector<Setting> settings = settings_of(options, hosts);
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kPart, round, options);
    for (const Setting& setting : settings) {
      measure(setting, round);
    }
  }
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  try {
    weir::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
  return 0;
}
