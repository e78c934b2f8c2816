// SPDX-License-Identifier: BSD-3-Clause
#include "server/tree.hpp"

#include "files/whole_file.hpp"

#include <algorithm>
#include <system_error>

namespace weir::server {

std::filesystem::path Tree::at(std::string_view path) const {
  const std::filesystem::path given(path);
  return given.is_absolute() ? root_ / given.relative_path() : given;
}

bool Tree::has(std::string_view path) const {
  std::error_code error;
  return std::filesystem::exists(at(path), error);
}

std::string Tree::text(std::string_view path) const {
  return files::read_whole(at(path)).value_or("");
}

std::string Tree::line(std::string_view path) const {
  const std::string all = text(path);
  return all.substr(0, all.find('\n'));
}

unsigned Tree::hexadecimal(std::string_view path) const {
  const std::string digits = line(path);
  return text::parsed<unsigned>(digits.starts_with("0x") ? digits.substr(2) : digits, 16)
      .value_or(0);
}

std::vector<std::string> Tree::names(std::string_view folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(at(folder), error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string Tree::target(std::string_view link) const {
  std::error_code error;
  return std::filesystem::read_symlink(at(link), error).filename().string();
}

} // namespace weir::server
