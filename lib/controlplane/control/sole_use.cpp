// SPDX-License-Identifier: BSD-3-Clause
#include "control/sole_use.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::control {
namespace {

constexpr std::string_view kAllowed = "a folder that no other switch uses, and that this one may "
                                      "write to";

[[noreturn]] void fail(const std::filesystem::path& file, std::string_view found) {
  throw InUse(fmt::format("{}: found {}; allowed: {}", file.string(), found, kAllowed));
}

/// The holder writes its number as soon as it has the lock.
std::string holder_in(int file) {
  std::array<char, 16> number{};
  const ssize_t bytes = pread(file, number.data(), number.size(), 0);
  const std::string text(number.data(), bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  return text.substr(0, text.find('\n'));
}

/// Nobody else may open it, now that it is open: a lock of theirs would keep switches out.
void keep_others_out(const std::filesystem::path& path, int file) {
  struct stat status {};

  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    fail(path, "what is no file");
  }
  if (status.st_uid != geteuid()) {
    fail(path, fmt::format("a file of user {}", status.st_uid));
  }
  if (fchmod(file, S_IRUSR | S_IWUSR) != 0) {
    fail(path, std::strerror(errno));
  }
}

void write_number(const std::filesystem::path& path, int file) {
  const std::string number = fmt::format("{}\n", getpid());
  if (ftruncate(file, 0) != 0 ||
      pwrite(file, number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
    fail(path, std::strerror(errno));
  }
}

} // namespace

SoleUse::SoleUse(const std::filesystem::path& folder)
    : file_(folder / "lock", O_RDWR | O_CREAT | O_NOFOLLOW) {
  const std::filesystem::path path = folder / "lock";
  if (file_.get() < 0) {
    fail(path, std::strerror(errno));
  }
  keep_others_out(path, file_.get());
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    fail(path, errno == EWOULDBLOCK ? fmt::format("that process {} has it", holder_in(file_.get()))
                                    : std::strerror(errno));
  }
  write_number(path, file_.get());
}

} // namespace weir::control
