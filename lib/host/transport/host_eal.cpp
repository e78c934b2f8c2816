// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/host_eal.hpp"

#include "ethdev/eal.hpp"
#include "host/base/error.hpp"
#include "host/transport/ethdev_io.hpp"

#include <fmt/format.h>
#include <rte_eal.h>

#include <cstdlib>
#include <filesystem>
#include <sched.h>
#include <string_view>
#include <unistd.h>

namespace weir::host {
namespace {

constexpr std::string_view kFilePrefix = "weir-worker-"; // the process id follows

bool is_alive(std::string_view process) {
  return std::filesystem::exists(fmt::format("/proc/{}", process));
}

/// EAL locks this file while its process lives, which other PID namespaces also see.
bool is_abandoned(const std::filesystem::path& directory) {
  const std::filesystem::path config = directory / "config";
  return std::filesystem::exists(config) && rte_eal_primary_proc_alive(config.c_str()) == 0;
}

/// Removes runtime directories of workers that were killed before they could do so.
void remove_abandoned(const std::filesystem::path& own) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(own.parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    const bool is_worker = name.starts_with(kFilePrefix) && entry.path() != own;
    if (is_worker && !is_alive(std::string_view(name).substr(kFilePrefix.size())) &&
        is_abandoned(entry.path())) {
      std::filesystem::remove_all(entry.path(), ignored);
    }
  }
}

/// "0@(0,1,5)": one lcore that may run on every CPU where the process could run before.
std::string floating_lcore() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      cpus.push_back(cpu);
    }
  }
  return fmt::format("0@({})", fmt::join(cpus, ","));
}

} // namespace

HostEal::HostEal()
    : arguments_{"weir-worker",
                 "--no-huge",
                 "-m",
                 "96",
                 "--no-pci",
                 "--no-telemetry",
                 "--log-level=*:4", // warnings and worse
                 "--file-prefix",
                 fmt::format("{}{}", kFilePrefix, getpid()),
                 "--lcores",
                 floating_lcore()} {
  try {
    ethdev::start_eal(arguments_);
  } catch (const ethdev::EalError& error) {
    throw Error(ErrorCode::transport_failure, std::nullopt, error.what());
  }
  runtime_directory_ = rte_eal_get_runtime_dir();
  remove_abandoned(runtime_directory_);
}

HostEal::~HostEal() {
  if (!birthplace_.is_here()) {
    return;
  }
  ethdev::end_eal();
  std::error_code ignored;
  std::filesystem::remove_all(runtime_directory_, ignored);
}

std::unique_ptr<FrameIo> open_ethdev(const std::string& devargs,
                                     std::chrono::milliseconds timeout) {
  return std::make_unique<EthdevIo>(devargs, timeout);
}

} // namespace weir::host
