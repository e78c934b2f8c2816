// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace weir::files {

/// An open file, closed at the end.
class Descriptor {
 public:
  /// get() is -1, and errno says why, if the file does not open. Only its user may use a new file.
  /// Opened neither through a link nor by waiting for the other end of a pipe.
  Descriptor(const std::filesystem::path& file, int flags)
      : number_(
            open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR)) {}

  /// Takes an open one.
  explicit Descriptor(int number) : number_(number) {}

  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }

  int get() const { return number_; }

 private:
  int number_;
};

} // namespace weir::files
