// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/region.hpp"

#include "endpoint/config.hpp"
#include "host/api/within_callback.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace weir::host {
namespace {

constexpr std::size_t kMostNotices = 65536; // then who writes them has to wait
constexpr std::size_t kMostWrite = endpoint::kMostMessageBytes;
constexpr std::size_t kMostReadPackets = std::size_t{1} << 18; // docs/protocol.md §13.2
constexpr std::size_t kReadUnit = 8;                           // likewise
constexpr unsigned kRankShift = 24;
constexpr std::chrono::milliseconds kNotifiedWait{100}; // for a waiting caller that is notified
constexpr std::chrono::milliseconds kGroupStep{1};      // for one that drives its group, too

} // namespace

// --------------------------------------------------------------------------------------- requests

bool RegionPending::test() {
  return region_->test(*request_);
}

void RegionPending::wait() {
  region_->wait_until(*request_, Deadline::max());
}

bool RegionPending::wait_for(std::chrono::milliseconds timeout) {
  return region_->wait_until(*request_, deadline_after(Clock::now(), timeout));
}

void RegionPending::on_done(DoneCallback callback) {
  region_->set_callback(*request_, std::move(callback));
}

bool RegionPending::cancel() {
  return region_->test(*request_);
}

Region::Region(RegionParts parts)
    : number_(parts.number), rank_(parts.rank), memory_(parts.memory), made_(std::move(parts.made)),
      path_mtu_(parts.path_mtu), group_progress_(parts.progress), timeout_(parts.timeout),
      farewell_(parts.farewell), ends_(std::move(parts.ends)), held_(std::move(parts.held)),
      link_(std::move(parts.link)), moved_(Clock::now()) {
  Attended& self = *this;
  seat_ = std::make_unique<ProgressThreads::Seat>(self, link_->descriptor());
}

Region::~Region() {
  ends_->forget(number_);
  leave_thread();
}

void Region::begin(std::chrono::milliseconds patience) {
  ends_->watch(number_, [this](const Error& error) { note_end(error); });
  if (held_) {
    held_->when_ended([this](std::string_view why) {
      ends_->tell({.number = number_, .why = std::string(why)});
    });
  }
  const auto& token = made_.ends[rank_].token;
  const auto hello = start({.kind = endpoint::SendKind::write,
                            .data = token,
                            .remote_address = made_.base,
                            .remote_key = made_.key});
  if (!wait_until(*hello, deadline_after(Clock::now(), patience))) {
    Lock lock(mutex_);
    fail(Error(ErrorCode::timeout, std::nullopt,
               fmt::format("rank {}: not all members of the region have said hello within {} ms",
                           rank_, patience.count())));
    call_back(lock);
    throw_if_failed();
  }
}

void Region::check_range(std::size_t offset, std::size_t bytes) const {
  if (offset > memory_.size() || bytes > memory_.size() - offset) {
    throw std::invalid_argument(
        fmt::format("bytes: found {} from offset {}; allowed: up to {}, where the region ends",
                    bytes, offset, memory_.size()));
  }
}

RegionPending Region::write(std::size_t offset, std::span<const std::uint8_t> data,
                            std::optional<std::uint32_t> immediate) {
  check_range(offset, data.size());
  if (data.size() > kMostWrite) {
    throw std::invalid_argument(
        fmt::format("bytes: found {}; allowed: 0 .. {} in one write", data.size(), kMostWrite));
  }
  if (immediate && *immediate > kMostRegionImmediate) {
    throw std::invalid_argument(fmt::format("immediate: found {}; allowed: 0 .. {}, or none",
                                            *immediate, kMostRegionImmediate));
  }
  endpoint::SendRequest work{.kind = immediate ? endpoint::SendKind::write_immediate
                                               : endpoint::SendKind::write,
                             .data = data,
                             .remote_address = made_.base + offset,
                             .remote_key = made_.key};
  work.immediate = immediate.value_or(0) | std::uint32_t{rank_} << kRankShift;
  return {shared_from_this(), start(work)};
}

void Region::check_read(std::size_t view, std::size_t offset, std::size_t bytes) const {
  if (view >= made_.view_keys.size()) {
    throw std::invalid_argument(
        made_.view_keys.empty()
            ? fmt::format("view: found {} of a region without views; allowed: none", view)
            : fmt::format("view: found {}; allowed: 0 .. {}", view, made_.view_keys.size() - 1));
  }
  check_range(offset, bytes);
  const std::size_t most = kMostReadPackets * path_mtu_;
  if (offset % kReadUnit != 0 || bytes % kReadUnit != 0 || bytes > most) {
    throw std::invalid_argument(
        fmt::format("bytes: found {} from offset {}; allowed in one read: multiples of {}, up to "
                    "{} bytes",
                    bytes, offset, kReadUnit, most));
  }
}

RegionPending Region::read(std::size_t view, std::size_t offset, std::span<std::uint8_t> out) {
  check_read(view, offset, out.size());
  endpoint::SendRequest work{.kind = endpoint::SendKind::read,
                             .remote_address = made_.base + offset,
                             .remote_key = made_.view_keys[view]};
  work.target = out;
  return {shared_from_this(), start(work)};
}

std::shared_ptr<RegionRequest> Region::start(endpoint::SendRequest work) {
  refuse_elsewhere();
  auto request = std::make_shared<RegionRequest>();
  {
    const Lock lock(mutex_);
    throw_if_failed();
    if (work.kind != endpoint::SendKind::read && overlaps_read(work)) {
      work.fence = endpoint::Fence::after_reads;
    }
    request->work = work;
    if (is_idle()) {
      moved_ = Clock::now();
    }
    waiting_.push_back(request);
    step();
  }
  call_thread();
  return request;
}

/// A member must not get a write before it has answered the read of the same bytes.
bool Region::overlaps_read(const endpoint::SendRequest& write) const {
  const auto is_hit = [&](const std::shared_ptr<RegionRequest>& other) {
    const endpoint::SendRequest& read = other->work;
    return read.kind == endpoint::SendKind::read &&
           read.remote_address < write.remote_address + write.data.size() &&
           write.remote_address < read.remote_address + read.target.size();
  };
  return std::ranges::any_of(in_flight_, is_hit) || std::ranges::any_of(waiting_, is_hit);
}

void Region::throw_if_failed() const {
  if (failure_) {
    throw Error(*failure_);
  }
}

bool Region::test(RegionRequest& request) {
  refuse_elsewhere();
  visit();
  Lock lock(mutex_);
  call_back(lock);
  if (!request.is_done) {
    throw_if_failed();
  }
  return request.is_done;
}

/// Rank 0's reasons come by the group.
void Region::drive_group() {
  if (group_progress_ == ProgressBy::caller) {
    ends_->progress();
  }
}

/// A step by this thread, if no other one drives.
void Region::visit() {
  drive_group();
  if (const Lock lock(mutex_, std::try_to_lock); lock.owns_lock()) {
    step();
  }
}

bool Region::wait_until(RegionRequest& request, Deadline deadline) {
  refuse_elsewhere();
  Lock lock(mutex_);
  const auto is_over = [&] { return request.is_done || failure_.has_value(); };
  if (!is_over()) {
    refuse_within_callback("wait");
  }
  for (Deadline now = Clock::now(); !is_over() && now < deadline; now = Clock::now()) {
    sleep(lock, deadline);
    call_back(lock);
  }
  if (!request.is_done) {
    throw_if_failed();
  }
  return request.is_done;
}

/// Until something has changed, perhaps, or the deadline.
void Region::sleep(Lock& lock, Deadline deadline) {
  const bool drives_group = group_progress_ == ProgressBy::caller;
  changed_.wait_until(
      lock, std::min(deadline, Clock::now() + (drives_group ? kGroupStep : kNotifiedWait)));
  lock.unlock();
  drive_group();
  lock.lock();
}

void Region::set_callback(RegionRequest& request, DoneCallback callback) {
  refuse_elsewhere();
  Lock lock(mutex_);
  if (request.has_callback) {
    throw std::invalid_argument("on_done: found a second callback; allowed: one for a request");
  }
  request.has_callback = true;
  if (!request.is_done && !failure_) {
    request.on_done = std::move(callback);
    return;
  }
  const std::optional<Error> error = request.is_done ? std::nullopt : failure_;
  lock.unlock();
  callback(error);
}

void Region::tell_end(Lock& lock) {
  if (std::exchange(tells_end_, false)) {
    const std::string why = failure_->what();
    lock.unlock();
    ends_->tell({.number = number_, .why = why});
    lock.lock();
  }
}

/// Without the lock, so that they may do what other threads may.
void Region::call_back(Lock& lock) {
  tell_end(lock);
  while (!due_.empty() && !is_calling_) {
    is_calling_ = true;
    const auto requests = std::exchange(due_, {});
    const std::optional<Error> failure = failure_;
    lock.unlock();
    for (const auto& request : requests) {
      const WithinCallback within;
      std::exchange(request->on_done, {})(request->is_done ? std::nullopt : failure);
    }
    lock.lock();
    is_calling_ = false;
  }
}

std::optional<RegionNotice> Region::take_notice() {
  refuse_elsewhere();
  visit();
  const Lock lock(mutex_);
  if (notices_.empty()) {
    throw_if_failed();
    return std::nullopt;
  }
  const RegionNotice notice = notices_.front();
  notices_.pop_front();
  if (receives_kept_ != 0 && !failure_) {
    --receives_kept_;
    link_->post_receive();
  }
  return notice;
}

// ---------------------------------------------------------------------------------------- driving

Rest Region::attend(Wakening /*wakening*/, Deadline /*stay*/) {
  Lock lock(mutex_);
  const bool moved = step();
  call_back(lock);
  if (moved || !link_->arm()) {
    return kNoRest;
  }
  return {.end = due(), .is_watched = !failure_.has_value()};
}

bool Region::step() {
  if (failure_) {
    return false;
  }
  post_waiting();
  bool moved = false;
  try {
    moved = link_->poll(*this);
  } catch (const Error& error) {
    fail(error);
    return false;
  }
  const Deadline now = Clock::now();
  look_at_end(now);
  look_at_time(now);
  return moved && !failure_;
}

void Region::post_waiting() {
  while (!waiting_.empty() && link_->post(waiting_.front()->work)) {
    in_flight_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

void Region::completed() {
  const std::shared_ptr<RegionRequest> request = std::move(in_flight_.front());
  in_flight_.pop_front();
  request->is_done = true;
  if (request->on_done) {
    due_.push_back(request);
  }
  post_waiting();
  changed_.notify_all();
}

void Region::notified(std::uint32_t immediate) {
  notices_.push_back({.rank = static_cast<std::uint16_t>(immediate >> kRankShift),
                      .immediate = immediate & kMostRegionImmediate});
  if (notices_.size() < kMostNotices) {
    link_->post_receive();
  } else {
    ++receives_kept_;
  }
}

/// The switch's reason comes by another way than the end of the connection, and later.
void Region::look_at_end(Deadline now) {
  if (has_end_) {
    Lock lock(ending_);
    const Error end = *end_;
    lock.unlock();
    fail(end);
    return;
  }
  if (const std::optional<Error> failure = link_->failure()) { // perhaps a better cause than before
    link_failed_ = link_failure_ ? link_failed_ : now;
    link_failure_ = failure;
  }
  if (link_failure_ && now >= link_failed_ + kRegionReasonTime) {
    fail(*link_failure_);
  }
}

/// The switch ends a region sooner, if it is there.
void Region::look_at_time(Deadline now) {
  if (failure_ || link_failure_ || is_idle()) {
    return;
  }
  if (const std::uint64_t progress = link_->progress(); progress != progress_) {
    progress_ = progress;
    moved_ = now;
  }
  const auto limit = timeout_ + made_.patience + kRegionReasonTime;
  if (now >= moved_ + limit) {
    fail(Error(ErrorCode::timeout, std::nullopt,
               fmt::format("rank {}: a write or read of the region made no progress for {} ms, and "
                           "the switch has not said why",
                           rank_, std::chrono::round<std::chrono::milliseconds>(limit).count())));
  }
}

/// From then on nobody reads or writes the caller's memory.
void Region::fail(const Error& error) {
  failure_ = error;
  link_->close();
  for (const auto* queue : {&in_flight_, &waiting_}) {
    std::ranges::copy_if(*queue, std::back_inserter(due_),
                         [](const auto& request) { return static_cast<bool>(request->on_done); });
  }
  in_flight_.clear();
  waiting_.clear();
  changed_.notify_all();
  tells_end_ = held_ && !has_end_;
}

Deadline Region::due() const {
  if (failure_) {
    return Deadline::max();
  }
  const Deadline link = link_->due();
  if (link_failure_) {
    return std::min(link, link_failed_ + kRegionReasonTime);
  }
  return is_idle() ? link : std::min(link, moved_ + timeout_ + made_.patience + kRegionReasonTime);
}

/// By any thread, also one that has the lock.
void Region::note_end(const Error& error) {
  const Lock lock(ending_);
  if (!end_) {
    end_ = error;
    has_end_ = true;
  }
  if (seat_) {
    seat_->call();
  }
}

void Region::call_thread() {
  const Lock lock(ending_);
  if (seat_) {
    seat_->call();
  }
}

/// Not in attend().
void Region::leave_thread() {
  Lock lock(ending_);
  const auto last = std::move(seat_);
  lock.unlock();
}

bool Region::is_over() {
  const Lock lock(mutex_);
  return has_end_ || failure_;
}

void Region::refuse_elsewhere() const {
  if (!is_here()) {
    throw Error(ErrorCode::transport_failure, rank_,
                fmt::format("rank {}: this process was made by a fork of the region's own; only "
                            "that one may use it",
                            rank_));
  }
}

void Region::close(const std::function<bool()>& all_have_come) {
  const Deadline end = deadline_after(Clock::now(), farewell_);
  Lock lock(mutex_);
  while (!failure_ && Clock::now() < end) {
    lock.unlock();
    const bool is_over = all_have_come();
    lock.lock();
    if (is_over) {
      break;
    }
    sleep(lock, std::min(end, Clock::now() + kGroupStep));
  }
  if (!failure_) {
    fail(Error(ErrorCode::aborted, rank_, fmt::format("rank {} closed its region", rank_)));
    tells_end_ = false; // they close it, too
  }
  call_back(lock);
  lock.unlock();
  leave_thread();
  if (held_) {
    held_->release();
  }
}

} // namespace weir::host
