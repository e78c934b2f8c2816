/* SPDX-License-Identifier: BSD-3-Clause */

/* Makes every status of weir.h happen by the C API, each by a function of its own: the list of
 * CASES. Ends with "every_status: N statuses" and status 0, or says what it found instead.
 *
 *   every_status INTERFACE0 INTERFACE1 COMMAND
 *
 * Two ranks, each a thread, have an interface each; plain switching lies between these, and the
 * shell's COMMAND cuts it for good. The ranks meet at 127.0.0.1. More causes of the statuses are in
 * host_test.cpp, host_stall_test.cpp, job_control_test.cpp, rendezvous_test.cpp and
 * c_api_test.cpp.
 */

#include "weir/weir.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 2, COUNT = 1000000, PORT = 7400 };

static char** arguments;

typedef struct Place {
  weir_context* context;
  weir_group* group;
  weir_status formed;
  int rank;
  weir_status found; /* of what the case does on this rank */
  int about;         /* the error's rank */
  char text[300];    /* the error */
  int port;          /* a case's own, so that no late caller of another comes */
  weir_fallback fallback;
  uint8_t retry_count;
  uint32_t lateness_ms;
  void (*act)(struct Place*);
} Place;

/* No group is formed. */
static void do_nothing(Place* place) {
  (void)place;
}

static void form_without_a_device(Place* place) {
  (void)place;
}

static void note(Place* place, weir_status status) {
  place->found = status;
  place->about = weir_last_error_rank();
  snprintf(place->text, sizeof(place->text), "%s", weir_last_error());
}

static void open_device(Place* place) {
  const char* const addresses[RANKS] = {"10.77.0.1", "10.77.0.2"};
  weir_context_options device;
  weir_context_options_init(&device);
  device.device =
      place->act == form_without_a_device ? "no-such-device" : arguments[1 + place->rank];
  device.ip = addresses[place->rank];
  if (weir_context_open(&device, &place->context) != WEIR_OK) {
    printf("every_status: %s\n", weir_last_error());
    exit(1);
  }
}

static weir_status form(Place* place) {
  char rendezvous[32];
  weir_group_options options;
  snprintf(rendezvous, sizeof(rendezvous), "127.0.0.1:%d", place->port);
  weir_group_options_init(&options);
  options.rank = (uint16_t)place->rank;
  options.world = RANKS;
  options.rendezvous = rendezvous;
  options.fallback = place->fallback;
  options.form_timeout_ms = 1500;
  options.timeout_ms = 3000;
  options.ack_timeout_ms = 20;
  options.retry_count = place->retry_count;
  options.lateness_ms = place->lateness_ms;
  return weir_group_form(place->context, &options, &place->group);
}

static weir_status reduce(Place* place, size_t count) {
  static float data[RANKS][COUNT];
  return weir_all_reduce(place->group, data[place->rank], data[place->rank], count, WEIR_F32,
                         WEIR_SUM);
}

/* What each rank of a group does so that rank 0 gets the status. */

static void call_nothing(Place* place) {
  note(place, reduce(place, COUNT));
}

static void name_no_operation(Place* place) {
  note(place, weir_barrier(NULL));
}

/* So many elements are many windows. */
static void close_during_a_call(Place* place) {
  static float data[COUNT];
  weir_request* request = NULL;
  if (place->rank == 0) {
    note(place, reduce(place, COUNT));
    return;
  }
  weir_start_all_reduce(place->group, data, data, COUNT, WEIR_F32, WEIR_SUM, &request);
  weir_group_close(place->group);
  place->group = NULL;
  weir_release(request);
}

static void cut(Place* place) {
  if (place->rank == 0 && system(arguments[3]) != 0) {
    puts("every_status: the command failed");
    exit(1);
  }
  note(place, reduce(place, COUNT));
}

static void call_another_count(Place* place) {
  note(place, reduce(place, place->rank == 0 ? COUNT : COUNT / 2));
}

static void be_late(Place* place) {
  if (place->rank == 0) {
    note(place, reduce(place, COUNT));
  } else {
    sleep(1);
    note(place, weir_barrier(place->group));
  }
}

static void ask_too_early(Place* place) {
  weir_request* request = NULL;
  if (place->rank == 0) {
    weir_start_barrier(place->group, &request);
    note(place, weir_test(request));
    weir_release(request);
  } else {
    usleep(200000);
    weir_barrier(place->group);
  }
}

/* The second call has to wait until rank 1 has made the first. */
static void cancel_a_call(Place* place) {
  static float data[RANKS][COUNT];
  float one = 1;
  weir_request *first = NULL, *second = NULL;
  if (place->rank == 1) {
    usleep(200000);
  }
  weir_start_all_reduce(place->group, data[place->rank], data[place->rank], COUNT, WEIR_F32,
                        WEIR_SUM, &first);
  weir_start_all_reduce(place->group, &one, &one, 1, WEIR_F32, WEIR_SUM, &second);
  if (place->rank == 0) {
    weir_cancel(second);
  }
  note(place, weir_wait(second));
  weir_release(first);
  weir_barrier(place->group);
}

/* 2^45 elements of its own memory for the products. */
static void need_too_much_memory(Place* place) {
  const uint8_t factor = 3;
  uint8_t byte = 0;
  weir_operation scaled;
  weir_make_scaled_sum(place->group, WEIR_U8, &factor, &scaled);
  note(place, weir_reduce(place->group, &byte, &byte, (size_t)1 << 45, WEIR_U8, scaled, 0));
}

/* The result of a call that has failed tells the call's error. */
static void abort_on_rank_1(Place* place) {
  const weir_sparse_tensor tensor = {sizeof(tensor), COUNT, NULL, NULL, 0, 1};
  weir_sparse_view view = {.size = sizeof(view)};
  weir_sparse_result* result = NULL;
  weir_request* request = NULL;
  if (place->rank == 1) {
    usleep(200000);
    note(place, weir_group_abort(place->group));
    return;
  }
  weir_start_sparse_all_reduce(place->group, &tensor, WEIR_F32, WEIR_SUM, &result, &request);
  weir_release(request);
  note(place, weir_sparse_result_read(result, &view));
  weir_sparse_result_free(result);
}

/* Nobody has named a switch. */
static void want_a_region(Place* place) {
  static char copies[RANKS][64];
  weir_region* region = NULL;
  note(place,
       weir_region_form(place->group, copies[place->rank], sizeof(copies[0]), NULL, &region));
}

typedef struct Case {
  weir_status due; /* on rank 0 */
  int about;       /* its error's rank */
  const char* text;
  int ranks; /* that come */
  weir_fallback fallback;
  uint8_t retry_count;
  uint32_t lateness_ms;
  void (*act)(Place*);
} Case;

/* The one that cuts is the last. */
static const Case CASES[] = {
    {WEIR_INVALID_ARGUMENT, -1, "group: found NULL", 2, WEIR_FALLBACK_RING, 7, 0,
     name_no_operation},
    {WEIR_RENDEZVOUS_TIMEOUT, 1, "rank 1 of 2 did not come", 1, WEIR_FALLBACK_RING, 7, 0,
     do_nothing},
    {WEIR_PEER_DIED, 1, "rank 1 closed its group during a call", 2, WEIR_FALLBACK_RING, 7, 0,
     close_during_a_call},
    {WEIR_NOT_AGGREGATED, -1, "no RESULT flag", 2, WEIR_FALLBACK_NONE, 7, 0, do_nothing},
    {WEIR_MISMATCH, 1, "rank 1 calls all-reduce of 500000 f32", 2, WEIR_FALLBACK_RING, 7, 0,
     call_another_count},
    {WEIR_TIMEOUT, 1, "did not make it within 300 ms", 2, WEIR_FALLBACK_RING, 7, 300, be_late},
    {WEIR_TRANSPORT_FAILURE, -1, "no-such-device", 1, WEIR_FALLBACK_RING, 7, 0,
     form_without_a_device},
    {WEIR_PENDING, -1, "", 2, WEIR_FALLBACK_RING, 7, 0, ask_too_early},
    {WEIR_INTERNAL_ERROR, -1, "no memory is left", 2, WEIR_FALLBACK_RING, 7, 0,
     need_too_much_memory},
    {WEIR_ABORTED, 1, "rank 1 aborted its group", 2, WEIR_FALLBACK_RING, 7, 0, abort_on_rank_1},
    {WEIR_CANCELLED, -1, "call 2, all-reduce of 1 f32, sum, was cancelled", 2, WEIR_FALLBACK_RING,
     7, 0, cancel_a_call},
    {WEIR_NO_REGION, -1, "switch_address: found none", 2, WEIR_FALLBACK_RING, 7, 0, want_a_region},
    {WEIR_OK, -1, "", 2, WEIR_FALLBACK_RING, 7, 0, call_nothing},
    {WEIR_RETRY_EXCEEDED, 0, "", 2, WEIR_FALLBACK_RING, 2, 0, cut},
};

enum { CASE_COUNT = sizeof(CASES) / sizeof(CASES[0]) };

static void* run_rank(void* argument) {
  Place* place = argument;
  open_device(place);
  place->formed = form(place);
  if (place->formed == WEIR_OK) {
    place->act(place);
  } else {
    note(place, place->formed);
  }
  weir_group_close(place->group);
  weir_context_close(place->context);
  return NULL;
}

/* Either rank may notice a cut first, or that the calls differ; its error is about the other one.
 */
static int is_about_either(const Case* row) {
  return row->due == WEIR_RETRY_EXCEEDED || row->due == WEIR_MISMATCH;
}

static int is_as_due(const Case* row, const Place* place) {
  const int is_due = place->found == row->due && strstr(place->text, row->text) != NULL &&
                     (is_about_either(row) || place->about == row->about);
  if (!is_due) {
    printf("every_status: due is %s about rank %d; found %s about rank %d: %s\n",
           weir_status_name(row->due), row->about, weir_status_name(place->found), place->about,
           place->text);
  }
  return is_due;
}

static int run_case(int number) {
  const Case* row = &CASES[number];
  Place places[RANKS];
  pthread_t threads[RANKS];
  memset(places, 0, sizeof(places));
  for (int rank = 0; rank < row->ranks; ++rank) {
    places[rank].rank = rank;
    places[rank].port = PORT + number;
    places[rank].fallback = row->fallback;
    places[rank].retry_count = row->retry_count;
    places[rank].lateness_ms = row->lateness_ms;
    places[rank].act = row->act;
    pthread_create(&threads[rank], NULL, run_rank, &places[rank]);
  }
  for (int rank = 0; rank < row->ranks; ++rank) {
    pthread_join(threads[rank], NULL);
  }
  return is_as_due(row, &places[0]);
}

/* Every number with a name is a status: one that is added to weir.h needs a row. But for a switch's
 * kernel that is wrong: there is none (tests/unit/by_operator_test.cpp has one). */
static int count_missing(void) {
  int missing = 0;
  for (int status = 0; strcmp(weir_status_name((weir_status)status), "unknown") != 0; ++status) {
    int rows = 0;
    for (int number = 0; number < CASE_COUNT; ++number) {
      rows += CASES[number].due == (weir_status)status;
    }
    if (rows != (status == WEIR_OPERATOR_FAILED ? 0 : 1)) {
      printf("every_status: %s has %d rows\n", weir_status_name((weir_status)status), rows);
      ++missing;
    }
  }
  return missing;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    return 2;
  }
  int wrong = count_missing();
  arguments = argv;
  for (int number = 0; number < CASE_COUNT; ++number) {
    wrong += run_case(number) ? 0 : 1;
  }
  printf("every_status: %d statuses\n", CASE_COUNT - wrong);
  return wrong == 0 ? 0 : 1;
}
