/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

/* The C API: all-reduce through a Weir switch. include/weir/communicator.hpp is the same in C++ and
 * says more.
 *
 *   weir_options options;
 *   weir_options_init(&options);
 *   options.rank = 0; options.world = 4; options.rendezvous = "10.0.0.1:7471";
 *   options.device = "eth1"; options.ip = "10.0.0.1";
 *   weir_communicator* communicator;
 *   if (weir_open(&options, &communicator) != WEIR_OK) { puts(weir_last_error()); ... }
 *   weir_all_reduce(communicator, in, out, count, WEIR_F32, WEIR_SUM);
 *   weir_close(communicator);
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_status {
  WEIR_OK = 0,
  WEIR_INVALID_ARGUMENT = 1,
  WEIR_RENDEZVOUS_TIMEOUT = 2,
  WEIR_PEER_DIED = 3,
  WEIR_RETRY_EXCEEDED = 4,
  WEIR_NOT_AGGREGATED = 5,
  WEIR_MISMATCH = 6,
  WEIR_TIMEOUT = 7,
  WEIR_TRANSPORT_FAILURE = 8,
  WEIR_PENDING = 9,        /* weir_test: not done yet */
  WEIR_INTERNAL_ERROR = 10 /* out of memory and the like */
} weir_status;

/* Numbers as in the INA header. */
typedef enum weir_data_type {
  WEIR_F32 = 0,
  WEIR_I32 = 1,
  WEIR_F16 = 2,
  WEIR_BF16 = 3,
  WEIR_F64 = 4,
  WEIR_I8 = 5,
  WEIR_U8 = 6,
  WEIR_I16 = 7,
  WEIR_U16 = 8,
  WEIR_U32 = 9,
  WEIR_I64 = 10,
  WEIR_U64 = 11,
  WEIR_F8E4M3 = 12,
  WEIR_F8E5M2 = 13
} weir_data_type;

typedef enum weir_operation {
  WEIR_SUM = 0,
  WEIR_MIN = 1,
  WEIR_MAX = 2,
  WEIR_PRODUCT = 3,
  WEIR_AND = 4,
  WEIR_OR = 5,
  WEIR_XOR = 6
} weir_operation;

typedef enum weir_transport { WEIR_SOFTWARE = 0, WEIR_VERBS = 1 } weir_transport;

typedef enum weir_fallback { WEIR_FALLBACK_NONE = 0, WEIR_FALLBACK_RING = 1 } weir_fallback;

/* weir_open copies the strings. */
typedef struct weir_options {
  const uint32_t* rings; /* ids; NULL: only ring 1 */
  size_t ring_count;
  uint16_t rank;
  uint16_t world;
  const char* rendezvous; /* HOST:PORT where rank 0 listens */
  uint32_t timeout_ms;
  uint32_t window;        /* messages, as configured in the switch */
  uint32_t message_bytes; /* 40-byte header included */
  uint32_t path_mtu;
  uint32_t epoch; /* 0: rank 0's wall-clock seconds */
  weir_fallback fallback;
  weir_transport transport;
  const char* device; /* software: network interface; verbs: RDMA device */
  const char* ip;     /* software only */
  const char* mac;    /* software only; NULL: the interface's */
  uint8_t gid_index;  /* verbs only */
  uint8_t retry_count;
  uint32_t ack_timeout_ms; /* 0: 67 in software, an eighth of timeout_ms over verbs */
} weir_options;

typedef struct weir_communicator weir_communicator;
typedef struct weir_pending weir_pending;

/* Fills in the defaults of weir::CommunicatorOptions. */
void weir_options_init(weir_options* options);

/* WEIR_OK and a communicator for weir_close, or an error and NULL. Threads may share it: a waiting
 * thread does not block the others. */
weir_status weir_open(const weir_options* options, weir_communicator** communicator);
void weir_close(weir_communicator* communicator); /* NULL: does nothing */

/* `count` elements; in == out reduces in place, otherwise they do not overlap. */
weir_status weir_all_reduce(weir_communicator* communicator, const void* in, void* out,
                            size_t count, weir_data_type type, weir_operation operation);

/* Starts the same and returns. Until it is done, the buffers belong to the communicator. Call
 * weir_wait or weir_release for each `pending` before weir_close. */
weir_status weir_start_all_reduce(weir_communicator* communicator, const void* in, void* out,
                                  size_t count, weir_data_type type, weir_operation operation,
                                  weir_pending** pending);
weir_status weir_test(weir_pending* pending); /* WEIR_OK, WEIR_PENDING or an error */
weir_status weir_wait(weir_pending* pending); /* frees it */
void weir_release(weir_pending* pending);     /* frees it once it is done */

/* "switch" or "ring". */
const char* weir_algorithm(const weir_communicator* communicator);
/* Why it is not "switch"; "" if it is. The communicator owns the string. */
const char* weir_fallback_reason(const weir_communicator* communicator);
/* How "ring" reduces tensors of this type: "reduce-scatter" or "chain". */
const char* weir_ring_schedule(weir_data_type type);

/* The error of this thread's last call that did not return WEIR_OK, with rank and cause. */
const char* weir_last_error(void);
/* The rank that the error is about, or -1. */
int weir_last_error_rank(void);
const char* weir_status_name(weir_status status);

#ifdef __cplusplus
}
#endif

#endif
