// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/routing.hpp"

#include "host/mpi/job.hpp"
#include "host/mpi/requests.hpp"

#include <fmt/format.h>

#include <utility>

namespace weir::mpi {
namespace {

/// A call that may not wait, and a barrier, which alone is not worth a ring, use the ring that is
/// there.
bool may_form(const Call& call, Mode mode) {
  return mode != Mode::started && call.collective != Collective::barrier;
}

Plan plan_at(const std::shared_ptr<Channel>& channel, const Call& call, Mode mode) {
  if (channel == nullptr) {
    return {.way = Way::off};
  }
  const bool has_ring_or_may = channel->way() == Way::weir || channel->way() == Way::no_ring_yet ||
                               channel->way() == Way::no_ring;
  if (!has_ring_or_may) {
    return {.way = channel->way()};
  }
  Plan plan = plan_of(call, channel->size(), job().settings().threshold);
  if (plan.way != Way::weir) {
    return plan;
  }
  if (channel->way() == Way::no_ring_yet && may_form(call, mode)) {
    channel->form();
  }
  plan.way = channel->way();
  return plan;
}

} // namespace

Route route_of(const Call& call, Mode mode) {
  Route route;
  route.channel = job().channel_of(call.communicator);
  route.plan = plan_at(route.channel, call, mode);
  if (mode != Mode::persistent || !route.is_by_weir()) { // else each start counts
    report().count(call.collective, mode, route.plan.way, route.plan.bytes);
  }
  return route;
}

int run(const Route& route, const Call& call) {
  Request request(route.channel, call, route.plan, Mode::blocking);
  request.start();
  request.wait();
  const std::string error = request.error();
  return error.empty() ? MPI_SUCCESS : job().raise(call.communicator, error);
}

int start(const Route& route, const Call& call, MPI_Request* request) {
  requests().start(route.channel, call, route.plan, Mode::started, request);
  return MPI_SUCCESS;
}

int fail(const Route& route, const Call& call, Mode mode) {
  return job().raise(call.communicator, fmt::format("{} of {}", name_of(call.collective, mode),
                                                    route.channel->error()));
}

} // namespace weir::mpi
