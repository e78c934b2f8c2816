// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/job.hpp"

#include "host/mpi/handshake.hpp"
#include "host/mpi/requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace weir::mpi {
namespace {

using ChannelPointer = std::shared_ptr<Channel>;

extern "C" int forget_channel(MPI_Comm, int, void* value, void*) {
  auto* const channel = static_cast<ChannelPointer*>(value);
  (*channel)->lose_owner();
  delete channel;
  return MPI_SUCCESS;
}

[[noreturn]] void end_job(const std::string& why) {
  say_last_words(why);
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

int rank_on_host() {
  MPI_Comm host = MPI_COMM_NULL;
  int rank = 0;
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  PMPI_Comm_rank(host, &rank);
  PMPI_Comm_free(&host);
  return rank;
}

/// Rank 0's, on all ranks.
std::string broadcast(std::string text) {
  int length = static_cast<int>(text.size());
  PMPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  PMPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

/// Whether all ranks have a device, or none. Ends the job if it is neither.
bool has_device_everywhere(bool has_here, int rank) {
  std::array<int, 2> most{has_here ? 1 : 0, has_here ? 0 : 1};
  PMPI_Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (most[0] == 1 && most[1] == 1) {
    if (!has_here) {
      end_job(fmt::format("rank {}: WEIR_DEVICE is not set here, and is on other ranks; right is "
                          "all or none (mpirun -x WEIR_DEVICE)",
                          rank));
    }
    PMPI_Barrier(MPI_COMM_WORLD); // until a rank without it has said so
  }
  return has_here;
}

bool is_set(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found != variables.end() && !found->second.empty();
}

} // namespace

void Job::begin() {
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  if (const std::string why = meet_all_ranks(); !why.empty()) {
    end_job(why);
  }
  try {
    agree_on_settings();
  } catch (const std::invalid_argument& error) {
    end_job(fmt::format("rank {}: {}", rank_, error.what()));
  }
}

void Job::agree_on_settings() {
  const Variables own = given_variables();
  const Variables of_rank_0 = variables_in(broadcast(text_of(job_variables(own))));
  if (!has_device_everywhere(is_set(own, "WEIR_DEVICE"), rank_)) {
    return;
  }
  settings_ = settings_of(own, of_rank_0, rank_, rank_on_host());
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_channel, &keyval_, nullptr);
  mpi_driver().begin();
  order_watch().begin();
  open_context();
}

void Job::open_context() {
  weir_context_options options;
  weir_context_options_init(&options);
  options.transport = settings_.transport;
  options.device = settings_.device.c_str();
  options.ip = settings_.ip.empty() ? nullptr : settings_.ip.c_str();
  options.mac = settings_.mac.empty() ? nullptr : settings_.mac.c_str();
  options.gid_index = settings_.gid_index.value_or(options.gid_index);
  if (weir_context_open(&options, &context_) != WEIR_OK) {
    throw std::invalid_argument(weir_last_error());
  }
  if (settings_.has_operators) {
    weir_group_options defaults;
    weir_group_options_init(&defaults);
    operators_ =
        std::make_unique<const Operators>(settings_.path_mtu.value_or(defaults.path_mtu),
                                          settings_.message_bytes.value_or(defaults.message_bytes));
  }
}

void Job::end() {
  if (!is_on()) {
    return;
  }
  PMPI_Barrier(MPI_COMM_WORLD); // drives what other ranks still send to this one
  for (const auto& known : channels_) {
    if (const ChannelPointer channel = known.lock()) {
      channel->close();
    }
  }
  for (std::thread& closer : closers_) {
    closer.join();
  }
  closers_.clear();
  mpi_driver().end();
  order_watch().end();
  operators_.reset();
  weir_context_close(std::exchange(context_, nullptr));
  if (settings_.is_verbose && rank_ == 0) {
    const std::string text = report().text(settings_.threshold);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
}

std::shared_ptr<Channel> Job::known_channel_of(MPI_Comm communicator) {
  if (!is_on() || communicator == MPI_COMM_NULL) {
    return nullptr;
  }
  void* value = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(communicator, keyval_, static_cast<void*>(&value), &is_there);
  return is_there != 0 ? *static_cast<ChannelPointer*>(value) : nullptr;
}

std::shared_ptr<Channel> Job::channel_of(MPI_Comm communicator) {
  ChannelPointer channel = known_channel_of(communicator);
  if (channel == nullptr && is_on() && communicator != MPI_COMM_NULL) {
    channel = std::make_shared<Channel>(communicator);
    PMPI_Comm_set_attr(communicator, keyval_,
                       new ChannelPointer(channel)); // forget_channel deletes it
    const std::scoped_lock lock(mutex_);
    std::erase_if(channels_, [](const auto& known) { return known.expired(); });
    channels_.push_back(channel);
  }
  return channel;
}

std::optional<std::uint64_t> Job::calls_made(ChannelId id) {
  const std::scoped_lock lock(mutex_);
  for (const auto& known : channels_) {
    if (const ChannelPointer channel = known.lock(); channel != nullptr && channel->id() == id) {
      return channel->calls();
    }
  }
  return std::nullopt;
}

int Job::raise(MPI_Comm communicator, const std::string& error) {
  say_last_words(fmt::format("rank {}: {}", rank_, error));
  int code = MPI_ERR_OTHER;
  {
    const std::scoped_lock lock(mutex_);
    if (error_code_ == MPI_SUCCESS) {
      int error_class = MPI_ERR_OTHER;
      PMPI_Add_error_class(&error_class);
      PMPI_Add_error_code(error_class, &error_code_);
    }
    code = error_code_;
    const std::string text = error.substr(0, MPI_MAX_ERROR_STRING - 1);
    PMPI_Add_error_string(code, text.c_str());
  }
  PMPI_Comm_call_errhandler(communicator, code);
  return code;
}

void Job::say_once(const std::string& line) {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(has_said_, true)) {
    say(line + " (said once; WEIR_VERBOSE=1 lists all communicators)");
  }
}

void Job::close_in_background(weir_group* group) {
  const std::scoped_lock lock(mutex_);
  closers_.emplace_back(weir_group_close, group);
}

Job& job() {
  static Job& the_job = *new Job; // never destroyed: a program may end without MPI_Finalize
  return the_job;
}

} // namespace weir::mpi
