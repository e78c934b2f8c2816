// SPDX-License-Identifier: BSD-3-Clause
#include "openmp_sum.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

// Compiled by itself, as such servers are: -O3 -mavx2 -fopenmp (meson.build).
namespace weir::bench {

#ifdef _OPENMP
unsigned openmp_cpus() {
  return static_cast<unsigned>(omp_get_num_procs());
}
#else
unsigned openmp_cpus() {
  return 0;
}
#endif

void add_contribution(float* sum, const float* contribution, std::size_t elements,
                      [[maybe_unused]] unsigned threads) {
#ifdef _OPENMP
#pragma omp parallel for simd num_threads(threads)
#endif
  for (std::size_t i = 0; i < elements; ++i) {
    sum[i] += contribution[i];
  }
}

} // namespace weir::bench
