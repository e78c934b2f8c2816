// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A child made by fork has a copy of every object, but none of the threads, and shares every
/// connection and device with its parent. So nothing of a communicator acts there: objects ask
/// their Birthplace first, and descriptors are closed in the child before fork returns.

#include <functional>

namespace weir::host {

/// The process that an object was made in.
class Birthplace {
 public:
  Birthplace();

  /// False in a child made by fork since.
  bool is_here() const;

 private:
  unsigned generation_;
};

/// Opens a descriptor that no child made by fork keeps: what `call` returns, as it returns it. For
/// calls that do not block: a fork waits for them.
int open_unshared(const std::function<int()>& call);

/// The same for one that is open already.
void unshare(int descriptor);

/// Closes it, where it was opened.
void close_unshared(int descriptor);

} // namespace weir::host
