// SPDX-License-Identifier: BSD-3-Clause
#include "files/trusted_folder.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace weir::files {
namespace {

bool is_own(const struct stat& status) {
  return status.st_uid == 0 || status.st_uid == geteuid();
}

bool others_may_write(const struct stat& status) {
  const bool has_other_group = status.st_gid != 0 && status.st_gid != getegid();
  const mode_t writers = has_other_group ? S_IWGRP | S_IWOTH : S_IWOTH;
  return (status.st_mode & writers) != 0;
}

enum class Step : std::uint8_t { on_the_way, last };

/// What is wrong with one step on the way. In a folder with the sticky bit others can make files,
/// but neither move nor remove those of this user.
std::string flaw_of(const std::filesystem::path& path, Step step) {
  struct stat status {};

  if (lstat(path.c_str(), &status) != 0) {
    return {};
  }
  if (!is_own(status)) {
    return fmt::format("{} belongs to user {}", path.string(), status.st_uid);
  }
  const bool is_sticky = (status.st_mode & S_ISVTX) != 0 && step != Step::last;
  if (S_ISDIR(status.st_mode) && others_may_write(status) && !is_sticky) {
    return fmt::format("{} may be written to by others (mode {:o})", path.string(),
                       status.st_mode & 07777);
  }
  return {};
}

std::string flaw_on_way_to(const std::filesystem::path& folder) {
  std::filesystem::path step;
  for (auto part = folder.begin(); part != folder.end(); ++part) {
    step /= *part;
    const Step place = std::next(part) == folder.end() ? Step::last : Step::on_the_way;
    if (std::string flaw = flaw_of(step, place); !flaw.empty()) {
      return flaw;
    }
  }
  return {};
}

} // namespace

/// Both the way as it is written, whose links others could turn, and the way to which these lead.
std::string why_not_trusted(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path written = std::filesystem::absolute(folder, error) / "";
  const std::filesystem::path real = std::filesystem::canonical(folder, error);
  if (error) {
    return {};
  }
  std::string flaw = flaw_on_way_to(written.parent_path());
  return flaw.empty() ? flaw_on_way_to(real) : flaw;
}

} // namespace weir::files
