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

/// What the library gets of MPI's elements.
enum class Form {
  same,   // as they are
  packed, // for an operator
  truths, // of each a byte: 1 unless it is 0
};

struct Reduction {
  weir_data_type type; // of what the library gets
  weir_operation operation;
  std::size_t elements; // of Weir's for one of MPI's: a complex number has two
  Form form = Form::same;
  GroupOperator by = GroupOperator::maxloc; // for which they are packed
};

/// What Weir has for a predefined type and operation, or why it has nothing.
std::variant<Reduction, Way> reduction_of(MPI_Datatype type, MPI_Op operation);

/// Whether `count` elements are the `count` times its size bytes from their address on, in their
/// order.
bool is_contiguous(MPI_Datatype type);

/// Bytes of data in one element. 0: there is no such type.
std::size_t size_of(MPI_Datatype type);

} // namespace weir::mpi
