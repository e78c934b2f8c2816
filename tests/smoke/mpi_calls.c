// SPDX-License-Identifier: BSD-3-Clause

/// A rank of an MPI program that knows nothing of Weir. Every call's result is compared with values that are computed by hand. Each rank
/// prints "mpi_calls: exact", or the first mistake. With an argument it asks for MPI_THREAD_MULTIPLE, where MPICH is stricter.

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

enum { LENGTH = 3000, LARGE = 1 << 22, MOST_RANKS = 8 };

static void expect(int holds, const char* what, int place) {
  if (!holds) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "mpi_calls: rank %d: %s, at %d\n", rank, what, place);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

// Small enough for 8 bits, also as a sum or product over four ranks.
static int value_of(int rank, int place) { return (rank + place) % 3 + 1; }

static int folded(MPI_Op operation, int a, int b) {
  if (operation == MPI_SUM) return a + b;
  if (operation == MPI_PROD) return a * b;
  if (operation == MPI_MAX) return a > b ? a : b;
  if (operation == MPI_MIN) return a < b ? a : b;
  if (operation == MPI_BAND) return a & b;
  if (operation == MPI_BOR) return a | b;
  return a ^ b;
}

static int fold_of(MPI_Op operation, int size, int place) {
  int result = value_of(0, place);
  for (int rank = 1; rank < size; ++rank) {
    result = folded(operation, result, value_of(rank, place));
  }
  return result;
}

typedef struct Type {
  MPI_Datatype type;
  char kind; // i, u: integer; f: floating; c: complex, whose imaginary part is twice the real one
  int bytes;
} Type;

static void put(const Type* type, void* to, int place, int value) {
  if (type->kind == 'c') {
    const Type part = {MPI_DATATYPE_NULL, 'f', type->bytes / 2};
    put(&part, to, 2 * place, value);
    put(&part, to, 2 * place + 1, 2 * value);
  } else if (type->kind == 'f' && type->bytes == 4) {
    ((float*)to)[place] = (float)value;
  } else if (type->kind == 'f') {
    ((double*)to)[place] = value;
  } else {
    const long long wide = value; // little-endian
    memcpy((char*)to + (size_t)place * type->bytes, &wide, type->bytes);
  }
}

static int is_at(const Type* type, const void* from, int place, int value) {
  char due[16];
  put(type, due, 0, value);
  return memcmp((const char*)from + (size_t)place * type->bytes, due, type->bytes) == 0;
}

static char in[16 * LENGTH * MOST_RANKS];
static char out[16 * LENGTH * MOST_RANKS];

static void fill(const Type* type, void* to, int rank, int count) {
  for (int place = 0; place < count; ++place) {
    put(type, to, place, value_of(rank, place));
  }
}

static void expect_fold(const Type* type, MPI_Op operation, const void* from, int first, int count, int size, const char* what) {
  for (int place = 0; place < count; ++place) {
    expect(is_at(type, from, place, fold_of(operation, size, first + place)), what, place);
  }
}

static void reductions(MPI_Comm comm, const Type* type, MPI_Op operation) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int all = LENGTH * size;
  fill(type, in, rank, all);
  MPI_Allreduce(in, out, LENGTH, type->type, operation, comm);
  expect_fold(type, operation, out, 0, LENGTH, size, "Allreduce");
  fill(type, out, rank, LENGTH);
  MPI_Allreduce(MPI_IN_PLACE, out, LENGTH, type->type, operation, comm);
  expect_fold(type, operation, out, 0, LENGTH, size, "Allreduce in place");
  const int root = size - 1;
  MPI_Reduce(in, rank == root ? out : NULL, LENGTH, type->type, operation, root, comm);
  if (rank == root) {
    expect_fold(type, operation, out, 0, LENGTH, size, "Reduce");
  }
  fill(type, out, rank, LENGTH); // at rank 0: Debian's MPICH 4.0.2 itself crashes in place at another one
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : in, out, LENGTH, type->type, operation, 0, comm);
  if (rank == 0) {
    expect_fold(type, operation, out, 0, LENGTH, size, "Reduce in place");
  }
  MPI_Reduce_scatter_block(in, out, LENGTH, type->type, operation, comm);
  expect_fold(type, operation, out, rank * LENGTH, LENGTH, size, "Reduce_scatter_block");
  fill(type, out, rank, all);
  MPI_Reduce_scatter_block(MPI_IN_PLACE, out, LENGTH, type->type, operation, comm);
  expect_fold(type, operation, out, rank * LENGTH, LENGTH, size, "Reduce_scatter_block in place");
  int counts[MOST_RANKS];
  for (int r = 0; r < size; ++r) {
    counts[r] = LENGTH;
  }
  MPI_Reduce_scatter(in, out, counts, type->type, operation, comm);
  expect_fold(type, operation, out, rank * LENGTH, LENGTH, size, "Reduce_scatter");
  counts[0] -= 5;
  counts[size - 1] += 5;
  MPI_Reduce_scatter(in, out, counts, type->type, operation, comm);
  expect_fold(type, operation, out, rank == 0 ? 0 : rank * LENGTH - 5, counts[rank], size, "Reduce_scatter, unequal");
}

static void expect_gathered(const Type* type, const char* gap, int stride, int size, const char* what) {
  for (int r = 0; r < size; ++r) {
    for (int place = 0; place < LENGTH; ++place) {
      expect(is_at(type, gap, (r * LENGTH + place) * stride, value_of(r, place)), what, place);
    }
  }
}

/// The same data are described in another way on each side: in one piece, or every second element.
static void movements(MPI_Comm comm, const Type* type) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Datatype row;
  MPI_Datatype sparse;
  MPI_Datatype piece;
  MPI_Type_contiguous(LENGTH, type->type, &row);
  MPI_Type_commit(&row);
  MPI_Type_create_resized(type->type, 0, 2 * type->bytes, &sparse);
  MPI_Type_commit(&sparse);
  MPI_Type_dup(row, &piece);
  MPI_Type_commit(&piece);
  fill(type, out, rank, LENGTH);
  MPI_Bcast(out, rank == 0 ? 1 : LENGTH, rank == 0 ? row : type->type, 0, comm);
  for (int place = 0; place < LENGTH; ++place) {
    expect(is_at(type, out, place, value_of(0, place)), "Bcast", place);
  }
  memset(out, 0, sizeof(out));
  if (rank == 1) {
    fill(type, out, 1, LENGTH);
  }
  MPI_Bcast(out, rank == 1 ? 1 : LENGTH, rank == 1 ? piece : sparse, 1, comm);
  for (int place = 0; place < LENGTH; ++place) {
    expect(is_at(type, out, rank == 1 ? place : 2 * place, value_of(1, place)), "Bcast to every second", place);
  }
  fill(type, in, rank, LENGTH);
  MPI_Allgather(in, LENGTH, type->type, out, 1, row, comm);
  expect_gathered(type, out, 1, size, "Allgather");
  memset(out, 0, (size_t)type->bytes * LENGTH * size);
  memcpy(out + (size_t)rank * LENGTH * type->bytes, in, (size_t)LENGTH * type->bytes);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, LENGTH, type->type, comm);
  expect_gathered(type, out, 1, size, "Allgather in place");
  memset(out, 0, sizeof(out));
  MPI_Allgather(in, LENGTH, type->type, out, LENGTH, sparse, comm);
  expect_gathered(type, out, 2, size, "Allgather to every second");
  MPI_Type_free(&row);
  MPI_Type_free(&sparse);
  MPI_Type_free(&piece);
}

static const Type kInt = {MPI_INT, 'i', 4};

/// Several requests of several kinds under way, which end by each of MPI's ways.
static void requests(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  static int numbers[4][LENGTH];
  MPI_Request all[4];
  for (int way = 0; way < 4; ++way) {
    int token = -1;
    const int next = (rank + 1) % size;
    const int before = (rank + size - 1) % size;
    fill(&kInt, in, rank, LENGTH);
    fill(&kInt, numbers[1], rank, LENGTH);
    MPI_Irecv(&token, 1, MPI_INT, before, 5, comm, &all[0]);
    MPI_Iallreduce(in, numbers[0], LENGTH, MPI_INT, MPI_SUM, comm, &all[1]);
    MPI_Datatype column; // others describe the root's data in another way, which is free before they come
    MPI_Type_vector(LENGTH, 1, 1, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Ibcast(numbers[1], rank == 1 ? LENGTH : 1, rank == 1 ? MPI_INT : column, 1, comm, &all[2]);
    MPI_Type_free(&column);
    MPI_Iallreduce(in, numbers[2], LENGTH, MPI_INT, MPI_MAX, comm, &all[3]);
    MPI_Send(&rank, 1, MPI_INT, next, 5, comm);
    if (way == 0) {
      MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
    } else if (way == 1) {
      int seen = 0;
      for (int count = 0; count < 4; ++count) {
        int index = -1;
        MPI_Waitany(4, all, &index, MPI_STATUS_IGNORE);
        seen |= 1 << index;
      }
      expect(seen == 15, "Waitany", seen);
    } else if (way == 2) {
      for (int done = 0, count = 0; done < 4; done += count) {
        int indices[4];
        MPI_Waitsome(4, all, &count, indices, MPI_STATUSES_IGNORE);
        expect(count > 0, "Waitsome", count);
      }
    } else {
      int done = 0;
      while (!done) {
        MPI_Testall(4, all, &done, MPI_STATUSES_IGNORE);
      }
    }
    for (int at = 0; at < 4; ++at) {
      expect(all[at] == MPI_REQUEST_NULL, "a request is left", at);
    }
    expect(token == before, "Irecv", token);
    expect_fold(&kInt, MPI_SUM, numbers[0], 0, LENGTH, size, "Iallreduce");
    expect_fold(&kInt, MPI_MAX, numbers[2], 0, LENGTH, size, "second Iallreduce");
    for (int place = 0; place < LENGTH; ++place) {
      expect(numbers[1][place] == value_of(1, place), "Ibcast", place);
    }
  }
}

static void persistent(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Request both[2];
  static int data[LENGTH];
  PERSISTENT(Allreduce)(in, out, LENGTH, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &both[0]);
  PERSISTENT(Bcast)(data, LENGTH, MPI_INT, 0, comm, MPI_INFO_NULL, &both[1]);
  MPI_Wait(&both[0], MPI_STATUS_IGNORE); // is not active yet
  for (int round = 0; round < 3; ++round) {
    fill(&kInt, in, rank + round, LENGTH);
    data[LENGTH - 1] = rank == 0 ? round + 70 : 0;
    MPI_Startall(2, both);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    expect(both[0] != MPI_REQUEST_NULL, "a persistent request is gone", round);
    expect(data[LENGTH - 1] == round + 70, "persistent Bcast", data[LENGTH - 1]);
    int sum = 0;
    for (int r = 0; r < size; ++r) {
      sum += value_of(r + round, 11);
    }
    expect(((int*)out)[11] == sum, "persistent Allreduce", round);
  }
  MPI_Wait(&both[0], MPI_STATUS_IGNORE); // is not active any more
  MPI_Request_free(&both[0]);
  MPI_Request_free(&both[1]);
}

/// Rank 1 can call only when its message, which is too long to be stored on the way, has gone to a rank that is in the call.
static void progress(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  char* message = calloc(LARGE, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Irecv(message, LARGE, MPI_CHAR, 1, 6, comm, &request);
  } else if (rank == 1) {
    MPI_Send(message, LARGE, MPI_CHAR, 0, 6, comm);
  }
  MPI_Allreduce(MPI_IN_PLACE, out, LENGTH, MPI_INT, MPI_SUM, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(message);
}

static void first_plus_twice(void* from, void* to, int* count, MPI_Datatype* type) {
  (void)type;
  for (int place = 0; place < *count; ++place) {
    ((int*)to)[place] += 2 * ((const int*)from)[place];
  }
}

static void own_operation(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Op operation;
  MPI_Op_create(first_plus_twice, 0, &operation);
  for (int place = 0; place < LENGTH; ++place) {
    ((int*)in)[place] = 1;
  }
  MPI_Reduce(in, out, LENGTH, MPI_INT, operation, 0, comm);
  expect(rank != 0 || ((int*)out)[7] > size, "an operation of its own", 7);
  MPI_Op_free(&operation);
}

/// Whether the operation of MPI_LAND, MPI_LOR and MPI_LXOR makes true of each rank's bit of the number.
static bool truth_of(int operation, int number, int size) {
  int set = 0;
  for (int rank = 0; rank < size; ++rank) {
    set += number >> rank & 1;
  }
  return operation == 0 ? set == size : operation == 1 ? set > 0 : set % 2 == 1;
}

/// At each place, every rank has another bit of the place's number.
static void logical(MPI_Comm comm) {
  enum { BOOLS = 5000 };
  static bool mine[BOOLS];
  static bool all[BOOLS];
  const MPI_Op operations[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int place = 0; place < BOOLS; ++place) {
    mine[place] = place >> rank & 1;
  }
  for (int o = 0; o < 3; ++o) {
    MPI_Allreduce(mine, all, BOOLS, MPI_C_BOOL, operations[o], comm);
    for (int place = 0; place < BOOLS; ++place) {
      expect(all[place] == truth_of(o, place, size), "a logical operation", place);
    }
  }
}

/// Integers are true unless they are 0: of each the lowest bit is 0.
static void logical_of_integers(MPI_Comm comm) {
  enum { COUNT = 5000 };
  const Type types[] = {{MPI_SIGNED_CHAR, 'i', 1}, {MPI_UINT16_T, 'u', 2}, {MPI_INT, 'i', 4}, {MPI_LONG, 'i', 8}};
  const MPI_Op operations[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int t = 0; t < 4; ++t) {
    memset(in, 0, sizeof(in));
    for (int place = 0; place < COUNT; ++place) {
      in[(size_t)(place + 1) * types[t].bytes - 1] = (char)(place >> rank & 1 ? 0x80 : 0); // the highest byte
    }
    for (int o = 0; o < 3; ++o) {
      MPI_Allreduce(in, out, COUNT, types[t].type, operations[o], comm);
      for (int place = 0; place < COUNT; ++place) {
        expect(is_at(&types[t], out, place, truth_of(o, place, size)), "a logical operation of integers", place);
      }
    }
  }
  const int own = COUNT / size;
  MPI_Reduce_scatter_block(in, out, own, MPI_LONG, MPI_LXOR, comm);
  for (int place = 0; place < own; ++place) {
    expect(is_at(&types[3], out, place, truth_of(2, rank * own + place, size)), "Reduce_scatter_block, logical", place);
  }
  memset(out, 0x5a, 8);
  MPI_Reduce(in, out, COUNT, MPI_LONG, MPI_LOR, 0, comm);
  expect(rank == 0 ? is_at(&types[3], out, 0, truth_of(1, 0, size)) : out[0] == 0x5a, "Reduce, logical", 0);
}

static void all_of(MPI_Comm comm) {
  const Type types[] = {{MPI_FLOAT, 'f', 4},        {MPI_DOUBLE, 'f', 8},        {MPI_SIGNED_CHAR, 'i', 1},
                        {MPI_UNSIGNED_CHAR, 'u', 1}, {MPI_SHORT, 'i', 2},         {MPI_UINT16_T, 'u', 2},
                        {MPI_INT, 'i', 4},           {MPI_UNSIGNED, 'u', 4},      {MPI_LONG, 'i', 8},
                        {MPI_UINT64_T, 'u', 8},      {MPI_C_FLOAT_COMPLEX, 'c', 8}, {MPI_C_DOUBLE_COMPLEX, 'c', 16}};
  const MPI_Op operations[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_BAND, MPI_BOR, MPI_BXOR};
  const int type_count = sizeof(types) / sizeof(types[0]);
  for (int t = 0; t < type_count; ++t) { // every type, and every operation at least twice
    const Type* type = &types[t];
    const int of_type = type->kind == 'c' ? 1 : type->kind == 'f' ? 4 : 7;
    reductions(comm, type, operations[t % of_type]);
    if (t % 5 == 0) {
      movements(comm, type);
    }
  }
  requests(comm);
  persistent(comm);
  progress(comm);
  own_operation(comm);
  logical(comm);
  logical_of_integers(comm);
  MPI_Barrier(comm);
}

/// MPI refuses it, and the communicator goes on.
static void free_the_world(void) {
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  expect(MPI_Comm_free(&world) != MPI_SUCCESS, "MPI_Comm_free of MPI_COMM_WORLD", 0);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  fill(&kInt, in, 0, LENGTH);
  MPI_Allreduce(in, out, LENGTH, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  all_of(MPI_COMM_WORLD);
  MPI_Comm reversed;
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &pair);
  all_of(reversed);
  requests(pair); // has no ring yet
  persistent(pair);
  requests(pair);
  MPI_Comm_free(&reversed);
  MPI_Request last;
  fill(&kInt, in, 0, LENGTH);
  MPI_Iallreduce(in, out, LENGTH, MPI_INT, MPI_SUM, pair, &last);
  MPI_Comm_free(&pair); // while it is under way
  MPI_Wait(&last, MPI_STATUS_IGNORE);
  expect(((int*)out)[4] == 2 * value_of(0, 4), "Iallreduce of a freed communicator", 4);
  free_the_world();
  printf("mpi_calls: exact\n");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
