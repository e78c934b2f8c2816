// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/mpi_api.hpp"
#include "host/mpi/order_watch.hpp"
#include "host/mpi/report.hpp"
#include "weir/weir.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace weir::mpi {

/// How a communicator's calls reach its other ranks: its group, once it has one. The communicator
/// owns it, as an attribute, and requests that are under way.
class Channel {
 public:
  explicit Channel(MPI_Comm communicator);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Where calls go that Weir has. Way::no_ring_yet: `form` has not been called.
  [[nodiscard]] Way way() const { return way_; }

  [[nodiscard]] weir_group* group() const { return group_; }

  [[nodiscard]] int rank() const { return rank_; }

  [[nodiscard]] int size() const { return size_; }

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Why the communicator has no ring though it must; "": it need not.
  [[nodiscard]] const std::string& error() const { return error_; }

  /// Whose error handler hears of errors: MPI_COMM_WORLD when the communicator is no more.
  [[nodiscard]] MPI_Comm owner() const { return communicator_; }

  [[nodiscard]] ChannelId id() const { return id_; }

  /// Calls by Weir, on this rank.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

  void note_call() { ++calls_; }

  /// In MPI_COMM_WORLD. -1: the communicator is no more.
  [[nodiscard]] int world_rank_of(int rank) const;

  /// Forms the group, or finds out why there is none: the same on all ranks. All of them call it.
  void form();
  /// Ends the group. All ranks call it at about the same time.
  void close();

  /// The communicator is being freed, and requests may go on.
  void lose_owner() {
    communicator_ = MPI_COMM_WORLD;
    is_owned_ = false;
  }

 private:
  [[nodiscard]] std::string form_group();
  void go_without(const std::string& error);
  [[nodiscard]] std::string common_error(const std::string& own) const;
  void tell_group() const;
  void agree_on_id();

  MPI_Comm communicator_;
  int rank_ = 0;
  int size_ = 0;
  Way way_ = Way::no_ring_yet;
  weir_group* group_ = nullptr;
  bool is_owned_ = true;
  std::string name_;
  std::string error_;
  ChannelId id_;
  std::atomic<std::uint64_t> calls_{0};
};

} // namespace weir::mpi
