// SPDX-License-Identifier: BSD-3-Clause

/// What the host library takes of the hosts' CPUs, beside its transport.

#include "host_lab.hpp"
#include "measurement.hpp"

#include <map>
#include <memory>

namespace weir::bench {
namespace {

constexpr std::string_view kSmall = "small-messages";
constexpr std::string_view kRings = "parallel-rings";

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

/// One large all-reduce over several rings.
void measure_rings(const Options& options) {
  constexpr std::size_t kBytes = 1 << 20;
  const std::size_t calls = options.effort == Effort::full ? 32 : 4;
  std::map<std::uint32_t, HostLab> labs;
  for (const std::uint32_t rings : {1, 2, 4, 8}) {
    labs.try_emplace(rings, rings, kBytes);
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kRings, round, options);
    for (auto& [rings, lab] : labs) {
      const Case parameters = Case().with("rings", rings).with("bytes", kBytes);
      if (parameters.is_wanted(options)) {
        report_spent(kRings, parameters, round, lab.measure({kBytes, 1, calls}));
      }
    }
  }
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const Options options = read_options(argc, argv, {kSmall, kRings}, {.full = 9, .quick = 3});
  if (options.wants_part(kSmall)) {
    measure_small(options);
  }
  if (options.wants_part(kRings)) {
    measure_rings(options);
  }
  return 0;
}
