// SPDX-License-Identifier: BSD-3-Clause

/// Figures of NetReduce (ASPLOS'23): the formulas of its appendix A compared with fluid flows, and
/// the results for training.

#include "figure.hpp"
#include "inputs.hpp"
#include "netreduce_cluster.hpp"
#include "netreduce_simulated.hpp"
#include "support/frame_builder.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

namespace weir::figures::netreduce {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kMilli = 1e-3;

/// FR, TA and PN for a cluster, in rate, latency and size as §3.4 gives them.
Cluster cluster(double gpus, double intra_gigabytes, double latency_us = 1,
                double megabytes = 100) {
  return {.gpus = gpus,
          .intra = intra_gigabytes * kGiga,
          .latency = latency_us * kMicro,
          .bytes = megabytes * kMega};
}

constexpr std::array kMethods{&kFlatRing, &kTencent, &kParallel};

void compare_clusters(const Cluster& c, const std::string& where, const Settings& settings,
                      Results& results) {
  const Machines machines(c);
  for (const Method* method : kMethods) {
    const double formula = method->seconds(c);
    const double flows =
        seconds_of(machines.rates(), method->phases(c, machines), settings.mutation);
    results.value(fmt::format("ms.{}.{}", method->name, where), formula / kMilli);
    results.value(fmt::format("flows.{}.{}", method->name, where), flows / formula);
  }
}

void plot_figure_seven(Results& results) {
  for (const Method* method : kMethods) {
    for (const double megabytes : {1.0, 10.0, 100.0}) {
      const std::string series = fmt::format("{}, {} MB", method->name, megabytes);
      for (double gpus = 32; gpus <= 1024; gpus *= 2) {
        results.point("gpus", series, gpus,
                      method->seconds(cluster(gpus, 100, 1, megabytes)) / kMilli);
      }
    }
    const std::string series(method->name);
    for (const double intra : {15.75, 32.0, 50.0, 75.0, 100.0, 150.0}) {
      results.point("intra", series, intra, method->seconds(cluster(256, intra)) / kMilli);
    }
    for (const double latency : {0.1, 1.0, 10.0, 100.0}) {
      results.point("latency", series, latency,
                    method->seconds(cluster(256, 100, latency)) / kMilli);
    }
  }
}

/// Fig. 7 A to C. The tensor's size is not stated, so the plots show three.
void figure_seven(const Settings& settings, Results& results) {
  for (const double intra : {15.75, 32.0, 100.0}) {
    for (const double gpus : {32.0, 1024.0}) {
      compare_clusters(cluster(gpus, intra), fmt::format("B{}.P{}", intra, gpus), settings,
                       results);
    }
  }
  compare_clusters(cluster(32, 150), "B150.P32", settings, results);
  for (const double latency : {0.1, 1.0, 10.0, 100.0}) {
    compare_clusters(cluster(256, 100, latency), fmt::format("B100.P256.a{}", latency), settings,
                     results);
  }
  plot_figure_seven(results);
}

/// The zero of an increasing function.
double root_of(const std::function<double(double)>& function, double low, double high) {
  constexpr int kHalvings = 200;
  for (int step = 0; step < kHalvings; ++step) {
    const double middle = (low + high) / 2;
    (function(middle) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// A tensor so long that α has no effect.
Cluster endless(double gpus, double intra) {
  return {.gpus = gpus, .intra = intra, .latency = 0, .bytes = kMega};
}

/// B_intra from which PN is no slower than FR.
double intra_that_suffices(double gpus) {
  return root_of(
      [=](double intra) {
        const Cluster c = endless(gpus, intra);
        return kFlatRing.seconds(c) - kParallel.seconds(c);
      },
      kGiga, 1000 * kGiga);
}

/// The largest P/n at which PN is no faster than TA, over machines of 2 to 16 GPUs: with only α,
/// and with only M and infinite rates inside machines, where PN gains least.
double machines_that_suffice() {
  double most = 0;
  for (const double n : {2.0, 4.0, 8.0, 16.0}) {
    for (Cluster c : {Cluster{.latency = 1}, Cluster{.bytes = 1}}) {
      c.per_machine = n;
      c.intra = 1e30;
      const auto gain = [&](double gpus) {
        c.gpus = gpus;
        return kTencent.seconds(c) - kParallel.seconds(c);
      };
      most = std::max(most, root_of(gain, 0.1, 1e6) / n);
    }
  }
  return most;
}

/// §3.4, (4) to (6).
void crossovers(const Settings& /*settings*/, Results& results) {
  for (const double gpus : {32.0, 256.0, 1024.0}) {
    const double exact = intra_that_suffices(gpus);
    const double relaxed = 2 * gpus / (gpus - 2); // (6), of B_intra over B_inter
    results.value(fmt::format("intra.P{}", gpus), exact / kGiga);
    results.value(fmt::format("intra.relaxed.P{}", gpus), relaxed * kInterBytesPerSecond / kGiga);
    results.value(fmt::format("ratio.P{}", gpus), exact / kInterBytesPerSecond);
    results.value(fmt::format("ratio.relaxed.P{}", gpus), relaxed);
  }
  const Cluster slow = cluster(32, 15.75);
  results.value("FR over PN at 15.75", kFlatRing.seconds(slow) / kParallel.seconds(slow));
  results.value("machines over TA", machines_that_suffice());
  results.value("PN.P1024 over P32",
                kParallel.seconds(cluster(1024, 100)) / kParallel.seconds(cluster(32, 100)));
}

/// Table 9: communication of 32 GPUs in 4 machines.
void four_machines(const Settings& settings, Results& results) {
  constexpr double kGpus = 32;
  constexpr double kNvLink = 150; // §5.4: B_intra, GB/s
  for (const Training& row : kTraining) {
    const Cluster c = cluster(kGpus, kNvLink, 1, row.model.megabytes);
    const Machines machines(c);
    const auto seconds = [&](const Method& method) {
      return seconds_of(machines.rates(), method.phases(c, machines), settings.mutation);
    };
    results.value(fmt::format("FR/PN.{}", row.model.name), seconds(kFlatRing) / seconds(kParallel));
    results.value(fmt::format("TA/PN.{}", row.model.name), seconds(kTencent) / seconds(kParallel));
  }
}

/// Table 7: images per second on one GPU, without overlap.
void images(const Settings& /*settings*/, Results& results) {
  constexpr double kHosts = 4;
  constexpr double kGain = 2 * (kHosts - 1) / kHosts; // of communication, NR3
  for (const Training& row : kTraining) {
    const double compute = row.compute_ms();
    const auto rate = [=](double communication) {
      return kImagesPerBatch / ((compute + communication) * kMilli);
    };
    results.value(fmt::format("ring.{}", row.model.name), rate(row.ring_ms));
    results.value(fmt::format("switch.{}", row.model.name), rate(row.switch_ms));
    results.value(fmt::format("predicted.{}", row.model.name), rate(row.ring_ms / kGain));
  }
}

/// Table 6: the payload's share of a whole frame on the wire.
void payload_share(const Settings& /*settings*/, Results& results) {
  constexpr double kFcsBytes = 4;
  constexpr double kPreambleAndGapBytes = 20;
  constexpr std::uint8_t kWriteMiddle = 0x07; // IBTA table 38
  test::FrameSpec spec;
  spec.opcode = kWriteMiddle;
  spec.payload.resize(kPayloadBytes);
  const double frame = static_cast<double>(test::build(spec).bytes.size()) + kFcsBytes;
  results.value("share", kPayloadBytes / frame);
  results.value("share.with preamble and gap", kPayloadBytes / (frame + kPreambleAndGapBytes));
}

constexpr std::array kFigures{
    Figure{"NR1", figure_seven},  Figure{"NR2", crossovers}, Figure{"NR3", single_gpu_hosts},
    Figure{"NR4", four_machines}, Figure{"NR5", images},     Figure{"NR6", window},
    Figure{"NR7", payload_share}, Figure{"NR8", two_racks},  Figure{"NR9", repeats},
};

} // namespace
} // namespace weir::figures::netreduce

std::span<const weir::figures::Figure> weir::figures::netreduce_figures() {
  return netreduce::kFigures;
}
