// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"
#include "server/eal_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace weir::server {
namespace {

constexpr std::string_view kProgram = "weir";

/// Hugepages of all sizes, on one node or on all.
struct Room {
  int node = control::kNoNode; // none: all nodes
  std::uint64_t free_mib = 0;
  std::uint64_t all_mib = 0;

  std::string name() const {
    return node == control::kNoNode ? "all nodes" : fmt::format("node {}", node);
  }
};

Room room_of(const Hugepages& hugepages, int node) {
  return {.node = node, .free_mib = hugepages.free_mib(node), .all_mib = hugepages.all_mib(node)};
}

/// The smallest pages of the node, or of the machine's first one.
const HugepagePool* smallest_pool(const Hugepages& hugepages, int node) {
  const HugepagePool* smallest = nullptr;
  for (const HugepagePool& pool : hugepages.pools) {
    const bool is_there = node == control::kNoNode || pool.node == node;
    if (is_there && (smallest == nullptr || pool.page_kib < smallest->page_kib)) {
      smallest = &pool;
    }
  }
  return smallest;
}

/// Sets so many pages aside that there is room for what lacks.
std::string more_pages(const Hugepages& hugepages, int node, std::uint64_t lacking_mib) {
  const HugepagePool* pool = smallest_pool(hugepages, node);
  if (pool == nullptr) {
    return {};
  }
  const std::uint64_t more = (lacking_mib * 1024 + pool->page_kib - 1) / pool->page_kib;
  const std::string folder = pool->node == control::kNoNode
                                 ? "/sys/kernel/mm"
                                 : fmt::format("/sys/devices/system/node/node{}", pool->node);
  return fmt::format("echo {} > {}/hugepages/hugepages-{}kB/nr_hugepages", pool->pages + more,
                     folder, pool->page_kib);
}

std::string users_of(const Hugepages& hugepages) {
  std::string text;
  for (const HugepageUser& user : hugepages.users) {
    text += fmt::format("; process {} ({}) has {} MiB", user.process, user.program, user.mib);
  }
  return text;
}

/// A switch that runs has what it was given: then nobody knows what the next start will find.
Rank rank_of_lack(const Hugepages& hugepages) {
  const bool is_running = std::ranges::any_of(
      hugepages.users, [](const HugepageUser& user) { return user.program == kProgram; });
  return is_running ? Rank::unknown : Rank::wrong;
}

/// Whether what EAL takes at start, or later, is there.
Finding room_for(const Hugepages& hugepages, const Room& room, std::uint64_t needed_mib,
                 std::string_view by) {
  const std::string found = fmt::format("{}: {} MiB free of {}; needed {}, by {}", room.name(),
                                        room.free_mib, room.all_mib, needed_mib, by);
  if (room.free_mib >= needed_mib) {
    return {Rank::fine, found};
  }
  const Rank rank = rank_of_lack(hugepages);
  return {rank, found + users_of(hugepages),
          rank == Rank::wrong ? more_pages(hugepages, room.node, needed_mib - room.free_mib) : ""};
}

/// Node by node; and in all, unless the nodes' commands mend that too.
std::vector<Finding> rooms_for(const Case& given, const EalMemory& eal) {
  const Hugepages& hugepages = given.facts.hugepages;
  std::vector<Finding> findings;
  std::uint64_t lacking_mib = 0;
  for (std::size_t node = 0; node < eal.mib_of_node.size(); ++node) {
    if (const std::uint64_t needed_mib = eal.mib_of_node[node]; needed_mib > 0) {
      const Room room = room_of(hugepages, static_cast<int>(node));
      findings.push_back(room_for(hugepages, room, needed_mib, "--socket-mem"));
      lacking_mib += needed_mib - std::min(needed_mib, room.free_mib);
    }
  }
  const Room all = room_of(hugepages, control::kNoNode);
  const std::uint64_t needed_mib = std::max(given.needed_mib, eal.taken_mib);
  if (lacking_mib == 0 || all.free_mib + lacking_mib < needed_mib) {
    findings.push_back(room_for(hugepages, all, needed_mib, "ports, rings and -m"));
  }
  return findings;
}

Finding without_hugepages(const EalMemory& eal, std::uint64_t needed_mib) {
  if (eal.taken_mib == 0 || eal.taken_mib >= needed_mib) {
    return {Rank::fine, "none are needed, by --no-huge"};
  }
  return {Rank::wrong,
          fmt::format("{} MiB, by -m with --no-huge; needed {}, by ports and rings", eal.taken_mib,
                      needed_mib),
          fmt::format("# -m {} in eal.options", needed_mib)};
}

} // namespace

std::vector<Finding> ask_hugepages(const Case& given) {
  const EalMemory eal = eal_memory(given.config.eal_options);
  if (!eal.has_hugepages) {
    return {without_hugepages(eal, given.needed_mib)};
  }
  std::vector<Finding> findings = rooms_for(given, eal);
  if (eal.needs_folder && !given.facts.hugepages.has_folder) {
    findings.push_back({Rank::wrong, "no hugetlbfs is mounted into which this user may write",
                        "# add --in-memory to eal.options, which needs none"});
  }
  return findings;
}

/// VFIO and verbs count what they pin against the limit: all that EAL has.
std::vector<Finding> ask_locked_memory(const Case& given) {
  constexpr std::uint64_t mib = 1 << 20;
  const LockedMemory& memory = given.facts.locked_memory;
  if (given.facts.devices.empty()) {
    return {};
  }
  if (memory.is_exempt || !memory.limit_bytes) {
    return {{Rank::fine, "no limit for this process"}};
  }
  const EalMemory eal = eal_memory(given.config.eal_options);
  const std::uint64_t pinned_mib =
      std::max({given.needed_mib, eal.taken_mib,
                std::accumulate(eal.mib_of_node.begin(), eal.mib_of_node.end(), std::uint64_t{0})});
  const std::uint64_t limit_mib = *memory.limit_bytes / mib;
  const std::string found = fmt::format("at most {} MiB; the NICs need {}", limit_mib, pinned_mib);
  if (limit_mib >= pinned_mib) {
    return {{Rank::fine, found}};
  }
  return {{Rank::wrong, found, "ulimit -l unlimited # for a service: LimitMEMLOCK=infinity"}};
}

} // namespace weir::server
