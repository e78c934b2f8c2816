// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::ethdev {

/// A thread that polls memif ports. EAL's interrupt thread must know about it.
///
/// When the other end of a memif port goes away, DPDK 22.11 marks the port as disconnected and
/// unmaps its rings at once, on the interrupt thread. A burst may be reading them at that moment;
/// the process would die of SIGSEGV. Linking this class replaces munmap(2). On the interrupt
/// thread, the new one first waits until every reader has been outside a burst (a grace period of
/// rte_rcu_qsbr). By then the readers see the mark and do not read the rings.
///
/// Only one thread at a time uses a reader. Between enter() and leave() it must not wait for the
/// interrupt thread.
class MemifReader {
 public:
  static constexpr unsigned kMost = 512; // in one process

  /// Throws std::length_error when there are kMost of them already.
  MemifReader();
  ~MemifReader();
  MemifReader(const MemifReader&) = delete;
  MemifReader& operator=(const MemifReader&) = delete;

  /// Call before the first burst.
  void enter();
  /// Reports that this thread is between two bursts: leave() and enter() without their fence.
  void between_bursts();
  /// No bursts until the next enter().
  void leave();

 private:
  unsigned id_;
};

} // namespace weir::ethdev
