/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank: region_of_group RANK WORLD RENDEZVOUS SWITCH INTERFACE ADDRESS
 * Rank 0 writes new weights to all ranks. Each has a loss of its own, and rank 0 reads the sum. SWITCH is the control
 * service of a switch with regions: and room for a ring, as unix:/run/weir/control.sock. */

#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

enum { WEIGHTS = 1000000, NEW_WEIGHTS = 1, LOSSES_READ = 2 };

struct copy { /* of each rank, the same size everywhere */
  float weights[WEIGHTS];
  float losses[2]; /* offsets and lengths of reads are multiples of 8 */
};

static struct copy copy;

static void check(const char* what, weir_status status) {
  if (status != WEIR_OK) {
    printf("%s: %s: %s\n", what, weir_status_name(status), weir_last_error());
    exit(1);
  }
}

static void write_to_all(weir_region* region, const void* data, size_t bytes, uint32_t immediate) {
  weir_request* request;
  check("write", weir_region_write(region, 0, data, bytes, immediate, &request));
  check("write", weir_wait(request)); /* all have it */
}

static uint16_t await(weir_region* region, uint32_t immediate) {
  uint16_t rank;
  uint32_t found;
  weir_status status;
  do { /* a program has other work, and looks now and then */
    status = weir_region_notice(region, &rank, &found);
  } while (status == WEIR_PENDING || (status == WEIR_OK && found != immediate));
  check("notice", status);
  return rank;
}

int main(int argc, char** argv) {
  static float weights[WEIGHTS]; /* rank 0 makes new ones here */
  const weir_region_view sum = {WEIR_SUM, WEIR_F32};
  weir_context_options device;
  weir_group_options options;
  weir_region_options shape;
  weir_context* context;
  weir_group* group;
  weir_region* region;
  weir_request* request;
  float losses[2];
  if (argc != 7) {
    puts("usage: region_of_group RANK WORLD RENDEZVOUS SWITCH INTERFACE ADDRESS");
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
  options.switch_address = argv[4];
  check("group", weir_group_form(context, &options, &group));
  weir_region_options_init(&shape);
  shape.views = &sum;
  shape.view_count = 1;
  copy.losses[0] = (float)(options.rank + 1); /* before the region is open: nobody has it yet */
  check("region", weir_region_form(group, &copy, sizeof copy, &shape, &region));
  if (options.rank == 0) {
    weights[WEIGHTS - 1] = 0.5F;
    write_to_all(region, weights, sizeof weights, NEW_WEIGHTS);
    check("read", weir_region_read(region, 0, offsetof(struct copy, losses), losses, sizeof losses, &request));
    check("read", weir_wait(request));
    printf("the losses are %g together\n", losses[0]);
    write_to_all(region, NULL, 0, LOSSES_READ);
  } else {
    const uint16_t rank = await(region, NEW_WEIGHTS);
    printf("rank %d gave the weight %g\n", rank, copy.weights[WEIGHTS - 1]);
    await(region, LOSSES_READ); /* now the copy may change */
  }
  weir_region_close(region);
  weir_group_close(group);
  weir_context_close(context);
  return 0;
}
