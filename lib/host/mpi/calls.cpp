// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/calls.hpp"

#include <array>
#include <string_view>

namespace weir::mpi {
namespace {

struct Names {
  std::string_view blocking;
  std::string_view started;
};

constexpr std::array<Names, kCollectives> kNames{{{"Allreduce", "Iallreduce"},
                                                  {"Reduce", "Ireduce"},
                                                  {"Bcast", "Ibcast"},
                                                  {"Allgather", "Iallgather"},
                                                  {"Reduce_scatter_block", "Ireduce_scatter_block"},
                                                  {"Reduce_scatter", "Ireduce_scatter"},
                                                  {"Barrier", "Ibarrier"}}};

} // namespace

std::string name_of(Collective collective, Mode mode) {
  const Names& names = kNames.at(static_cast<std::size_t>(collective));
  return "MPI_" + std::string(mode == Mode::started ? names.started : names.blocking) +
         (mode == Mode::persistent ? "_init" : "");
}

} // namespace weir::mpi
