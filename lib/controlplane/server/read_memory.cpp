// SPDX-License-Identifier: BSD-3-Clause
#include "server/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <linux/capability.h>
#include <sstream>
#include <unistd.h>

namespace weir::server {
namespace {

constexpr std::string_view kNodes = "/sys/devices/system/node";

/// The words behind `name` on its line of a file such as /proc/self/status; empty without it.
std::string behind(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) {
      return line.substr(name.size());
    }
  }
  return {};
}

/// The number at the beginning of the words behind `name`.
std::uint64_t number_behind(const std::string& text, std::string_view name) {
  std::istringstream words(behind(text, name));
  std::uint64_t number = 0;
  words >> number;
  return number;
}

/// Of proc(5): a hexadecimal mask.
bool has_capability(const std::string& status, unsigned capability) {
  std::istringstream mask(behind(status, "CapEff:"));
  std::uint64_t held = 0;
  mask >> std::hex >> held;
  return ((held >> capability) & 1) != 0;
}

/// The number between the two, as in "hugepages-2048kB".
template <typename Number>
std::optional<Number> number_between(std::string_view name, std::string_view before,
                                     std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after)) {
    return std::nullopt;
  }
  name.remove_prefix(before.size());
  return text::parsed<Number>(name.substr(0, name.size() - after.size()));
}

/// Of a folder with a subfolder for each size (Documentation/admin-guide/mm/hugetlbpage.rst).
void read_pools(const Tree& tree, const std::string& folder, int node,
                std::vector<HugepagePool>& pools) {
  for (const std::string& name : tree.names(folder)) {
    if (const auto kib = number_between<std::uint64_t>(name, "hugepages-", "kB")) {
      const std::string files = fmt::format("{}/{}", folder, name);
      pools.push_back({.node = node,
                       .page_kib = *kib,
                       .pages = tree.number<std::uint64_t>(files + "/nr_hugepages").value_or(0),
                       .free = tree.number<std::uint64_t>(files + "/free_hugepages").value_or(0)});
    }
  }
}

std::vector<HugepagePool> read_all_pools(const Tree& tree) {
  std::vector<HugepagePool> pools;
  for (const std::string& name : tree.names(kNodes)) {
    if (const auto node = number_between<int>(name, "node", "")) {
      read_pools(tree, fmt::format("{}/{}/hugepages", kNodes, name), *node, pools);
    }
  }
  if (pools.empty()) {
    read_pools(tree, "/sys/kernel/mm/hugepages", control::kNoNode, pools);
  }
  return pools;
}

std::vector<HugepageUser> read_users(const Tree& tree) {
  std::vector<HugepageUser> users;
  for (const std::string& name : tree.names("/proc")) {
    const auto process = text::parsed<unsigned>(name);
    const std::string folder = "/proc/" + name;
    const std::uint64_t kib =
        process ? number_behind(tree.text(folder + "/status"), "HugetlbPages:") : 0;
    if (kib > 0) {
      users.push_back({*process, tree.line(folder + "/comm"), kib / 1024});
    }
  }
  return users;
}

/// A line of /proc/mounts: device, folder, type, options.
bool has_hugepage_folder(const Tree& tree) {
  std::istringstream lines(tree.text("/proc/self/mounts"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device;
    std::string folder;
    std::string type;
    words >> device >> folder >> type;
    if (type == "hugetlbfs" && access(tree.at(folder).c_str(), W_OK) == 0) {
      return true;
    }
  }
  return false;
}

} // namespace

Hugepages read_hugepages(const Tree& tree) {
  return {.pools = read_all_pools(tree),
          .users = read_users(tree),
          .has_folder = has_hugepage_folder(tree)};
}

LockedMemory read_locked_memory(const Tree& tree) {
  std::istringstream soft_limit(behind(tree.text("/proc/self/limits"), "Max locked memory"));
  std::uint64_t bytes = 0;
  LockedMemory memory;
  if (soft_limit >> bytes) { // not "unlimited"
    memory.limit_bytes = bytes;
  }
  memory.is_exempt = has_capability(tree.text("/proc/self/status"), CAP_IPC_LOCK);
  return memory;
}

} // namespace weir::server
