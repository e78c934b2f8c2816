// SPDX-License-Identifier: BSD-3-Clause
#include "conn/classifier.hpp"
#include "frame/frame.hpp"
#include "inline_lab.hpp"
#include "lcore/mbuf_frame.hpp"
#include "lcore/prefetch.hpp"
#include "pipeline.hpp"
#include "slot/result_packet.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace weir::bench {
namespace {

constexpr unsigned kStageBurst = 32;

enum class Stage : std::uint8_t {
  receive,
  parse,
  learn,
  pair,
  classify,
  verify,
  store,
  reduce,
  splice,
  egress,
};

constexpr std::array<std::string_view, 10> kStageNames{"receive",  "parse",  "learn", "pair",
                                                       "classify", "verify", "store", "reduce",
                                                       "splice",   "egress"};

/// Adds the time since the last call to a stage.
class StageClock {
 public:
  void start() { last_ = rte_rdtsc(); }

  void lap(Stage stage) {
    const std::uint64_t now = rte_rdtsc();
    ticks_[static_cast<std::size_t>(stage)] += now - last_;
    last_ = now;
  }

  double ns(std::size_t stage) const {
    return static_cast<double>(ticks_[stage]) * 1e9 / static_cast<double>(rte_get_tsc_hz());
  }

 private:
  std::uint64_t last_ = 0;
  std::array<std::uint64_t, kStageNames.size()> ticks_{};
};

/// The stages' own functions in the worker's order, but each for a whole burst before the next, so
/// that reading the clock costs little. For one ring whose frames are all new contributions.
class StageLab {
 public:
  explicit StageLab(const Workload& workload)
      : tables_(workload), incarnations_(tables_.rings, {0}, tables_.worker_settings().classifier),
        classifier_(tables_.rings, incarnations_, tables_.worker_settings().classifier,
                    [this](const ring::RingChild& sender) { return slots_.holds(sender.child); }),
        slots_(stage::dimensions_of(tables_.rings->rings()[0]), &tables_.memory),
        kernel_(op::find_kernel(DataType::f32, Operation::sum, op::best_cpu_level())) {}

  void take(std::span<rte_mbuf* const> burst, std::uint16_t port) {
    std::ranges::for_each(burst, [](const rte_mbuf* mbuf) { frame::prefetch(mbuf); });
    std::ranges::for_each(burst, lcore::prefetch_frame);
    lcore::prefetch_headers(burst);
    for (rte_mbuf* mbuf : burst) {
      lcore::make_frame(mbuf, port);
    }
    clock_.lap(Stage::receive);
    each(burst, Stage::parse, [&](frame::Frame& frame) {
      wire::parse(frame.bytes(), frame.packet);
      lcore::prefetch_payload<frame::Cache::first>(frame.bytes());
    });
    each(burst, Stage::learn,
         [&](frame::Frame& frame) { tables_.bridge.learn(frame.bytes(), frame.ingress, 0); });
    each(burst, Stage::pair, [&](frame::Frame& frame) {
      frame.pair = tables_.rings->pair_of(frame.source(), frame.destination());
    });
    aggregate(burst);
  }

  StageClock& clock() { return clock_; }

  std::uint32_t session() const { return incarnations_.session_of(0); }

 private:
  template <typename Work>
  void each(std::span<rte_mbuf* const> burst, Stage stage, Work&& work) {
    for (rte_mbuf* mbuf : burst) {
      work(lcore::frame_of(mbuf));
    }
    clock_.lap(stage);
  }

  void aggregate(std::span<rte_mbuf* const> burst) {
    std::array<conn::Verdict, kStageBurst> verdicts;
    completed_.clear();
    auto* verdict = verdicts.begin();
    each(burst, Stage::classify,
         [&](frame::Frame& frame) { *verdict++ = classifier_.classify(frame, 0); });
    each(burst, Stage::verify, [](frame::Frame& frame) { wire::verify_icrc(frame); });
    verdict = verdicts.begin();
    each(burst, Stage::store, [&](frame::Frame& frame) { take_up(frame, *verdict++); });
    for (const std::uint32_t slot : completed_) {
      send(slot);
    }
  }

  void take_up(frame::Frame& frame, const conn::Verdict& verdict) {
    switch (verdict.step) {
    case conn::Verdict::Step::contribute:
      return store(frame, verdict);
    case conn::Verdict::Step::wait:
      return;
    case conn::Verdict::Step::begin:
      return greet(incarnations_.begin(0, 0));
    default:
      throw std::logic_error("a frame of the workload is no contribution");
    }
  }

  void greet(std::span<frame::Frame* const> hellos) {
    for (std::uint16_t rank = 0; rank < hellos.size(); ++rank) {
      store(*hellos[rank], incarnations_.hello_verdict({0, rank}));
    }
  }

  void store(frame::Frame& frame, const conn::Verdict& verdict) {
    const slot::Contribution contribution = stage::contribution_of(frame.packet, verdict, {});
    if (slots_.arrive(contribution, &frame) == slot::SlotEvent::completed) {
      completed_.push_back(contribution.slot);
    }
  }

  void send(std::uint32_t slot) {
    clock_.start();
    const auto arrived = slots_.frames_of(slot);
    const std::size_t skip = slot::ina_bytes(arrived.front()->packet);
    const slot::Fold fold{kernel_};
    slots_.make_ready(slot, slot::fold_frames(arrived, skip, fold, slots_.result_room(slot)));
    const auto frames = slots_.release(slot);
    const slot::SlotResult result = slots_.result_of(slot);
    clock_.lap(Stage::reduce);
    for (frame::Frame* frame : frames) {
      slot::seal_result(*frame, result, session());
    }
    clock_.lap(Stage::splice);
    for (const frame::Frame* frame : frames) {
      sent_to_ = tables_.bridge.egress_of(frame->bytes(), frame->ingress, 0).ports;
    }
    clock_.lap(Stage::egress);
  }

  SharedTables tables_;
  conn::Incarnations incarnations_;
  conn::Classifier classifier_;
  slot::SlotTable slots_;
  std::vector<std::uint32_t> completed_; // slots of the burst
  op::ReduceKernel kernel_;
  StageClock clock_;
  volatile l2::PortSet sent_to_ = 0; // so that the compiler does not remove the look-up
};

void take_all(StageLab& lab, RingPorts& ports) {
  std::array<rte_mbuf*, kStageBurst> burst;
  for (unsigned received = 1; received != 0;) {
    received = 0;
    for (std::uint16_t port = 0; port < ports.size(); ++port) {
      lab.clock().start();
      const std::uint16_t count =
          rte_eth_rx_burst(ports.device(port), 0, burst.data(), kStageBurst);
      lab.take({burst.data(), count}, port);
      received += count;
    }
  }
}

void measure(const Workload& workload, const Case& parameters, unsigned round) {
  const Pool pool = make_pool("bench_data", workload.data().size(), longest_of(workload.data()));
  const Pool hello_pool = make_pool("bench_hellos", workload.hellos().size(), 512);
  FrameStock stock(workload.data(), pool.get());
  const FrameStock hellos(workload.hellos(), hello_pool.get());
  RingPorts ports(workload.ports(), most_on_a_port(workload.data()));
  StageLab lab(workload);
  hellos.arrive_at(ports);
  take_all(lab, ports);
  stock.enter_sessions([&](std::uint16_t /*ring*/) { return lab.session(); });
  lab.clock() = {};
  stock.arrive_at(ports);
  take_all(lab, ports);
  std::vector<Figure> figures;
  for (std::size_t stage = 0; stage < kStageNames.size(); ++stage) {
    figures.push_back(
        {kStageNames[stage], lab.clock().ns(stage) / static_cast<double>(stock.size()), "ns"});
  }
  report("stages", parameters, round, figures);
}

} // namespace

void measure_stages(const Options& options) {
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("stages", round, options);
    for (const std::uint32_t bytes : {kInCache, kInMemory}) {
      const Workload workload({.bytes = bytes});
      const auto parameters = Case().with("frames", bytes == kInMemory ? "memory" : "cache");
      if (parameters.is_wanted(options)) {
        measure(workload, parameters, round);
      }
    }
  }
}

} // namespace weir::bench
