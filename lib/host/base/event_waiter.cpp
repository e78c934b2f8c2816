// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/event_waiter.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace weir::host {
namespace {

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              fmt::format("{}: {}", what, std::strerror(errno)));
}

// Closed at once, so that a flood of callers does not hold the thread that drives a group.
constexpr int kCallersAtOnce = 64;

/// False when there may be more.
bool close_callers(const Socket& listener) {
  try {
    for (int callers = 0; callers < kCallersAtOnce; ++callers) {
      if (!accept_waiting(listener)) {
        return true;
      }
    }
    return false;
  } catch (const std::runtime_error&) { // no descriptor is left: the next caller wakes us again
    return true;
  }
}

timespec until(Deadline deadline) {
  const Deadline now = Clock::now();
  const std::chrono::nanoseconds left = std::max(deadline, now) - now; // without an overflow
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return {.tv_sec = left.count() / kNanoseconds, .tv_nsec = left.count() % kNanoseconds};
}

} // namespace

/// By ppoll, because epoll's own timeout has milliseconds.
void poll_until(std::span<pollfd> entries, Deadline deadline) {
  const timespec limit = until(deadline);
  ppoll(entries.data(), entries.size(), deadline == Deadline::max() ? nullptr : &limit, nullptr);
}

Bell::Bell() : event_([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }) {
  if (!event_) {
    fail("no descriptor for a bell");
  }
}

void Bell::ring() {
  eventfd_write(event_.get(), 1);
}

void Bell::silence() {
  eventfd_t rings = 0;
  eventfd_read(event_.get(), &rings);
}

EventWaiter::EventWaiter() : events_([] { return epoll_create1(EPOLL_CLOEXEC); }) {
  if (!events_) {
    fail("no descriptor to wait with");
  }
}

void EventWaiter::watch(int descriptor, Source source) {
  control(EPOLL_CTL_ADD, descriptor, source);
}

void EventWaiter::control(int operation, int descriptor, Source source) {
  // An event for each caller, not for as long as one waits.
  const std::uint32_t trigger = source == Source::callers ? EPOLLET : 0U;
  epoll_event event{.events = EPOLLIN | trigger,
                    .data = {.u32 = static_cast<std::uint32_t>(source)}};
  if (epoll_ctl(events_.get(), operation, descriptor, &event) != 0) {
    fail("a descriptor cannot be waited for");
  }
}

void EventWaiter::turn_callers_away(const Socket& listener) {
  listener_ = &listener;
  watch(listener.get(), Source::callers);
}

bool EventWaiter::sleep_until(Deadline deadline, Bell& bell) {
  std::array<pollfd, 2> entries{{{events_.get(), POLLIN, 0}, {bell.descriptor(), POLLIN, 0}}};
  poll_until(entries, deadline);
  if (entries[1].revents != 0) {
    bell.silence();
  }
  return entries[0].revents != 0 && hear();
}

bool EventWaiter::hear() {
  std::array<epoll_event, 16> ready;
  const int count = epoll_wait(events_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  const auto events = std::span(ready).first(static_cast<std::size_t>(std::max(count, 0)));
  const auto is_from = [&](Source source) {
    return std::ranges::any_of(events, [&](const epoll_event& event) {
      return static_cast<Source>(event.data.u32) == source;
    });
  };
  if (is_from(Source::callers) && !close_callers(*listener_)) {
    control(EPOLL_CTL_MOD, listener_->get(), Source::callers); // gives another event
  }
  return is_from(Source::control);
}

} // namespace weir::host
