// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline.hpp"

#include "bare_switch.hpp"
#include "inline_lab.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint64_t kContributionsPerMeasurement = 60'000;
/// Jobs run for hours. So what the switch does once for a connection is not measured.
constexpr std::uint32_t kMessagesBefore = 1;

struct MeasuredWorkload {
  Case parameters;
  Workload workload;
};

Case case_of(const Shape& shape) {
  return Case()
      .with("frames", shape.bytes == kInMemory ? "memory" : "cache")
      .with("payload", shape.payload)
      .with("ranks", shape.world)
      .with("rings", shape.rings);
}

std::vector<Shape> shapes(Effort effort) {
  std::vector<Shape> shapes{{.bytes = kInCache}, {.bytes = kInMemory}};
  if (effort == Effort::quick) {
    return shapes;
  }
  for (const std::uint32_t bytes : {kInCache, kInMemory}) {
    for (const std::uint16_t payload : {256, 4096}) {
      shapes.push_back({.payload = payload, .bytes = bytes});
    }
  }
  for (const std::uint16_t world : {2, 4, 16, 32, 64}) {
    shapes.push_back({.world = world, .bytes = kInMemory});
  }
  for (const std::uint16_t rings : {1, 10, 100, 1000}) {
    shapes.push_back({.world = 4, .rings = rings, .bytes = kInMemory});
  }
  return shapes;
}

double seconds_of_weir(InlineLab& lab, FrameStock& stock) {
  lab.restart();
  lab.open_connections();
  stock.refill();
  stock.enter_sessions([&](std::uint16_t ring) { return lab.session_of(ring); });
  stock.arrive_at(lab.ports());
  return seconds_of([&] { lab.run_until_sent(stock.size()); });
}

double seconds_of_baseline(InlineLab& lab, FrameStock& stock,
                           void (*baseline)(RingPorts&, std::uint64_t)) {
  stock.refill();
  stock.arrive_at(lab.ports());
  return seconds_of([&] { baseline(lab.ports(), stock.size()); });
}

double seconds_of_bare_switch(const Workload& workload, InlineLab& lab, FrameStock& stock) {
  BareSwitch bare(workload);
  stock.refill();
  BareSwitch::describe(stock);
  stock.arrive_at(lab.ports());
  return seconds_of([&] { bare.run_until_sent(lab.ports(), stock.size()); });
}

void measure(const MeasuredWorkload& subject, unsigned round) {
  const auto& data = subject.workload.data();
  const Pool pool = make_pool("bench_data", data.size(), longest_of(data));
  FrameStock stock(data, pool.get());
  InlineLab lab(subject.workload, most_on_a_port(data));
  const auto passes = std::max<std::uint64_t>(1, kContributionsPerMeasurement / stock.size());
  double weir = 0;
  double bare = 0;
  double macswap = 0;
  double reading = 0;
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    weir += seconds_of_weir(lab, stock);
    bare += seconds_of_bare_switch(subject.workload, lab, stock);
    macswap += seconds_of_baseline(lab, stock, macswap_until_sent);
    reading += seconds_of_baseline(lab, stock, read_until_sent);
  }
  const auto frames = static_cast<double>(passes * stock.size());
  const auto bits = 8 * static_cast<double>(passes * stock.bytes());
  report("pipeline", subject.parameters, round,
         {{"weir", frames / weir / 1e6, "Mpps", "macswap"},
          {"macswap", frames / macswap / 1e6, "Mpps"},
          {"throughput", bits / weir / 1e9, "Gbit/s", "reading"},
          {"bare", bits / bare / 1e9, "Gbit/s", "reading"},
          {"reading", bits / reading / 1e9, "Gbit/s"},
          {"frame", weir * 1e9 / frames, "ns", "bare_frame"},
          {"bare_frame", bare * 1e9 / frames, "ns"}});
}

} // namespace

void measure_pipeline(const Options& options) {
  std::vector<std::unique_ptr<MeasuredWorkload>> subjects;
  for (const Shape& shape : shapes(options.effort)) {
    if (const Case parameters = case_of(shape); parameters.is_wanted(options)) {
      Shape running = shape;
      running.messages_before = kMessagesBefore;
      subjects.push_back(
          std::make_unique<MeasuredWorkload>(MeasuredWorkload{parameters, Workload(running)}));
    }
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("pipeline", round, options);
    for (const auto& subject : subjects) {
      measure(*subject, round);
    }
  }
}

} // namespace weir::bench
