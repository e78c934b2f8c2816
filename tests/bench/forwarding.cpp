// SPDX-License-Identifier: BSD-3-Clause
#include "inline_lab.hpp"
#include "pipeline.hpp"

#include <algorithm>

namespace weir::bench {
namespace {

constexpr std::uint16_t kPayload = 1024;

/// The ring's frames and others in turn, burst by burst, on every port.
std::vector<Arrival> in_turn(const std::vector<Arrival>& ring, const std::vector<Arrival>& plain) {
  std::vector<Arrival> both;
  for (std::size_t i = 0; i < std::max(ring.size(), plain.size()); ++i) {
    if (i < ring.size()) {
      both.push_back(ring[i]);
    }
    if (i < plain.size()) {
      both.push_back(plain[i]);
    }
  }
  return both;
}

double seconds_of_switch(const Workload& workload, const std::vector<Arrival>& frames) {
  const Pool pool = make_pool("bench_data", frames.size(), longest_of(frames));
  FrameStock stock(frames, pool.get());
  InlineLab lab(workload, most_on_a_port(frames));
  lab.open_connections();
  stock.enter_sessions([&](std::uint16_t ring) { return lab.session_of(ring); });
  stock.arrive_at(lab.ports());
  return seconds_of([&] { lab.run_until_sent(stock.size()); });
}

double seconds_of_macswap(const Workload& workload, const std::vector<Arrival>& frames) {
  const Pool pool = make_pool("bench_data", frames.size(), longest_of(frames));
  const FrameStock stock(frames, pool.get());
  RingPorts ports(workload.ports(), most_on_a_port(frames));
  stock.arrive_at(ports);
  return seconds_of([&] { macswap_until_sent(ports, stock.size()); });
}

} // namespace

void measure_forwarding(const Options& options) {
  const Workload workload({.payload = kPayload, .bytes = kInMemory / 4});
  const auto& ring = workload.data();
  const auto plain =
      plain_frames(workload.ports(), kPayload, static_cast<std::uint32_t>(ring.size()));
  const auto both = in_turn(ring, plain);
  const auto parameters = Case().with("payload", kPayload).with("ports", workload.ports());
  if (!parameters.is_wanted(options)) {
    return;
  }
  const auto frames = static_cast<double>(plain.size());
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("forwarding", round, options);
    const double alone = seconds_of_switch(workload, plain);
    const double macswap = seconds_of_macswap(workload, plain);
    const double ring_alone = seconds_of_switch(workload, ring);
    const double beside = seconds_of_switch(workload, both);
    report("forwarding", parameters, round,
           {{"alone", frames / alone / 1e6, "Mpps", "macswap"},
            {"macswap", frames / macswap / 1e6, "Mpps"},
            {"beside_a_ring", frames / beside / 1e6, "Mpps", "fair_share"},
            {"fair_share", frames / (alone + ring_alone) / 1e6, "Mpps"}});
  }
}

} // namespace weir::bench
