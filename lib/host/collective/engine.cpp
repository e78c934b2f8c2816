// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/engine.hpp"

#include "host/collective/average.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace weir::host {
namespace {

// Not in every step, because these are system calls.
constexpr auto kControlPeriod = std::chrono::milliseconds(1);

/// Whether the error says only that this rank waits, not who is to blame.
bool is_standstill(const Error& error) {
  return error.code() == ErrorCode::timeout || error.code() == ErrorCode::retry_exceeded;
}

} // namespace

Engine::Engine(const Place& place, std::vector<std::unique_ptr<Reducer>> lanes,
               Transport& transport, std::chrono::milliseconds timeout)
    : place_(place), lanes_(std::move(lanes)), transport_(transport), timeout_(timeout),
      stall_timer_(timeout, Clock::now()) {}

void Engine::attach(JobControl& control) {
  control_ = &control;
}

bool Engine::lanes_are_idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->is_idle(); });
}

void Engine::start(Job& job) {
  job_ = &job;
  phase_ = Phase::entering;
  control_->enter(job.call);
}

bool Engine::step() {
  const Deadline now = Clock::now();
  stall_timer_.look(now);
  const bool moved = consult_control(now);
  if (phase_ == Phase::suspecting) {
    return moved;
  }
  try {
    return exchange() || moved;
  } catch (const Error& error) {
    if (control_ == nullptr || !is_standstill(error)) {
      throw;
    }
    control_->suspect(error);
    phase_ = Phase::suspecting;
    return true;
  }
}

bool Engine::exchange() {
  bool moved = phase_ == Phase::exchanging && post_messages();
  moved |= transport_.poll(*this);
  if (job_ != nullptr && phase_ == Phase::exchanging && moved) {
    note_progress();
  }
  check_stall();
  return moved;
}

bool Engine::consult_control(Deadline now) {
  if (control_ == nullptr || (phase_ == Phase::exchanging && now < next_control_)) {
    return false;
  }
  next_control_ = now + kControlPeriod;
  if (std::exchange(has_moved_, false)) {
    when_moved_ = transport_.statistics();
  }
  poll_control();
  if (phase_ != Phase::entering || !control_->may_begin(job_->call.sequence)) {
    return false;
  }
  begin_slices();
  phase_ = Phase::exchanging;
  note_move();
  note_progress(); // an empty tensor is done
  return true;
}

/// What others say is wrong is for this rank to explain, if it stood itself.
void Engine::poll_control() {
  try {
    control_->poll(bytes_done());
  } catch (const Error& error) {
    const std::string own_pause = stall_timer_.own_pause();
    if (own_pause.empty()) {
      throw;
    }
    throw Error(
        error.code(), error.rank(),
        fmt::format("{}; this rank itself {}", static_cast<const char*>(error.what()), own_pause));
  }
}

void Engine::begin_slices() {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_[lane]->begin(slice_of(job_->call, place_, job_->in, job_->out, lane, lanes_.size()));
  }
}

bool Engine::post_messages() {
  bool moved = false;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    while (const std::optional<OutgoingMessage> message = lanes_[lane]->next()) {
      if (!transport_.post(lane, *message)) { // the send queue has room for every window
        throw Error(ErrorCode::transport_failure, std::nullopt,
                    fmt::format("message {} finds the send queue full", message->number));
      }
      ++messages_sent_;
      moved = true;
    }
  }
  return moved;
}

void Engine::arrived(std::size_t lane, std::uint32_t immediate,
                     std::span<const std::uint8_t> message) {
  lanes_[lane]->accept(immediate, message);
  ++results_received_;
  note_move();
}

void Engine::completed(std::size_t lane) {
  lanes_[lane]->complete();
  note_move();
}

void Engine::note_move() {
  stall_timer_.renew();
  has_moved_ = true;
}

std::size_t Engine::bytes_done() const {
  return std::accumulate(
      lanes_.begin(), lanes_.end(), std::size_t{0},
      [](std::size_t bytes, const auto& lane) { return bytes + lane->bytes_done(); });
}

void Engine::note_progress() {
  Job& job = *job_;
  job.bytes_done.store(bytes_done(), std::memory_order_relaxed);
  if (!lanes_are_idle()) {
    return;
  }
  if (job.call.finish == Finish::average) {
    make_average({job.out, kept_bytes(job.call, place_)}, job.call.type, place_.world);
  }
  job_ = nullptr;
  job.done.store(true, std::memory_order_release); // its owner may free it from now on
}

/// While ranks enter, JobControl keeps the timeout. Between jobs there is nothing to wait for.
/// Frames alone are no progress: repeats may go on for ever.
void Engine::check_stall() const {
  const bool is_waiting = phase_ == Phase::exchanging && !lanes_are_idle();
  if (is_waiting && stall_timer_.is_over()) {
    throw Error(ErrorCode::timeout, std::nullopt, describe_standstill());
  }
}

/// What tells a rank that does not get the CPU from one that gets no frames, and that from frames
/// that do not help.
std::string Engine::describe_standstill() const {
  const auto busy =
      std::find_if(lanes_.begin(), lanes_.end(), [](const auto& lane) { return !lane->is_idle(); });
  const auto lane = static_cast<std::size_t>(busy - lanes_.begin());
  std::string text = fmt::format("nothing moved for {} ms; {}; meanwhile this rank {}",
                                 timeout_.count(), (*busy)->describe(), stall_timer_.describe());
  const auto add = [&](std::string_view what, const std::optional<std::uint64_t>& before,
                       const std::optional<std::uint64_t>& after) {
    if (before && after) {
      text += fmt::format(", {} {}", *after - *before, what);
    }
  };
  const TransportStatistics now = transport_.statistics();
  add("packets came", when_moved_.received_packets, now.received_packets);
  add("were repeated", when_moved_.retransmitted_packets, now.retransmitted_packets);
  add("ACK timers ran out", when_moved_.ack_timeouts, now.ack_timeouts);
  const std::string connections = transport_.describe(lane);
  return connections.empty() ? text : fmt::format("{}; {}", text, connections);
}

} // namespace weir::host
