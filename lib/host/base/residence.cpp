// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/residence.hpp"

#include "host/base/frame_seal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::host {
namespace {

/// Drawn by the kernel when it boots. Empty where /proc is hidden.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

/// Empty where /proc is hidden.
std::string network_namespace() {
  struct stat found {};

  return stat("/proc/thread-self/ns/net", &found) == 0
             ? fmt::format("{}:{}", found.st_dev, found.st_ino)
             : std::string();
}

ByteView view_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

} // namespace

Residence residence_with(std::string_view nic) {
  Residence residence{.user = geteuid()};
  const std::string host = boot_id();
  const std::string network = network_namespace();
  if (!nic.empty() && !host.empty() && !network.empty()) {
    const Mac digest = mac_of(view_of(host), {view_of(network), view_of(" "), view_of(nic)});
    std::copy_n(digest.begin(), residence.nic.size(), residence.nic.begin());
  }
  return residence;
}

} // namespace weir::host
