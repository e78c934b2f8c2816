// SPDX-License-Identifier: BSD-3-Clause

/// weir-worker: one rank of a job.

#include "complaint.hpp"
#include "exit_status.hpp"
#include "fatal_signals.hpp"
#include "host/api/device.hpp"
#include "host/api/group.hpp"
#include "host/transport/host_eal.hpp"
#include "local_ranks.hpp"
#include "output.hpp"
#include "usage_error.hpp"
#include "worker/group_lines.hpp"
#include "worker/group_trees.hpp"
#include "worker/options.hpp"
#include "worker/single_job.hpp"
#include "worker/sparse_job.hpp"
#include "worker/sweep.hpp"
#include "worker/sweep_printer.hpp"
#include "worker/wrong_result.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {

using namespace weir;
using app::kExitFailure;
using app::kExitUsage;
using app::WorkerOptions;

/// One rank sends nothing, so it opens no port.
bool needs_port(const WorkerOptions& options) {
  return !options.devargs.empty() && options.group.world > 1;
}

std::unique_ptr<host::Group> open_group(const WorkerOptions& options, host::Device& device) {
  if (!needs_port(options)) {
    return std::make_unique<host::Group>(options.group, device);
  }
  auto frames = host::open_ethdev(options.devargs, options.group.timeout);
  return std::make_unique<host::Group>(options.group, std::move(frames));
}

/// So that the device needs no copies of the tensors, if the options want that.
std::vector<std::unique_ptr<host::UserMemory>>
register_tensors(const WorkerOptions& options, host::Device& device, app::TensorMemory& memory) {
  std::vector<std::unique_ptr<host::UserMemory>> registered;
  for (const std::span<std::byte> part : memory.parts()) {
    if (options.registration == app::Registration::tensors && !part.empty()) {
      registered.push_back(
          device.register_memory({reinterpret_cast<std::uint8_t*>(part.data()), part.size()}));
    }
  }
  return registered;
}

void run_job(const WorkerOptions& options, const app::JobOptions& job) {
  app::TensorMemory memory({&job.call, 1}, {&job.placement, 1},
                           {options.group.rank, options.group.world});
  host::Device device(options.group);
  const auto registered = register_tensors(options, device, memory);
  const auto group = open_group(options, device); // destroyed before its buffers
  app::say(app::greeting_of(*group, app::schedule_of(*group, job.call)));
  app::JobOptions how = job;
  how.trees = app::trees_in_use(*group, job.trees);
  app::SingleJob single(how, *group, memory.buffers_of(job.call, job.placement));
  single.run();
  app::say(single.summary());
  if (!options.json.empty()) {
    app::write_file(options.json, single.json());
  }
}

void run_sparse_job(const WorkerOptions& options, const app::JobOptions& job) {
  host::Device device(options.group);
  const auto group = open_group(options, device);
  app::say(app::greeting_of(*group, app::schedule_of(*group, job.call)));
  app::JobOptions how = job;
  how.trees = app::trees_in_use(*group, job.trees);
  app::SparseJob sparse(how, *group);
  sparse.run();
  app::say(sparse.summary());
  if (!options.json.empty()) {
    app::write_file(options.json, sparse.json());
  }
}

void run_sweep(const WorkerOptions& options, app::SweepOptions how) {
  app::TensorMemory memory(how.calls, how.placements, {options.group.rank, options.group.world});
  host::Device device(options.group);
  const auto registered = register_tensors(options, device, memory);
  const auto group = open_group(options, device); // destroyed before its buffers
  how.trees = app::trees_in_use(*group, how.trees);
  app::GroupCalls calls(*group, how.waiting);
  const std::unique_ptr<app::SweepPrinter> printer = app::make_printer(how, *group);
  app::Sweep sweep(how, calls, memory, *printer);
  const std::vector<app::SweepRow> rows = sweep.run();
  printer->print_ending(rows, sweep);
  if (!options.json.empty()) {
    app::write_file(options.json, app::sweep_json(app::setting_of(*group), how, rows,
                                                  group->statistics().retransmitted_packets));
  }
  if (sweep.own_wrong() != 0 || app::wrong_elements_of(rows).value_or(0) != 0) {
    throw app::WrongResult(fmt::format("wrong results: {} elements on this rank, {} on all",
                                       sweep.own_wrong(),
                                       app::wrong_elements_of(rows).value_or(0)));
  }
}

void run_work(const WorkerOptions& options) {
  const auto* const job = std::get_if<app::JobOptions>(&options.work);
  if (job == nullptr) {
    run_sweep(options, std::get<app::SweepOptions>(options.work));
  } else if (job->call.is_sparse()) {
    run_sparse_job(options, *job);
  } else {
    run_job(options, *job);
  }
}

void run(const WorkerOptions& options) {
  if (!options.json.empty()) {
    app::write_file(options.json, ""); // or fail before hours of work
  }
  std::optional<host::HostEal> eal; // outlives the port
  if (needs_port(options)) {
    eal.emplace();
  }
  run_work(options);
  app::finish_output();
}

/// The exit status, once what is wrong is told.
int status_of(const std::function<int()>& body) {
  try {
    return body();
  } catch (const app::UsageError& error) {
    app::complain("weir-worker", error.what());
    return kExitUsage;
  } catch (const host::Error& error) {
    app::complain("weir-worker", fmt::format("{}: {}", name_of(error.code()), error.what()));
    return kExitFailure;
  } catch (const std::exception& error) {
    app::complain("weir-worker", error.what());
    return kExitFailure;
  }
}

/// The first of several ranks writes the file, and rank 0 a table where there is one.
int run_rank(WorkerOptions options, std::uint16_t rank) {
  return status_of([&] {
    options.json = rank == options.group.rank ? options.json : std::string();
    if (auto* const sweep = std::get_if<app::SweepOptions>(&options.work)) {
      sweep->line_mark = options.group.rank == 0 ? "# " : "";
    }
    options.group.rank = rank;
    run(options);
    return EXIT_SUCCESS;
  });
}

} // namespace

int main(int argc, char** argv) {
  app::name_fatal_signals("weir-worker");
  return status_of([&] {
    const WorkerOptions options = app::parse_worker_options(argc, argv);
    if (options.local_ranks == 1) {
      return run_rank(options, options.group.rank);
    }
    return app::run_local_ranks("weir-worker", options.group.rank, options.local_ranks,
                                [&](std::uint16_t rank) { return run_rank(options, rank); });
  });
}
