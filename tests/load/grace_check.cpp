// SPDX-License-Identifier: BSD-3-Clause
#include "grace_check.hpp"

#include "ethdev/memif_reader.hpp"
#include "support/comes_true.hpp"

#include <rte_alarm.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace weir::load {
namespace {

constexpr std::chrono::milliseconds kBusyTime{50}; // far longer than an alarm takes to start

/// A page that the interrupt thread unmaps on request.
class Page {
 public:
  Page() : address_(mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}

  void unmap_by_interrupt_thread() { rte_eal_alarm_set(1, unmap, this); }

  /// The kernel's view, without access to the page.
  bool is_mapped() const { return msync(address_, kBytes, MS_ASYNC) == 0 || errno != ENOMEM; }

  bool has_begun() const { return begun_; }

  bool is_done() const { return done_; }

 private:
  static void unmap(void* page) {
    auto* self = static_cast<Page*>(page);
    self->begun_ = true;
    munmap(self->address_, kBytes);
    self->done_ = true;
  }

  static constexpr std::size_t kBytes = 4096;

  void* address_;
  std::atomic<bool> begun_{false}; // written by the interrupt thread
  std::atomic<bool> done_{false};  // written by the interrupt thread
};

/// `ends_burst` is the call by which the reader says that it is outside a burst.
std::string check(ethdev::MemifReader& reader, void (ethdev::MemifReader::*ends_burst)()) {
  static Page pages[2]; // must outlive a late interrupt thread
  Page& page = pages[ends_burst == &ethdev::MemifReader::leave ? 1 : 0];
  reader.enter();
  page.unmap_by_interrupt_thread();
  if (!test::comes_true([&] { return page.has_begun(); })) {
    return "the interrupt thread does not run";
  }
  std::this_thread::sleep_for(kBusyTime);
  const bool lasted = page.is_mapped() && !page.is_done();
  (reader.*ends_burst)();
  const bool went = test::comes_true([&] { return page.is_done(); }) && !page.is_mapped();
  reader.leave();
  if (!lasted) {
    return "unmapped in the middle of a burst";
  }
  return went ? "" : "never unmapped";
}

} // namespace

std::string check_grace_period() {
  ethdev::MemifReader reader;
  const ethdev::MemifReader elsewhere; // never in a burst: nothing waits for it
  const std::string error = check(reader, &ethdev::MemifReader::between_bursts);
  return error.empty() ? check(reader, &ethdev::MemifReader::leave) : error;
}

} // namespace weir::load
