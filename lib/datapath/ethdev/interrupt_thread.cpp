// SPDX-License-Identifier: BSD-3-Clause
#include "ethdev/interrupt_thread.hpp"

#include <rte_alarm.h>

#include <future>
#include <system_error>
#include <utility>

namespace weir::ethdev {
namespace {

using Work = std::packaged_task<void()>;

void run(void* work) {
  (*static_cast<Work*>(work))();
}

} // namespace

void on_interrupt_thread(std::function<void()> work) {
  Work task(std::move(work));
  std::future<void> done = task.get_future();
  constexpr std::uint64_t kSoonUs = 1; // the least that EAL takes
  if (const int answer = rte_eal_alarm_set(kSoonUs, run, &task); answer != 0) {
    throw std::system_error(-answer, std::generic_category(), "EAL's interrupt thread");
  }
  done.get();
}

} // namespace weir::ethdev
