// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Includes no code, because its source is compiled for a newer CPU than the rest.

#include <cstddef>

namespace weir::bench {

/// How many CPUs OpenMP may use. 0: the compiler has no OpenMP.
unsigned openmp_cpus();

/// sum[i] += contribution[i], as parameter servers add: one OpenMP loop for each pair of buffers
/// (BytePS, byteps/common/cpu_reducer.cc).
void add_contribution(float* sum, const float* contribution, std::size_t elements,
                      unsigned threads);

} // namespace weir::bench
