// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/calls.hpp"
#include "host/mpi/datatypes.hpp"
#include "host/mpi/report.hpp"
#include "weir/weir.h"

#include <cstddef>
#include <vector>

namespace weir::mpi {

/// What is known of a call without its communicator's ring.
struct Plan {
  Way way;               // Way::weir: Weir has it
  std::size_t bytes = 0; // of the longer buffer: equal on all ranks, whatever types describe it
  Reduction reduction{WEIR_U8, WEIR_SUM, 1};
};

/// `size`: of the communicator; `threshold` in bytes.
Plan plan_of(const Call& call, int size, std::size_t threshold);

/// A call on its way through Weir, with copies of what is not contiguous. MPI's types, but not its
/// addresses, may be freed meanwhile.
class Work {
 public:
  Work(const Call& call, const Plan& plan, int rank, int size);
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  weir_status start(weir_group* group, weir_request** request);
  /// After the request has ended well: the result goes where the program wants it.
  void finish();
  /// After the request has ended. Not by the destructor: MPI destroys requests, and MPICH does not
  /// like to be called meanwhile.
  void release();

 private:
  weir_status start_reformed(weir_group* group, weir_request** request);
  weir_status start_broadcast(weir_group* group, weir_request** request);
  weir_status start_all_gather(weir_group* group, weir_request** request);
  weir_status start_reduce_scatter(weir_group* group, weir_request** request);
  [[nodiscard]] const void* input() const;
  [[nodiscard]] std::vector<std::byte> reformed(const std::byte* elements) const;
  void put_back();

  Call call_;
  Plan plan_;
  int rank_;
  int size_;
  std::vector<std::byte> packed_in_;
  std::vector<std::byte> packed_out_;            // or, for a reduce-scatter in place, its result
  MPI_Datatype unpacked_as_ = MPI_DATATYPE_NULL; // a duplicate
};

} // namespace weir::mpi
