/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

/* The C API: collectives through a Weir switch. docs/host.md is its manual, and weir/weir.hpp the
 * same for C++.
 *
 *   weir_context_options device;
 *   weir_group_options options;
 *   weir_context* context;
 *   weir_group* group;
 *   weir_context_options_init(&device);
 *   device.device = "eth1"; device.ip = "10.0.0.1";
 *   if (weir_context_open(&device, &context) != WEIR_OK) { puts(weir_last_error()); ... }
 *   weir_group_options_init(&options);
 *   options.rank = 0; options.world = 4; options.rendezvous = "10.0.0.1:7471";
 *   if (weir_group_form(context, &options, &group) != WEIR_OK) { puts(weir_last_error()); ... }
 *   weir_all_reduce(group, in, out, count, WEIR_F32, WEIR_SUM);
 *   weir_group_close(group);
 *   weir_context_close(context);
 *
 * Threads may share a context, a group and its requests; a waiting thread does not block the
 * others. In a child made by fork, the parent's objects do nothing: calls fail, closing ends
 * nothing. The child may open its own.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_status {
  WEIR_OK = 0,
  WEIR_INVALID_ARGUMENT = 1,
  WEIR_RENDEZVOUS_TIMEOUT = 2, /* a rank did not come, or rank 0 was not reached */
  WEIR_PEER_DIED = 3,          /* a rank's process ended, or left while others still called */
  WEIR_RETRY_EXCEEDED = 4,     /* packets stayed unacknowledged: switch or link gone */
  WEIR_NOT_AGGREGATED = 5,     /* nobody on the path aggregates this ring */
  WEIR_MISMATCH = 6,           /* ranks disagree on options or on a call */
  WEIR_TIMEOUT = 7,            /* no progress for timeout_ms */
  WEIR_TRANSPORT_FAILURE = 8,  /* the device, the socket or the peer's transport failed */
  WEIR_PENDING = 9,            /* weir_test, weir_wait_for: not done yet */
  WEIR_INTERNAL_ERROR = 10,    /* out of memory and the like */
  WEIR_ABORTED = 11            /* a rank called weir_group_abort */
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
  WEIR_XOR = 6,
  WEIR_AVERAGE = 256 /* the sum, divided by the number of ranks; integers are cut toward 0 */
} weir_operation;

typedef enum weir_transport {
  WEIR_SOFTWARE = 0, /* the library's own RC queue pair over raw Ethernet frames */
  WEIR_VERBS = 1     /* a RoCE NIC by libibverbs */
} weir_transport;

/* What to do when the hello shows that nobody aggregates. */
typedef enum weir_fallback {
  WEIR_FALLBACK_NONE = 0, /* fail with WEIR_NOT_AGGREGATED */
  WEIR_FALLBACK_RING = 1  /* reduce on the hosts, to the same bits */
} weir_fallback;

typedef struct weir_context weir_context; /* a device */
typedef struct weir_group weir_group;     /* ranks that reduce together */
typedef struct weir_request weir_request; /* an operation under way */

/* Every options struct begins with its size, which weir_..._options_init sets. So a program that
 * was compiled with an older, shorter struct runs with a newer library. */

typedef struct weir_context_options {
  size_t size;
  weir_transport transport;
  const char* device; /* software: network interface; verbs: RDMA device, such as mlx5_0 */
  const char* ip;     /* software only: this rank's address, as in the switch's ring */
  const char* mac;    /* software only; NULL: the interface's */
  uint8_t gid_index;  /* verbs only: the RoCEv2 entry of the port's GID table */
} weir_context_options;

/* Fills `out` with every rank's `bytes` bytes, in rank order. Returns 0, or anything else when it
 * cannot. Must not throw. */
typedef int (*weir_all_gather_function)(void* user, const void* in, size_t bytes, void* out);

/* All ranks give the same values, except for `rank`, `secret`'s address, and `all_gather_user`.
 * They compare them when they meet. */
typedef struct weir_group_options {
  size_t size;
  uint16_t rank;
  uint16_t world;         /* number of ranks: 2 .. 256 */
  const char* rendezvous; /* HOST:PORT where rank 0 listens; with all_gather NULL, or HOST:0 */
  const uint32_t* rings;  /* ids, as configured in the switch; NULL: only ring 1 */
  size_t ring_count;
  uint32_t window;        /* messages, as configured in the switch */
  uint32_t message_bytes; /* 40-byte header included; likewise */
  uint32_t path_mtu;      /* 256, 512, 1024, 2048 or 4096 */
  uint32_t epoch;         /* 0: rank 0's wall-clock seconds */
  weir_fallback fallback;
  uint32_t form_timeout_ms; /* to meet the other ranks */
  uint32_t timeout_ms;      /* without progress of a call that all have made; to say farewell */
  uint32_t ack_timeout_ms;  /* 0: 67 in software, an eighth of timeout_ms over verbs */
  uint8_t retry_count;      /* 0 .. 7; 7 is no limit in software */
  uint32_t lateness_ms; /* until the last rank makes a call that others have made; 0: any time */
  const char* job;      /* up to 64 characters; another job's callers are turned away */
  const void* secret;   /* NULL: none; callers without it are turned away */
  size_t secret_bytes;  /* 16 .. 1024 */
  /* NULL: none. Called once by weir_group_form on each rank, in the calling thread, to tell the
   * others where rank 0 listens, and a secret if there is none. */
  weir_all_gather_function all_gather;
  void* all_gather_user;
  /* A rank whose machine or network is gone is noticed within this time, also between calls:
   * 0: timeout_ms; never less than 3000. */
  uint32_t keep_alive_ms;
  uint32_t reserved; /* 0; so that no later field lies where an older struct has padding */
} weir_group_options;

/* Fill in the defaults. */
#define weir_context_options_init(options)                                                         \
  weir_context_options_init_sized((options), sizeof(*(options)))
#define weir_group_options_init(options)                                                           \
  weir_group_options_init_sized((options), sizeof(*(options)))
void weir_context_options_init_sized(weir_context_options* options, size_t size);
void weir_group_options_init_sized(weir_group_options* options, size_t size);

/* Checks the options and copies them. The device itself is opened by each group. */
weir_status weir_context_open(const weir_context_options* options, weir_context** context);
void weir_context_close(weir_context* context); /* its groups live on; NULL: does nothing */

/* Meets the other ranks, connects to the neighbours and says hello to the switch. Copies the
 * options. */
weir_status weir_group_form(weir_context* context, const weir_group_options* options,
                            weir_group** group);
/* Ends this rank's calls, those under way and later ones, and the other ranks' with them: with
 * WEIR_ABORTED, about this rank. Never blocks and needs no other rank. For any thread, but not for
 * a signal handler. */
weir_status weir_group_abort(weir_group* group);
/* Ends what is under way, and stays for ranks that still need an acknowledgement, for at most
 * timeout_ms. NULL: does nothing. */
void weir_group_close(weir_group* group);

/* This rank's counts since the group was formed. UINT64_MAX: only the NIC knows. */
typedef struct weir_group_statistics {
  size_t size; /* sizeof(weir_group_statistics), set by the caller */
  uint64_t messages_sent;
  uint64_t results_received;
  uint64_t retransmitted_packets;
  uint64_t ack_timeouts;
  uint64_t callers_turned_away; /* on rank 0: who came to meet it and was none of the ranks */
} weir_group_statistics;

/* Writes as much as statistics->size says. */
weir_status weir_group_read_statistics(weir_group* group, weir_group_statistics* statistics);

uint16_t weir_group_rank(const weir_group* group);
uint16_t weir_group_world(const weir_group* group);
uint32_t weir_group_epoch(const weir_group* group);
/* "switch" or "ring". */
const char* weir_group_algorithm(const weir_group* group);
/* Why it is not "switch"; "" if it is. The group owns the string. */
const char* weir_group_fallback_reason(const weir_group* group);
/* How "ring" reduces tensors of this type: "reduce-scatter" or "chain". */
const char* weir_ring_schedule(weir_data_type type);

/* Collectives. Every rank makes the same calls in the same order, with the same `count`, `type`,
 * `operation` and `root`. `count` elements may be 0. `in` and `out` do not overlap, except in place
 * as each call says. After an error other than WEIR_INVALID_ARGUMENT the group is over.
 *
 * A reduction is the fold of the ranks' elements from rank 0 on. */

/* 1 if there is this reduction of this type, else 0: floats have no WEIR_AND, WEIR_OR, WEIR_XOR. A
 * call with such a pair is a WEIR_INVALID_ARGUMENT. */
int weir_is_reducible(weir_data_type type, weir_operation operation);

/* Makes an operation for all-reduces, reduces and reduce-scatters of this type: the sum of the
 * ranks' elements, each multiplied by its rank's factor first. `factor` points to one element of
 * the type; each rank has its own. f16, bf16 and f8 are multiplied in f32 and rounded once;
 * integers wrap around. The operation is this group's, until it is dropped or the group is closed.
 * A group has 255 at most. */
weir_status weir_make_scaled_sum(weir_group* group, weir_data_type type, const void* factor,
                                 weir_operation* operation);
/* Calls that have started go on. */
weir_status weir_drop_operation(weir_group* group, weir_operation operation);

/* out[i] is the reduction of every rank's in[i]. In place: in == out. */
weir_status weir_all_reduce(weir_group* group, const void* in, void* out, size_t count,
                            weir_data_type type, weir_operation operation);

/* One of several tensors. In place: in == out. */
typedef struct weir_tensor {
  const void* in;
  void* out;
  size_t count; /* elements; may be 0 */
} weir_tensor;

/* All-reduces several tensors as if they lay one after the other: when they are small, cheaper than
 * a call for each. The array may go when the call returns. Each rank may cut the whole into tensors
 * as it likes. */
weir_status weir_all_reduce_coalesced(weir_group* group, const weir_tensor* tensors,
                                      size_t tensor_count, weir_data_type type,
                                      weir_operation operation);
/* An all-reduce whose result the root alone gets. The other ranks' `out` is not touched and may be
 * NULL. */
weir_status weir_reduce(weir_group* group, const void* in, void* out, size_t count,
                        weir_data_type type, weir_operation operation, uint16_t root);
/* data[i] becomes the root's. */
weir_status weir_broadcast(weir_group* group, void* data, size_t count, weir_data_type type,
                           uint16_t root);
/* out[r * count + i] is rank r's in[i]. In place: in == out + own rank * count elements. */
weir_status weir_all_gather(weir_group* group, const void* in, void* out, size_t count,
                            weir_data_type type);
/* out[i] is the reduction of every rank's in[own rank * count + i]. In place: out == in + own rank
 * * count elements. */
weir_status weir_reduce_scatter(weir_group* group, const void* in, void* out, size_t count,
                                weir_data_type type, weir_operation operation);
/* Returns when every rank has called it. */
weir_status weir_barrier(weir_group* group);

/* Start the same and return. Until it is done, the buffers belong to the group. Several may be
 * under way; they are done in order. Call weir_wait or weir_release for each request, before
 * weir_group_close. */
weir_status weir_start_all_reduce(weir_group* group, const void* in, void* out, size_t count,
                                  weir_data_type type, weir_operation operation,
                                  weir_request** request);
weir_status weir_start_all_reduce_coalesced(weir_group* group, const weir_tensor* tensors,
                                            size_t tensor_count, weir_data_type type,
                                            weir_operation operation, weir_request** request);
weir_status weir_start_reduce(weir_group* group, const void* in, void* out, size_t count,
                              weir_data_type type, weir_operation operation, uint16_t root,
                              weir_request** request);
weir_status weir_start_broadcast(weir_group* group, void* data, size_t count, weir_data_type type,
                                 uint16_t root, weir_request** request);
weir_status weir_start_all_gather(weir_group* group, const void* in, void* out, size_t count,
                                  weir_data_type type, weir_request** request);
weir_status weir_start_reduce_scatter(weir_group* group, const void* in, void* out, size_t count,
                                      weir_data_type type, weir_operation operation,
                                      weir_request** request);
weir_status weir_start_barrier(weir_group* group, weir_request** request);

weir_status weir_test(weir_request* request); /* WEIR_OK, WEIR_PENDING or an error */
/* The same, after `timeout_ms` at most. If ranks are late, and this one has waited for them for the
 * group's timeout_ms, weir_last_error names them: "rank 3 has not made call 7". */
weir_status weir_wait_for(weir_request* request, uint32_t timeout_ms);
weir_status weir_wait(weir_request* request); /* until it is done; frees it */
void weir_release(weir_request* request);     /* the same; NULL: does nothing */

/* A descriptor for poll(2), so that one thread can wait for requests and for other things. Readable
 * while a request is done that nobody has tested or waited for since, and for ever after an error.
 * The group owns it: do not read or close it. -1: there is none; weir_last_error says why. */
int weir_group_descriptor(weir_group* group);

/* The error of this thread's last call that did not return WEIR_OK, with rank and cause. After
 * WEIR_PENDING "", or for whom weir_wait_for waits. */
const char* weir_last_error(void);
/* The rank that the error is about, or -1. */
int weir_last_error_rank(void);
const char* weir_status_name(weir_status status);

/* "1.2.3" */
const char* weir_version(void);

#ifdef __cplusplus
}
#endif

#endif
