// SPDX-License-Identifier: BSD-3-Clause
#include "files/replaced_file.hpp"

#include "files/descriptor.hpp"

#include <cerrno>

namespace weir::files {
namespace {

std::error_code last_error() {
  return {errno, std::generic_category()};
}

std::error_code synced(const Descriptor& file) {
  return fsync(file.get()) == 0 ? std::error_code() : last_error();
}

/// Not safe from a power failure by itself: the file is half written for a while.
std::error_code write_whole(const std::filesystem::path& file, std::string_view text) {
  const Descriptor written(file, O_WRONLY | O_CREAT | O_TRUNC);
  if (written.get() < 0) {
    return last_error();
  }
  while (!text.empty()) {
    const ssize_t bytes = write(written.get(), text.data(), text.size());
    if (bytes <= 0) {
      return last_error();
    }
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return synced(written);
}

} // namespace

std::error_code replace(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::path next = file;
  next += ".next";
  if (const std::error_code error = write_whole(next, text)) {
    return error;
  }
  std::error_code error;
  std::filesystem::rename(next, file, error);
  return error ? error : sync_entries(file.parent_path());
}

std::error_code sync_entries(const std::filesystem::path& folder) {
  // The folder's name may be a link to it.
  const Descriptor entries(folder / ".", O_RDONLY | O_DIRECTORY);
  return entries.get() < 0 ? last_error() : synced(entries);
}

} // namespace weir::files
