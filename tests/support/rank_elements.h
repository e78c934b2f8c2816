/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEIR_TESTS_RANK_ELEMENTS_H
#define WEIR_TESTS_RANK_ELEMENTS_H

/* Element i of rank r: so small that f32 adds those of a dozen ranks without rounding. */
static inline int element(int rank, int i) {
  return (rank + 1) * (i % 1000) - i;
}

static inline int sum_of(int world, int i) {
  int sum = 0;
  for (int rank = 0; rank < world; ++rank) {
    sum += element(rank, i);
  }
  return sum;
}

#endif
