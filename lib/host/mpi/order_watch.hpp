// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/mpi_api.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace weir::mpi {

/// The same on all ranks of a communicator.
struct ChannelId {
  int rank = -1;  // of MPI_COMM_WORLD: the communicator's rank 0
  int number = 0; // of that rank's
  bool operator==(const ChannelId&) const = default;
};

/// A rank waits in a call, and has waited for long, since another rank has not made it.
struct Stuck {
  ChannelId channel;
  std::uint64_t call = 0; // which of the channel
  int late = -1;          // of MPI_COMM_WORLD
  std::string where;      // such as "MPI_Allreduce of MPI_COMM_WORLD"
};

/// Finds two ranks that wait for each other because they use two communicators in different orders.
/// A rank that is stuck tells the one for which it waits; who is stuck too, and hears that of the
/// rank for which it waits, knows.
class OrderWatch {
 public:
  /// On all ranks.
  void begin();
  void end();

  /// For a rank that is stuck, again and again. `calls_made(channel)`: how many this rank has made
  /// there, or nothing if it does not know the channel. Returns what is wrong.
  template <typename CallsMade>
  std::optional<std::string> look(const Stuck& stuck, CallsMade&& calls_made) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || communicator_ == MPI_COMM_NULL) {
      return std::nullopt;
    }
    tell(stuck);
    while (const std::optional<Note> note = next_note()) {
      const std::optional<std::uint64_t> made = calls_made(note->channel);
      if (note->from == stuck.late && note->channel != stuck.channel && made &&
          *made < note->call) {
        return sentence(stuck, *note);
      }
    }
    return std::nullopt;
  }

 private:
  struct Note {
    ChannelId channel;
    std::uint64_t call;
    int from;
    std::array<char, 160> where;
  };

  void tell(const Stuck& stuck);
  std::optional<Note> next_note();
  [[nodiscard]] std::string sentence(const Stuck& stuck, const Note& note) const;

  std::mutex mutex_;
  MPI_Comm communicator_ = MPI_COMM_NULL; // of all ranks, for notes alone
  int rank_ = 0;
  ChannelId told_channel_;
  std::uint64_t told_call_ = 0;
  int told_rank_ = -1;
};

OrderWatch& order_watch();

} // namespace weir::mpi
