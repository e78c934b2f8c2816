// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/requests.hpp"

#include "host/mpi/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::mpi {
namespace {

constexpr unsigned kMomentMs = 1;

struct Failure {
  MPI_Comm communicator;
  std::string error;
};

thread_local std::optional<Failure> failure; // of the MPI call that this thread makes

extern "C" int tell_nothing(void*, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}

extern "C" int free_nothing(void*) {
  return MPI_SUCCESS;
}

extern "C" int cancel_nothing(void*, int) {
  return MPI_SUCCESS;
}

extern "C" int tell_status(void* state, MPI_Status* status) {
  const auto& request = *static_cast<Request*>(state);
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  if (std::string error = request.error(); !error.empty() && !failure) {
    failure = Failure{.communicator = request.channel().owner(), .error = std::move(error)};
  }
  return MPI_SUCCESS;
}

extern "C" int free_request(void* state) {
  requests().forget(static_cast<Request*>(state)->handle());
  return MPI_SUCCESS;
}

} // namespace

void MpiDriver::begin() {
  PMPI_Grequest_start(tell_nothing, free_nothing, cancel_nothing, nullptr, &never_);
}

void MpiDriver::drive() {
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
    int is_done = 0;
    PMPI_Test(&never_, &is_done, MPI_STATUS_IGNORE);
  }
}

void MpiDriver::end() {
  PMPI_Grequest_complete(never_);
  PMPI_Wait(&never_, MPI_STATUS_IGNORE);
}

MpiDriver& mpi_driver() {
  static MpiDriver& the_driver = *new MpiDriver;
  return the_driver;
}

Request::Request(std::shared_ptr<Channel> channel, const Call& call, const Plan& plan, Mode mode)
    : channel_(std::move(channel)), name_(name_of(call.collective, mode)),
      work_(call, plan, channel_->rank(), channel_->size()) {}

Request::~Request() {
  weir_release(request_);
}

void Request::start() {
  channel_->note_call();
  call_ = channel_->calls();
  const weir_status status = work_.start(channel_->group(), &request_);
  if (status != WEIR_OK) {
    end(status);
  }
}

void Request::start_as(MPI_Request handle) {
  handle_ = handle;
  start();
  if (is_done_) {
    PMPI_Grequest_complete(handle);
  }
}

void Request::end(weir_status status) {
  if (status == WEIR_OK) {
    work_.finish();
  } else {
    error_ = fmt::format("{} of {}: {}: {}", name_, channel_->name(), weir_status_name(status),
                         weir_last_error());
  }
  work_.release();
  weir_release(std::exchange(request_, nullptr));
  is_done_ = true;
}

bool Request::look(unsigned wait_ms) {
  if (is_done_) {
    return true;
  }
  const weir_status status = wait_ms == 0 ? weir_test(request_) : weir_wait_for(request_, wait_ms);
  if (status != WEIR_PENDING) {
    end(status);
    return true;
  }
  if (wait_ms > 0) {
    tell_wait(weir_last_error());
  }
  return false;
}

/// `late`: "" or such as "ranks 2, 3 have not made call 7".
void Request::tell_wait(const std::string& late) {
  const std::size_t digits = late.find_first_of("0123456789");
  if (digits == std::string::npos) {
    return;
  }
  const std::string where = fmt::format("{} of {}", name_, channel_->name());
  if (!std::exchange(has_told_, true)) {
    say(fmt::format("rank {} waits in {}: {}", job().rank(), where, late));
  }
  const Stuck stuck{.channel = channel_->id(),
                    .call = call_,
                    .late = channel_->world_rank_of(std::stoi(late.substr(digits))),
                    .where = where};
  if (stuck.late < 0) {
    return;
  }
  const auto wrong = order_watch().look(stuck, [](ChannelId id) { return job().calls_made(id); });
  if (wrong) {
    weir_group_abort_because(channel_->group(), wrong->c_str());
  }
}

/// Drives MPI at the call's begin and at its end, too: what a rank has sent before a barrier,
/// others expect to find behind it at the first look, as behind MPI's own.
void Request::wait() {
  mpi_driver().drive();
  while (!look(kMomentMs)) {
    mpi_driver().drive();
  }
  mpi_driver().drive();
}

bool Request::poll() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (is_done_ || !lock || !look(0)) {
    return is_done_;
  }
  PMPI_Grequest_complete(handle_);
  return true;
}

void Request::sleep() {
  const std::scoped_lock lock(mutex_);
  if (!is_done_ && look(kMomentMs)) {
    PMPI_Grequest_complete(handle_);
  }
}

void Requests::start(std::shared_ptr<Channel> channel, const Call& call, const Plan& plan,
                     Mode mode, MPI_Request* handle) {
  auto request = std::make_shared<Request>(std::move(channel), call, plan, mode);
  PMPI_Grequest_start(tell_status, free_request, cancel_nothing, request.get(), handle);
  request->start_as(*handle);
  const std::scoped_lock lock(mutex_);
  known_[*handle] = std::move(request);
  count_ = known_.size();
}

std::shared_ptr<Request> Requests::find(MPI_Request handle) const {
  const std::scoped_lock lock(mutex_);
  const auto found = known_.find(handle);
  return found != known_.end() ? found->second : nullptr;
}

void Requests::poll() {
  std::vector<std::shared_ptr<Request>> pending;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [handle, request] : known_) {
      if (!request->is_done()) {
        pending.push_back(request);
      }
    }
  }
  std::ranges::for_each(pending, [](const auto& request) { request->poll(); });
}

void Requests::forget(MPI_Request handle) {
  std::shared_ptr<Request> last; // its end may take time
  const std::scoped_lock lock(mutex_);
  if (const auto found = known_.find(handle); found != known_.end()) {
    last = std::move(found->second);
    known_.erase(found);
  }
  count_ = known_.size();
}

Requests& requests() {
  static Requests& all = *new Requests;
  return all;
}

void PersistentCalls::add(MPI_Request handle, Persistent persistent) {
  const std::scoped_lock lock(mutex_);
  known_.insert_or_assign(handle, std::move(persistent));
  count_ = known_.size();
}

bool PersistentCalls::start(MPI_Request handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = known_.find(handle);
  if (found == known_.end()) {
    return false;
  }
  Persistent& persistent = found->second;
  report().count(persistent.call.collective, Mode::persistent, Way::weir, persistent.plan.bytes);
  requests().start(persistent.channel, persistent.call, persistent.plan, Mode::persistent,
                   &persistent.active);
  return true;
}

std::vector<MPI_Request> PersistentCalls::active_of(std::span<const MPI_Request> handles) const {
  std::vector<MPI_Request> active(handles.begin(), handles.end());
  if (is_empty()) {
    return active;
  }
  const std::scoped_lock lock(mutex_);
  for (MPI_Request& handle : active) {
    const auto found = known_.find(handle);
    if (found !=
        known_.end()) { // MPICH 4.0 would wait for ever for one of its own that is not active
      handle = found->second.active;
    }
  }
  return active;
}

void PersistentCalls::take_back(std::span<const MPI_Request> active,
                                std::span<MPI_Request> handles) {
  const std::scoped_lock lock(mutex_);
  for (std::size_t at = 0; at < handles.size(); ++at) {
    const auto found = known_.find(handles[at]);
    if (found == known_.end()) {
      handles[at] = active[at];
    } else if (active[at] == MPI_REQUEST_NULL) {
      found->second.active = MPI_REQUEST_NULL;
    }
  }
}

void PersistentCalls::forget(MPI_Request handle) {
  const std::scoped_lock lock(mutex_);
  known_.erase(handle);
  count_ = known_.size();
}

PersistentCalls& persistent_calls() {
  static PersistentCalls& all = *new PersistentCalls;
  return all;
}

int raise_errors(int status) {
  if (!failure) {
    return status;
  }
  const Failure told = *std::exchange(failure, std::nullopt);
  return job().raise(told.communicator, told.error);
}

} // namespace weir::mpi
