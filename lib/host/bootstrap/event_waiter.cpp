// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/event_waiter.hpp"

#include "host/bootstrap/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace weir::host {
namespace {

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              fmt::format("{}: {}", what, std::strerror(errno)));
}

timespec until(Deadline deadline) {
  const auto left = std::max<std::chrono::nanoseconds>(deadline - Clock::now(), {});
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return {.tv_sec = left.count() / kNanoseconds, .tv_nsec = left.count() % kNanoseconds};
}

} // namespace

EventWaiter::EventWaiter()
    : events_([] { return epoll_create1(EPOLL_CLOEXEC); }),
      bell_([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }) {
  if (!events_ || !bell_) {
    fail("no descriptors to wait with");
  }
  watch(bell_.get(), Source::bell);
}

void EventWaiter::watch(int descriptor, Source source) {
  epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<std::uint32_t>(source)}};
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    fail("a descriptor cannot be waited for");
  }
}

void EventWaiter::ring() {
  has_rung_ = true;
  if (sleepers_ != 0) {
    eventfd_write(bell_.get(), 1);
  }
}

EventWaiter::Woken EventWaiter::sleep_until(Deadline deadline) {
  ++sleepers_;
  if (is_rung()) {
    --sleepers_;
    return {.by_bell = true};
  }
  const timespec limit = until(deadline);
  pollfd entry{events_.get(), POLLIN, 0}; // epoll's own timeout has milliseconds
  ppoll(&entry, 1, deadline == Deadline::max() ? nullptr : &limit, nullptr);
  --sleepers_;
  Woken woken;
  std::array<epoll_event, 16> ready;
  const int count = epoll_wait(events_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto source = static_cast<Source>(ready[static_cast<std::size_t>(i)].data.u32);
    woken.by_bell |= source == Source::bell;
    woken.by_transport |= source == Source::transport;
    woken.by_control |= source == Source::control;
  }
  if (woken.by_bell) {
    eventfd_t rings = 0;
    eventfd_read(bell_.get(), &rings);
    is_rung();
  }
  return woken;
}

} // namespace weir::host
