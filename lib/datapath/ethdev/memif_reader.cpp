// SPDX-License-Identifier: BSD-3-Clause
#include "ethdev/memif_reader.hpp"

#include <fmt/format.h>
#include <rte_interrupts.h>
#include <rte_rcu_qsbr.h>

#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

/// The sanitizers' own version, where one is linked.
extern "C" [[gnu::weak]] int __interceptor_munmap(void* address, std::size_t bytes);

namespace weir::ethdev {
namespace {

/// All readers of the process. It is never destroyed: the interrupt thread may outlive static
/// objects.
class Readers {
 public:
  static Readers& instance() {
    static auto* const readers = new Readers;
    return *readers;
  }

  rte_rcu_qsbr* states() { return states_; }

  unsigned add() {
    const std::lock_guard lock(mutex_);
    for (unsigned id = 0; id < MemifReader::kMost; ++id) {
      if (!used_[id]) {
        used_.set(id);
        rte_rcu_qsbr_thread_register(states_, id);
        return id;
      }
    }
    throw std::length_error(
        fmt::format("memif readers: found more than {} in one process", MemifReader::kMost));
  }

  void remove(unsigned id) {
    const std::lock_guard lock(mutex_);
    rte_rcu_qsbr_thread_unregister(states_, id);
    used_.reset(id);
  }

  void wait_for_grace_period() {
    const std::uint64_t token = rte_rcu_qsbr_start(states_);
    while (rte_rcu_qsbr_check(states_, token, false) == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
  }

 private:
  Readers() {
    const std::size_t bytes = rte_rcu_qsbr_get_memsize(MemifReader::kMost);
    states_ = static_cast<rte_rcu_qsbr*>(std::aligned_alloc(RTE_CACHE_LINE_SIZE, bytes));
    if (states_ == nullptr || rte_rcu_qsbr_init(states_, MemifReader::kMost) != 0) {
      throw std::bad_alloc();
    }
  }

  rte_rcu_qsbr* states_;
  std::mutex mutex_;
  std::bitset<MemifReader::kMost> used_;
};

int unmap(void* address, std::size_t bytes) {
  return __interceptor_munmap != nullptr ? __interceptor_munmap(address, bytes)
                                         : static_cast<int>(syscall(SYS_munmap, address, bytes));
}

} // namespace

MemifReader::MemifReader() : id_(Readers::instance().add()) {}

MemifReader::~MemifReader() {
  Readers::instance().remove(id_);
}

void MemifReader::enter() {
  rte_rcu_qsbr_thread_online(Readers::instance().states(), id_);
}

void MemifReader::between_bursts() {
  rte_rcu_qsbr_quiescent(Readers::instance().states(), id_);
}

void MemifReader::leave() {
  rte_rcu_qsbr_thread_offline(Readers::instance().states(), id_);
}

} // namespace weir::ethdev

/// Replaces libc's munmap(), for DPDK's drivers too.
extern "C" [[gnu::visibility("default")]] int munmap(void* address, std::size_t bytes) {
  if (rte_thread_is_intr() != 0) {
    weir::ethdev::Readers::instance().wait_for_grace_period();
  }
  return weir::ethdev::unmap(address, bytes);
}
