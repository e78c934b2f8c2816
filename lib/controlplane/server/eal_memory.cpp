// SPDX-License-Identifier: BSD-3-Clause
#include "server/eal_memory.hpp"

#include "config/config.hpp"
#include "text/list.hpp"
#include "text/number.hpp"

#include <algorithm>
#include <string_view>

namespace weir::server {
namespace {

constexpr std::string_view kOfNodes = "--socket-mem";

bool has(const std::vector<std::string>& options, std::string_view option) {
  return std::ranges::find(options, option) != options.end();
}

/// The list of the last such option, in either form; empty without it.
std::string_view list_of_nodes(const std::vector<std::string>& options) {
  std::string_view list;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string_view option = options[i];
    if (option == kOfNodes && i + 1 < options.size()) {
      list = options[i + 1];
    } else if (option.starts_with(kOfNodes) && option.substr(kOfNodes.size()).starts_with("=")) {
      list = option.substr(kOfNodes.size() + 1);
    }
  }
  return list;
}

} // namespace

EalMemory eal_memory(const std::vector<std::string>& options) {
  EalMemory memory{.has_hugepages = !has(options, "--no-huge"),
                   .needs_folder = !has(options, "--in-memory")};
  if (const auto given = config::memory_options(options); !given.empty()) {
    memory.taken_mib = text::parsed<std::uint64_t>(given.back().number).value_or(0);
  }
  if (const std::string_view list = list_of_nodes(options); !list.empty()) {
    for (const std::string_view word : text::words_of(list)) {
      memory.mib_of_node.push_back(text::parsed<std::uint64_t>(word).value_or(0));
    }
  }
  return memory;
}

} // namespace weir::server
