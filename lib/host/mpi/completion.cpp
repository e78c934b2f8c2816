// SPDX-License-Identifier: BSD-3-Clause

/// How programs wait for requests. Nobody but the thread that waits may call MPI, unless the
/// program asked for more; so that thread looks after Weir's requests, and tells MPI of those that
/// have ended.

#include "host/mpi/mpi_api.hpp"
#include "host/mpi/requests.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace weir::mpi {
namespace {

bool has_nothing_of_ours() {
  return requests().is_empty() && persistent_calls().is_empty();
}

/// Breaks between the looks of a thread that waits.
class Breaks {
 public:
  /// If the program waits for nothing else, in Weir.
  void take(std::span<const MPI_Request> handles) {
    std::shared_ptr<Request> ours;
    for (const MPI_Request handle : handles) {
      const auto request = requests().find(handle);
      if (request == nullptr && handle != MPI_REQUEST_NULL) {
        return rest();
      }
      if (request != nullptr && !request->is_done()) {
        ours = request;
      }
    }
    if (ours != nullptr) {
      ours->sleep();
    }
  }

 private:
  static constexpr unsigned kLooksAtOnce = 256;
  static constexpr std::chrono::microseconds kRest{20};

  /// MPI does not tell when a request of its own has ended: only looking again does. It does not
  /// yield: ranks that do so without end may keep all others from a CPU for seconds, the switch
  /// among them (docs/lab/testing.md).
  void rest() {
    if (looks_ < kLooksAtOnce) {
      ++looks_;
      return;
    }
    std::this_thread::sleep_for(kRest);
  }

  unsigned looks_ = 0;
};

std::span<MPI_Request> span_of(int count, MPI_Request* handles) {
  return {handles, handles != nullptr ? static_cast<std::size_t>(std::max(count, 0)) : 0};
}

/// Looks once. `test` gets the handles that MPI knows.
template <typename Test>
int look(std::span<MPI_Request> handles, Test&& test) {
  requests().poll();
  std::vector<MPI_Request> active = persistent_calls().active_of(handles);
  const int status = test(active.data());
  persistent_calls().take_back(active, handles);
  return raise_errors(status);
}

/// Looks until `is_over`.
template <typename Test, typename IsOver>
int wait(std::span<MPI_Request> handles, Test&& test, IsOver&& is_over) {
  for (Breaks breaks;;) {
    const int status = look(handles, test);
    if (status != MPI_SUCCESS || is_over()) {
      return status;
    }
    breaks.take(persistent_calls().active_of(handles));
  }
}

/// Whether MPI can do it alone.
bool is_mpis(std::span<const MPI_Request> handles) {
  if (has_nothing_of_ours()) {
    return true;
  }
  return std::ranges::equal(persistent_calls().active_of(handles), handles) &&
         std::ranges::none_of(
             handles, [](MPI_Request handle) { return requests().find(handle) != nullptr; });
}

} // namespace
} // namespace weir::mpi

using weir::mpi::is_mpis;
using weir::mpi::look;
using weir::mpi::span_of;
using weir::mpi::wait;

extern "C" int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const auto handles = span_of(1, request);
  int is_done = 0;
  return is_mpis(handles)
             ? PMPI_Wait(request, status)
             : wait(
                   handles,
                   [&](MPI_Request* active) { return PMPI_Test(active, &is_done, status); },
                   [&] { return is_done != 0; });
}

extern "C" int MPI_Test(MPI_Request* request, int* is_done, MPI_Status* status) {
  const auto handles = span_of(1, request);
  return is_mpis(handles) ? PMPI_Test(request, is_done, status)
                          : look(handles, [&](MPI_Request* active) {
                              return PMPI_Test(active, is_done, status);
                            });
}

extern "C" int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const auto handles = span_of(count, requests);
  int is_done = 0;
  return is_mpis(handles) ? PMPI_Waitall(count, requests, statuses)
                          : wait(
                                handles,
                                [&](MPI_Request* active) {
                                  return PMPI_Testall(count, active, &is_done, statuses);
                                },
                                [&] { return is_done != 0; });
}

extern "C" int MPI_Testall(int count, MPI_Request requests[], int* is_done, MPI_Status statuses[]) {
  const auto handles = span_of(count, requests);
  return is_mpis(handles) ? PMPI_Testall(count, requests, is_done, statuses)
                          : look(handles, [&](MPI_Request* active) {
                              return PMPI_Testall(count, active, is_done, statuses);
                            });
}

extern "C" int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  const auto handles = span_of(count, requests);
  int is_done = 0;
  return is_mpis(handles) ? PMPI_Waitany(count, requests, index, status)
                          : wait(
                                handles,
                                [&](MPI_Request* active) {
                                  return PMPI_Testany(count, active, index, &is_done, status);
                                },
                                [&] { return is_done != 0; });
}

extern "C" int MPI_Testany(int count, MPI_Request requests[], int* index, int* is_done,
                           MPI_Status* status) {
  const auto handles = span_of(count, requests);
  return is_mpis(handles) ? PMPI_Testany(count, requests, index, is_done, status)
                          : look(handles, [&](MPI_Request* active) {
                              return PMPI_Testany(count, active, index, is_done, status);
                            });
}

extern "C" int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                            MPI_Status statuses[]) {
  const auto handles = span_of(count, requests);
  return is_mpis(handles) ? PMPI_Waitsome(count, requests, done, indices, statuses)
                          : wait(
                                handles,
                                [&](MPI_Request* active) {
                                  return PMPI_Testsome(count, active, done, indices, statuses);
                                },
                                [&] { return *done != 0; });
}

extern "C" int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                            MPI_Status statuses[]) {
  const auto handles = span_of(count, requests);
  return is_mpis(handles) ? PMPI_Testsome(count, requests, done, indices, statuses)
                          : look(handles, [&](MPI_Request* active) {
                              return PMPI_Testsome(count, active, done, indices, statuses);
                            });
}

extern "C" int MPI_Request_get_status(MPI_Request request, int* is_done, MPI_Status* status) {
  const auto handles = span_of(1, &request);
  return is_mpis(handles) ? PMPI_Request_get_status(request, is_done, status)
                          : look(handles, [&](MPI_Request* active) {
                              return PMPI_Request_get_status(*active, is_done, status);
                            });
}

extern "C" int MPI_Start(MPI_Request* request) {
  return weir::mpi::persistent_calls().start(*request) ? MPI_SUCCESS : PMPI_Start(request);
}

extern "C" int MPI_Startall(int count, MPI_Request requests[]) {
  int status = MPI_SUCCESS;
  for (MPI_Request& request : span_of(count, requests)) {
    status = status == MPI_SUCCESS ? MPI_Start(&request) : status;
  }
  return status;
}

extern "C" int MPI_Request_free(MPI_Request* request) {
  weir::mpi::persistent_calls().forget(*request);
  return PMPI_Request_free(request);
}
