// SPDX-License-Identifier: BSD-3-Clause

/// The collectives as programs call them: each goes by Weir or to its namesake PMPI_…

#include "host/mpi/calls.hpp"
#include "host/mpi/requests.hpp"
#include "host/mpi/routing.hpp"

#include <algorithm>

namespace weir::mpi {
namespace {

/// kUnequalParts unless all are equal.
template <typename Count>
MPI_Count common_count(const Count* counts, MPI_Comm communicator) {
  int size = 0;
  if (communicator == MPI_COMM_NULL || counts == nullptr ||
      PMPI_Comm_size(communicator, &size) != MPI_SUCCESS) {
    return kUnequalParts;
  }
  const bool are_equal =
      std::all_of(counts, counts + size, [=](Count count) { return count == *counts; });
  return are_equal ? *counts : kUnequalParts;
}

Call all_reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op operation,
                MPI_Comm communicator) {
  return {.collective = Collective::all_reduce,
          .in = in,
          .out = out,
          .count = count,
          .type = type,
          .operation = operation,
          .communicator = communicator};
}

Call reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op operation,
            int root, MPI_Comm communicator) {
  Call call = all_reduce(in, out, count, type, operation, communicator);
  call.collective = Collective::reduce;
  call.root = root;
  return call;
}

Call reduce_scatter_block(const void* in, void* out, MPI_Count count, MPI_Datatype type,
                          MPI_Op operation, MPI_Comm communicator) {
  Call call = all_reduce(in, out, count, type, operation, communicator);
  call.collective = Collective::reduce_scatter_block;
  return call;
}

template <typename Count>
Call reduce_scatter(const void* in, void* out, const Count* counts, MPI_Datatype type,
                    MPI_Op operation, MPI_Comm communicator) {
  Call call =
      all_reduce(in, out, common_count(counts, communicator), type, operation, communicator);
  call.collective = Collective::reduce_scatter;
  return call;
}

Call broadcast(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm communicator) {
  return {.collective = Collective::broadcast,
          .out = data,
          .count = count,
          .type = type,
          .root = root,
          .communicator = communicator};
}

Call all_gather(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
                MPI_Count count, MPI_Datatype type, MPI_Comm communicator) {
  return {.collective = Collective::all_gather,
          .in = in,
          .in_count = in_count,
          .in_type = in_type,
          .out = out,
          .count = count,
          .type = type,
          .communicator = communicator};
}

Call barrier(MPI_Comm communicator) {
  return {.collective = Collective::barrier, .communicator = communicator};
}

template <typename Plain>
int blocking(const Call& call, Plain&& plain) {
  const Route route = route_of(call, Mode::blocking);
  if (route.must_fail()) {
    return fail(route, call, Mode::blocking);
  }
  return route.is_by_weir() ? run(route, call) : plain();
}

template <typename Plain>
int started(const Call& call, MPI_Request* request, Plain&& plain) {
  const Route route = route_of(call, Mode::started);
  if (route.must_fail()) {
    return fail(route, call, Mode::started);
  }
  return route.is_by_weir() ? start(route, call, request) : plain();
}

#if WEIR_MPI_HAS_PERSISTENT
/// MPI's own request is made in any case: the program's handle for it.
template <typename Plain>
int persistent(const Call& call, MPI_Request* request, Plain&& plain) {
  const Route route = route_of(call, Mode::persistent);
  if (route.must_fail()) {
    return fail(route, call, Mode::persistent);
  }
  const int status = plain();
  if (status == MPI_SUCCESS && route.is_by_weir()) {
    persistent_calls().add(*request, {.channel = route.channel, .call = call, .plan = route.plan});
  }
  return status;
}
#endif

} // namespace
} // namespace weir::mpi

// A row: names in MPI's standard, arguments and their names, and the call that they mean. COUNT is
// int, or MPI_Count for the functions that end in _c.
// clang-format off
#define WEIR_MPI_COLLECTIVES(X, COUNT, SUFFIX) \
  X(Allreduce, Iallreduce, SUFFIX, \
    (const void* in, void* out, COUNT count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator), \
    (in, out, count, type, operation, communicator), all_reduce) \
  X(Reduce, Ireduce, SUFFIX, \
    (const void* in, void* out, COUNT count, MPI_Datatype type, MPI_Op operation, int root, MPI_Comm communicator), \
    (in, out, count, type, operation, root, communicator), reduce) \
  X(Bcast, Ibcast, SUFFIX, \
    (void* data, COUNT count, MPI_Datatype type, int root, MPI_Comm communicator), \
    (data, count, type, root, communicator), broadcast) \
  X(Allgather, Iallgather, SUFFIX, \
    (const void* in, COUNT in_count, MPI_Datatype in_type, void* out, COUNT count, MPI_Datatype type, MPI_Comm communicator), \
    (in, in_count, in_type, out, count, type, communicator), all_gather) \
  X(Reduce_scatter_block, Ireduce_scatter_block, SUFFIX, \
    (const void* in, void* out, COUNT count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator), \
    (in, out, count, type, operation, communicator), reduce_scatter_block) \
  X(Reduce_scatter, Ireduce_scatter, SUFFIX, \
    (const void* in, void* out, const COUNT* counts, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator), \
    (in, out, counts, type, operation, communicator), reduce_scatter)
#define WEIR_MPI_BARRIER(X) X(Barrier, Ibarrier, , (MPI_Comm communicator), (communicator), barrier)
// clang-format on

#define WEIR_MPI_BARE(...) __VA_ARGS__
#define WEIR_MPI_BLOCKING(name, started_name, suffix, parameters, arguments, meaning)              \
  extern "C" int MPI_##name##suffix(WEIR_MPI_BARE parameters) {                                    \
    return weir::mpi::blocking(weir::mpi::meaning arguments,                                       \
                               [&] { return PMPI_##name##suffix arguments; });                     \
  }
#define WEIR_MPI_STARTED(name, started_name, suffix, parameters, arguments, meaning)               \
  extern "C" int MPI_##started_name##suffix(WEIR_MPI_BARE parameters, MPI_Request* request) {      \
    return weir::mpi::started(weir::mpi::meaning arguments, request, [&] {                         \
      return PMPI_##started_name##suffix(WEIR_MPI_BARE arguments, request);                        \
    });                                                                                            \
  }
#define WEIR_MPI_JOINED(name, suffix) name##suffix
#define WEIR_MPI_PERSISTENT_CALL(name, started_name, suffix, parameters, arguments, meaning)       \
  extern "C" int WEIR_MPI_JOINED_LATE(WEIR_MPI_PERSISTENT(name), suffix)(                          \
      WEIR_MPI_BARE parameters, MPI_Info info, MPI_Request * request) {                            \
    return weir::mpi::persistent(weir::mpi::meaning arguments, request, [&] {                      \
      return WEIR_MPI_JOINED_LATE(WEIR_PMPI_PERSISTENT(name), suffix)(WEIR_MPI_BARE arguments,     \
                                                                      info, request);              \
    });                                                                                            \
  }
#define WEIR_MPI_JOINED_LATE(name, suffix) WEIR_MPI_JOINED(name, suffix) // when the name is one

WEIR_MPI_COLLECTIVES(WEIR_MPI_BLOCKING, int, )
WEIR_MPI_BARRIER(WEIR_MPI_BLOCKING)
WEIR_MPI_COLLECTIVES(WEIR_MPI_STARTED, int, )
WEIR_MPI_BARRIER(WEIR_MPI_STARTED)
#if WEIR_MPI_HAS_PERSISTENT
WEIR_MPI_COLLECTIVES(WEIR_MPI_PERSISTENT_CALL, int, )
WEIR_MPI_BARRIER(WEIR_MPI_PERSISTENT_CALL)
#endif
#if WEIR_MPI_HAS_LARGE_COUNTS
WEIR_MPI_COLLECTIVES(WEIR_MPI_BLOCKING, MPI_Count, _c)
WEIR_MPI_COLLECTIVES(WEIR_MPI_STARTED, MPI_Count, _c)
WEIR_MPI_COLLECTIVES(WEIR_MPI_PERSISTENT_CALL, MPI_Count, _c)
#endif
