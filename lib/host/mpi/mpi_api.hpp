// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// mpi.h of the implementation for which this room is being compiled, and what it has of later
/// standards.

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

// Persistent collectives: of MPI 4, or Open MPI's own of the same meaning. And counts of 64 bits.
#if MPI_VERSION >= 4
#define WEIR_MPI_PERSISTENT(name) MPI_##name##_init
#define WEIR_PMPI_PERSISTENT(name) PMPI_##name##_init
#define WEIR_MPI_HAS_PERSISTENT 1
#define WEIR_MPI_HAS_LARGE_COUNTS 1
#else
#define WEIR_MPI_PERSISTENT(name) MPIX_##name##_init
#define WEIR_PMPI_PERSISTENT(name) PMPIX_##name##_init
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define WEIR_MPI_HAS_PERSISTENT 1
#else
#define WEIR_MPI_HAS_PERSISTENT 0
#endif
#define WEIR_MPI_HAS_LARGE_COUNTS 0
#endif

namespace weir::mpi {

#ifdef OPEN_MPI
inline constexpr const char* kImplementation = "Open MPI";
#else
inline constexpr const char* kImplementation = "MPICH";
#endif

} // namespace weir::mpi
