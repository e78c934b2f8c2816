// SPDX-License-Identifier: BSD-3-Clause

/// The beginning and the end of the job and of its communicators.

#include "host/mpi/implementation.hpp"
#include "host/mpi/job.hpp"
#include "host/mpi/mpi_api.hpp"

namespace weir::mpi {
namespace {

/// A job that another one has spawned would have that one's devices.
bool is_spawned() {
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  return parent != MPI_COMM_NULL;
}

/// After a call that makes a communicator, by all its ranks. By reference: the call sets it.
int made(int status, const MPI_Comm& communicator) {
  if (status == MPI_SUCCESS && job().is_on() && job().settings().forming == Forming::eager) {
    const auto channel = job().channel_of(communicator);
    if (channel != nullptr && channel->way() == Way::no_ring_yet) {
      channel->form();
    }
  }
  return status;
}

int begun(int status) {
  if (status == MPI_SUCCESS && !is_spawned()) {
    job().begin();
  }
  return made(status, MPI_COMM_WORLD);
}

/// All ranks come here. Then the communicator, its requests or nobody holds its channel. MPI
/// refuses to free MPI_COMM_WORLD, which goes on.
void close_channel(const MPI_Comm* communicator) {
  if (communicator == nullptr || *communicator == MPI_COMM_WORLD) {
    return;
  }
  const auto channel = job().known_channel_of(*communicator);
  if (channel == nullptr || channel->group() == nullptr) {
    return;
  }
  PMPI_Barrier(*communicator); // drives what others still send to this rank
  constexpr int kOwners = 2;   // the communicator, and here
  if (channel.use_count() == kOwners) {
    channel->close();
  }
}

} // namespace
} // namespace weir::mpi

using weir::mpi::begun;
using weir::mpi::close_channel;
using weir::mpi::made;

extern "C" int MPI_Init(int* count, char*** arguments) {
  weir::mpi::find_implementation();
  return begun(PMPI_Init(count, arguments));
}

extern "C" int MPI_Init_thread(int* count, char*** arguments, int required, int* provided) {
  weir::mpi::find_implementation();
  return begun(PMPI_Init_thread(count, arguments, required, provided));
}

extern "C" int MPI_Finalize() {
  weir::mpi::job().end();
  return PMPI_Finalize();
}

extern "C" int MPI_Comm_free(MPI_Comm* communicator) {
  close_channel(communicator);
  return PMPI_Comm_free(communicator);
}

extern "C" int MPI_Comm_disconnect(MPI_Comm* communicator) {
  close_channel(communicator);
  return PMPI_Comm_disconnect(communicator);
}

extern "C" int MPI_Comm_dup(MPI_Comm from, MPI_Comm* communicator) {
  return made(PMPI_Comm_dup(from, communicator), *communicator);
}

extern "C" int MPI_Comm_dup_with_info(MPI_Comm from, MPI_Info info, MPI_Comm* communicator) {
  return made(PMPI_Comm_dup_with_info(from, info, communicator), *communicator);
}

extern "C" int MPI_Comm_split(MPI_Comm from, int colour, int key, MPI_Comm* communicator) {
  return made(PMPI_Comm_split(from, colour, key, communicator), *communicator);
}

extern "C" int MPI_Comm_split_type(MPI_Comm from, int type, int key, MPI_Info info,
                                   MPI_Comm* communicator) {
  return made(PMPI_Comm_split_type(from, type, key, info, communicator), *communicator);
}

extern "C" int MPI_Comm_create(MPI_Comm from, MPI_Group group, MPI_Comm* communicator) {
  return made(PMPI_Comm_create(from, group, communicator), *communicator);
}

extern "C" int MPI_Comm_create_group(MPI_Comm from, MPI_Group group, int tag,
                                     MPI_Comm* communicator) {
  return made(PMPI_Comm_create_group(from, group, tag, communicator), *communicator);
}
