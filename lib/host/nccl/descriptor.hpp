// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

namespace weir::nccl {

/// A socket that is closed at the end.
class Descriptor {
 public:
  /// Takes what socket(2) or accept(2) returned. Throws Failure with errno if that is -1.
  explicit Descriptor(int number);

  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  int get() const { return number_; }

 private:
  int number_;
};

/// An errno: why the socket's connection was not made or has ended; 0: it stands.
int error_of_socket(int socket);

} // namespace weir::nccl
