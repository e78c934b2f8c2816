/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank: all_reduce RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS
 * Adds up a million floats of every rank, and prints the first sum. */

#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

enum { COUNT = 1000000 };

static void check(const char* what, weir_status status) {
  if (status != WEIR_OK) {
    printf("%s: %s: %s\n", what, weir_status_name(status), weir_last_error());
    exit(1);
  }
}

int main(int argc, char** argv) {
  static float gradients[COUNT];
  weir_context_options device;
  weir_group_options options;
  weir_context* context;
  weir_group* group;
  uint32_t ring;
  int i;
  if (argc != 7) {
    puts("usage: all_reduce RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS");
    return 2;
  }
  weir_context_options_init(&device);
  device.device = argv[5];
  device.ip = argv[6];
  check("device", weir_context_open(&device, &context));
  weir_group_options_init(&options);
  options.rank = (uint16_t)atoi(argv[1]);
  options.world = (uint16_t)atoi(argv[2]);
  options.rendezvous = argv[3];
  ring = (uint32_t)atoi(argv[4]);
  options.rings = &ring;
  options.ring_count = 1;
  check("group", weir_group_form(context, &options, &group));
  for (i = 0; i < COUNT; ++i) {
    gradients[i] = (float)(options.rank + 1);
  }
  check("all-reduce", weir_all_reduce(group, gradients, gradients, COUNT, WEIR_F32, WEIR_SUM));
  printf("%g by way of the %s\n", gradients[0], weir_group_algorithm(group));
  weir_group_close(group);
  weir_context_close(context);
  return 0;
}
