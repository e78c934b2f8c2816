/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank of a job, of which the last rank computes for a long time between two calls.
 *
 *   late_rank RANK WORLD RENDEZVOUS RING DEVICE SECONDS
 *
 * Over verbs. The group's timeout is TIMEOUT_MS, and its queue pairs give up sooner than that if
 * nobody keeps them alive. After a first all-reduce the last rank computes for SECONDS. The others
 * queue an all-reduce, a broadcast from the last rank and a barrier at once, and wait. Each of them
 * expects to be told by weir_wait_for who is late. Ends with "late_rank: exact after N ms" and
 * status 0, where N is how long the queued calls took, or with an error and status 1.
 */

#include "rank_elements.h"
#include "rank_options.h"
#include "weir/weir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 10007, TIMEOUT_MS = 4000, ACK_TIMEOUT_MS = 250, RETRIES = 6 };

static void expect_ok(const char* what, weir_status status) {
  if (status != WEIR_OK) {
    printf("late_rank: %s: %s: %s (rank %d)\n", what, weir_status_name(status), weir_last_error(),
           weir_last_error_rank());
    exit(1);
  }
}

static void expect_element(const char* what, int i, int found, int due) {
  if (found != due) {
    printf("late_rank: %s: element %d is %d, should be %d\n", what, i, found, due);
    exit(1);
  }
}

static void fill(int* values, int rank) {
  for (int i = 0; i < COUNT; ++i) {
    values[i] = element(rank, i);
  }
}

static long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

static void reduce(weir_group* group) {
  static int values[COUNT];
  fill(values, weir_group_rank(group));
  expect_ok("all-reduce", weir_all_reduce(group, values, values, COUNT, WEIR_I32, WEIR_SUM));
  for (int i = 0; i < COUNT; ++i) {
    expect_element("all-reduce", i, values[i], sum_of(weir_group_world(group), i));
  }
}

/* Waits for longer than the timeout. It is no error that another rank computes. */
static void expect_to_hear_who_is_late(weir_request* request, int late) {
  char due[64];
  const weir_status status = weir_wait_for(request, TIMEOUT_MS + 1000);
  snprintf(due, sizeof(due), "rank %d has not made call 2", late);
  if (status != WEIR_PENDING || strstr(weir_last_error(), due) == NULL) {
    printf("late_rank: weir_wait_for: %s: \"%s\"; due is WEIR_PENDING: \"%s\"\n",
           weir_status_name(status), weir_last_error(), due);
    exit(1);
  }
}

/* All three at once. */
static void make_queued_calls(weir_group* group) {
  static int sums[COUNT], copy[COUNT];
  const int rank = weir_group_rank(group);
  const int last = weir_group_world(group) - 1;
  weir_request* requests[3];
  fill(sums, rank);
  fill(copy, rank);
  expect_ok("start of the all-reduce",
            weir_start_all_reduce(group, sums, sums, COUNT, WEIR_I32, WEIR_SUM, &requests[0]));
  expect_ok("start of the broadcast",
            weir_start_broadcast(group, copy, COUNT, WEIR_I32, (uint16_t)last, &requests[1]));
  expect_ok("start of the barrier", weir_start_barrier(group, &requests[2]));
  if (rank != last) {
    expect_to_hear_who_is_late(requests[0], last);
  }
  for (int i = 0; i < 3; ++i) {
    expect_ok("queued call", weir_wait(requests[i]));
  }
  for (int i = 0; i < COUNT; ++i) {
    expect_element("queued all-reduce", i, sums[i], sum_of(last + 1, i));
    expect_element("queued broadcast", i, copy[i], element(last, i));
  }
}

static weir_group* form_group(char** arguments) {
  const uint32_t ring = (uint32_t)atoi(arguments[3]);
  weir_context_options device;
  weir_group_options options;
  weir_context* context = NULL;
  weir_group* group = NULL;
  weir_context_options_init(&device);
  device.transport = WEIR_VERBS;
  device.device = arguments[4];
  expect_ok("weir_context_open", weir_context_open(&device, &context));
  weir_group_options_init(&options);
  set_rank_options(&options, arguments, &ring);
  options.timeout_ms = TIMEOUT_MS;
  options.ack_timeout_ms = ACK_TIMEOUT_MS;
  options.retry_count = RETRIES;
  expect_ok("weir_group_form", weir_group_form(context, &options, &group));
  weir_context_close(context);
  return group;
}

int main(int argc, char** argv) {
  weir_group* group;
  long begin;
  if (argc != 7) {
    puts("usage: late_rank RANK WORLD RENDEZVOUS RING DEVICE SECONDS");
    return 2;
  }
  group = form_group(argv + 1);
  reduce(group);
  if (weir_group_rank(group) == weir_group_world(group) - 1) {
    sleep((unsigned)atoi(argv[6]));
  }
  begin = milliseconds();
  make_queued_calls(group);
  printf("late_rank: exact after %ld ms by way of the %s\n", milliseconds() - begin,
         weir_group_algorithm(group));
  weir_group_close(group);
  return 0;
}
