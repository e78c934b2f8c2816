// SPDX-License-Identifier: BSD-3-Clause
#include "ethdev/interrupt_thread.hpp"

#include <rte_alarm.h>
#include <rte_interrupts.h>

#include <cerrno>
#include <csignal>
#include <future>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace weir::ethdev {
namespace {

using Work = std::packaged_task<void()>;

void run(void* work) {
  (*static_cast<Work*>(work))();
}

/// Takes no signal either: the library that has this code may be unloaded.
[[noreturn]] void park(void* parked) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  static_cast<std::promise<void>*>(parked)->set_value();
  while (true) {
    pause();
  }
}

[[noreturn]] void fail(int error) {
  throw std::system_error(error, std::generic_category(), "EAL's interrupt thread");
}

/// Of the event that parks the thread: no alarm does, because the end of EAL waits for alarms.
rte_intr_handle* make_source(int descriptor) {
  rte_intr_handle* source = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  if (source == nullptr || rte_intr_fd_set(source, descriptor) != 0 ||
      rte_intr_type_set(source, RTE_INTR_HANDLE_EXT) != 0) {
    fail(ENOMEM);
  }
  return source;
}

} // namespace

void on_interrupt_thread(std::function<void()> work) {
  Work task(std::move(work));
  std::future<void> done = task.get_future();
  constexpr std::uint64_t kSoonUs = 1; // the least that EAL takes
  if (const int answer = rte_eal_alarm_set(kSoonUs, run, &task); answer != 0) {
    fail(-answer);
  }
  done.get();
}

void park_interrupt_thread() {
  static std::promise<void> parked; // the thread has these for good
  static const rte_intr_handle* const source = make_source(eventfd(1, EFD_CLOEXEC));
  if (const int answer = rte_intr_callback_register(source, park, &parked); answer != 0) {
    fail(-answer);
  }
  parked.get_future().get();
}

} // namespace weir::ethdev
