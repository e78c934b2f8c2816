// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/calls.hpp"
#include "host/mpi/channel.hpp"
#include "host/mpi/work.hpp"
#include "weir/weir.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace weir::mpi {

/// MPI moves what was sent and received when somebody waits or tests: here for a request that does
/// not end. To probe is not enough for MPICH.
class MpiDriver {
 public:
  void begin();
  void drive();
  void end();

 private:
  std::mutex mutex_;
  MPI_Request never_ = MPI_REQUEST_NULL; // driven under mutex_
};

MpiDriver& mpi_driver();

/// A call through Weir, from its start to its end.
class Request {
 public:
  Request(std::shared_ptr<Channel> channel, const Call& call, const Plan& plan, Mode mode);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Never waits.
  void start();
  /// The same; MPI tells its end by a generalized request.
  void start_as(MPI_Request handle);

  [[nodiscard]] MPI_Request handle() const { return handle_; }

  /// Waits, and drives MPI meanwhile: others may need what this rank sends or receives before they
  /// can call.
  void wait();
  /// Never waits, also not for another thread that looks. Whether it has ended, now or before.
  bool poll();
  /// Waits for a moment, in which the group is driven.
  void sleep();

  [[nodiscard]] bool is_done() const { return is_done_; }

  /// "": it ended well, or has not ended.
  [[nodiscard]] std::string error() const { return is_done_ ? error_ : ""; }

  [[nodiscard]] const Channel& channel() const { return *channel_; }

 private:
  bool look(unsigned wait_ms);
  void end(weir_status status);
  void tell_wait(const std::string& late);

  std::shared_ptr<Channel> channel_;
  std::string name_;
  Work work_;
  weir_request* request_ = nullptr; // under mutex_, once it is started
  MPI_Request handle_ = MPI_REQUEST_NULL;
  std::string error_;
  std::uint64_t call_ = 0; // which of the channel
  bool has_told_ = false;
  std::atomic<bool> is_done_{false};
  std::mutex mutex_;
};

/// Those that the program knows by handles of MPI's.
class Requests {
 public:
  /// Starts a call; MPI tells its end by `handle`. An error that comes at once is told when the
  /// program waits.
  void start(std::shared_ptr<Channel> channel, const Call& call, const Plan& plan, Mode mode,
             MPI_Request* handle);

  /// Whether any is under way.
  [[nodiscard]] bool is_empty() const { return count_ == 0; }

  [[nodiscard]] std::shared_ptr<Request> find(MPI_Request handle) const;
  /// Tells MPI of all that have ended.
  void poll();
  void forget(MPI_Request handle);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<MPI_Request, std::shared_ptr<Request>> known_; // under mutex_
  std::atomic<std::size_t> count_{0};
};

Requests& requests();

/// Persistent requests that go through Weir. The program's handle is one of MPI's own, which is
/// never started.
class PersistentCalls {
 public:
  struct Persistent {
    std::shared_ptr<Channel> channel;
    Call call;
    Plan plan;
    MPI_Request active = MPI_REQUEST_NULL; // generalized; while the call is under way
  };

  void add(MPI_Request handle, Persistent persistent);

  [[nodiscard]] bool is_empty() const { return count_ == 0; }

  /// Whether it is one of these; then it is started.
  bool start(MPI_Request handle);
  /// Instead of these the requests that stand for them while they are under way; else
  /// MPI_REQUEST_NULL.
  [[nodiscard]] std::vector<MPI_Request> active_of(std::span<const MPI_Request> handles) const;
  /// After MPI has seen `active`: what it has set to MPI_REQUEST_NULL is no longer under way.
  /// `handles` are the program's.
  void take_back(std::span<const MPI_Request> active, std::span<MPI_Request> handles);
  void forget(MPI_Request handle);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<MPI_Request, Persistent> known_; // under mutex_
  std::atomic<std::size_t> count_{0};
};

PersistentCalls& persistent_calls();

/// Errors of requests that MPI has told the program of in the call that this thread makes; raises
/// the first.
int raise_errors(int status);

} // namespace weir::mpi
