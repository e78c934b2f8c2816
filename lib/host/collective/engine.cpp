// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/engine.hpp"

#include "host/collective/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

namespace weir::host {
namespace {

// Not in every step, because these are system calls.
constexpr auto kControlPeriod = std::chrono::milliseconds(1);

/// Whether the error says only that this rank cannot go on, not who is to blame.
bool is_symptom(const Error& error) {
  return error.code() == ErrorCode::timeout || error.code() == ErrorCode::retry_exceeded;
}

} // namespace

Engine::Engine(const Place& place, std::vector<std::unique_ptr<Reducer>> channels,
               Transport& transport, std::chrono::milliseconds timeout)
    : place_(place), channels_(std::move(channels)), failures_(channels_.size()),
      transport_(transport), timeout_(timeout), stall_timer_(timeout, Clock::now()) {
  for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
    carriers_.push_back({channel, channels_[channel].get()});
  }
}

bool Engine::hellos_are_over() const {
  return std::ranges::all_of(carriers_, [this](const Carrier& carrier) {
    return carrier.reducer->is_idle() || failures_[carrier.channel];
  });
}

void Engine::keep(const std::vector<std::size_t>& channels) {
  assert(!is_attached() && std::ranges::is_sorted(channels));
  std::erase_if(carriers_, [&](const Carrier& carrier) {
    const bool is_kept = std::ranges::binary_search(channels, carrier.channel);
    if (!is_kept) {
      transport_.close(carrier.channel);
    }
    return !is_kept;
  });
}

void Engine::attach(JobControl& control) {
  control_ = &control;
}

bool Engine::channels_are_idle() const {
  return std::ranges::all_of(carriers_,
                             [](const Carrier& carrier) { return carrier.reducer->is_idle(); });
}

Deadline Engine::due() const {
  Deadline due = lost_ ? Deadline::max() : transport_.due();
  if (is_waiting() || (control_ != nullptr && control_->is_timing())) {
    due = std::min(due, Clock::now() + StallTimer::kLookPeriod);
  }
  if (control_ != nullptr && (has_moved_ || control_->has_work())) {
    due = std::min(due, next_control_);
  }
  return due;
}

void Engine::start(Job& job) {
  control_->note_call(job.call);
  if (jobs_.empty()) {
    stall_timer_.restart(Clock::now()); // there was nothing to wait for
    has_moved_ = true;
  }
  jobs_.push_back(&job);
  begin_ready();
  retire_jobs(); // an empty tensor is done
}

/// The number of the job's exchange that the channels have; none if they have none.
std::optional<std::uint64_t> Engine::exchange_of(const Job& job) const {
  const auto found = std::ranges::find(jobs_, &job);
  const auto place = static_cast<std::size_t>(found - jobs_.begin());
  return place < begun_ ? std::optional(exchanges_done_ + place) : std::nullopt;
}

bool Engine::has_begun(const Job& job) const {
  const std::optional<std::uint64_t> exchange = exchange_of(job);
  return exchange && std::ranges::any_of(carriers_, [&](const Carrier& carrier) {
           return carrier.reducer->has_begun(*exchange);
         });
}

void Engine::replace(Job& job, const CallBuffers& buffers) {
  assert(!has_begun(job) && job.series == nullptr);
  job.buffers = buffers;
  if (const std::optional<std::uint64_t> exchange = exchange_of(job)) {
    for (std::size_t part = 0; part < carriers_.size(); ++part) {
      carriers_[part].reducer->replace(*exchange,
                                       share_of(job, {part, carriers_.size(), *exchange}));
    }
  }
}

bool Engine::step() {
  const Deadline now = Clock::now();
  if (is_waiting()) {
    stall_timer_.look(now);
  } else {
    stall_timer_.restart(now);
  }
  if (control_ != nullptr && now >= next_control_) {
    consult_control(now);
  }
  if (lost_) {
    drain();
    return false;
  }
  try {
    return exchange();
  } catch (const Error& error) {
    if (control_ == nullptr || !is_symptom(error)) {
      throw;
    }
    lost_ = error;
    return true;
  }
}

bool Engine::exchange() {
  bool moved = post_messages();
  moved |= transport_.poll(*this);
  if (moved) {
    retire_jobs();
  }
  check_stall();
  return moved;
}

/// What comes must not wake us again and again; neighbours get their acknowledgements.
void Engine::drain() {
  try {
    transport_.poll(*this);
  } catch (const Error&) { // it is lost, as before
  }
}

void Engine::consult_control(Deadline now) {
  next_control_ = now + kControlPeriod;
  if (std::exchange(has_moved_, false)) {
    when_moved_ = transport_.statistics();
  }
  poll_control();
  if (lost_ && control_->may_suspect(Suspicion::Kind::broken)) {
    control_->suspect(Suspicion::Kind::broken, *lost_);
  }
}

/// What others say is wrong is for this rank to explain, if it stood itself, or has no link. That
/// comes first where it may be the cause; a rank that died has not died of it.
void Engine::poll_control() {
  try {
    control_->poll(progress());
  } catch (const Error& error) {
    const std::string pause = stall_timer_.own_pause();
    const std::string link = link_in_words();
    const bool may_be_cause = is_symptom(error) && !link.empty();
    throw Error(error.code(), error.rank(),
                fmt::format("{}{}{}{}", may_be_cause ? link + "; " : "", error.what(),
                            may_be_cause || link.empty() ? "" : "; " + link,
                            pause.empty() ? "" : "; this rank itself " + pause));
  }
}

/// A rank that waits only a moment less than the one that asks stands still like it.
Progress Engine::progress() const {
  return {.calls_done = jobs_done_,
          .bytes_done = bytes_done(),
          .stands_still = lost_.has_value() || stall_timer_.is_over(-timeout_ / 2)};
}

void Engine::begin_slices(const Job& job) {
  for (std::size_t part = 0; part < carriers_.size(); ++part) {
    carriers_[part].reducer->begin(share_of(job, {part, carriers_.size(), exchanges_begun_}));
  }
  ++exchanges_begun_;
}

/// All jobs in their order, up to one whose later exchanges are not known yet.
void Engine::begin_ready() {
  const auto is_known = [](const Job& job) {
    return job.series == nullptr || job.series->is_last();
  };
  while (begun_ != jobs_.size() && (begun_ == 0 || is_known(*jobs_[begun_ - 1]))) {
    begin_slices(*jobs_[begun_++]);
  }
}

/// Of what is under way.
Slice Engine::share_of(const Job& job, const Share& share) const {
  if (job.series == nullptr) {
    return slice_of(job.call, place_, job.buffers, share);
  }
  const Exchange exchange = job.series->current();
  Slice slice = slice_of(exchange.call, place_, exchange.buffers, share);
  slice.call = job.call; // that is what another rank may have called otherwise
  return slice;
}

bool Engine::post_messages() {
  bool moved = false;
  for (const auto& [channel, reducer] : carriers_) {
    while (const std::optional<OutgoingMessage> message = reducer->next()) {
      if (!transport_.post(channel, *message)) { // the send queue has room for every window
        throw Error(ErrorCode::transport_failure, std::nullopt,
                    fmt::format("message {} finds the send queue full", message->number));
      }
      ++messages_sent_;
      moved = true;
    }
  }
  return moved;
}

Arrival Engine::arrived(std::size_t channel, const IncomingMessage& message) {
  ++results_received_;
  note_move();
  try {
    return channels_[channel]->accept(message);
  } catch (const Error& error) {
    if (is_attached()) {
      throw;
    }
    note_failure(channel, error);
    return Arrival::ignored;
  }
}

void Engine::completed(std::size_t channel) {
  channels_[channel]->complete();
  note_move();
}

/// A channel that carries calls ends them all.
void Engine::failed(std::size_t channel, const Error& error) {
  if (is_attached()) {
    throw error.in_words(fmt::format("{}; {}", static_cast<const char*>(error.what()),
                                     channels_[channel]->describe()));
  }
  note_failure(channel, error);
}

/// What follows the first error is no cause.
void Engine::note_failure(std::size_t channel, const Error& error) {
  if (!failures_[channel]) {
    failures_[channel] = error;
  }
}

void Engine::note_move() {
  stall_timer_.renew();
  has_moved_ = true;
}

/// Bytes that are here of the first job's results.
std::size_t Engine::bytes_done() const {
  return jobs_.empty() ? 0 : bytes_of_earlier_ + exchanged_bytes();
}

/// Of the first job's exchange that is under way.
std::size_t Engine::exchanged_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t part = 0; part < carriers_.size(); ++part) {
    const Reducer& reducer = *carriers_[part].reducer;
    const bool is_here = reducer.finished() > exchanges_done_;
    const Share share{part, carriers_.size(), exchanges_done_};
    bytes += is_here ? share_of(*jobs_.front(), share).bytes() : reducer.bytes_done();
  }
  return bytes;
}

void Engine::retire_jobs() {
  const auto has_finished = [this](const Carrier& carrier) {
    return carrier.reducer->finished() > exchanges_done_;
  };
  while (!jobs_.empty() && std::ranges::all_of(carriers_, has_finished)) {
    if (!go_on(*jobs_.front())) {
      return;
    }
    begin_ready();
  }
  if (!jobs_.empty()) {
    jobs_.front()->bytes_done.store(bytes_done(), std::memory_order_relaxed);
  }
}

/// The first job's exchange is done: begins its next one, or ends the job. False if there is
/// neither for now.
bool Engine::go_on(Job& job) {
  assert(&job == jobs_.front());
  const std::size_t bytes = bytes_done();
  const ExchangeSeries::Step step =
      job.series == nullptr ? ExchangeSeries::Step::done : job.series->advance();
  if (step == ExchangeSeries::Step::differs) {
    return false;
  }
  ++exchanges_done_;
  bytes_of_earlier_ = bytes;
  if (step == ExchangeSeries::Step::next) {
    begin_slices(job);
    return true;
  }
  job.bytes_done.store(bytes, std::memory_order_relaxed);
  bytes_of_earlier_ = 0;
  jobs_.pop_front();
  assert(begun_ != 0);
  --begun_;
  ++jobs_done_;
  finish(job);
  return true;
}

void Engine::finish(Job& job) const {
  if (job.call.finish == Finish::average && job.series == nullptr) {
    average(job);
  }
  job.done.store(true, std::memory_order_release); // its owner may free it from now on
}

void Engine::average(const Job& job) const {
  const auto divide = [&](std::uint8_t* sums, std::size_t bytes) {
    make_average({sums, bytes}, job.call.type, place_.world);
  };
  if (job.buffers.list == nullptr) {
    divide(job.buffers.out, kept_bytes(job.call, place_));
    return;
  }
  for (const TensorList::Tensor& tensor : job.buffers.list->tensors()) {
    divide(tensor.out, tensor.bytes);
  }
}

/// Between jobs there is nothing to wait for. Frames alone are no progress: repeats may go on for
/// ever. Who waits for hellos has a deadline.
void Engine::check_stall() {
  if (!is_attached() || !stall_timer_.is_over() || channels_are_idle()) {
    return;
  }
  if (control_->may_suspect(Suspicion::Kind::standstill)) {
    const auto busy = std::ranges::find_if(
        carriers_, [](const Carrier& carrier) { return !carrier.reducer->is_idle(); });
    control_->suspect(Suspicion::Kind::standstill, standstill(busy->channel, timeout_));
  }
}

Error Engine::standstill(std::size_t channel, std::chrono::milliseconds waited) const {
  const std::string link = link_in_words();
  return {ErrorCode::timeout, std::nullopt,
          fmt::format("nothing moved for {} ms; {}; {}{}{}", waited.count(),
                      channels_[channel]->describe(), link, link.empty() ? "" : "; ",
                      since_last_move(channel))};
}

/// Causes and advice first: figures are for who has no other trace.
Error Engine::silence(std::size_t channel, std::chrono::milliseconds waited,
                      std::string_view advice) const {
  const std::string link = link_in_words();
  return {ErrorCode::timeout, std::nullopt,
          fmt::format("{} for {} ms; {}{}{}{}{}", channels_[channel]->describe(), waited.count(),
                      link, link.empty() ? "" : "; ", advice, advice.empty() ? "" : "; ",
                      since_last_move(channel))};
}

/// Empty if there is a link, as far as the device knows.
std::string Engine::link_in_words() const {
  return transport_.has_link() ? ""
                               : "this rank has no link: the switch, or the cable to it, is gone";
}

/// What tells a rank that does not get the CPU from one that gets no frames, and that from frames
/// that do not help.
std::string Engine::since_last_move(std::size_t channel) const {
  std::string text = "meanwhile this rank " + stall_timer_.describe();
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
  const std::string connections = transport_.describe(channel);
  return connections.empty() ? text : fmt::format("{}; {}", text, connections);
}

} // namespace weir::host
