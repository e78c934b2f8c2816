// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a reader has not read yet. All is in this header, for who is not linked with this room.

#include <chrono>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <thread>

namespace weir::files {

/// Bytes that were written to this pipe or socket and that its other end has not read. Of a Unix
/// socket the kernel counts its own bytes for them too. 0 for anything else: a file or a terminal
/// has what was written to it.
inline int unread_bytes(int descriptor) {
  struct stat status {};

  int bytes = 0;
  if (fstat(descriptor, &status) != 0) {
    return 0;
  }
  if (S_ISFIFO(status.st_mode)) {
    ioctl(descriptor, FIONREAD, &bytes); // Linux tells it at both ends
  } else if (S_ISSOCK(status.st_mode)) {
    ioctl(descriptor, SIOCOUTQ, &bytes);
  }
  return bytes;
}

/// Until nothing is unread there. False: it still is after `longest`, for a reader may have
/// stopped.
inline bool wait_until_read(int descriptor, std::chrono::milliseconds longest) {
  constexpr std::chrono::milliseconds kPause{1};
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (unread_bytes(descriptor) > 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

} // namespace weir::files
