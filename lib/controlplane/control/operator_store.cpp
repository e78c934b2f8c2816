// SPDX-License-Identifier: BSD-3-Clause
#include "control/operator_store.hpp"

#include "control/ring_journal.hpp"
#include "files/replaced_file.hpp"
#include "files/whole_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

namespace weir::control {
namespace {

constexpr std::string_view kFor = "# for ";
constexpr std::string_view kSuffix = ".weir";

StoredOperator read(std::string_view contents) {
  StoredOperator stored;
  while (contents.starts_with(kFor)) {
    const std::size_t end = std::min(contents.find('\n'), contents.size());
    stored.tenants.emplace_back(contents.substr(kFor.size(), end - kFor.size()));
    contents.remove_prefix(std::min(end + 1, contents.size()));
  }
  stored.text = contents;
  return stored;
}

std::string written(const StoredOperator& stored) {
  std::string contents;
  for (const std::string& tenant : stored.tenants) {
    contents += fmt::format("{}{}\n", kFor, tenant);
  }
  return contents + stored.text;
}

} // namespace

OperatorStore::OperatorStore(const std::filesystem::path& state_directory)
    : folder_(state_directory / "operators") {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    throw JournalError(fmt::format("{}: {}", folder_.string(), error.message()));
  }
}

std::filesystem::path OperatorStore::file_of(const program::Digest& digest) const {
  return folder_ / (program::to_string(digest) + std::string(kSuffix));
}

std::vector<StoredOperator> OperatorStore::all() const {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    // No FIFO, on which a start would wait, and no device.
    if (entry.path().extension() == kSuffix && entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::vector<StoredOperator> stored;
  for (const std::filesystem::path& file : files) {
    if (const std::optional<std::string> contents = files::read_whole(file)) {
      stored.push_back(read(*contents));
      stored.back().file = file;
    }
  }
  return stored;
}

/// A switch that dies meanwhile has the former file, or the new one.
void OperatorStore::keep(const program::Digest& digest, const StoredOperator& stored) const {
  const std::filesystem::path file = file_of(digest);
  if (const std::error_code error = files::replace(file, written(stored))) {
    throw JournalError(fmt::format("{}: cannot be written: {}", file.string(), error.message()));
  }
}

void OperatorStore::remove(const program::Digest& digest) const {
  std::error_code error;
  std::filesystem::remove(file_of(digest), error);
}

void OperatorStore::remove_if_elsewhere(const StoredOperator& stored,
                                        const program::Digest& digest) const {
  if (std::error_code error; stored.file != file_of(digest)) {
    std::filesystem::remove(stored.file, error);
  }
}

} // namespace weir::control
