/* SPDX-License-Identifier: BSD-3-Clause */

/* One rank of a job that makes several groups of the same ranks, whose rings a switch makes.
 *
 *   split_rank RANK WORLD RENDEZVOUS SWITCH INTERFACE ADDRESS GROUPS form|dup|halves
 *
 * "form" meets anew for each, at the rendezvous' port and the next ones; "dup" copies the first
 * group; "halves" splits it into even and odd ranks, whose order is turned round, and reduces in
 * both. All groups stay until the end. Prints for each how long it took, and what the process has
 * then: "group 3: 4.2 ms, 9 threads, 31 descriptors, 15000 KiB". Every element is compared. Ends
 * with "split_rank: exact" and status 0, or with an error and status 1.
 */

#include "rank_options.h"
#include "weir/weir.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_GROUPS = 128, COUNT = 5000 };

static void expect_ok(const char* what, weir_status status) {
  if (status != WEIR_OK) {
    printf("split_rank: %s: %s: %s (rank %d)\n", what, weir_status_name(status), weir_last_error(),
           weir_last_error_rank());
    exit(1);
  }
}

static void expect(const char* what, int found, int due) {
  if (found != due) {
    printf("split_rank: %s is %d, should be %d\n", what, found, due);
    exit(1);
  }
}

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static int entries_of(const char* folder) {
  DIR* const directory = opendir(folder);
  int entries = 0;
  while (directory != NULL && readdir(directory) != NULL) {
    ++entries;
  }
  closedir(directory);
  return entries - 2;
}

static int resident_kib(void) {
  FILE* const file = fopen("/proc/self/statm", "r");
  int all = 0, resident = 0;
  if (file == NULL || fscanf(file, "%d %d", &all, &resident) != 2) {
    resident = 0;
  }
  fclose(file);
  return 4 * resident;
}

/* Every rank of the job gives its number's power of two. */
static void expect_sum(weir_group* group, int original, int due) {
  static int values[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    values[i] = 1 << original;
  }
  expect_ok("all-reduce", weir_all_reduce(group, values, values, COUNT, WEIR_I32, WEIR_SUM));
  for (int i = 0; i < COUNT; ++i) {
    expect("an element", values[i], due);
  }
}

static weir_group* formed(weir_context* context, weir_group_options* options, int number) {
  char place[64];
  const char* const given = options->rendezvous;
  const char* const port = strrchr(given, ':') + 1;
  weir_group* group = NULL;
  snprintf(place, sizeof(place), "%.*s%d", (int)(port - given), given, atoi(port) + number);
  options->rendezvous = place;
  expect_ok("form", weir_group_form(context, options, &group));
  options->rendezvous = given;
  return group;
}

static weir_group* half_of(weir_group* whole, int rank, int world) {
  weir_group* part = NULL;
  expect_ok("split", weir_group_split(whole, rank % 2, -rank, NULL, &part));
  expect("the half's size", weir_group_world(part), (world + (rank + 1) % 2) / 2);
  expect("its own number there", weir_group_parent_rank(part, weir_group_rank(part)), rank);
  return part;
}

int main(int count, char** arguments) {
  weir_context_options device;
  weir_group_options options;
  weir_context* context;
  weir_group* groups[MOST_GROUPS];
  if (count != 9) {
    puts("split_rank: see the head of its source");
    return 2;
  }
  const int wanted = atoi(arguments[7]), rank = atoi(arguments[1]), world = atoi(arguments[2]);
  const char* const way = arguments[8];
  weir_context_options_init(&device);
  weir_group_options_init(&options);
  set_rank_options(&options, arguments + 1, NULL);
  options.switch_address = rank == 0 ? arguments[4] : NULL;
  device.device = arguments[5];
  device.ip = arguments[6];
  expect_ok("context", weir_context_open(&device, &context));
  for (int number = 0; number < wanted; ++number) {
    const double begin = milliseconds();
    if (number == 0 || strcmp(way, "form") == 0) {
      groups[number] = formed(context, &options, number);
    } else if (strcmp(way, "dup") == 0) {
      expect_ok("dup", weir_group_dup(groups[0], NULL, &groups[number]));
    } else {
      groups[number] = half_of(groups[0], rank, world);
    }
    const double took = milliseconds() - begin;
    int due = 0;
    for (int other = 0; other < weir_group_world(groups[number]); ++other) {
      due |= 1 << weir_group_parent_rank(groups[number], (uint16_t)other);
    }
    expect_sum(groups[number], rank, due);
    expect("the algorithm is the switch's", strcmp(weir_group_algorithm(groups[number]), "switch"),
           0);
    printf("group %d: %.1f ms, %d threads, %d descriptors, %d KiB\n", number, took,
           entries_of("/proc/self/task"), entries_of("/proc/self/fd"), resident_kib());
  }
  for (int number = wanted - 1; number >= 0; --number) {
    weir_group_close(groups[number]);
  }
  weir_context_close(context);
  puts("split_rank: exact");
  return 0;
}
