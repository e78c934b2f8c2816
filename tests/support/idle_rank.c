/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank of a group that meets by an all-gather of its caller, is idle, and then makes a call.
 *
 *   idle_rank RANK WORLD FOLDER INTERFACE ADDRESS SECONDS
 *
 * The all-gather is by files in FOLDER. No HOST:PORT is given: rank 0 finds out where it listens.
 * The group's timeout is much longer than its keep-alive time of 4 s. Prints "idle_rank: formed",
 * and after SECONDS the outcome of a barrier: its status, the error's rank, how many milliseconds
 * the call took, and the error.
 */

#include "weir/weir.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ABSENT_RING = 99 };

typedef struct Folder {
  const char* path;
  int rank;
  int world;
} Folder;

static FILE* open_part(const Folder* folder, int rank, const char* suffix, const char* mode) {
  char name[4096];
  snprintf(name, sizeof(name), "%s/%d%s", folder->path, rank, suffix);
  return fopen(name, mode);
}

/* Under another name until it is whole. */
static void write_part(const Folder* folder, const void* in, size_t bytes) {
  char from[4096];
  char to[4096];
  FILE* file = open_part(folder, folder->rank, ".new", "wb");
  fwrite(in, 1, bytes, file);
  fclose(file);
  snprintf(from, sizeof(from), "%s/%d.new", folder->path, folder->rank);
  snprintf(to, sizeof(to), "%s/%d", folder->path, folder->rank);
  rename(from, to);
}

static int all_gather(void* user, const void* in, size_t bytes, void* out) {
  const Folder* folder = user;
  write_part(folder, in, bytes);
  for (int rank = 0; rank < folder->world; ++rank) {
    FILE* file = NULL;
    while ((file = open_part(folder, rank, "", "rb")) == NULL) {
      usleep(10000);
    }
    const size_t have = fread((char*)out + (size_t)rank * bytes, 1, bytes, file);
    fclose(file);
    if (have != bytes) {
      return 1;
    }
  }
  return 0;
}

static double milliseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void expect_ok(const char* what, weir_status status) {
  if (status != WEIR_OK) {
    printf("idle_rank: %s: %s: %s\n", what, weir_status_name(status), weir_last_error());
    exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc != 7) {
    return 2;
  }
  Folder folder = {argv[3], atoi(argv[1]), atoi(argv[2])};
  const uint32_t ring = ABSENT_RING;
  weir_context_options device;
  weir_group_options options;
  weir_context* context = NULL;
  weir_group* group = NULL;
  weir_context_options_init(&device);
  device.device = argv[4];
  device.ip = argv[5];
  expect_ok("context", weir_context_open(&device, &context));
  weir_group_options_init(&options);
  options.rank = (uint16_t)folder.rank;
  options.world = (uint16_t)folder.world;
  options.rings = &ring;
  options.ring_count = 1;
  options.fallback = WEIR_FALLBACK_RING;
  options.timeout_ms = 60000;
  options.keep_alive_ms = 4000;
  options.job = "idle";
  options.all_gather = all_gather;
  options.all_gather_user = &folder;
  expect_ok("group", weir_group_form(context, &options, &group));
  puts("idle_rank: formed");
  fflush(stdout);
  sleep((unsigned)atoi(argv[6]));
  const double began = milliseconds_now();
  const weir_status status = weir_barrier(group);
  printf("idle_rank: %s rank=%d ms=%.0f %s\n", weir_status_name(status), weir_last_error_rank(),
         milliseconds_now() - began, status == WEIR_OK ? "" : weir_last_error());
  fflush(stdout);
  weir_group_close(group);
  weir_context_close(context);
  return 0;
}
