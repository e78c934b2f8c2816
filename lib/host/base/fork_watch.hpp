// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A child made by fork has a copy of every object but none of the threads, and shares every
/// connection and device with its parent. So a group does nothing there: objects ask their
/// Birthplace first, and the child closes the descriptors before fork returns.

#include <functional>

namespace weir::host {

/// The process in which an object was made.
class Birthplace {
 public:
  Birthplace();

  /// False in a child made by fork since then.
  bool is_here() const;

 private:
  unsigned generation_;
};

/// Opens a descriptor that is closed in every child made by fork. Returns what `call` returns.
/// `call` must not block, because a fork waits for it.
int open_unshared(const std::function<int()>& call);

/// The same for an open descriptor.
void unshare(int descriptor);

/// Closes it in the process that opened it.
void close_unshared(int descriptor);

} // namespace weir::host
