// SPDX-License-Identifier: BSD-3-Clause
#include "capture/capture.hpp"

#include "l2/port_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <exception>
#include <pthread.h>
#include <span>
#include <utility>

namespace weir::capture {
namespace {

constexpr std::chrono::milliseconds kPause{1};

/// Of the file's interfaces, the one for frames that the switch made and could not send stands
/// after the ports'.
constexpr const char* kSwitchInterface = "switch";

std::vector<std::string> interfaces_of(const Names& names) {
  std::vector<std::string> interfaces = names.ports;
  interfaces.emplace_back(kSwitchInterface);
  return interfaces;
}

} // namespace

Capture::Capture(Plan plan)
    : plan_(std::move(plan)), file_(plan_.file, interfaces_of(plan_.names), plan_.most_bytes) {
  for (std::size_t i = 0; i < plan_.lcores; ++i) {
    taps_.push_back(std::make_unique<frame::CaptureTap>(
        plan_.filter, plan_.queue_bytes / plan_.most_bytes, plan_.most_bytes));
  }
}

void Capture::learn(std::uint16_t ring, const ring::RingSpec& spec) {
  const std::lock_guard lock(names_);
  plan_.names.rings.resize(std::max<std::size_t>(plan_.names.rings.size(), ring + 1u));
  plan_.names.rings[ring] = spec;
}

void Capture::start(std::function<void()> detach) {
  detach_ = std::move(detach);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "weir-capture");
}

void Capture::end() {
  wants_end_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Capture::run() {
  attempt([this] { write_while_wanted(); });
  const std::uint64_t left_out = all_left_out(); // later ones came after the last packet
  attempt(detach_);
  attempt([this, left_out] { finish(left_out); });
}

/// A step that fails does not keep the others from being done.
void Capture::attempt(const std::function<void()>& step) {
  try {
    step();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    state_ = State::failed;
    error_ = error.what();
  }
}

void Capture::write_while_wanted() {
  while (!wants_end_ && !is_complete()) {
    if (write_waiting() == 0) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

void Capture::finish(std::uint64_t left_out) {
  if (status().state == State::failed) {
    const std::lock_guard lock(mutex_);
    left_out_ = left_out;
    return;
  }
  if (!is_complete()) {
    write_waiting();
    left_out = all_left_out();
  }
  file_.add_statistics(static_cast<std::uint32_t>(plan_.names.ports.size()), last_ns_, left_out,
                       fmt::format("{}: {} packets, {} left out because they found the queue full",
                                   plan_.what, added_, left_out));
  flush();
  const std::lock_guard lock(mutex_);
  left_out_ = left_out;
  state_ = is_complete() ? State::complete : State::stopped;
  taps_.clear(); // no lcore uses its queue any more
  waiting_ = {};
  bytes_ = {};
}

/// Takes what waits at all lcores and writes it in the order of time. Returns the number of frames.
std::size_t Capture::write_waiting() {
  waiting_.clear();
  bytes_.clear();
  for (const auto& tap : taps_) {
    tap->drain([&](const frame::CapturedFrame& captured, std::span<const std::uint8_t> bytes) {
      waiting_.push_back({captured, bytes_.size()});
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    });
  }
  std::ranges::stable_sort(waiting_, {},
                           [](const Waiting& waiting) { return waiting.captured.record.now_ns; });
  {
    const std::lock_guard lock(names_);
    for (const Waiting& waiting : waiting_) {
      write(waiting);
    }
  }
  flush();
  return waiting_.size();
}

std::span<const std::uint8_t> Capture::bytes_of(const Waiting& waiting) const {
  return std::span(bytes_).subspan(waiting.begin, waiting.captured.kept);
}

void Capture::flush() {
  file_.flush();
  assert(added_ >= written_);
  written_ += added_ - written_;
}

void Capture::write(const Waiting& waiting) {
  const frame::CapturedFrame& captured = waiting.captured;
  const bool came = captured.inbound != frame::kNoPort;
  if (came) {
    add(waiting, captured.inbound, Direction::inbound, arrival_verdict(captured, plan_.names));
  }
  if (captured.outbound != 0) {
    const std::string verdict = departure_verdict(captured, bytes_of(waiting), plan_.names);
    l2::for_each_port(captured.outbound, [&](std::uint16_t port) {
      add(waiting, port, Direction::outbound, verdict);
    });
  }
  if (!came && captured.outbound == 0) {
    add(waiting, plan_.names.ports.size(), Direction::unknown,
        inside_verdict(captured, plan_.names));
  }
}

void Capture::add(const Waiting& waiting, std::size_t interface, Direction direction,
                  std::string_view verdict) {
  if (is_complete()) {
    return;
  }
  assert(interface <= plan_.names.ports.size());
  last_ns_ = plan_.clock_zero_ns + waiting.captured.record.now_ns;
  file_.add({.interface = static_cast<std::uint32_t>(interface),
             .time_ns = last_ns_,
             .bytes = bytes_of(waiting),
             .length = waiting.captured.record.length,
             .direction = direction,
             .comment = verdict});
  ++added_;
}

std::uint64_t Capture::all_left_out() const {
  std::uint64_t sum = 0;
  for (const auto& tap : taps_) {
    sum += tap->left_out();
  }
  return sum;
}

Status Capture::status() const {
  const std::lock_guard lock(mutex_);
  return {.file = plan_.file,
          .what = plan_.what,
          .state = state_,
          .count = plan_.count,
          .written = written_,
          .left_out = state_ == State::running ? all_left_out() : left_out_,
          .error = error_};
}

} // namespace weir::capture
