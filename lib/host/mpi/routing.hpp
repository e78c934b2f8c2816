// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/calls.hpp"
#include "host/mpi/channel.hpp"
#include "host/mpi/work.hpp"

#include <memory>

namespace weir::mpi {

/// Where a call goes. All that decides is equal on all ranks: the communicator's size, how often it
/// has been asked for a ring, and what MPI's rules make equal: the amount of data, a reduction's
/// type and operation.
struct Route {
  Plan plan;
  std::shared_ptr<Channel> channel; // NULL where Weir is off

  [[nodiscard]] bool is_by_weir() const { return plan.way == Way::weir; }

  /// Whether the call must fail, since there is no ring.
  [[nodiscard]] bool must_fail() const {
    return plan.way == Way::no_ring && !channel->error().empty();
  }
};

/// Forms the communicator's group if the call is the first that would use it, and may wait.
Route route_of(const Call& call, Mode mode);

/// MPI's error codes.
int run(const Route& route, const Call& call);
int start(const Route& route, const Call& call, MPI_Request* request);
int fail(const Route& route, const Call& call, Mode mode);

} // namespace weir::mpi
