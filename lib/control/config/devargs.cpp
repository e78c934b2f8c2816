// SPDX-License-Identifier: BSD-3-Clause
#include "config/devargs.hpp"

#include <algorithm>

namespace weir::config {

std::string_view argument_of(std::string_view devargs, std::string_view name) {
  while (!devargs.empty()) {
    const std::string_view entry = devargs.substr(0, devargs.find(','));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
    devargs.remove_prefix(std::min(entry.size() + 1, devargs.size()));
  }
  return {};
}

} // namespace weir::config
