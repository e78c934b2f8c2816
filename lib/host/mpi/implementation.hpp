// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::mpi {

/// Before MPI_Init: sees that the program's MPI is the one for which this library was made, whose
/// handles mean nothing to another. Makes its functions known to this library, also where the
/// program has loaded it for itself alone, as Python does. Ends the process if it is another MPI.
void find_implementation();

} // namespace weir::mpi
