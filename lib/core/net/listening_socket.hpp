// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

namespace weir::net {

/// It cannot listen at its address. what() has the address and the cause.
class ListenError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws ListenError for what is no "ADDRESS:PORT" in numbers, IPv6 in brackets.
void check_address(const std::string& address);

/// A socket that listens while it lives. Moves, does not copy.
class ListeningSocket {
 public:
  /// A Unix socket that only this process' user and root may use. Takes the place of a socket file
  /// at which nobody listens any more. Throws ListenError, also when somebody listens there or the
  /// file is no socket.
  static ListeningSocket at_path(const std::string& path);
  /// "ADDRESS:PORT", IPv6 in brackets. Throws ListenError.
  static ListeningSocket at_address(const std::string& address);

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  /// Also removes the file.
  ~ListeningSocket();

  int descriptor() const { return descriptor_; }

  /// The next caller's connection, which does not block; -1: none, or none that may call. Callers
  /// of a Unix socket must be root or this process' user.
  int accept() const;

 private:
  explicit ListeningSocket(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  std::string path_; // empty: no file
};

} // namespace weir::net
