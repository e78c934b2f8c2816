// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace weir::mpi {

/// Sees that every rank of MPI_COMM_WORLD has loaded this library: where one has not, no call would
/// match another. Returns
/// "", or which ranks have not answered within half a minute.
std::string meet_all_ranks();

} // namespace weir::mpi
