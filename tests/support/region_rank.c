/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank of a group whose region a switch makes.
 *
 *   region_rank RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS exact|loopback|large|write|range|fail thread|caller
 *
 * Over verbs if ADDRESS is "verbs"; then INTERFACE is an RDMA device.
 * $WEIR_SWITCH of rank 0 is the switch. "exact": each rank writes blocks of its own, with and without
 * immediates, and all read sums of what all have; every byte is compared. "loopback": the same where
 * ranks get their own writes. "large": all write and read some megabytes at once, rank 0 from memory
 * that the device does not know. "write": writes until the region ends, and prints why. "range": what does
 * not lie within the region. "fail": the region is not made, and it prints why. Ends with "region_rank:
 * exact", "region_rank: STATUS: TEXT", or an error and status 1.
 */

#include "rank_options.h"
#include "weir/weir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_RANKS = 4,
  ROUNDS = 20,
  BLOCK = 5001,   /* bytes that a rank writes in a round, no multiple of anything */
  NUMBERS = 3000, /* of each rank, which only it writes; behind the blocks */
  BLOCKS = 20008, /* bytes of all blocks: a multiple of 8 */
  LARGE = (2 << 20) + 4104, /* bytes, a multiple of 8 */
  VERBS_ACK_TIMEOUT_MS = 100
};

struct copy {
  unsigned char blocks[BLOCKS];
  float numbers[NUMBERS];
};

static struct copy copy;
static uint32_t large[LARGE / 4];
static int rank, world;

static void expect_ok(const char* what, weir_status status) {
  if (status != WEIR_OK) {
    printf("region_rank: %s: %s: %s (rank %d)\n", what, weir_status_name(status), weir_last_error(),
           weir_last_error_rank());
    exit(1);
  }
}

static void expect(const char* what, int is_so) {
  if (!is_so) {
    printf("region_rank: %s\n", what);
    exit(1);
  }
}

/* The order of a sum of three matters. */
static float number_of(int of_rank, int i) {
  return (float)((i * 7919 + of_rank * 104729) % 65521) / (of_rank == 1 ? -7.0F : 3.0F);
}

static unsigned char byte_of(int of_rank, int round, int i) {
  return (unsigned char)(of_rank * 59 + round * 13 + i * 7 + i / 256);
}

static void write_block(weir_region* region, int round, uint32_t immediate) {
  static unsigned char block[BLOCK];
  weir_request* request;
  for (int i = 0; i < BLOCK; ++i) {
    block[i] = byte_of(rank, round, i);
  }
  expect_ok("write", weir_region_write(region, (size_t)rank * BLOCK, block, BLOCK, immediate, &request));
  expect_ok("wait for a write", weir_wait(request));
}

/* Of all others, and of this rank if it gets its own, one each with this value. */
static void await_notices(weir_region* region, uint32_t value, int loopback) {
  int seen[MOST_RANKS] = {0};
  for (int due = world - 1 + loopback; due > 0;) {
    uint16_t from;
    uint32_t found;
    const weir_status status = weir_region_notice(region, &from, &found);
    if (status == WEIR_PENDING) {
      continue;
    }
    expect_ok("notice", status);
    expect("a notice has another value, or comes twice", found == value && seen[from]++ == 0);
    --due;
  }
  expect("a rank got its own notice, or none", seen[rank] == loopback);
}

static void check_blocks(int round, int loopback) {
  for (int of_rank = 0; of_rank < world; ++of_rank) {
    const int is_written = of_rank != rank || loopback;
    for (int i = 0; i < BLOCK; ++i) {
      const unsigned char due = is_written ? byte_of(of_rank, round, i) : 0;
      expect("a byte is wrong", copy.blocks[of_rank * BLOCK + i] == due);
    }
  }
}

static void check_sums(weir_region* region) {
  float sums[NUMBERS];
  int32_t integers[NUMBERS];
  weir_request* requests[2];
  expect_ok("read", weir_region_read(region, 0, BLOCKS, sums, sizeof sums, &requests[0]));
  expect_ok("read", weir_region_read(region, 1, BLOCKS, integers, sizeof integers, &requests[1]));
  expect_ok("wait for a read", weir_wait(requests[0]));
  expect_ok("wait for a read", weir_wait(requests[1]));
  for (int i = 0; i < NUMBERS; ++i) {
    float sum = number_of(0, i);
    uint32_t bits, integer;
    memcpy(&integer, &sum, sizeof sum);
    for (int of_rank = 1; of_rank < world; ++of_rank) {
      const float one = number_of(of_rank, i);
      memcpy(&bits, &one, sizeof one);
      integer += bits;
      sum += one;
    }
    expect("a sum of floats is wrong", memcmp(&sum, &sums[i], sizeof sum) == 0);
    expect("a sum of integers is wrong", memcmp(&integer, &integers[i], sizeof integer) == 0);
  }
}

static void be_exact(weir_group* group, weir_region* region, int loopback) {
  for (int round = 0; round < ROUNDS; ++round) {
    write_block(region, round, WEIR_NO_IMMEDIATE);
    weir_request* request; /* an immediate alone comes behind what its writer wrote before */
    expect_ok("write", weir_region_write(region, 0, NULL, 0, (uint32_t)round << 8, &request));
    expect_ok("wait for an immediate", weir_wait(request));
    await_notices(region, (uint32_t)round << 8, loopback);
    check_blocks(round, loopback);
    check_sums(region);
    expect_ok("barrier", weir_barrier(group));
  }
  write_block(region, ROUNDS, 0xffffff); /* the largest */
  await_notices(region, 0xffffff, loopback);
  check_blocks(ROUNDS, loopback);
  puts("region_rank: exact");
}

static void choose_device(weir_context_options* device, char** arguments) {
  weir_context_options_init(device);
  device->device = arguments[0];
  if (strcmp(arguments[1], "verbs") == 0) {
    device->transport = WEIR_VERBS;
  } else {
    device->ip = arguments[1];
  }
}

static uint32_t large_number_of(int of_rank, int i) {
  return (uint32_t)i * 2654435761U + (uint32_t)of_rank;
}

/* Of all numbers, that they are so many times those that this rank wrote. */
static void check_large(const uint32_t* numbers, int writer, uint32_t times) {
  for (int i = 0; i < LARGE / 4; ++i) {
    expect("a large number is wrong", numbers[i] == times * large_number_of(writer, i));
  }
}

static void write_large(weir_region* region, uint32_t* numbers, int writer) {
  weir_request* request;
  for (int i = 0; i < LARGE / 4; ++i) {
    numbers[i] = large_number_of(writer, i);
  }
  expect_ok("write", weir_region_write(region, 0, numbers, LARGE, 1, &request));
  expect_ok("wait for a large write", weir_wait(request));
}

static void await_large(weir_region* region, int writer) {
  uint16_t from;
  uint32_t found;
  weir_status status;
  do {
    status = weir_region_notice(region, &from, &found);
  } while (status == WEIR_PENDING);
  expect_ok("notice", status);
  expect("a notice is of another", from == writer && found == 1);
  check_large(large, writer, 1);
}

/* With loopback. */
static void be_large(weir_context* context, weir_group* group, weir_region* region) {
  static uint32_t numbers[LARGE / 4];
  weir_request* request;
  weir_memory* memory = NULL;
  if (rank != 0) {
    expect_ok("memory", weir_memory_register(context, WEIR_MEMORY_HOST, numbers, LARGE, &memory));
  }
  for (int writer = 0; writer < world; ++writer) {
    if (rank == writer) {
      write_large(region, numbers, writer);
    }
    await_large(region, writer);
    expect_ok("barrier", weir_barrier(group));
  }
  memset(numbers, 0, sizeof numbers);
  expect_ok("read", weir_region_read(region, 1, 0, numbers, LARGE, &request));
  expect_ok("wait for a large read", weir_wait(request));
  check_large(numbers, world - 1, (uint32_t)world);
  expect_ok("barrier", weir_barrier(group)); /* others have read this copy */
  weir_memory_release(memory);
  puts("region_rank: exact");
}

static void say(weir_status status) {
  printf("region_rank: %s: %s\n", weir_status_name(status), weir_last_error());
}

static void write_until_the_end(weir_region* region) {
  weir_status status = WEIR_OK;
  weir_request* request;
  puts("region_rank: open");
  fflush(stdout);
  while (status == WEIR_OK) {
    status = weir_region_write(region, (size_t)rank * BLOCK, copy.numbers, 8, WEIR_NO_IMMEDIATE, &request);
    if (status == WEIR_OK) {
      status = weir_wait(request);
    }
  }
  say(status);
}

static void leave_the_range(weir_region* region) {
  static char data[sizeof copy + 8];
  weir_request* request = NULL;
  say(weir_region_write(region, sizeof copy - 7, data, 8, WEIR_NO_IMMEDIATE, &request));
  say(weir_region_write(region, 0, data, 8, 0x1000000, &request));
  say(weir_region_read(region, 0, sizeof copy - 8, data, 16, &request));
  say(weir_region_read(region, 0, BLOCKS + 4, data, 8, &request));
  say(weir_region_read(region, 2, BLOCKS, data, 8, &request));
  expect("a request was made", request == NULL);
  write_block(region, 0, WEIR_NO_IMMEDIATE); /* it goes on */
}

/* Each on all ranks, which tell one another. */
static void ask_for_wrong_regions(weir_group* group, weir_region_options shape) {
  const weir_region_view average = {WEIR_AVERAGE, WEIR_F32};
  weir_region* region = NULL;
  shape.views = &average;
  shape.view_count = 1;
  say(weir_region_form(group, &copy, sizeof copy, &shape, &region));
  shape.view_count = 0;
  say(weir_region_form(group, &copy, rank == 1 ? 16 : 24, &shape, &region));
  say(weir_region_form(group, &copy, rank == 1 ? 15 : 16, &shape, &region));
  shape.loopback = 2;
  say(weir_region_form(group, &copy, sizeof copy, &shape, &region));
  expect("there is a region", region == NULL);
}

int main(int argc, char** argv) {
  const weir_region_view views[2] = {{WEIR_SUM, WEIR_F32}, {WEIR_SUM, WEIR_I32}};
  weir_context_options device;
  weir_group_options options;
  weir_region_options shape;
  weir_context* context;
  weir_group* group;
  weir_region* region;
  if (argc != 9) {
    puts("usage: region_rank RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS "
         "exact|loopback|large|write|range|fail thread|caller");
    return 2;
  }
  rank = atoi(argv[1]);
  world = atoi(argv[2]);
  const uint32_t ring = (uint32_t)atoi(argv[4]);
  const char* const way = argv[7];
  choose_device(&device, argv + 5);
  expect_ok("device", weir_context_open(&device, &context));
  weir_group_options_init(&options);
  set_rank_options(&options, argv + 1, &ring);
  options.timeout_ms = 10000;
  options.farewell_ms = 2000;
  options.ack_timeout_ms = device.transport == WEIR_VERBS ? VERBS_ACK_TIMEOUT_MS : 0;
  options.progress = strcmp(argv[8], "caller") == 0 ? WEIR_PROGRESS_CALLER : WEIR_PROGRESS_THREAD;
  expect_ok("group", weir_group_form(context, &options, &group));
  weir_region_options_init(&shape);
  shape.views = views;
  shape.view_count = 2;
  shape.window = 16;
  shape.entries = 8;
  shape.patience_s = 3;
  const int is_large = strcmp(way, "large") == 0;
  shape.loopback = is_large || strcmp(way, "loopback") == 0;
  for (int i = 0; i < NUMBERS; ++i) {
    copy.numbers[i] = number_of(rank, i);
  }
  const weir_status status = weir_region_form(group, is_large ? (void*)large : &copy,
                                              is_large ? LARGE : sizeof copy, &shape, &region);
  if (strcmp(way, "fail") == 0) {
    say(status);
    expect("there is a region", region == NULL);
    expect_ok("the group goes on", weir_barrier(group));
  } else {
    expect_ok("region", status);
  }
  if (strcmp(way, "exact") == 0 || strcmp(way, "loopback") == 0) {
    be_exact(group, region, (int)shape.loopback);
  } else if (is_large) {
    be_large(context, group, region);
  } else if (strcmp(way, "write") == 0) {
    write_until_the_end(region);
  } else if (strcmp(way, "range") == 0) {
    leave_the_range(region);
    ask_for_wrong_regions(group, shape);
  }
  weir_region_close(region);
  weir_group_close(group);
  weir_context_close(context);
  return 0;
}
