/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank: by_operator RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS FILE
 * Sums a million floats of every rank by the operator in FILE, such as mxfp8-e4m3-sum.weir, and prints the first sum. Where no switch
 * folds by it the ranks do. */

#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

enum { COUNT = 1000000, TEXT = 4097 };

static void check(const char* what, weir_status status) {
  if (status != WEIR_OK) {
    printf("%s: %s: %s\n", what, weir_status_name(status), weir_last_error());
    exit(1);
  }
}

static weir_operator* loaded(const char* name) {
  char text[TEXT];
  weir_operator* op;
  size_t bytes;
  FILE* file = fopen(name, "rb");
  if (file == NULL) {
    printf("%s cannot be read\n", name);
    exit(1);
  }
  bytes = fread(text, 1, sizeof text, file);
  fclose(file);
  check(name, weir_operator_load(text, bytes, &op));
  return op;
}

int main(int argc, char** argv) {
  static float gradients[COUNT];
  weir_context_options device;
  weir_group_options options;
  weir_context* context;
  weir_group* group;
  const weir_operator* operators[1];
  weir_operator* op;
  size_t bytes;
  void* packed;
  uint32_t ring;
  int i;
  if (argc != 8) {
    puts("usage: by_operator RANK WORLD RENDEZVOUS RING INTERFACE ADDRESS FILE");
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
  options.fallback = WEIR_FALLBACK_RING;
  op = loaded(argv[7]);
  operators[0] = op;
  options.operators = operators;
  options.operator_count = 1;
  check("layout", weir_operator_set_layout(op, options.path_mtu, options.message_bytes));
  check("group", weir_group_form(context, &options, &group));
  for (i = 0; i < COUNT; ++i) {
    gradients[i] = (float)(options.rank + 1);
  }
  bytes = weir_operator_bytes(op, COUNT);
  packed = malloc(bytes);
  check("pack", weir_operator_pack(op, gradients, COUNT, packed));
  check("all-reduce", weir_all_reduce(group, packed, packed, bytes, WEIR_AS_OPERATOR, WEIR_OPERATOR(0)));
  check("unpack", weir_operator_unpack(op, packed, COUNT, gradients));
  printf("%g by way of the %s\n", gradients[0], weir_group_algorithm(group));
  free(packed);
  weir_operator_release(op);
  weir_group_close(group);
  weir_context_close(context);
  return 0;
}
