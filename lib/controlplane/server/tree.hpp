// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "text/number.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::server {

/// The files of a machine: /sys, /proc, /dev and all others. What cannot be read is not there.
class Tree {
 public:
  /// `root` stands for /. A path that is not absolute is one from where this process is.
  explicit Tree(std::filesystem::path root = "/") : root_(std::move(root)) {}

  std::filesystem::path at(std::string_view path) const;
  bool has(std::string_view path) const;
  /// All that is in the file; empty if it is not there.
  std::string text(std::string_view path) const;
  /// The first line, without its end. Empty if it is not there.
  std::string line(std::string_view path) const;
  /// Sorted, without the folder.
  std::vector<std::string> names(std::string_view folder) const;
  /// The name of what a symbolic link leads to, without its folder. Empty if there is no such link.
  std::string target(std::string_view link) const;

  /// The number that is the first line.
  template <typename Number>
  std::optional<Number> number(std::string_view path) const {
    return text::parsed<Number>(line(path));
  }

  /// The same for a file such as vendor or flags: "0x15b3". 0 if it is not there.
  unsigned hexadecimal(std::string_view path) const;

 private:
  std::filesystem::path root_;
};

} // namespace weir::server
