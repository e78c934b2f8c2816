// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::ethdev {

/// Whoever polls memif ports, as EAL's interrupt thread must know him.
///
/// When the other end of a memif port goes away, DPDK 22.11 marks the port as disconnected and
/// unmaps its rings at once, on the interrupt thread, though a burst may be in the middle of them:
/// the process would die of SIGSEGV. Linking this class replaces munmap(2) by one that, on the
/// interrupt thread, first waits until every reader has been outside a burst since (a grace period
/// of rte_rcu_qsbr). By then readers see the mark, and stay out.
///
/// One thread at a time uses a reader; between enter() and leave() it must not wait for the
/// interrupt thread.
class MemifReader {
 public:
  static constexpr unsigned kMost = 512; // in one process

  /// Throws std::length_error when there are kMost of them already.
  MemifReader();
  ~MemifReader();
  MemifReader(const MemifReader&) = delete;
  MemifReader& operator=(const MemifReader&) = delete;

  /// Bursts may follow.
  void enter();
  /// Says that it is outside a burst now, though others follow: enter() and leave() without their
  /// fence.
  void between_bursts();
  /// No bursts until enter().
  void leave();

 private:
  unsigned id_;
};

} // namespace weir::ethdev
