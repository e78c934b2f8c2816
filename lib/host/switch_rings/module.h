/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEIR_HOST_SWITCH_RINGS_MODULE_H
#define WEIR_HOST_SWITCH_RINGS_MODULE_H

/* Between libweir.so and its module libweir_switch.so, which alone knows gRPC: a program that makes
 * no ring and no region loads none of it. Both come from the same version of Weir. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this interface. */
#define WEIR_SWITCH_MODULE_VERSION 8

typedef struct weir_hold weir_hold; /* a ring or region that is there as long as this */

typedef enum weir_hold_id { WEIR_HOLD_ID_GIVEN = 0, WEIR_HOLD_ID_CHOSEN = 1 } weir_hold_id;

/* No pointer but `user` is NULL; "" stands for none. The strings may go when the call returns. */
typedef struct weir_hold_order {
  const char* server; /* unix:/PATH or HOST:PORT; the latter wants certificates */
  const char* certificate;
  const char* key;
  const char* authority;  /* who signed the switch's certificate */
  const char* name;       /* the switch's in its certificate, if it is not HOST */
  const char* token_file; /* for managers; then certificate and key may be "" */
  weir_hold_id id_is;     /* CHOSEN: by the switch */
  uint32_t id;            /* 0 if it is chosen */
  uint32_t window;        /* messages */
  uint32_t message_bytes; /* header included */
  uint32_t mtu;
  uint32_t nonce;             /* the only one of the ring's hellos */
  const char* const* members; /* addresses in rank order */
  size_t member_count;
  const char* const* operators; /* texts, which go with the ring; not of a job's */
  size_t operator_count;
  uint32_t timeout_ms;
  /* Asked several times a second while the caller of `hold` waits. Not 0: the caller needs no ring
   * any more. */
  int (*is_stopped)(void* user);
  /* Called at most once, by another thread, when the switch has ended the ring. */
  void (*ended)(void* user, const char* why);
  void* user;
} weir_hold_order;

typedef struct weir_held_ring {
  uint32_t id;
  uint32_t workers; /* lcores of the switch among which parallel rings are dealt out; at least 1 */
} weir_held_ring;

/* How many rings, and their ids. */
typedef struct weir_job_rings {
  size_t wanted;
  size_t least;  /* 1 .. wanted: fewer are none */
  size_t made;   /* written, as the first so many of the ids */
  uint32_t* ids; /* room for `wanted` */
} weir_job_rings;

/* A queue pair whose peer the switch is to be, and its copy of the memory. */
typedef struct weir_hold_region_member {
  uint32_t queue_pair;
  uint32_t first_psn; /* of its requests */
  uint64_t base;
  uint32_t key;
  uint32_t ack_timeout; /* 4.096 us x 2^x */
  uint32_t reads;
} weir_hold_region_member;

typedef struct weir_hold_region_view {
  const char* operation; /* "sum" */
  const char* type;      /* "f32" */
} weir_hold_region_view;

/* What an order says of a region beside its members' addresses, window and mtu. 0 stands for the
 * switch's defaults. */
typedef struct weir_hold_region {
  uint64_t bytes;    /* of each copy */
  uint64_t patience; /* seconds */
  uint64_t forming;  /* seconds */
  uint32_t entries;
  int loopback; /* 0 or 1 */
  const weir_hold_region_view* views;
  size_t view_count;
  const weir_hold_region_member* members; /* as many as the order has */
} weir_hold_region;

/* The switch's end of a member's connection. */
typedef struct weir_held_region_end {
  uint32_t queue_pair;
  uint32_t first_psn;
  uint8_t token[16];
} weir_held_region_end;

typedef struct weir_held_region {
  uint32_t id;
  char ip[46];  /* the switch's, as text */
  char mac[18]; /* likewise */
  uint64_t base;
  uint32_t key;
  uint32_t window; /* as the region has it */
  uint64_t patience;
  weir_held_region_end* ends; /* room for each member */
  uint32_t* view_keys;        /* room for each view */
} weir_held_region;

typedef struct weir_switch_module {
  uint32_t version;
  /* NULL: there is no ring, and `why` has the reason. Throws nothing. */
  weir_hold* (*hold)(const weir_hold_order* order, weir_held_ring* held, char* why,
                     size_t why_bytes);
  /* The same for rings of a fabric's manager, whose addresses `server` has, separated by commas.
   * `id_is` and `id` are not looked at. A manager that ends, or is cut off, ends no ring: it is
   * asked again, and so are the others. */
  weir_hold* (*hold_job)(const weir_hold_order* order, weir_job_rings* rings, char* why,
                         size_t why_bytes);
  /* The same for a region of a switch. Of the order, id, message_bytes, nonce and operators are not
   * looked at. */
  weir_hold* (*hold_region)(const weir_hold_order* order, const weir_hold_region* region,
                            weir_held_region* held, char* why, size_t why_bytes);
  /* Ends the ring or region. `ended` does not run when it returns, and is not called any more. Not
   * for a thread that runs `ended`. */
  void (*release)(weir_hold* hold);
} weir_switch_module;

/* The only name that the module exports. */
const weir_switch_module* weir_switch_module_of(void);

#ifdef __cplusplus
}
#endif

#endif
