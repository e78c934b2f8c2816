// SPDX-License-Identifier: BSD-3-Clause

/// One rank of a sweep over MPI's collectives, as the OSU benchmarks make them: each call is timed
/// on each rank, and the slowest rank's time counts. Arguments: timed calls of each size, calls
/// before them, sizes in bytes. Rank 0 prints "CALL BYTES MEDIAN" in microseconds.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_CALLS = 1000 };

static int rank;
static int world;

/// The buffers have room for what all ranks bring.
typedef void (*Collective)(float* mine, float* all, int count);

static void all_reduce(float* mine, float* all, int count) {
  MPI_Allreduce(mine, all, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce(float* mine, float* all, int count) {
  MPI_Reduce(mine, all, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void broadcast(float* mine, float* all, int count) {
  (void)mine;
  MPI_Bcast(all, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void all_gather(float* mine, float* all, int count) {
  MPI_Allgather(mine, count / world, MPI_FLOAT, all, count / world, MPI_FLOAT, MPI_COMM_WORLD);
}

static int compare(const void* one, const void* other) {
  const double a = *(const double*)one;
  const double b = *(const double*)other;
  return (a > b) - (a < b);
}

/// Seconds of the slowest rank.
static double time_call(Collective call, float* mine, float* all, int count) {
  double slowest = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  call(mine, all, count);
  const double own = MPI_Wtime() - start;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static void expect_right(const char* name, float due, const float* all, int count) {
  for (int at = 0; at < count; ++at) {
    if (all[at] != due) {
      fprintf(stderr, "mpi_sweep_rank: %s: element %d is %g and not %g\n", name, at, all[at], due);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

/// What a call leaves in `all`, part by part.
static void check(Collective call, const char* name, const float* all, int count) {
  const float sum = (float)(world * (world + 1) / 2);
  if (call == all_gather) {
    for (int from = 0; from < world; ++from) {
      expect_right(name, (float)(from + 1), all + from * (count / world), count / world);
    }
  } else if (call == broadcast) {
    expect_right(name, 1, all, count);
  } else if (call != reduce || rank == 0) {
    expect_right(name, sum, all, count);
  }
}

static double median_of(Collective call, int calls, int before, float* mine, float* all,
                        int count) {
  double seconds[MOST_CALLS];
  for (int at = -before; at < calls; ++at) {
    seconds[at < 0 ? 0 : at] = time_call(call, mine, all, count);
  }
  qsort(seconds, calls, sizeof(double), compare);
  return seconds[calls / 2];
}

static void sweep(char** arguments, int bytes) {
  const struct {
    const char* name;
    Collective call;
  } rows[] = {{"allreduce", all_reduce},
              {"reduce", reduce},
              {"bcast", broadcast},
              {"allgather", all_gather}};

  const int count = bytes / (int)sizeof(float);
  float* mine = malloc(bytes);
  float* all = malloc(bytes);
  for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); ++row) {
    for (int at = 0; at < count; ++at) { // the ranks bring 1, 2, 3 and so on
      mine[at] = (float)(rank + 1);
      all[at] = mine[at];
    }
    const double seconds =
        median_of(rows[row].call, atoi(arguments[1]), atoi(arguments[2]), mine, all, count);
    check(rows[row].call, rows[row].name, all, count);
    if (rank == 0) {
      printf("%s %d %.3f\n", rows[row].name, bytes, seconds * 1e6);
    }
  }
  free(mine);
  free(all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (argc < 4 || atoi(argv[1]) < 1 || atoi(argv[1]) > MOST_CALLS) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int at = 3; at < argc; ++at) {
    sweep(argv, atoi(argv[at]));
  }
  MPI_Finalize();
  return 0;
}
