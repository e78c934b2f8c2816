/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank of a job that uses the C API and nothing else, written as a caller would.
 *
 *   c_rank RANK WORLD RENDEZVOUS RING software INTERFACE ADDRESS
 *   c_rank RANK WORLD RENDEZVOUS RING verbs DEVICE
 *
 * Makes an all-reduce out of place, one in place, and two at once. Compares every element with a
 * whole number that it computes itself. Ends with "c_rank: exact by way of the switch" (or "ring")
 * and status 0, or with an error and status 1.
 */

#include "weir/weir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 20011 };

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

/* Element i of rank r: so small that f32 adds those of a dozen ranks without rounding. */
static int element(int rank, int i) {
  return (rank + 1) * (i % 1000) - i;
}

static int sum_of(int world, int i) {
  int sum = 0;
  for (int rank = 0; rank < world; ++rank) {
    sum += element(rank, i);
  }
  return sum;
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

static void reduce_out_of_place(weir_communicator* communicator, int rank, int world) {
  static float in[COUNT], out[COUNT];
  fill_floats(in, rank);
  expect_ok("out of place", weir_all_reduce(communicator, in, out, COUNT, WEIR_F32, WEIR_SUM));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("out of place", i, out[i], sum_of(world, i));
    expect_element("its input", i, in[i], element(rank, i));
  }
}

static void reduce_in_place(weir_communicator* communicator, int rank, int world) {
  static int values[COUNT];
  fill_integers(values, rank);
  expect_ok("in place", weir_all_reduce(communicator, values, values, COUNT, WEIR_I32, WEIR_MAX));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("in place", i, values[i], element(world - 1, i));
  }
}

/* Polls the first until it is done, and waits for the second. */
static void reduce_two_at_once(weir_communicator* communicator, int rank, int world) {
  static float floats[COUNT];
  static int integers[COUNT];
  weir_pending* first = NULL;
  weir_pending* second = NULL;
  weir_status status = WEIR_PENDING;
  fill_floats(floats, rank);
  fill_integers(integers, rank);
  expect_ok("first start",
            weir_start_all_reduce(communicator, floats, floats, COUNT, WEIR_F32, WEIR_SUM, &first));
  expect_ok("second start", weir_start_all_reduce(communicator, integers, integers, COUNT, WEIR_I32,
                                                  WEIR_SUM, &second));
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

static void refuse_what_has_no_meaning(weir_communicator* communicator) {
  float value = 0;
  const weir_status status = weir_all_reduce(communicator, &value, &value, 1, WEIR_F32, WEIR_XOR);
  if (status != WEIR_INVALID_ARGUMENT) {
    give_up("xor of f32 is not refused", status);
  }
}

static weir_options options_of(char** arguments, uint32_t* ring) {
  weir_options options;
  weir_options_init(&options);
  options.rank = (uint16_t)atoi(arguments[0]);
  options.world = (uint16_t)atoi(arguments[1]);
  options.rendezvous = arguments[2];
  *ring = (uint32_t)atoi(arguments[3]);
  options.rings = ring;
  options.ring_count = 1;
  options.transport = strcmp(arguments[4], "verbs") == 0 ? WEIR_VERBS : WEIR_SOFTWARE;
  options.device = arguments[5];
  options.ip = arguments[6]; /* NULL for verbs: the end of the arguments */
  options.window = 4;
  options.message_bytes = 16384;
  options.ack_timeout_ms = 500;
  options.timeout_ms = 30000;
  options.fallback = WEIR_FALLBACK_RING;
  return options;
}

int main(int argc, char** argv) {
  if (argc < 7) {
    puts("usage: c_rank RANK WORLD RENDEZVOUS RING software|verbs DEVICE [ADDRESS]");
    return 2;
  }
  uint32_t ring = 0;
  const weir_options options = options_of(argv + 1, &ring);
  weir_communicator* communicator = NULL;
  expect_ok("weir_open", weir_open(&options, &communicator));
  reduce_out_of_place(communicator, options.rank, options.world);
  reduce_in_place(communicator, options.rank, options.world);
  reduce_two_at_once(communicator, options.rank, options.world);
  refuse_what_has_no_meaning(communicator);
  printf("c_rank: exact by way of the %s %s\n", weir_algorithm(communicator),
         weir_fallback_reason(communicator));
  weir_close(communicator);
  return 0;
}
