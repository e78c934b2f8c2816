// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/handshake.hpp"

#include "host/mpi/mpi_api.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace weir::mpi {
namespace {

using std::chrono::steady_clock;

constexpr int kTag = 32749; // few programs have it
constexpr std::chrono::seconds kTimeout{30};
constexpr std::chrono::seconds kLongerTimeout{35}; // rank 0 knows more, so it is the first to tell
constexpr std::chrono::milliseconds kPause{1};
constexpr std::size_t kMostNamed = 8;

bool is_done(MPI_Request& request) {
  int done = 0;
  PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

/// False: not in time.
bool wait_for_all(std::vector<MPI_Request>& requests, std::chrono::seconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  for (MPI_Request& request : requests) {
    while (!is_done(request)) {
      if (steady_clock::now() > deadline) {
        return false;
      }
      std::this_thread::sleep_for(kPause);
    }
  }
  return true;
}

std::string lacking(const std::string& ranks, std::chrono::seconds timeout) {
  return fmt::format(
      "no answer from {} within {} s: is libweir_mpi.so loaded there? (mpirun -x LD_PRELOAD=…)",
      ranks, timeout.count());
}

std::string names_of(std::vector<MPI_Request>& requests) {
  std::string names;
  std::size_t count = 0;
  for (std::size_t rank = 1; rank <= requests.size(); ++rank) {
    if (!is_done(requests[rank - 1]) && ++count <= kMostNamed) {
      names += fmt::format("{}{}", count == 1 ? "rank " : ", ", rank);
    }
  }
  return names + (count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : "");
}

std::string hear_all(int size) {
  std::vector<MPI_Request> requests(static_cast<std::size_t>(size - 1));
  for (int rank = 1; rank < size; ++rank) {
    PMPI_Irecv(nullptr, 0, MPI_BYTE, rank, kTag, MPI_COMM_WORLD,
               &requests[static_cast<std::size_t>(rank - 1)]);
  }
  if (!wait_for_all(requests, kTimeout)) {
    return lacking(names_of(requests), kTimeout);
  }
  for (int rank = 1; rank < size; ++rank) {
    PMPI_Send(nullptr, 0, MPI_BYTE, rank, kTag, MPI_COMM_WORLD);
  }
  return "";
}

std::string be_heard() {
  std::vector<MPI_Request> requests(2);
  PMPI_Isend(nullptr, 0, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, requests.data());
  PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &requests[1]);
  return wait_for_all(requests, kLongerTimeout) ? "" : lacking("rank 0", kLongerTimeout);
}

} // namespace

std::string meet_all_ranks() {
  int rank = 0;
  int size = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  return rank == 0 ? hear_all(size) : be_heard();
}

} // namespace weir::mpi
