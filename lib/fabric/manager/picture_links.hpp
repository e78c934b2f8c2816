// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

/// "leaf0-spine0"; the second cable between these two is "leaf0-spine0 (2)".
inline std::vector<std::string> names_of_links(const v1::FabricPicture& picture) {
  std::vector<std::string> names;
  std::map<std::string, int> counts;
  for (const v1::PictureLink& link : picture.links()) {
    const std::string name = fmt::format("{}-{}", link.one(), link.other());
    const int count = ++counts[name];
    names.push_back(count == 1 ? name : fmt::format("{} ({})", name, count));
  }
  return names;
}

} // namespace weir::manager
