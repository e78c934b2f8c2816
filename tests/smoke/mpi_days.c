// SPDX-License-Identifier: BSD-3-Clause

/// A rank of an MPI program that hears of errors. Arguments: what to do.
///   loop   all-reduces until one fails
///   start  the same, without blocking
///   unlike the same; the last rank reduces half as much
///   leave  the same; the last rank's program ends in the middle, without MPI_Finalize
///   order  two communicators, which rank 0 uses in another order than the others
///   halves an all-reduce of all ranks, and one of each half's
///   many   eight communicators of all ranks at the same time, an all-reduce in each
///   probe  what rank 0 sends before a barrier, the others find behind it at the first look
/// Prints "mpi_days: RANK: ERROR" for the first error and ends with status 3, or "mpi_days: RANK:
/// well".

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 4096, MANY = 8, CALLS = 20, BARRIERS = 200, TAG = 7 };

static int rank;
static int world;

/// 0: the program goes on.
static int is_over(int status) {
  if (status == MPI_SUCCESS) {
    return 0;
  }
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  printf("mpi_days: %d: %s\n", rank, text);
  fflush(stdout);
  return 1;
}

static int all_reduce(MPI_Comm comm) {
  static float data[LENGTH];
  return is_over(MPI_Allreduce(MPI_IN_PLACE, data, LENGTH, MPI_FLOAT, MPI_SUM, comm));
}

static int loop(void) {
  while (!all_reduce(MPI_COMM_WORLD)) {
  }
  return 3;
}

static int unlike(void) {
  static float data[LENGTH];
  const int count = rank == world - 1 ? LENGTH / 2 : LENGTH;
  return is_over(MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD)) ? 3
                                                                                               : 0;
}

static int leave(void) {
  for (int call = 0; call < CALLS; ++call) {
    if (all_reduce(MPI_COMM_WORLD)) {
      return 3;
    }
  }
  if (rank == world - 1) {
    exit(5);
  }
  return loop();
}

static int start(void) {
  static float data[LENGTH];
  int is_done = all_reduce(MPI_COMM_WORLD);
  while (!is_done) {
    MPI_Request request;
    is_done = is_over(MPI_Iallreduce(MPI_IN_PLACE, data, LENGTH, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                     &request)) ||
              is_over(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  return 3;
}

static int order(void) {
  MPI_Comm one;
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &one);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_name(one, "one");
  MPI_Comm_set_name(other, "other");
  if (all_reduce(one) || all_reduce(other)) { // each has its ring now
    return 4;
  }
  return all_reduce(rank == 0 ? one : other) || all_reduce(rank == 0 ? other : one) ? 3 : 0;
}

static int halves(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
  const int is_wrong = all_reduce(MPI_COMM_WORLD) || all_reduce(half);
  MPI_Comm_free(&half);
  return is_wrong ? 3 : 0;
}

static int many(void) {
  MPI_Comm all[MANY];
  for (int at = 0; at < MANY; ++at) {
    MPI_Comm_dup(MPI_COMM_WORLD, &all[at]);
    if (all_reduce(all[at])) {
      return 3;
    }
  }
  for (int at = 0; at < MANY; ++at) {
    MPI_Comm_free(&all[at]);
  }
  return 0;
}

static void send_to_all(void) {
  for (int to = 1; to < world; ++to) {
    MPI_Request request;
    MPI_Isend(&rank, 1, MPI_INT, to, TAG, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request); // that it has left is nobody's to wait for
  }
}

/// Whether a message of rank 0's is here now.
static int finds_message(void) {
  int is_here = 0;
  int from = -1;
  MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &is_here, MPI_STATUS_IGNORE);
  MPI_Recv(&from, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return is_here;
}

static int probe(void) {
  int missed = 0;
  if (all_reduce(MPI_COMM_WORLD)) { // the ring is there from now on
    return 3;
  }
  for (int barrier = 0; barrier < BARRIERS; ++barrier) {
    if (rank == 0) {
      send_to_all();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    missed += rank != 0 && !finds_message();
  }
  if (missed != 0) {
    printf("mpi_days: %d: %d of %d messages were not found\n", rank, missed, BARRIERS);
    fflush(stdout);
  }
  return missed != 0 ? 3 : 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); // duplicates inherit it
  const char* what = argv[1];
  const int status = strcmp(what, "loop") == 0     ? loop()
                     : strcmp(what, "start") == 0  ? start()
                     : strcmp(what, "unlike") == 0 ? unlike()
                     : strcmp(what, "leave") == 0  ? leave()
                     : strcmp(what, "order") == 0  ? order()
                     : strcmp(what, "halves") == 0 ? halves()
                     : strcmp(what, "probe") == 0  ? probe()
                                                   : many();
  MPI_Finalize(); // MPI_Abort would lose what the launcher has not read of what the ranks have told
  if (status == 0) {
    printf("mpi_days: %d: well\n", rank);
  }
  return status;
}
