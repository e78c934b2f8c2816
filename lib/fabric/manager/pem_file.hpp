// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace weir::manager {

/// Throws std::runtime_error.
inline std::string contents_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream || text.empty()) {
    throw std::runtime_error(
        fmt::format("found {}, which cannot be read or is empty; allowed: a PEM file", file));
  }
  return text;
}

} // namespace weir::manager
