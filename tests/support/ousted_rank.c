/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank of a job on whose ring another job begins while it makes no call.
 *
 *   ousted_rank RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS FILE
 *
 * The group's timeout is an hour. Prints "ousted_rank: formed" after a first barrier, and when FILE
 * is there the outcome of a second one: its status, and the error. Then that of a shrink by the
 * same ring, and of one by another ring or the hosts'.
 */

#include "rank_options.h"
#include "weir/weir.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOUR_MS = 3600000 };

static weir_group* form_group(char** arguments) {
  const uint32_t ring = (uint32_t)atoi(arguments[3]);
  weir_context_options device;
  weir_group_options options;
  weir_context* context = NULL;
  weir_group* group = NULL;
  weir_context_options_init(&device);
  device.device = arguments[4];
  device.ip = arguments[5];
  weir_group_options_init(&options);
  set_rank_options(&options, arguments, &ring);
  options.timeout_ms = HOUR_MS;
  options.epoch = 1; /* below the other job's */
  if (weir_context_open(&device, &context) != WEIR_OK ||
      weir_group_form(context, &options, &group) != WEIR_OK || weir_barrier(group) != WEIR_OK) {
    printf("ousted_rank: %s\n", weir_last_error());
    exit(1);
  }
  weir_context_close(context);
  return group;
}

static void tell(const char* what, weir_status status) {
  printf("ousted_rank: %s: %s: %s\n", what, weir_status_name(status), weir_last_error());
}

static void shrink_elsewhere(weir_group* group, char** arguments) {
  const uint32_t other = (uint32_t)atoi(arguments[3]) + 1;
  weir_group_options options;
  weir_group* rest = NULL;
  weir_group_options_init(&options);
  set_rank_options(&options, arguments, &other);
  options.fallback = WEIR_FALLBACK_RING;
  weir_status status = weir_group_shrink(group, &options, &rest);
  status = status == WEIR_OK ? weir_barrier(rest) : status;
  tell("elsewhere", status);
  weir_group_close(rest);
}

int main(int argc, char** argv) {
  if (argc != 8) {
    return 2;
  }
  weir_group* group = form_group(argv + 1);
  puts("ousted_rank: formed");
  fflush(stdout);
  while (access(argv[7], F_OK) != 0) {
    usleep(10000);
  }
  weir_group* rest = NULL;
  tell("barrier", weir_barrier(group));
  tell("shrink", weir_group_shrink(group, NULL, &rest));
  shrink_elsewhere(group, argv + 1);
  weir_group_close(group);
  return 0;
}
