// SPDX-License-Identifier: BSD-3-Clause
#include "file_uses.hpp"

#include "usage_error.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::app {
namespace {

namespace fs = std::filesystem;

/// Two uses of one file have the same.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  fs::path name; // in that folder, of a file that is not there yet

  bool operator==(const Identity&) const = default;
};

/// Where a file would be made: a symbolic link may lead to a file that is not there yet.
fs::path end_of_links(fs::path file) {
  constexpr unsigned most = 40; // as the kernel follows
  std::error_code error;
  for (unsigned links = 0; links < most && fs::is_symlink(file, error); ++links) {
    const fs::path target = fs::read_symlink(file, error);
    file = file.parent_path() / target; // a target that begins with / stands alone
  }
  return file;
}

bool look_at(const FileUse& use, struct stat& found) {
  if (use.file == "-") {
    return fstat(use.use == Use::read ? STDIN_FILENO : STDOUT_FILENO, &found) == 0;
  }
  return stat(use.file.c_str(), &found) == 0;
}

/// nullopt: a device, or nothing that could be opened.
std::optional<Identity> identity_of(const FileUse& use) {
  struct stat found {};

  if (look_at(use, found)) {
    return S_ISCHR(found.st_mode) ? std::nullopt
                                  : std::optional(Identity{found.st_dev, found.st_ino, {}});
  }
  const fs::path file = end_of_links(use.file);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (use.file == "-" || stat(folder.c_str(), &found) != 0) {
    return std::nullopt;
  }
  return Identity{found.st_dev, found.st_ino, file.filename()};
}

} // namespace

void refuse_shared_files(std::span<const FileUse> uses) {
  std::vector<std::pair<const FileUse*, Identity>> known;
  for (const FileUse& use : uses) {
    const std::optional<Identity> identity = use.file.empty() ? std::nullopt : identity_of(use);
    if (!identity) {
      continue;
    }
    for (const auto& [other, its_identity] : known) {
      const bool is_written = use.use == Use::write || other->use == Use::write;
      if (is_written && *identity == its_identity) {
        throw UsageError(fmt::format("found '{}' for {} and '{}' for {}, which are the same file; "
                                     "allowed: a file of its own for what is written",
                                     other->file, other->name, use.file, use.name));
      }
    }
    known.emplace_back(&use, *identity);
  }
}

} // namespace weir::app
