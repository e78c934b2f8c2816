// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/verbs_completions.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>

namespace weir::host {

VerbsCompletions::VerbsCompletions(const VerbsNic& nic)
    : nic_(nic),
      events_(nic.made(ibv_create_comp_channel(&nic.context()), "no completion channel")) {
  if (fcntl(events_->fd, F_SETFL, O_NONBLOCK) != 0) {
    nic_.fail("completion channel", errno);
  }
}

void VerbsCompletions::renew(std::size_t depth) {
  take_events(); // the queue's end waits for them
  queue_.reset();
  is_armed_ = false;
  queue_.reset(
      nic_.made(ibv_create_cq(&nic_.context(), static_cast<int>(depth), nullptr, events_.get(), 0),
                fmt::format("no completion queue of {}", depth)));
}

std::span<const ibv_wc> VerbsCompletions::take(Batch& room) {
  const int count = ibv_poll_cq(queue_.get(), static_cast<int>(room.size()), room.data());
  if (count < 0) {
    nic_.fail("the completion queue cannot be polled", -count);
  }
  return std::span(room).first(static_cast<std::size_t>(count));
}

void VerbsCompletions::restart() {
  spins_.restart();
  is_armed_ = false;
}

/// A completion between the last poll and the arming makes no event, hence one more poll. An event
/// may come later than its completion was polled; it must not end every sleep from then on.
bool VerbsCompletions::arm() {
  if (is_armed_) {
    is_armed_ = !take_events();
    return is_armed_;
  }
  if (spins_.spin()) {
    return false;
  }
  take_events();
  if (const int error = ibv_req_notify_cq(queue_.get(), 0); error != 0) {
    nic_.fail("the completion queue cannot be armed", error);
  }
  is_armed_ = true;
  return false;
}

/// True if there were any.
bool VerbsCompletions::take_events() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  bool took = false;
  while (ibv_get_cq_event(events_.get(), &queue, &context) == 0) {
    ibv_ack_cq_events(queue, 1);
    took = true;
  }
  return took;
}

std::string said_by_device(const ibv_wc& completion) {
  return fmt::format("{} (vendor code {:#x})", ibv_wc_status_str(completion.status),
                     completion.vendor_err);
}

} // namespace weir::host
