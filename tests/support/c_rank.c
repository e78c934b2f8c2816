/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank of a job that uses the C API and nothing else, written as a caller would.
 *
 *   c_rank RANK WORLD RENDEZVOUS RING software INTERFACE ADDRESS
 *   c_rank RANK WORLD RENDEZVOUS RING verbs DEVICE
 *
 * Makes an all-reduce out of place, one in place, two at once, one of several tensors, many small
 * ones that poll(2) waits for, each other collective, a sparse one, and a persistent one: in memory
 * that the device does not know, in memory that it knows, and in memory of which it knows stripes.
 * Compares every element with a whole number that it computes itself. Ends with "c_rank: exact by
 * way of the switch" (or "ring") and status 0, or with an error and status 1.
 */

#include "rank_elements.h"
#include "rank_options.h"
#include "weir/weir.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 20011, MOST_RANKS = 8, ARENA_BYTES = 1 << 22, MOST_STRIPES = 1 << 7 };

/* The buffers of all calls. */
static double arena[ARENA_BYTES / sizeof(double)];
static size_t taken;

/* Memory in the arena, until the next taken = 0. */
static void* take(size_t bytes) {
  void* const begin = (char*)arena + taken;
  taken += (bytes + 7) / 8 * 8;
  if (taken > ARENA_BYTES) {
    puts("c_rank: the arena is too small");
    exit(1);
  }
  return begin;
}

static int* take_integers(size_t count) {
  return take(count * sizeof(int));
}

static float* take_floats(size_t count) {
  return take(count * sizeof(float));
}

static void give_up(const char* what, weir_status status) {
  printf("c_rank: %s: %s: %s (rank %d)\n", what, weir_status_name(status), weir_last_error(),
         weir_last_error_rank());
  exit(1);
}

static void expect_ok(const char* what, weir_status status) {
  if (status != WEIR_OK) {
    give_up(what, status);
  }
}

static void expect_refusal(const char* what, weir_status status) {
  if (status != WEIR_INVALID_ARGUMENT) {
    give_up(what, status);
  }
}

static void fill_floats(float* values, int rank) {
  for (int i = 0; i < COUNT; ++i) {
    values[i] = (float)element(rank, i);
  }
}

static void fill_integers(int* values, int rank) {
  for (int i = 0; i < COUNT; ++i) {
    values[i] = element(rank, i);
  }
}

static void expect_element(const char* what, int i, double found, double due) {
  if (found != due) {
    printf("c_rank: %s: element %d is %g, should be %g\n", what, i, found, due);
    exit(1);
  }
}

static void reduce_out_of_place(weir_group* group, int rank, int world) {
  float *const in = take_floats(COUNT), *const out = take_floats(COUNT);
  fill_floats(in, rank);
  expect_ok("out of place", weir_all_reduce(group, in, out, COUNT, WEIR_F32, WEIR_SUM));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("out of place", i, out[i], sum_of(world, i));
    expect_element("its input", i, in[i], element(rank, i));
  }
}

static void reduce_in_place(weir_group* group, int rank, int world) {
  int* const values = take_integers(COUNT);
  fill_integers(values, rank);
  expect_ok("in place", weir_all_reduce(group, values, values, COUNT, WEIR_I32, WEIR_MAX));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("in place", i, values[i], element(world - 1, i));
  }
}

/* Polls the first until it is done, and waits for the second. */
static void reduce_two_at_once(weir_group* group, int rank, int world) {
  float* const floats = take_floats(COUNT);
  int* const integers = take_integers(COUNT);
  weir_request *first = NULL, *second = NULL;
  weir_status status = WEIR_PENDING;
  fill_floats(floats, rank);
  fill_integers(integers, rank);
  expect_ok("first start",
            weir_start_all_reduce(group, floats, floats, COUNT, WEIR_F32, WEIR_SUM, &first));
  expect_ok("second start",
            weir_start_all_reduce(group, integers, integers, COUNT, WEIR_I32, WEIR_SUM, &second));
  while (status == WEIR_PENDING) {
    status = weir_test(first);
  }
  expect_ok("first of two", status);
  weir_release(first);
  expect_ok("second of two", weir_wait(second));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("first of two", i, floats[i], sum_of(world, i));
    expect_element("second of two", i, integers[i], sum_of(world, i));
  }
}

/* Tensors of 1, 2, 3, ... elements, cut from one array. */
static void reduce_several_tensors(weir_group* group, int rank, int world) {
  int *const in = take_integers(COUNT), *const out = take_integers(COUNT);
  weir_tensor tensors[COUNT];
  size_t tensor_count = 0, begin = 0;
  fill_integers(in, rank);
  while (begin < COUNT) {
    const size_t left = COUNT - begin;
    weir_tensor* tensor = &tensors[tensor_count++];
    tensor->in = in + begin;
    tensor->out = out + begin;
    tensor->count = tensor_count < left ? tensor_count : left;
    begin += tensor->count;
  }
  expect_ok("several tensors",
            weir_all_reduce_coalesced(group, tensors, tensor_count, WEIR_I32, WEIR_SUM));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("several tensors", i, out[i], sum_of(world, i));
  }
}

/* One element each, all started before the first is waited for. */
static void reduce_many_at_once(weir_group* group, int rank, int world) {
  enum { CALLS = 200 };

  int* const values = take_integers(CALLS);
  weir_request* requests[CALLS];
  struct pollfd done;
  int left = CALLS;
  for (int call = 0; call < CALLS; ++call) {
    values[call] = element(rank, call);
    expect_ok("one of many", weir_start_all_reduce(group, &values[call], &values[call], 1, WEIR_I32,
                                                   WEIR_SUM, &requests[call]));
  }
  done.fd = weir_group_descriptor(group);
  done.events = POLLIN;
  while (left > 0 && poll(&done, 1, 10000) == 1) {
    for (int call = 0; call < CALLS; ++call) {
      if (requests[call] != NULL && weir_test(requests[call]) == WEIR_OK) {
        weir_release(requests[call]);
        requests[call] = NULL;
        --left;
      }
    }
  }
  expect_element("number of calls that poll did not tell of", 0, left, 0);
  for (int call = 0; call < CALLS; ++call) {
    expect_element("one of many", call, values[call], sum_of(world, call));
  }
}

/* Of a tensor that is equal on all ranks: rank r counts r + 1 times. */
static void sum_scaled(weir_group* group, const int* in) {
  int* const out = take_integers(COUNT);
  const int factor = weir_group_rank(group) + 1;
  const int world = weir_group_world(group);
  weir_operation scaled;
  expect_ok("weir_make_scaled_sum", weir_make_scaled_sum(group, WEIR_I32, &factor, &scaled));
  expect_ok("scaled sum", weir_all_reduce(group, in, out, COUNT, WEIR_I32, scaled));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("scaled sum", i, out[i], in[i] * world * (world + 1) / 2);
  }
  expect_refusal("a scaled sum of i32 is not refused for u32",
                 weir_all_reduce(group, in, out, 1, WEIR_U32, scaled));
  expect_ok("weir_drop_operation", weir_drop_operation(group, scaled));
  expect_refusal("a dropped operation is not refused",
                 weir_all_reduce(group, in, out, 1, WEIR_I32, scaled));
  expect_refusal("an operation is dropped twice", weir_drop_operation(group, scaled));
}

/* Every other collective, with rank 1 as the root. */
static void call_all_others(weir_group* group, int rank, int world) {
  int *const own = take_integers(COUNT), *const share = take_integers(COUNT);
  int* const all = take_integers((size_t)world * COUNT);
  fill_integers(own, rank);
  expect_ok("reduce",
            weir_reduce(group, own, rank == 1 ? share : NULL, COUNT, WEIR_I32, WEIR_SUM, 1));
  expect_ok("all-gather", weir_all_gather(group, own, all, COUNT, WEIR_I32));
  expect_ok("broadcast", weir_broadcast(group, own, COUNT, WEIR_I32, 1));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("reduce", i, rank == 1 ? share[i] : 0, rank == 1 ? sum_of(world, i) : 0);
    expect_element("broadcast", i, own[i], element(1, i));
    for (int other = 0; other < world; ++other) {
      expect_element("all-gather", i, all[other * COUNT + i], element(other, i));
    }
  }
  expect_ok("reduce-scatter",
            weir_reduce_scatter(group, all, share, COUNT, WEIR_I32, WEIR_SUM)); /* all are equal */
  for (int i = 0; i < COUNT; ++i) {
    expect_element("reduce-scatter", i, share[i], world * element(rank, i));
  }
  expect_ok("average", weir_all_reduce(group, all, own, COUNT, WEIR_I32, WEIR_AVERAGE));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("average", i, own[i], element(0, i)); /* of equal values */
  }
  sum_scaled(group, own);
  expect_ok("barrier", weir_barrier(group));
}

/* Rank r has elements r and 1000: of the values r + 1 and 10. */
static void start_sparse(weir_group* group, weir_sparse_result** result, weir_request** request) {
  static int64_t indices[2];
  static int values[2];
  weir_sparse_tensor tensor;
  indices[0] = 1000; /* in any order */
  indices[1] = weir_group_rank(group);
  values[0] = 10;
  values[1] = weir_group_rank(group) + 1;
  tensor.size = sizeof(tensor);
  tensor.count = 100000;
  tensor.indices = indices;
  tensor.values = values;
  tensor.index_count = 2;
  tensor.block_elements = 1;
  expect_ok("weir_start_sparse_all_reduce",
            weir_start_sparse_all_reduce(group, &tensor, WEIR_I32, WEIR_SUM, result, request));
  tensor.index_count = 0; /* the struct may go */
}

/* One rank has too little room at first; the others do not notice. */
static void copy_sparse(const weir_sparse_result* result, int rank, int world) {
  int64_t indices[MOST_RANKS + 1];
  int values[MOST_RANKS + 1];
  if (rank == 1) {
    expect_refusal("a result is copied where it has no room",
                   weir_sparse_result_copy(result, indices, values, (size_t)world));
    if (strstr(weir_last_error(), "capacity: found ") != weir_last_error()) {
      printf("c_rank: the refusal does not say how much there is: %s\n", weir_last_error());
      exit(1);
    }
  }
  expect_ok("weir_sparse_result_copy",
            weir_sparse_result_copy(result, indices, values, MOST_RANKS + 1));
  for (int i = 0; i < world; ++i) {
    expect_element("index of a sparse sum", i, (int)indices[i], i);
    expect_element("sparse sum", i, values[i], i + 1);
  }
  expect_element("index of a sparse sum", world, (int)indices[world], 1000);
  expect_element("sparse sum", world, values[world], 10 * world);
}

/* Between dense calls, and read after the request is gone. */
static void reduce_sparse(weir_group* group, int rank, int world) {
  weir_sparse_result* result = NULL;
  weir_request *request, *dense;
  weir_sparse_view view;
  int value = rank;
  start_sparse(group, &result, &request);
  expect_ok("a dense call behind a sparse one",
            weir_start_all_reduce(group, &value, &value, 1, WEIR_I32, WEIR_SUM, &dense));
  expect_ok("weir_wait", weir_wait(dense));
  expect_element("a dense call behind a sparse one", 0, value, world * (world - 1) / 2);
  expect_ok("weir_wait", weir_wait(request));
  view.size = sizeof(view);
  expect_ok("weir_sparse_result_read", weir_sparse_result_read(result, &view));
  expect_element("number of indices", 0, (int)view.index_count, world + 1);
  expect_element("elements of a block", 0, (int)view.block_elements, 1);
  expect_element("is_dense", 0, (int)view.is_dense, 0);
  expect_element("the largest index", 0, (int)view.indices[world], 1000);
  copy_sparse(result, rank, world);
  weir_sparse_result_free(result);
}

/* The collectives whose input is a part of their result, or the other way round. */
static void gather_and_scatter_in_place(weir_group* group, int rank, int world) {
  int* const all = take_integers((size_t)world * COUNT);
  int* const own = all + rank * COUNT;
  fill_integers(own, rank);
  expect_ok("all-gather in place", weir_all_gather(group, own, all, COUNT, WEIR_I32));
  for (int other = 0; other < world; ++other) {
    for (int i = 0; i < COUNT; ++i) {
      expect_element("all-gather in place", i, all[other * COUNT + i], element(other, i));
    }
  }
  expect_ok("reduce-scatter in place",
            weir_reduce_scatter(group, all, own, COUNT, WEIR_I32, WEIR_SUM)); /* all are equal */
  for (int i = 0; i < COUNT; ++i) {
    expect_element("reduce-scatter in place", i, own[i], world * element(rank, i));
  }
}

/* A persistent call, in memory that is the device's from the second round on. */
static void reduce_again_and_again(weir_group* group, int rank, int world) {
  enum { ROUNDS = 3 };

  float* const values = take_floats(COUNT);
  weir_persistent* call = NULL;
  weir_request* request = NULL;
  expect_ok("weir_prepare_all_reduce",
            weir_prepare_all_reduce(group, values, values, COUNT, WEIR_F32, WEIR_SUM, &call));
  for (int round = 0; round < ROUNDS; ++round) {
    fill_floats(values, rank);
    expect_ok("weir_start_persistent", weir_start_persistent(call, &request));
    expect_ok("weir_wait", weir_wait(request));
    for (int i = 0; i < COUNT; ++i) {
      expect_element("a persistent call", i, values[i], sum_of(world, i));
    }
    expect_ok("weir_persistent_register", weir_persistent_register(call));
  }
  weir_persistent_release(call);
}

static void make_all_calls(weir_group* group) {
  const int rank = weir_group_rank(group);
  const int world = weir_group_world(group);
  taken = 0;
  reduce_out_of_place(group, rank, world);
  reduce_in_place(group, rank, world);
  reduce_two_at_once(group, rank, world);
  reduce_several_tensors(group, rank, world);
  reduce_many_at_once(group, rank, world);
  call_all_others(group, rank, world);
  gather_and_scatter_in_place(group, rank, world);
  reduce_sparse(group, rank, world);
  reduce_again_and_again(group, rank, world);
}

/* Each buffer begins, ends and goes on in memory that the device knows, or does not. */
static void make_all_calls_in_stripes(weir_context* context, weir_group* group) {
  enum { KNOWN = 30001, UNKNOWN = 19999 };

  weir_memory* stripes[MOST_STRIPES];
  int count = 0;
  for (size_t begin = 1; begin + KNOWN <= ARENA_BYTES; begin += KNOWN + UNKNOWN) {
    expect_ok("weir_memory_register",
              weir_memory_register(context, WEIR_MEMORY_HOST, (char*)arena + begin, KNOWN,
                                   &stripes[count++]));
  }
  make_all_calls(group);
  while (count > 0) {
    weir_memory_release(stripes[--count]);
  }
}

static void make_all_calls_in_each_memory(weir_context* context, weir_group* group) {
  weir_memory* memory;
  make_all_calls(group);
  expect_ok("weir_memory_register",
            weir_memory_register(context, WEIR_MEMORY_HOST, arena, ARENA_BYTES, &memory));
  make_all_calls(group);
  weir_memory_release(memory);
  make_all_calls_in_stripes(context, group);
}

static void read_statistics(weir_group* group) {
  weir_group_statistics statistics;
  statistics.size = sizeof(statistics);
  expect_ok("statistics", weir_group_read_statistics(group, &statistics));
  if (statistics.messages_sent == 0 || statistics.results_received == 0) {
    puts("c_rank: the statistics count nothing");
    exit(1);
  }
}

static void refuse_sparse_maximum(weir_group* group) {
  weir_sparse_tensor tensor = {sizeof(tensor), 10, NULL, NULL, 0, 1};
  weir_sparse_result* result = NULL;
  expect_refusal("a sparse maximum is not refused",
                 weir_sparse_all_reduce(group, &tensor, WEIR_F32, WEIR_MAX, &result));
  if (result != NULL) {
    puts("c_rank: a refused call has a result");
    exit(1);
  }
}

static void refuse_what_has_no_meaning(weir_group* group) {
  float value = 0;
  expect_refusal("xor of f32 is not refused",
                 weir_all_reduce(group, &value, &value, 1, WEIR_F32, WEIR_XOR));
  expect_refusal("operation 257 is not refused",
                 weir_all_reduce(group, &value, &value, 1, WEIR_F32, (weir_operation)257));
  expect_refusal("type 15 is not refused",
                 weir_all_gather(group, &value, &value, 1, (weir_data_type)15));
  refuse_sparse_maximum(group);
}

static weir_context* open_context(char** arguments) {
  weir_context_options options;
  weir_context* context = NULL;
  weir_context_options_init(&options);
  options.transport = strcmp(arguments[4], "verbs") == 0 ? WEIR_VERBS : WEIR_SOFTWARE;
  options.device = arguments[5];
  options.ip = arguments[6]; /* NULL for verbs: the end of the arguments */
  expect_ok("weir_context_open", weir_context_open(&options, &context));
  return context;
}

static weir_group* form_group(weir_context* context, char** arguments) {
  const uint32_t ring = (uint32_t)atoi(arguments[3]);
  weir_group_options options;
  weir_group* group = NULL;
  weir_group_options_init(&options);
  set_rank_options(&options, arguments, &ring);
  options.ack_timeout_ms = 500;
  options.fallback = WEIR_FALLBACK_RING;
  expect_ok("weir_group_form", weir_group_form(context, &options, &group));
  return group;
}

int main(int argc, char** argv) {
  weir_context* context;
  weir_group* group;
  if (argc < 7) {
    puts("usage: c_rank RANK WORLD RENDEZVOUS RING software|verbs DEVICE [ADDRESS]");
    return 2;
  }
  context = open_context(argv + 1);
  group = form_group(context, argv + 1);
  make_all_calls_in_each_memory(context, group);
  weir_context_close(context);
  refuse_what_has_no_meaning(group);
  read_statistics(group);
  printf("c_rank: exact by way of the %s %s\n", weir_group_algorithm(group),
         weir_group_fallback_reason(group));
  weir_group_close(group);
  return 0;
}
