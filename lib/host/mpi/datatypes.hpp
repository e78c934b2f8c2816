// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/mpi_api.hpp"
#include "host/mpi/operators.hpp"
#include "host/mpi/report.hpp"
#include "weir/weir.h"

#include <cstddef>
#include <optional>
#include <variant>

namespace weir::mpi {

struct Reduction {
  weir_data_type type;
  weir_operation operation;
  std::size_t elements; // of Weir's for one of MPI's: a complex number has two
  std::optional<GroupOperator> by =
      std::nullopt; // then type and operation are its, and data packed
};

/// What Weir has for a predefined type and operation, or why it has nothing.
std::variant<Reduction, Way> reduction_of(MPI_Datatype type, MPI_Op operation);

/// Whether `count` elements are the `count` times its size bytes from their address on, in their
/// order.
bool is_contiguous(MPI_Datatype type);

/// Bytes of data in one element. 0: there is no such type.
std::size_t size_of(MPI_Datatype type);

} // namespace weir::mpi
