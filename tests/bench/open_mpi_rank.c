// SPDX-License-Identifier: BSD-3-Clause

/// One rank of Open MPI's all-reduces of f32, timed as weir-worker times its own: from a barrier to
/// the end of the call, the slowest rank's. Arguments: timed calls of each size, calls before
/// them, sizes in bytes. Rank 0 prints "BYTES SHORTEST" in microseconds for each size.

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/// Seconds of the slowest rank.
static double time_call(const float* data, float* sums, int elements) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Allreduce(data, sums, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const double own = MPI_Wtime() - start;
  double slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static void expect_sums(const float* sums, int elements, int world) {
  for (int i = 0; i < elements; ++i) {
    if (sums[i] != (float)world) {
      fprintf(stderr, "open_mpi_rank: element %d is %g and not %d\n", i, sums[i], world);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

static double shortest_of_calls(int calls, int warm_up, int elements, int world) {
  float* data = malloc(elements * sizeof(float));
  float* sums = malloc(elements * sizeof(float));
  for (int i = 0; i < elements; ++i) {
    data[i] = 1;
  }
  double shortest = INFINITY;
  for (int call = 0; call < warm_up + calls; ++call) {
    const double seconds = time_call(data, sums, elements);
    shortest = call < warm_up ? shortest : fmin(shortest, seconds);
  }
  expect_sums(sums, elements, world);
  free(data);
  free(sums);
  return shortest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  for (int i = 3; i < argc; ++i) {
    const int bytes = atoi(argv[i]);
    const int elements = bytes / (int)sizeof(float);
    const double seconds = shortest_of_calls(atoi(argv[1]), atoi(argv[2]), elements, world);
    if (rank == 0) {
      printf("%d %.3f\n", bytes, seconds * 1e6);
    }
  }
  MPI_Finalize();
  return 0;
}
