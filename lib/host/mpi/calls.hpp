// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/mpi_api.hpp"

#include <cstddef>
#include <string>

namespace weir::mpi {

enum class Collective {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter_block,
  reduce_scatter,
  barrier
};
inline constexpr std::size_t kCollectives = 7;

enum class Mode { blocking, started, persistent };
inline constexpr std::size_t kModes = 3;

/// As in MPI's standard, such as MPI_Iallreduce.
std::string name_of(Collective collective, Mode mode);

/// Instead of a reduce-scatter's count.
inline constexpr MPI_Count kUnequalParts = -1000;

/// A collective as the program has called it. What its function has no argument for, keeps its
/// default.
struct Call {
  Collective collective;
  const void* in = nullptr;
  MPI_Count in_count = 0; // all-gather only
  MPI_Datatype in_type = MPI_DATATYPE_NULL;
  void* out = nullptr;
  MPI_Count count = 0; // a reduce-scatter's: of a rank's part, or kUnequalParts
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op operation = MPI_OP_NULL;
  int root = 0;
  MPI_Comm communicator = MPI_COMM_NULL;
};

} // namespace weir::mpi
