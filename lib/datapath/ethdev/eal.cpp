// SPDX-License-Identifier: BSD-3-Clause
#include "ethdev/eal.hpp"

#include "ethdev/interrupt_thread.hpp"
#include "files/trusted_folder.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_vfio.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace weir::ethdev {
namespace {

constexpr const char* kModules = "/sys/module";

bool has_option(const std::vector<std::string>& arguments, std::string_view option) {
  return std::ranges::any_of(
      arguments, [&](std::string_view argument) { return argument.starts_with(option); });
}

/// The process that has EAL's lock on this file, if one has.
std::optional<pid_t> holder_of(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) {
    return std::nullopt;
  }

  struct flock lock {};

  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool is_held = fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(descriptor);
  return is_held ? std::optional(lock.l_pid) : std::nullopt;
}

/// EAL's directory for this user, in which each file prefix has its own (DPDK's
/// eal_filesystem.c).
std::filesystem::path directory_of_all_prefixes() {
  for (const char* name : {"RUNTIME_DIRECTORY", getuid() == 0 ? nullptr : "XDG_RUNTIME_DIR"}) {
    if (const char* folder = name == nullptr ? nullptr : std::getenv(name); folder != nullptr) {
      return std::filesystem::path(folder) / "dpdk";
    }
  }
  return getuid() == 0 ? "/var/run/dpdk" : "/tmp/dpdk";
}

/// Why EAL cannot use its runtime directory. Empty: it can, or needs none.
std::string cause_in_runtime_directory(const std::vector<std::string>& arguments) {
  if (has_option(arguments, "--no-shconf") || has_option(arguments, "--in-memory")) {
    return {};
  }
  const std::filesystem::path all = directory_of_all_prefixes();
  if (mkdir(all.c_str(), S_IRWXU) != 0 &&
      (errno != EEXIST || access(all.c_str(), W_OK | X_OK) != 0)) {
    return fmt::format("{} cannot be made or written to ({}); allowed: a RUNTIME_DIRECTORY that "
                       "can, or the options --in-memory or --no-shconf",
                       all.string(), std::strerror(errno));
  }
  const std::string folder = rte_eal_get_runtime_dir();
  if (const std::optional<pid_t> holder = holder_of(folder + "/config")) {
    return fmt::format("process {} runs with the same --file-prefix and has {}/config locked; "
                       "allowed: a --file-prefix of its own for each process",
                       *holder, folder);
  }
  return {};
}

/// EAL takes whatever directory it finds, and puts its locks and its telemetry socket there.
void refuse_directory_of_others() {
  const std::filesystem::path all = directory_of_all_prefixes();
  mkdir(all.c_str(), S_IRWXU); // before others do
  if (const std::string flaw = files::why_not_trusted(all); !flaw.empty()) {
    throw EalError(
        fmt::format("EAL does not start: {}; allowed: a RUNTIME_DIRECTORY that only this "
                    "user and root can change",
                    flaw),
        EalError::Fault::machine);
  }
}

std::string cause_of(int error) {
  if (error == EACCES) {
    return "it finds no hugepages that it may use; allowed: hugepages that are reserved and "
           "mounted for this user, the option --in-memory, or --no-huge with -m";
  }
  if (error == ENOMEM) {
    return "it does not get its memory; allowed: less of it (-m, --socket-mem), more free "
           "hugepages, or a higher limit of locked memory (ulimit -l)";
  }
  if (error == EINVAL) {
    return "it does not know or allow one of its arguments, which its lines above name";
  }
  return error == 0 ? "its lines above tell why" : rte_strerror(error);
}

} // namespace

void start_eal(std::vector<std::string>& arguments) {
  refuse_directory_of_others();
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0) {
    return;
  }
  const int error = std::abs(rte_errno);
  const std::string files = cause_in_runtime_directory(arguments);
  const bool is_mistake = files.empty() && error == EINVAL;
  throw EalError(fmt::format("EAL does not start: {}; its arguments: {}",
                             files.empty() ? cause_of(error) : files, fmt::join(arguments, " ")),
                 is_mistake ? EalError::Fault::arguments : EalError::Fault::machine);
}

/// DPDK 22.11's clean-up unregisters what it has on the interrupt thread, which then looks at all
/// that is registered still, such as memif's listeners, in memory that goes at the same time.
void end_eal() {
  try {
    park_interrupt_thread();
  } catch (const std::system_error&) { // nothing can be run there
  }
  rte_eal_cleanup();
}

} // namespace weir::ethdev

/// Stands before EAL's own, which it calls. Without /sys/module, where a container hides it, that
/// one fails, and EAL with it; but there VFIO is only not available, as without its module.
extern "C" [[gnu::visibility("default")]] int rte_vfio_enable(const char* module) {
  using Enable = int(const char*);
  static auto* const enable = reinterpret_cast<Enable*>(dlsym(RTLD_NEXT, "rte_vfio_enable"));
  const int answer = enable(module);
  return std::filesystem::exists(weir::ethdev::kModules) ? answer : 0;
}
