// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/order_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::mpi {
namespace {

constexpr int kNoteTag = 1;

} // namespace

/// Where several threads may call MPI, another one may make the call: nothing is certain then.
void OrderWatch::begin() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  if (level != MPI_THREAD_MULTIPLE) {
    PMPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
  }
}

void OrderWatch::end() {
  if (communicator_ != MPI_COMM_NULL) {
    PMPI_Comm_free(&communicator_);
  }
}

void OrderWatch::tell(const Stuck& stuck) {
  if (stuck.channel == told_channel_ && stuck.call == told_call_ && stuck.late == told_rank_) {
    return;
  }
  told_channel_ = stuck.channel;
  told_call_ = stuck.call;
  told_rank_ = stuck.late;
  Note note{.channel = stuck.channel, .call = stuck.call, .from = rank_, .where = {}};
  stuck.where.copy(note.where.data(), note.where.size() - 1);
  // So short that MPI stores it on the way.
  PMPI_Send(&note, sizeof(note), MPI_BYTE, stuck.late, kNoteTag, communicator_);
}

std::optional<OrderWatch::Note> OrderWatch::next_note() {
  int is_there = 0;
  MPI_Status status;
  PMPI_Iprobe(MPI_ANY_SOURCE, kNoteTag, communicator_, &is_there, &status);
  if (is_there == 0) {
    return std::nullopt;
  }
  Note note{};
  PMPI_Recv(&note, sizeof(note), MPI_BYTE, status.MPI_SOURCE, kNoteTag, communicator_,
            MPI_STATUS_IGNORE);
  return note;
}

/// The same on both ranks.
std::string OrderWatch::sentence(const Stuck& stuck, const Note& note) const {
  std::array<std::pair<int, std::string>, 2> waits{
      {{rank_, stuck.where}, {note.from, note.where.data()}}};
  std::ranges::sort(waits);
  return fmt::format(
      "ranks {} and {} wait for each other: rank {} in {}, rank {} in {}; right is the same "
      "order of communicators on all ranks",
      waits[0].first, waits[1].first, waits[0].first, waits[0].second, waits[1].first,
      waits[1].second);
}

OrderWatch& order_watch() {
  static OrderWatch& the_watch = *new OrderWatch;
  return the_watch;
}

} // namespace weir::mpi
