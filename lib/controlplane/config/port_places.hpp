// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "yaml/reader.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace weir::config {

/// The places of ports in a switch, by their names.
class PortPlaces {
 public:
  /// `ports`, by place, outlives it.
  explicit PortPlaces(const std::vector<PortConfig>& ports);

  /// The place of the port that a file names there.
  std::uint16_t named_at(const yaml::Reader& node) const { return all_[node.one_of(names_)]; }

  const std::vector<std::uint16_t>& all() const { return all_; }

 private:
  std::vector<std::uint16_t> all_; // that have a port
  std::vector<std::string_view> names_;
};

} // namespace weir::config
