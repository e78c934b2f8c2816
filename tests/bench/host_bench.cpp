// SPDX-License-Identifier: BSD-3-Clause

/// What the host library takes of the hosts' CPUs, beside its transport.

#include "host/collective/slice.hpp"
#include "host_lab.hpp"
#include "measurement.hpp"
#include "node_lab.hpp"

#include <algorithm>
#include <map>
#include <memory>

namespace weir::bench {
namespace {

constexpr std::string_view kSmall = "small-messages";
constexpr std::string_view kRings = "parallel-rings";
constexpr std::string_view kNode = "shared-nic";

void report_spent(std::string_view part, const Case& parameters, unsigned round,
                  const HostLab::Spent& spent) {
  report(part, parameters, round,
         {{"library", spent.in_library(), "ns", "transport"},
          {"start", spent.in(Stage::start), "ns"},
          {"wait", spent.in(Stage::wait), "ns"},
          {"results", spent.in(Stage::results), "ns"},
          {"transport", spent.in_transport(), "ns"},
          {"post", spent.in(Stage::post), "ns"},
          {"poll", spent.in(Stage::poll), "ns"},
          {"network", spent.in(Stage::network), "ns"},
          {"asleep", spent.in(Stage::sleep), "ns"},
          {"cpu", spent.cpu_ns, "ns"},
          {"own threads", spent.own_threads_ns, "ns"}});
}

/// Small all-reduces, one at a time and several at once.
void measure_small(const Options& options) {
  constexpr std::size_t kMostBytes = 4096;
  const std::size_t calls = options.effort == Effort::full ? 4096 : 512;
  HostLab lab(1, kMostBytes);
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kSmall, round, options);
    for (const std::size_t bytes :
         {std::size_t{8}, std::size_t{64}, std::size_t{1024}, kMostBytes}) {
      for (const std::size_t queued : {1, 16}) {
        const Case parameters = Case().with("bytes", bytes).with("queued", queued);
        if (parameters.is_wanted(options)) {
          report_spent(kSmall, parameters, round, lab.measure({bytes, queued, calls / queued}));
        }
      }
    }
  }
}

/// All-reduces over several rings: one that is not cut, one that just is, and long ones.
void measure_rings(const Options& options) {
  constexpr std::size_t kMost = 1 << 20;
  const std::size_t much = (options.effort == Effort::full ? 32 : 4) * kMost;
  std::map<std::uint32_t, HostLab> labs;
  for (const std::uint32_t rings : {1, 2, 4, 8}) {
    labs.try_emplace(rings, rings, kMost);
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kRings, round, options);
    for (auto& [rings, lab] : labs) {
      for (const std::size_t bytes : {host::kUncutBytes, host::kUncutBytes + 64, std::size_t{16384},
                                      std::size_t{65536}, kMost}) {
        const Case parameters = Case().with("rings", rings).with("bytes", bytes);
        const std::size_t calls = std::min<std::size_t>(much / bytes, 256);
        if (parameters.is_wanted(options)) {
          report_spent(kRings, parameters, round, lab.measure({bytes, 1, calls}));
        }
      }
    }
  }
}

/// Ranks behind one NIC, beside plain copying of their tensors by all of them at once.
void measure_node(const Options& options) {
  constexpr std::size_t kMostBytes = 64 << 20;
  constexpr std::size_t kMostCopied = std::size_t{1} << 28;
  const std::size_t calls = options.effort == Effort::full ? 2000 : 200;
  std::map<std::uint16_t, NodeLab> labs;
  for (const std::uint16_t ranks : {2, 4}) {
    labs.try_emplace(ranks, ranks, kMostBytes / sizeof(float));
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kNode, round, options);
    for (auto& [ranks, lab] : labs) {
      for (const std::size_t bytes :
           {std::size_t{8}, std::size_t{65536}, std::size_t{1} << 20, kMostBytes}) {
        const Case parameters = Case().with("ranks", ranks).with("bytes", bytes);
        if (parameters.is_wanted(options)) {
          const std::size_t repeated = std::clamp<std::size_t>(kMostCopied / bytes, 1, calls);
          const NodeLab::Times sum = lab.all_reduce(bytes / sizeof(float), repeated);
          const NodeLab::Times copying = lab.copy(bytes / sizeof(float), repeated);
          report(kNode, parameters, round,
                 {{"all-reduce", sum.ns / 1e3, "us", "copying"},
                  {"copying", copying.ns / 1e3, "us"},
                  {"cpu", sum.cpu_ns / 1e3, "us", "cpu of copying"},
                  {"cpu of copying", copying.cpu_ns / 1e3, "us"}});
        }
      }
    }
  }
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const Options options =
      read_options(argc, argv, {kSmall, kRings, kNode}, {.full = 9, .quick = 3});
  if (options.wants_part(kSmall)) {
    measure_small(options);
  }
  if (options.wants_part(kRings)) {
    measure_rings(options);
  }
  if (options.wants_part(kNode)) {
    measure_node(options);
  }
  return 0;
}
