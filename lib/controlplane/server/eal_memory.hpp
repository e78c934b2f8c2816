// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::server {

/// What eal.options say of memory (DPDK 22.11).
struct EalMemory {
  bool has_hugepages = true;              // no --no-huge
  bool needs_folder = true;               // of hugetlbfs: no --in-memory
  std::uint64_t taken_mib = 0;            // at start, wherever it is: -m
  std::vector<std::uint64_t> mib_of_node; // at start, by NUMA node: --socket-mem
};

EalMemory eal_memory(const std::vector<std::string>& options);

} // namespace weir::server
