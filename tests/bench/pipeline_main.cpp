// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::bench {
namespace {

struct Part {
  std::string_view name;
  void (*measure)(const Options&);
};

constexpr long kMegabytes = 1200;
constexpr const char* kFreeHugepages = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

constexpr std::array kParts{
    Part{"pipeline", measure_pipeline},     Part{"stages", measure_stages},
    Part{"latency", measure_latency},       Part{"forwarding", measure_forwarding},
    Part{"emission", measure_emission},     Part{"overload", measure_overload},
    Part{"scaling", measure_scaling},       Part{"job", measure_job},
    Part{"neighbours", measure_neighbours}, Part{"region", measure_region},
};

bool has_hugepages() {
  std::ifstream file(kFreeHugepages);
  long pages = 0;
  return file >> pages && 2 * pages >= kMegabytes;
}

/// An lcore on each CPU that this process may use. They sleep until a part uses them.
std::string every_cpu() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::string option = "--lcores=";
  unsigned lcore = 0;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE && lcore < RTE_MAX_LCORE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      option += (lcore == 0 ? "" : ",") + std::to_string(lcore) + "@" + std::to_string(cpu);
      ++lcore;
    }
  }
  return option;
}

/// Without hugepages every frame costs some more TLB misses, also in the baselines.
void start_eal() {
  std::vector<std::string> arguments{"pipeline_bench",          "--no-pci",  "--no-telemetry",
                                     "--log-level=*:4",         every_cpu(), "-m",
                                     std::to_string(kMegabytes)};
  if (has_hugepages()) {
    arguments.emplace_back("--in-memory");
  } else {
    std::fprintf(stderr,
                 "pipeline_bench: no hugepages, so all figures are lower, baselines too (sysctl "
                 "vm.nr_hugepages=%ld gives them)\n",
                 kMegabytes / 2);
    arguments.insert(arguments.end(), {"--no-huge", "--no-shconf"}); // EAL: not with --in-memory
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw std::runtime_error(std::string("EAL does not start: ") + rte_strerror(rte_errno));
  }
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  std::vector<std::string_view> names;
  for (const Part& part : kParts) {
    names.push_back(part.name);
  }
  const Options options = read_options(argc, argv, names, {.full = 9, .quick = 3});
  try {
    start_eal();
    for (const Part& part : kParts) {
      if (options.wants_part(part.name)) {
        part.measure(options);
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pipeline_bench: %s\n", error.what());
    return 1;
  }
}
