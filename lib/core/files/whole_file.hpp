// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace weir::files {

/// What is in the file. Nothing: it cannot be read, or is a folder.
inline std::optional<std::string> read_whole(const std::filesystem::path& file) {
  // Before the read: an iterator over a folder throws.
  if (std::error_code error; std::filesystem::is_directory(file, error)) {
    return std::nullopt;
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  return stream ? std::optional(std::move(text)) : std::nullopt;
}

/// Of keys and certificates: what is in the file. Nothing also if that is nothing.
inline std::optional<std::string> read_pem(const std::filesystem::path& file) {
  std::optional<std::string> text = read_whole(file);
  return text && !text->empty() ? text : std::nullopt;
}

/// What there is in place of a PEM file, for an error.
inline constexpr const char* kNoPem = "which cannot be read or is empty";

} // namespace weir::files
