// SPDX-License-Identifier: BSD-3-Clause
#include "inline_lab.hpp"
#include "pipeline.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint16_t kPayload = 1024;
constexpr std::uint64_t kFramesPerMeasurement = 64'000;

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

/// Frames, and a switch and macswap that they can be sent through: a ring's once, others as often
/// as wanted.
class Track {
 public:
  Track(const Workload& workload, std::vector<Arrival> frames)
      : frames_(std::move(frames)),
        pool_(make_pool("bench_data", frames_.size(), longest_of(frames_))),
        stock_(frames_, pool_.get()), lab_(workload, most_on_a_port(frames_)) {
    lab_.introduce_senders_of(frames_);
    lab_.open_connections();
  }

  double seconds_of_switch() {
    stock_.refill();
    stock_.enter_sessions([&](std::uint16_t ring) { return lab_.session_of(ring); });
    stock_.arrive_at(lab_.ports());
    return seconds_of([&] { lab_.run_until_sent(stock_.size()); });
  }

  double seconds_of_macswap() {
    stock_.refill();
    stock_.arrive_at(lab_.ports());
    return seconds_of([&] { macswap_until_sent(lab_.ports(), stock_.size()); });
  }

  double seconds_of_bridge() {
    stock_.refill();
    stock_.arrive_at(lab_.ports());
    return seconds_of([&] { lab_.bridge_until_sent(stock_.size()); });
  }

 private:
  std::vector<Arrival> frames_;
  Pool pool_;
  FrameStock stock_;
  InlineLab lab_;
};

struct Subject {
  Case parameters;
  PlainTraffic traffic;
};

std::string_view name_of(PlainTraffic::Kind kind) {
  return kind == PlainTraffic::Kind::udp ? "udp" : "rdma";
}

std::vector<Subject> subjects(const Options& options) {
  std::vector<Subject> wanted;
  for (const std::uint32_t bytes : {kInCache, kInMemory / 4}) {
    for (const auto kind : {PlainTraffic::Kind::udp, PlainTraffic::Kind::rdma}) {
      for (const std::uint16_t conversations : {1, 64}) {
        const auto parameters = Case()
                                    .with("frames", bytes == kInCache ? "cache" : "memory")
                                    .with("traffic", name_of(kind))
                                    .with("conversations", conversations);
        if (parameters.is_wanted(options)) {
          wanted.push_back({parameters,
                            {.kind = kind,
                             .payload = kPayload,
                             .conversations = conversations,
                             .frames = bytes / kPayload}});
        }
      }
    }
  }
  return wanted;
}

void measure_alone(const Subject& subject, unsigned round) {
  const Workload no_messages({.payload = kPayload});
  Track track(no_messages, frames_of(subject.traffic));
  const std::uint64_t passes = kFramesPerMeasurement / subject.traffic.frames;
  double weir = 0;
  double macswap = 0;
  double bridge = 0;
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    weir += track.seconds_of_switch();
    macswap += track.seconds_of_macswap();
    bridge += track.seconds_of_bridge();
  }
  const auto frames = static_cast<double>(passes * subject.traffic.frames);
  report("forwarding", subject.parameters, round,
         {{"weir", frames / weir / 1e6, "Mpps", "macswap"},
          {"bridge", frames / bridge / 1e6, "Mpps", "macswap"},
          {"macswap", frames / macswap / 1e6, "Mpps"},
          {"frame", weir * 1e9 / frames, "ns"}});
}

/// The same number of frames of both kinds.
void measure_beside_a_ring(const Case& parameters, unsigned round) {
  const Workload workload({.payload = kPayload, .bytes = kInMemory / 4});
  const auto& ring = workload.data();
  const auto plain = frames_of({.ports = workload.ports(),
                                .payload = kPayload,
                                .frames = static_cast<std::uint32_t>(ring.size())});
  const double alone = Track(workload, plain).seconds_of_switch();
  const double ring_alone = Track(workload, ring).seconds_of_switch();
  const double beside = Track(workload, in_turn(ring, plain)).seconds_of_switch();
  const auto frames = static_cast<double>(plain.size());
  report("forwarding", parameters, round,
         {{"beside_a_ring", frames / beside / 1e6, "Mpps", "fair_share"},
          {"fair_share", frames / (alone + ring_alone) / 1e6, "Mpps"}});
}

} // namespace

void measure_forwarding(const Options& options) {
  const auto alone = subjects(options);
  const auto beside =
      Case().with("frames", "memory").with("traffic", "udp").with("beside", "a ring");
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("forwarding", round, options);
    for (const Subject& subject : alone) {
      measure_alone(subject, round);
    }
    if (beside.is_wanted(options)) {
      measure_beside_a_ring(beside, round);
    }
  }
}

} // namespace weir::bench
