// SPDX-License-Identifier: BSD-3-Clause

/// A rank of an MPI program whose reductions Weir does by operators. MPI itself, by PMPI_…, is the judge: of ties, of integers that are
/// exact in each order, and of bytes between a pair's parts. Of NaN, on which MPI's order of ranks tells, the rule of docs/mpi.md is.
/// Each rank prints "mpi_operators: exact", or the first mistake. With an argument, NaN is left out.

#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH = 20000 };

static char in[16 * LENGTH];
static char out[16 * LENGTH];
static char due[16 * LENGTH];
static int rank;
static int size;

static void expect(int holds, const char* what, int place) {
  if (!holds) {
    fprintf(stderr, "mpi_operators: rank %d: %s, at %d\n", rank, what, place);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/// Many ranks have the largest one.
static int value_of(int place) { return (rank * 7 + place * 3) % 5 - 2; }

static int index_of(int place) { return (place * 31 + rank * 17) % 97 - 9; }

#define FILL(type)                                                                                                               \
  static void fill_##type(void) {                                                                                                \
    struct {                                                                                                                     \
      type value;                                                                                                                \
      int index;                                                                                                                 \
    }* pairs = (void*)in;                                                                                                        \
    for (int place = 0; place < LENGTH; ++place) {                                                                               \
      pairs[place].value = value_of(place);                                                                                      \
      pairs[place].index = index_of(place);                                                                                      \
    }                                                                                                                            \
  }
FILL(float)
FILL(double)
FILL(int)
FILL(short)

/// Small and not 0: each order of factors gives the same bits.
static int part_of(int place, int step) { return (rank * 7 + place * step) % 5 - (place % 2 == 0 ? 5 : -1); }

static void fill_float_complex(void) {
  for (int place = 0; place < LENGTH; ++place) {
    ((float complex*)in)[place] = part_of(place, 3) + part_of(place, 2) * I;
  }
}

static void fill_double_complex(void) {
  for (int place = 0; place < LENGTH; ++place) {
    ((double complex*)in)[place] = part_of(place, 3) + part_of(place, 2) * I;
  }
}

static void compare(MPI_Datatype type, MPI_Op operation, int bytes, const char* what) {
  const int root = size - 1;
  PMPI_Allreduce(in, due, LENGTH, type, operation, MPI_COMM_WORLD);
  memset(out, 0, sizeof out);
  MPI_Allreduce(in, out, LENGTH, type, operation, MPI_COMM_WORLD);
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  for (int place = 0; place < LENGTH; ++place) {
    expect(memcmp(out + place * extent, due + place * extent, bytes) == 0, what, place);
  }
  memcpy(out, in, sizeof in);
  MPI_Allreduce(MPI_IN_PLACE, out, LENGTH, type, operation, MPI_COMM_WORLD);
  expect(memcmp(out, due, bytes) == 0, "in place", 0);
  PMPI_Reduce_scatter_block(in, due, LENGTH / size, type, operation, MPI_COMM_WORLD);
  memset(out, 0, sizeof out);
  MPI_Reduce_scatter_block(in, out, LENGTH / size, type, operation, MPI_COMM_WORLD);
  for (int place = 0; place < LENGTH / size; ++place) {
    expect(memcmp(out + place * extent, due + place * extent, bytes) == 0, "Reduce_scatter_block", place);
  }
  PMPI_Allreduce(in, due, LENGTH, type, operation, MPI_COMM_WORLD);
  memset(out, 0x5a, sizeof out);
  MPI_Reduce(in, rank == root ? out : NULL, LENGTH, type, operation, root, MPI_COMM_WORLD);
  expect(out[0] == (rank == root ? due[0] : 0x5a) && (rank != root || memcmp(out, due, bytes) == 0), "Reduce", 0);
}

static void pairs(MPI_Datatype type, void (*fill)(void), int bytes, const char* what) {
  memset(in, 0, sizeof in);
  fill();
  compare(type, MPI_MAXLOC, bytes, what);
  compare(type, MPI_MINLOC, bytes, what);
}

/// NaN wins, of several the one with the lowest index.
static void nans(MPI_Op operation) {
  struct {
    double value;
    int index;
  } own = {rank == 0 ? 1e300 : NAN, 10 - rank}, found;
  MPI_Allreduce(&own, &found, 1, MPI_DOUBLE_INT, operation, MPI_COMM_WORLD);
  expect(isnan(found.value) && found.index == 10 - (size - 1), "NaN", 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  pairs(MPI_FLOAT_INT, fill_float, 8, "FLOAT_INT");
  pairs(MPI_DOUBLE_INT, fill_double, 12, "DOUBLE_INT");
  pairs(MPI_2INT, fill_int, 8, "2INT");
  pairs(MPI_SHORT_INT, fill_short, 2, "SHORT_INT");
  fill_float_complex();
  compare(MPI_C_FLOAT_COMPLEX, MPI_PROD, 8, "product of float complex");
  fill_double_complex();
  compare(MPI_C_DOUBLE_COMPLEX, MPI_PROD, 16, "product of double complex");
  if (argc == 1) {
    nans(MPI_MAXLOC);
    nans(MPI_MINLOC);
  }
  printf("mpi_operators: exact\n");
  MPI_Finalize();
  return 0;
}
