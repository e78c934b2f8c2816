// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "yaml/reader.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace weir::config {

/// Remembers where each value was used, and rejects an equal second one.
template <typename T>
class Once {
 public:
  /// The error text prints `found` and `allowed`.
  void add(const T& value, const yaml::Reader& node, std::string_view found,
           std::string_view allowed) {
    const auto [first, is_new] = seen_.emplace(value, std::pair{node.key(), node.line()});
    if (!is_new) {
      const auto& [key, line] = first->second;
      node.fail(fmt::format("{}, which is {} on line {} too", found, key, line), allowed);
    }
  }

 private:
  std::map<T, std::pair<std::string, int>> seen_;
};

} // namespace weir::config
