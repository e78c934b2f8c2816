// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "files/whole_file.hpp"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace weir::manager {

/// Throws std::runtime_error.
inline std::string contents_of(const std::string& file) {
  const std::optional<std::string> text = files::read_pem(file);
  if (!text) {
    throw std::runtime_error(fmt::format("found {}, {}; allowed: a PEM file", file, files::kNoPem));
  }
  return *text;
}

} // namespace weir::manager
