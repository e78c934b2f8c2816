// SPDX-License-Identifier: BSD-3-Clause

/// weir-worker: one rank of a job.

#include "host/api/group.hpp"
#include "host/transport/host_eal.hpp"
#include "last_words.hpp"
#include "usage_error.hpp"
#include "worker/options.hpp"
#include "worker/single_job.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace weir;
using app::WorkerOptions;

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

std::unique_ptr<host::Group> open_group(const WorkerOptions& options) {
  if (options.devargs.empty()) {
    return std::make_unique<host::Group>(options.group);
  }
  auto frames = host::open_ethdev(options.devargs, options.group.timeout);
  return std::make_unique<host::Group>(options.group, std::move(frames));
}

void print(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

void write_file(const std::string& name, std::string_view text) {
  std::ofstream file(name);
  file << text;
  file.flush();
  if (!file) {
    throw std::runtime_error(fmt::format("--json {}: cannot be written", name));
  }
}

/// Who this rank is, and who reduces. The schedule is the hosts' ring's.
std::string greeting(const host::Group& group, const host::Call& call) {
  const std::string_view schedule = app::schedule_of(group, call);
  const std::string explanation = schedule.empty() ? ""
                                                   : fmt::format(" schedule={} reason=\"{}\"",
                                                                 schedule, group.fallback_reason());
  return fmt::format("weir-worker: rank={} world={} epoch={} algorithm={}{}\n", group.rank(),
                     group.world(), group.epoch(), name_of(group.algorithm()), explanation);
}

void run(const WorkerOptions& options) {
  const app::JobOptions& job = options.job;
  app::TensorMemory memory({&job.call, 1}, {&job.placement, 1},
                           {options.group.rank, options.group.world});
  const std::unique_ptr<host::Group> group = open_group(options); // destroyed before its buffers
  print(greeting(*group, job.call));
  app::SingleJob single(job, *group, memory.buffers_of(job.call, job.placement));
  single.run();
  print(single.summary());
  if (!options.json.empty()) {
    write_file(options.json, single.json());
  }
}

} // namespace

int main(int argc, char** argv) {
  app::name_fatal_signals("weir-worker");
  try {
    const WorkerOptions options = app::parse_worker_options(argc, argv);
    std::optional<host::HostEal> eal; // outlives the port
    if (!options.devargs.empty()) {
      eal.emplace();
    }
    run(options);
    return EXIT_SUCCESS;
  } catch (const app::UsageError& error) {
    fmt::print(stderr, "weir-worker: {}\n", error.what());
    return kExitUsage;
  } catch (const host::Error& error) {
    fmt::print(stderr, "weir-worker: {}: {}\n", name_of(error.code()), error.what());
    return kExitFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weir-worker: {}\n", error.what());
    return kExitFailure;
  }
}
