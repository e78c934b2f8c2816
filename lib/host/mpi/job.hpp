// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/channel.hpp"
#include "host/mpi/mpi_api.hpp"
#include "host/mpi/operators.hpp"
#include "host/mpi/settings.hpp"
#include "weir/weir.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace weir::mpi {

/// The process's part of an MPI job, from MPI_Init to MPI_Finalize.
class Job {
 public:
  /// After MPI_Init, on all ranks of MPI_COMM_WORLD. Ends the job when the settings are wrong or
  /// differ.
  void begin();
  /// Before MPI_Finalize, on all ranks.
  void end();

  [[nodiscard]] bool is_on() const { return context_ != nullptr; }

  [[nodiscard]] const Settings& settings() const { return settings_; }

  [[nodiscard]] weir_context* context() const { return context_; }

  /// NULL: groups have none.
  [[nodiscard]] const Operators* operators() const { return operators_.get(); }

  [[nodiscard]] int rank() const { return rank_; }

  /// What the communicator has kept as its attribute; makes it if need be. NULL where Weir is off.
  std::shared_ptr<Channel> channel_of(MPI_Comm communicator);
  /// The same, or NULL if the communicator has none yet.
  std::shared_ptr<Channel> known_channel_of(MPI_Comm communicator);

  /// How many calls this rank has made there, if it knows it.
  std::optional<std::uint64_t> calls_made(ChannelId id);

  /// Prints the error, and calls the communicator's error handler with it. Returns MPI's code for
  /// it, whose text it is.
  int raise(MPI_Comm communicator, const std::string& error);
  /// Says that a communicator has no ring: the first time in this process only.
  void say_once(const std::string& line);
  /// A channel that ended when nobody could wait for it.
  void close_in_background(weir_group* group);

 private:
  void agree_on_settings();
  void open_context();

  Settings settings_;
  weir_context* context_ = nullptr;
  std::unique_ptr<const Operators> operators_;
  int rank_ = 0;
  int keyval_ = MPI_KEYVAL_INVALID;
  int error_code_ = MPI_SUCCESS;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Channel>> channels_; // under mutex_; in the order of their making
  bool has_said_ = false;                        // under mutex_
  std::vector<std::thread> closers_;             // under mutex_
};

/// The process's one job.
Job& job();

} // namespace weir::mpi
