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
  WEIR_MISMATCH = 6,           /* ranks disagree, or another group has the ring */
  WEIR_TIMEOUT = 7,            /* no progress for timeout_ms */
  WEIR_TRANSPORT_FAILURE = 8,  /* the device, the socket or the peer's transport failed */
  WEIR_PENDING = 9,            /* weir_test, weir_forming_test and their like: not done yet */
  WEIR_INTERNAL_ERROR = 10,    /* out of memory and the like */
  WEIR_ABORTED = 11,           /* a rank called weir_group_abort or weir_forming_abort */
  WEIR_OPERATOR_FAILED = 12,   /* a switch's kernel for an operator disagrees with the text */
  WEIR_CANCELLED = 13,         /* weir_cancel ended the request; the group goes on */
  WEIR_NO_REGION = 14          /* the switch makes no such region, or has ended it; likewise */
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
  WEIR_F8E5M2 = 13,
  WEIR_AS_OPERATOR = 255 /* with WEIR_OPERATOR(k): as it says; a count is in bytes */
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

/* The group's operator k: weir_group_options.operators[k]. */
#define WEIR_OPERATOR(k) ((weir_operation)(128 + (k)))

typedef enum weir_transport {
  WEIR_SOFTWARE = 0, /* the library's own RC queue pair over raw Ethernet frames */
  WEIR_VERBS = 1     /* a RoCE NIC by libibverbs */
} weir_transport;

/* What to do when no ring is left: nobody aggregates, or no switch answers the hellos. */
typedef enum weir_fallback {
  WEIR_FALLBACK_NONE = 0, /* fail: WEIR_NOT_AGGREGATED, WEIR_TIMEOUT or WEIR_RETRY_EXCEEDED */
  WEIR_FALLBACK_RING = 1  /* reduce on the hosts, to the same bits */
} weir_fallback;

/* What to do when some of the group's rings have no answer for all ranks, and others have. */
typedef enum weir_missing_rings {
  WEIR_MISSING_RINGS_LEAVE_OUT = 0, /* go on with the others; weir_group_missing_rings says why */
  WEIR_MISSING_RINGS_REFUSE = 1     /* all rings or none, as if none had an answer */
} weir_missing_rings;

/* Who drives the calls that no thread waits for. */
typedef enum weir_progress {
  WEIR_PROGRESS_THREAD = 0, /* a thread of the library's, unless the program tests all the time */
  WEIR_PROGRESS_CALLER = 1  /* only weir_test, weir_group_progress and the waiting calls */
} weir_progress;

/* Whose memory a weir_memory is. */
typedef enum weir_memory_kind {
  WEIR_MEMORY_HOST = 0,  /* the CPU's, which this process may write */
  WEIR_MEMORY_DMABUF = 1 /* of a device's driver that exports it: weir_memory_register_dmabuf */
} weir_memory_kind;

typedef struct weir_context weir_context;   /* a device */
typedef struct weir_listener weir_listener; /* where rank 0 of a group to come listens */
typedef struct weir_memory weir_memory;     /* memory that the device reads and writes by itself */
typedef struct weir_group weir_group;       /* ranks that reduce together */
typedef struct weir_forming weir_forming;   /* a group that is being formed */
typedef struct weir_request weir_request;   /* an operation under way */
typedef struct weir_persistent weir_persistent; /* a call that is made again and again */
typedef struct weir_region weir_region;         /* memory of which each rank has a copy */
typedef struct weir_operator weir_operator;     /* how values are read, joined and written */

/* Every options struct begins with its size, which weir_..._options_init sets. So a program that
 * was compiled with an older, shorter struct runs with a newer library. */

typedef struct weir_context_options {
  size_t size;
  weir_transport transport;
  const char* device; /* software: network interface; verbs: RDMA device, such as mlx5_0 */
  /* software only: this rank's address, as in the switch's ring. NULL: the interface's one IPv4
   * address, or its one IPv6 address if it has no IPv4. */
  const char* ip;
  const char* mac;   /* software only; NULL: the interface's */
  uint8_t gid_index; /* verbs only: the RoCEv2 entry of the port's GID table */
} weir_context_options;

/* Fills `out` with every rank's `bytes` bytes, in rank order. Returns 0, or anything else when it
 * cannot. Must not throw. */
typedef int (*weir_all_gather_function)(void* user, const void* in, size_t bytes, void* out);

/* Of a handle that weir_listen makes. */
#define WEIR_HANDLE_BYTES 128

/* In place of a number of rings, with `rings` NULL: as many as the switch that makes them has
 * workers for rings, at most 8; of a fabric's manager, as many as share no link between switches.
 * Where the rings are configured: ring 1. */
#define WEIR_RINGS_OFFERED ((size_t)-1)

/* All ranks give the same values, except for `rank`, `secret`'s address, `all_gather_user`,
 * `progress`, `listener`, `handle`, and all that begins with `switch_`. They compare them when they
 * meet. */
typedef struct weir_group_options {
  size_t size;
  uint16_t rank;
  uint16_t world; /* number of ranks: 1 .. 256 */
  /* HOST:PORT where rank 0 listens; with all_gather NULL, or HOST:0; with listener and handle NULL
   */
  const char* rendezvous;
  /* Ids, as configured in the switch. NULL: rings 1 .. ring_count, or so many with ids that the
   * switch chooses if it makes them. */
  const uint32_t* rings;
  size_t ring_count;      /* 0 with rings NULL: 1; or WEIR_RINGS_OFFERED */
  uint32_t window;        /* messages, as configured in the switch */
  uint32_t message_bytes; /* 40-byte header included; likewise */
  uint32_t path_mtu;      /* 256, 512, 1024, 2048 or 4096 */
  uint32_t epoch;         /* 0: rank 0's wall-clock seconds */
  weir_fallback fallback;
  uint32_t form_timeout_ms; /* to meet the other ranks */
  uint32_t timeout_ms;      /* without progress of a call that all have made */
  uint32_t ack_timeout_ms;  /* 0: 67 in software, an eighth of timeout_ms over verbs */
  uint8_t retry_count;      /* 0 .. 7; 7 is no limit in software */
  uint32_t lateness_ms; /* until the last rank makes a call that others have made; 0: any time */
  const char* job;      /* up to 64 characters; another job's callers are turned away */
  const void* secret;   /* NULL: none; callers without it are turned away */
  size_t secret_bytes;  /* 16 .. 1024 */
  /* NULL: none. Called once by weir_group_form or weir_start_group_form on each rank, in the
   * calling thread, to tell the others where rank 0 listens, and a secret if there is none. */
  weir_all_gather_function all_gather;
  void* all_gather_user;
  /* A rank whose machine or network is gone is noticed within this time, also between calls:
   * 0: timeout_ms; never less than 3000. */
  uint32_t keep_alive_ms;
  uint32_t farewell_ms; /* weir_group_close stays for others no longer; 0: timeout_ms; rank 0: 2 s
                           more */
  /* Of rank 0. The control service of the switch that makes the rings when the group is formed, and
   * ends them with the group: unix:/PATH or HOST:PORT. NULL: $WEIR_SWITCH. "" or neither: the
   * switch's configuration has the rings. It needs the package libweir1-switch. */
  const char* switch_address;
  /* PEM files, for HOST:PORT. NULL or "": $WEIR_SWITCH_CERTIFICATE, $WEIR_SWITCH_KEY and
   * $WEIR_SWITCH_AUTHORITY, who signed the switch's certificate. */
  const char* switch_certificate;
  const char* switch_key;
  const char* switch_authority;
  const char* switch_name; /* in its certificate, if it is not HOST; NULL: $WEIR_SWITCH_NAME */
  weir_missing_rings missing_rings;
  weir_progress progress;  /* docs/host.md says what a group without a thread asks of its program */
  weir_listener* listener; /* of rank 0, in place of `rendezvous`; else NULL. The group takes its
                              port and leaves it useless: it is to be closed all the same */
  const void* handle;      /* of the other ranks: what weir_listen gave rank 0; else NULL */
  size_t handle_bytes;     /* WEIR_HANDLE_BYTES; without a handle 0 */
  /* Of weir_operator_load, at most 4: what WEIR_OPERATOR(0), … name. The group keeps what it needs.
   */
  const weir_operator* const* operators;
  size_t operator_count;
} weir_group_options;

/* Fill in the defaults. */
#define weir_context_options_init(options)                                                         \
  weir_context_options_init_sized((options), sizeof(*(options)))
#define weir_group_options_init(options)                                                           \
  weir_group_options_init_sized((options), sizeof(*(options)))
void weir_context_options_init_sized(weir_context_options* options, size_t size);
void weir_group_options_init_sized(weir_group_options* options, size_t size);

/* A device that weir_context_options can name. */
typedef struct weir_device {
  size_t size; /* sizeof(weir_device), set by the caller in the first of an array */
  weir_transport transport;
  char name[64];      /* a network interface; WEIR_VERBS: an RDMA device */
  char interface[16]; /* the network interface, also of an RDMA device; "" if it has none */
  char ip[46];        /* the address that a context without `ip` has; "": none, or several */
  char mac[18];
  char pci_path[256];  /* in sysfs, as /sys/devices/pci0000:00/0000:00:05.0; "": on no PCI bus */
  int numa_node;       /* -1: the machine has one, or does not say */
  uint64_t speed_mbps; /* 10^6 bits a second; 0: unknown */
  uint32_t mtu;        /* bytes, the interface's */
  int gid_index;       /* WEIR_VERBS: the first RoCEv2 entry of the port's GID table with an IPv4
                          address or, if there is none, an IPv6 one; -1: there is none */
  int is_up;           /* 1: it has a link */
} weir_device;

/* This host's Ethernet interfaces without the loopback, then its RoCE NICs, each in the order of
 * their names. Writes the first `capacity` of them, and to `count` how many there are. devices NULL
 * with capacity 0: only counts. An RDMA device is in it even if the library was built without
 * verbs. */
weir_status weir_list_devices(weir_device* devices, size_t capacity, size_t* count);

/* Checks the options and copies them. The device is opened by the first group or memory that needs
 * it. */
weir_status weir_context_open(const weir_context_options* options, weir_context** context);
/* Its groups and memory live on. NULL: does nothing. */
void weir_context_close(weir_context* context);

/* Listens for the other ranks of a group to come, before they know where: for the rank that will be
 * rank 0. `address`: HOST:PORT, where PORT may be 0, a free one; NULL: every interface. Writes
 * WEIR_HANDLE_BYTES to `handle`, for the options of the other ranks; the program hands them on, for
 * example by NCCL's connect handles or MPI's modex. They hold addresses, the port, and a secret
 * that is drawn for this listener. Each group needs a listener of its own. WEIR_TRANSPORT_FAILURE:
 * the address is in use or not this host's, or this host has none. */
weir_status weir_listen(weir_context* context, const char* address, weir_listener** listener,
                        void* handle);
/* At any time. A group that has the port keeps it until all ranks have met. NULL: does nothing. */
void weir_listener_close(weir_listener* listener);

/* Makes the memory known to the context's device, for all groups of the context. Calls whose
 * buffers lie in it are not copied. Any other memory may be used as well. The same bytes may be
 * registered several times. A buffer counts as registered if one registration has all of it. With
 * WEIR_SOFTWARE it costs nothing and changes nothing. */
weir_status weir_memory_register(weir_context* context, weir_memory_kind kind, void* address,
                                 size_t bytes, weir_memory** memory);

/* Memory that a driver has exported as a dma-buf, and this process has as a descriptor. */
typedef struct weir_dmabuf {
  size_t size; /* sizeof(weir_dmabuf), set by the caller */
  int fd;      /* may be closed when the call has returned */
  uint64_t offset;
  size_t bytes;
} weir_dmabuf;

/* The same of WEIR_MEMORY_DMABUF. The library maps it until the release, and calls take the
 * addresses from weir_memory_address on. With WEIR_VERBS the NIC reads and writes it where the
 * driver keeps it. With WEIR_SOFTWARE, and where a call copies, the CPU does: then the program
 * brackets its calls with DMA_BUF_IOCTL_SYNC if the exporter asks for it. WEIR_INVALID_ARGUMENT: no
 * such part of a descriptor. WEIR_TRANSPORT_FAILURE, with what is lacking: it cannot be mapped, or
 * the device or its libibverbs takes no dma-buf. */
weir_status weir_memory_register_dmabuf(weir_context* context, const weir_dmabuf* dmabuf,
                                        weir_memory** memory);
/* Where it begins, for calls. Of NULL: NULL. */
void* weir_memory_address(const weir_memory* memory);
/* Before the memory is freed or unmapped, and not while a call uses it: that call may fail. NULL:
 * does nothing. */
void weir_memory_release(weir_memory* memory);

/* Meets the other ranks, connects to the neighbours and says hello to the switch. Ranks that say
 * the same device and address on one host share them: the lowest connects, the others reach it by
 * shared memory. All are one user's, else WEIR_MISMATCH. Copies the options. A group of one rank
 * needs none of this and opens no device: its reductions are the fold of its own elements, its
 * other calls copy. */
weir_status weir_group_form(weir_context* context, const weir_group_options* options,
                            weir_group** group);

/* Starts the same and returns: the device is open, and a thread of the library does the rest. A
 * process may form several groups at once, and each rank may start them in another order. Errors of
 * the options and the device come from here, all others from the next calls. If the options have an
 * all_gather, it is called here and takes its time. `forming` becomes the caller's, to be released;
 * NULL after an error. */
weir_status weir_start_group_form(weir_context* context, const weir_group_options* options,
                                  weir_forming** forming);
/* WEIR_OK: the group is formed. WEIR_PENDING, or the error for which it is not formed. Never
 * blocks. Any number of threads may call it, and the next. */
weir_status weir_forming_test(weir_forming* forming);
/* The same, after `timeout_ms` at most. */
weir_status weir_forming_wait_for(weir_forming* forming, uint32_t timeout_ms);
/* Hands out the group, once; the forming is to be released all the same. Returns what
 * weir_forming_test returns, with `group` NULL unless it is WEIR_OK. Never blocks. */
weir_status weir_forming_take(weir_forming* forming, weir_group** group);
/* Ends it, on this rank and on those that it has met: with WEIR_ABORTED, about this rank. A group
 * that is formed and was not taken ends likewise; one that was taken goes on. Never blocks and
 * needs no other rank. For any thread, but not for a signal handler. */
weir_status weir_forming_abort(weir_forming* forming);
/* The same; the error's text goes on with `why`, up to 1000 bytes of it, on all ranks. */
weir_status weir_forming_abort_because(weir_forming* forming, const char* why);
/* For poll(2): readable, for ever, when weir_forming_test would not be WEIR_PENDING. The forming
 * owns it: do not read or close it. -1: there is none; weir_last_error says why. */
int weir_forming_descriptor(weir_forming* forming);
/* At any time, when no other thread uses it. Aborts what is not done, and a group that was not
 * taken; waits some hundredths of a second for the library's thread, longer only while the system
 * resolves a name in `rendezvous` or a NIC ends its requests. Then no thread, descriptor, port or
 * ring is left of it. NULL: does nothing. */
void weir_forming_release(weir_forming* forming);

/* After a rank has died: forms a group of the ranks that live, in the order of their old ranks.
 * Every one of them calls it, and within form_timeout_ms of one another; a rank that has ended or
 * closed the group is left out. They find out by themselves who is left. Ends the old group's
 * calls, if they have not ended; the old group is closed as always. `options` NULL: the old ones,
 * with a later epoch. Not used are rank, world, rendezvous, job, secret, all_gather and
 * keep_alive_ms. The switch aggregates only a ring that has as many members: name such a ring, or
 * allow the hosts'. After an error but WEIR_INVALID_ARGUMENT it may be called again:
 * WEIR_PEER_DIED, a rank died meanwhile, or only one is left, which may form a group of one;
 * WEIR_RENDEZVOUS_TIMEOUT, a rank lives and did not come, or so many do not answer that they may go
 * on without us; WEIR_MISMATCH, also where another job has begun on a ring of the options. */
weir_status weir_group_shrink(weir_group* group, const weir_group_options* options,
                              weir_group** shrunk);
/* Forms groups of the ranks of one that goes on: one for each colour, of the ranks that give it, in
 * the order of their keys; equal keys in the order of the ranks. A collective, so every rank of
 * `group` calls it, in the same order as its other calls, and it waits. Nobody has to agree on a
 * place: the ranks tell one another where they listen by a call of `group`. `options` NULL: the
 * group's own, with rings that the switch chooses if it makes them. Not used are rank, world,
 * rendezvous, listener, handle, job, secret and all_gather. Each part needs rings of its own. A
 * first rank of a part that knows no switch uses the address that rank 0 of `group` has. Errors are
 * about ranks of `group`, which goes on unless its own call failed. */
#define WEIR_NO_COLOUR (-1) /* this rank goes into no part: `part` becomes NULL, with WEIR_OK */
weir_status weir_group_split(weir_group* group, int32_t colour, int32_t key,
                             const weir_group_options* options, weir_group** part);
/* The same with the ranks of this rank's part, in their order there; without this one, it goes into
 * no part. All ranks of a part name the same ones, else WEIR_MISMATCH. */
weir_status weir_group_select(weir_group* group, const uint16_t* ranks, size_t count,
                              const weir_group_options* options, weir_group** part);
/* The same with all ranks. */
weir_status weir_group_dup(weir_group* group, const weir_group_options* options, weir_group** copy);
/* The number that a rank had before: of a group that was shrunk, or split, in that one. Of a group
 * that was formed: `rank`. -1: there is no such rank. */
int weir_group_parent_rank(const weir_group* group, uint16_t rank);
/* Of the ranks that share that rank's NIC, the lowest: it reaches the network for them, and their
 * data are folded together first. `rank` itself if it shares its NIC with none. -1: there is no
 * such rank. */
int weir_group_leader(const weir_group* group, uint16_t rank);
/* Makes a step of the group's calls, if no other thread drives them. Never waits. For groups with
 * WEIR_PROGRESS_CALLER while they have no request to test. WEIR_OK, or the error that ended the
 * group. */
weir_status weir_group_progress(weir_group* group);
/* Where this rank's host is found by the other ranks: the address by which they have met, as a
 * number; not the loopback, unless all of them are on one host. "": NULL, or a group of one. Valid
 * as long as the group. */
const char* weir_group_address(const weir_group* group);
/* Ends this rank's calls, those under way and later ones, and the other ranks' with them: with
 * WEIR_ABORTED, about this rank. Never blocks and needs no other rank. For any thread, but not for
 * a signal handler. */
weir_status weir_group_abort(weir_group* group);
/* The same; the error's text goes on with `why`, up to 1000 bytes of it, on all ranks. */
weir_status weir_group_abort_because(weir_group* group, const char* why);
/* Ends what is under way, and stays for ranks that still need an acknowledgement, for at most
 * farewell_ms. NULL: does nothing. */
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

/* Of NULL: 0 or "". */
uint16_t weir_group_rank(const weir_group* group);
uint16_t weir_group_world(const weir_group* group);
uint32_t weir_group_epoch(const weir_group* group);
/* "switch", "ring", "alone" for one rank, or "local" where all ranks share one NIC. */
const char* weir_group_algorithm(const weir_group* group);
/* Why it is "ring"; "" if it is not. The group owns the string. */
const char* weir_group_fallback_reason(const weir_group* group);
/* How many rings carry the group's calls, and the ids of the first `capacity` of them, in the
 * options' order. 0 unless the algorithm is "switch". */
size_t weir_group_rings(const weir_group* group, uint32_t* ids, size_t capacity);
/* Why other rings of the options do not: the same sentence on all ranks; "" if they all do. The
 * group owns the string. */
const char* weir_group_missing_rings(const weir_group* group);
/* Which of the options' operators no switch folds by, although the algorithm is "switch", and why:
 * the same sentence on all ranks; "" if there is none. The hosts fold by these if the group has a
 * fallback. The group owns the string. */
const char* weir_group_missing_operators(const weir_group* group);
/* How "ring" reduces tensors of this type: "reduce-scatter" or "chain". */
const char* weir_ring_schedule(weir_data_type type);

/* Collectives. Every rank makes the same calls in the same order, with the same `count`, `type`,
 * `operation` and `root`. `count` elements may be 0. `in` and `out` do not overlap, except in place
 * as each call says. After an error other than WEIR_INVALID_ARGUMENT, WEIR_CANCELLED and
 * WEIR_NO_REGION the group is over.
 *
 * A reduction is the fold of the ranks' elements from rank 0 on. Where ranks share a NIC, theirs
 * are folded first, and then these folds, in the order of their lowest ranks. */

/* 1 if there is this reduction of this type, else 0: floats have no WEIR_AND, WEIR_OR, WEIR_XOR. A
 * call with such a pair is a WEIR_INVALID_ARGUMENT. */
int weir_is_reducible(weir_data_type type, weir_operation operation);

/* Operators and formats of the user's own (docs/operators.md). Checks the text and tries it. After
 * an error that is about the text, weir_last_error tells the line, what was found and what is
 * allowed. `op` becomes the caller's, to be released. */
weir_status weir_operator_load(const char* text, size_t bytes, weir_operator** op);
/* At any time; groups that have it go on. NULL: does nothing. */
void weir_operator_release(weir_operator* op);
/* The name in the text, and 64 hexadecimal digits that are the same where text and results are.
 * Valid as long as `op`. Of NULL: "". */
const char* weir_operator_name(const weir_operator* op);
const char* weir_operator_digest(const weir_operator* op);
/* Tensors of an operator are laid out for packets: those of a group with this path_mtu and
 * message_bytes. Without a call: of the options' defaults. For packing, places and reduce; groups
 * take their own options'. */
weir_status weir_operator_set_layout(weir_operator* op, uint32_t path_mtu, uint32_t message_bytes);
/* Bytes of a tensor with so many elements: numbers of blocks, or structs. A multiple of 8; 0 for
 * more than 2^48. */
size_t weir_operator_bytes(const weir_operator* op, size_t elements);
/* Where the element's struct or code begins, in bytes. */
size_t weir_operator_place(const weir_operator* op, size_t element);
/* Between f32 and what ranks bring: `finish` of the numbers, without `start`, which the fold does.
 * Only for operators of blocks, or of one field, whose `start` gives one f32 for each element, such
 * as those of MX; else WEIR_INVALID_ARGUMENT. */
weir_status weir_operator_pack(const weir_operator* op, const float* in, size_t elements,
                               void* out);
weir_status weir_operator_unpack(const weir_operator* op, const void* in, size_t elements,
                                 float* out);
/* What the network must give: the fold of `count` tensors of `bytes` bytes, in their order. `out`
 * is none of them. */
weir_status weir_operator_reduce(const weir_operator* op, void* out, const void* const* inputs,
                                 size_t count, size_t bytes);

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
/* The same two with gaps in the longer buffer: in elements, `stride` from one rank's share to the
 * next one's, `count` or more; each rank has its own. Elements in the gaps are neither read nor
 * written. All-gather: out[r * stride + i] is rank r's in[i]; in place: in == out + own rank *
 * stride elements. Reduce-scatter: out[i] is the reduction of every rank's in[own rank * stride +
 * i]; `in` is copied before the call returns. */
weir_status weir_all_gather_strided(weir_group* group, const void* in, void* out, size_t count,
                                    size_t stride, weir_data_type type);
weir_status weir_reduce_scatter_strided(weir_group* group, const void* in, void* out, size_t count,
                                        size_t stride, weir_data_type type,
                                        weir_operation operation);
/* Returns when every rank has called it. */
weir_status weir_barrier(weir_group* group);

/* A sparse all-reduce. Each rank brings elements or blocks of a tensor that is 0 elsewhere, and
 * gets the union of all ranks' blocks: indices and values, the same on all ranks, and bit for bit
 * what weir_all_reduce makes of the whole tensors. Absent elements have all bits 0, so only
 * operations that 0 does not change are allowed: WEIR_SUM, WEIR_AVERAGE, WEIR_OR, WEIR_XOR, scaled
 * sums.
 *
 * Indices may be in any order and come several times, as in an uncoalesced tensor of PyTorch: a
 * rank folds equal ones in their order before it sends them. The result ascends and has each once.
 */
typedef struct weir_sparse_tensor {
  size_t size;  /* sizeof(weir_sparse_tensor), set by the caller */
  size_t count; /* elements of the whole tensor, 2^36 blocks at most; on all ranks alike */
  const int64_t* indices; /* in blocks: element i is in block i / block_elements */
  const void* values;     /* block_elements for each index; what is behind `count` is ignored */
  size_t index_count;     /* may be 0, and is each rank's own */
  /* 1: single elements. Up to 65535: blocks, in the result as well. 0: single elements, and the
   * result has blocks whose size all ranks choose alike, from how much they bring. */
  size_t block_elements;
} weir_sparse_tensor;

typedef struct weir_sparse_result weir_sparse_result; /* belongs to the caller */

/* What is in a result. The result owns the memory. */
typedef struct weir_sparse_view {
  size_t size; /* sizeof(weir_sparse_view), set by the caller */
  const int64_t* indices;
  const void* values; /* block_elements for each index; 0 behind the tensor's end */
  size_t index_count;
  size_t block_elements;
  uint32_t is_dense;        /* 1: every block is there, since that was cheaper; else 0 */
  uint32_t reserved;        /* 0 */
  uint64_t exchanged_bytes; /* up, and again down, this rank's link, without headers */
} weir_sparse_view;

/* `result` becomes the caller's, to be freed; NULL after an error. */
weir_status weir_sparse_all_reduce(weir_group* group, const weir_sparse_tensor* tensor,
                                   weir_data_type type, weir_operation operation,
                                   weir_sparse_result** result);
/* Until the request is done, the tensor's memory belongs to the group. The struct may go. */
weir_status weir_start_sparse_all_reduce(weir_group* group, const weir_sparse_tensor* tensor,
                                         weir_data_type type, weir_operation operation,
                                         weir_sparse_result** result, weir_request** request);
/* Writes as much as view->size says. WEIR_PENDING: its call is not done. If its call ended with an
 * error: that error. So does weir_sparse_result_copy. */
weir_status weir_sparse_result_read(const weir_sparse_result* result, weir_sparse_view* view);
/* Copies to the caller's memory. `capacity` is in indices; when it is too small, nothing is copied
 * and the error says how many there are. The group goes on, and so does the result. */
weir_status weir_sparse_result_copy(const weir_sparse_result* result, int64_t* indices,
                                    void* values, size_t capacity);
/* At any time, also during the call and after the group's end. NULL: does nothing. */
void weir_sparse_result_free(weir_sparse_result* result);

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
weir_status weir_start_all_gather_strided(weir_group* group, const void* in, void* out,
                                          size_t count, size_t stride, weir_data_type type,
                                          weir_request** request);
weir_status weir_start_reduce_scatter_strided(weir_group* group, const void* in, void* out,
                                              size_t count, size_t stride, weir_data_type type,
                                              weir_operation operation, weir_request** request);
weir_status weir_start_barrier(weir_group* group, weir_request** request);

/* Persistent calls: the same call on the same buffers again and again, as MPI's ..._init. Each is
 * prepared once, on each rank for itself: the arguments are checked, and nothing is sent. Only its
 * starts count in the order of the calls, and on another rank they may be weir_start_... of the
 * same. `persistent` becomes the caller's, to be released; NULL after an error. An array of tensors
 * may go when the call returns. An operation that the group has made is not to be dropped before.
 */
weir_status weir_prepare_all_reduce(weir_group* group, const void* in, void* out, size_t count,
                                    weir_data_type type, weir_operation operation,
                                    weir_persistent** persistent);
weir_status weir_prepare_all_reduce_coalesced(weir_group* group, const weir_tensor* tensors,
                                              size_t tensor_count, weir_data_type type,
                                              weir_operation operation,
                                              weir_persistent** persistent);
weir_status weir_prepare_reduce(weir_group* group, const void* in, void* out, size_t count,
                                weir_data_type type, weir_operation operation, uint16_t root,
                                weir_persistent** persistent);
weir_status weir_prepare_broadcast(weir_group* group, void* data, size_t count, weir_data_type type,
                                   uint16_t root, weir_persistent** persistent);
weir_status weir_prepare_all_gather(weir_group* group, const void* in, void* out, size_t count,
                                    weir_data_type type, weir_persistent** persistent);
weir_status weir_prepare_reduce_scatter(weir_group* group, const void* in, void* out, size_t count,
                                        weir_data_type type, weir_operation operation,
                                        weir_persistent** persistent);
weir_status weir_prepare_all_gather_strided(weir_group* group, const void* in, void* out,
                                            size_t count, size_t stride, weir_data_type type,
                                            weir_persistent** persistent);
weir_status weir_prepare_reduce_scatter_strided(weir_group* group, const void* in, void* out,
                                                size_t count, size_t stride, weir_data_type type,
                                                weir_operation operation,
                                                weir_persistent** persistent);
weir_status weir_prepare_barrier(weir_group* group, weir_persistent** persistent);
/* Makes the call's buffers known to the device, as weir_memory_register, until the release. So they
 * must be writable, `in` too, and stay where they are until then. Without it a start does what
 * weir_start_... does: buffers that the program has registered are not copied. After an error the
 * call goes on as before. Once is enough: then it does nothing. */
weir_status weir_persistent_register(weir_persistent* persistent);
/* Starts the call. The last request of it must be done, or cancelled, but need not be released. */
weir_status weir_start_persistent(weir_persistent* persistent, weir_request** request);
/* Not while a request of it is under way, nor, if it was registered, any call with its buffers. Its
 * requests live on. NULL: does nothing. */
void weir_persistent_release(weir_persistent* persistent);

/* WEIR_OK, WEIR_PENDING or an error. If the request is not done, makes a step of the group's calls
 * first, unless another thread drives them. Never waits. */
weir_status weir_test(weir_request* request);
/* The same, after `timeout_ms` at most. If ranks are late, and this one has waited for them for the
 * group's timeout_ms, weir_last_error names them: "rank 3 has not made call 7". */
weir_status weir_wait_for(weir_request* request, uint32_t timeout_ms);
/* Until it is done. Frees the request: no other thread may use it then. Several threads may wait
 * for one request by weir_wait_for, which frees nothing. */
weir_status weir_wait(weir_request* request);
void weir_release(weir_request* request); /* the same; NULL: does nothing */

/* Gives up this rank's result, if nothing of the call has left this rank yet. The call itself
 * cannot be taken back, because the other ranks make it too: it keeps its place in the order, this
 * rank's part is copied for it, and the others get their results as always.
 *
 * WEIR_OK: the request is over, and its buffers are the caller's. If this call has ended it, its
 * status is WEIR_CANCELLED; if it was over before, what it was. The group goes on. WEIR_PENDING: a
 * part of it has left, and it goes on as if nobody had asked; so do always a sparse all-reduce and
 * a call by an operator by which the hosts fold. WEIR_INTERNAL_ERROR: no memory for the copy; it
 * goes on. The request is to be released all the same.
 *
 * Waits for a step of the group's calls at most, and takes as long as the copy; it needs no other
 * rank. Any thread may call it, and a callback, while another one waits by weir_wait_for. Before
 * weir_group_close, wait for a later call, such as a barrier: to close a group during a cancelled
 * call ends it for the others as well. */
weir_status weir_cancel(weir_request* request);

/* Called once the request is done: WEIR_OK, or the error that ended it, which weir_last_error tells
 * there as well. Must not throw. */
typedef void (*weir_done_function)(void* argument, weir_status status);

/* Has `function` called exactly once when the request is done; if it is done, before this call
 * returns, unless callbacks of its group are being called. Otherwise by the library's thread, or
 * by one in weir_test, weir_group_progress, weir_group_close or a call that waits; never in
 * weir_start_... or weir_group_abort. The group's callbacks come one at a time, in the order of the
 * requests' ends. None comes after weir_group_close has returned.
 *
 * The callback may start calls, test and abort. What would wait is a WEIR_INVALID_ARGUMENT there:
 * weir_wait and weir_wait_for of a request that is not done (which is not freed), calls that wait,
 * weir_group_form, weir_forming_wait_for and weir_group_shrink; weir_group_close does nothing. It
 * may release its request, if no other thread uses it; somebody must. A request has one callback at
 * most. */
weir_status weir_on_done(weir_request* request, weir_done_function function, void* argument);

/* A descriptor for poll(2), so that one thread can wait for requests and for other things. Readable
 * while a request is done that nobody has tested or waited for since and that has no callback, and
 * for ever after an error.
 * The group owns it: do not read or close it. -1: there is none, as for WEIR_PROGRESS_CALLER;
 * weir_last_error says why. */
int weir_group_descriptor(weir_group* group);
/* The same for all groups of the context, also later ones, but those with WEIR_PROGRESS_CALLER:
 * readable while one of theirs is. Until weir_context_close; no descriptor of a group that is
 * closed counts. */
int weir_context_descriptor(weir_context* context);

/* Regions (docs/regions.md): memory of which each rank has a copy. A write goes into all other
 * ranks' copies, in one order everywhere; a read gives a fold of all copies. The switch does both,
 * and the ranks need not call anything together, but to make a region and to close it. */

/* What reads give: a fold of all ranks' copies, that of the reader too, from rank 0 on. */
typedef struct weir_region_view {
  weir_operation operation; /* WEIR_SUM .. WEIR_XOR */
  weir_data_type type;
} weir_region_view;

/* All ranks give the same. 0: the switch's defaults, but for `reads`. */
typedef struct weir_region_options {
  size_t size;
  const weir_region_view* views; /* at most 16, each once; NULL: nobody can read */
  size_t view_count;
  uint32_t window;     /* packets of a rank that the switch holds for the others, 2 .. 4096 */
  uint32_t entries;    /* packets of reads that the switch gathers at a time, 1 .. 4096 */
  uint32_t loopback;   /* 1: a rank gets its own writes, too, in the order of all */
  uint32_t reads;      /* that a rank may have unanswered, 1 .. 16; more wait; 4 unless given */
  uint32_t patience_s; /* seconds in which who owes an acknowledgement must give a sign of life */
  uint32_t forming_s;  /* seconds in which all must have come; 0: the group's form_timeout_ms */
} weir_region_options;

#define weir_region_options_init(options)                                                          \
  weir_region_options_init_sized((options), sizeof(*(options)))
void weir_region_options_init_sized(weir_region_options* options, size_t size);

/* Makes a region whose copy on this rank is `memory`, `bytes` long, 16 or more, as on all ranks. A
 * collective, so every rank of `group` calls it, in the same order as its other calls; it returns
 * when all have. Rank 0 has the switch of its group's switch_address, or $WEIR_SWITCH, hold the
 * region: it lasts until the region is closed, or rank 0's process ends. Of the group are path_mtu
 * and all time limits. Until the close the memory stays where it is, and others' writes come into
 * it at any time: a thread of the library's answers, also where the group has none. `options` NULL:
 * the defaults.
 *
 * WEIR_NO_REGION, on all ranks: the switch is not reached, has no regions: or no room, or refuses,
 * which weir_last_error says in its words. WEIR_MISMATCH: ranks give other bytes or options.
 * WEIR_TRANSPORT_FAILURE: a rank's device refuses: more memory than `ulimit -l` allows, or `reads`
 * that are too many for it. */
weir_status weir_region_form(weir_group* group, void* memory, size_t bytes,
                             const weir_region_options* options, weir_region** region);

/* In place of an immediate: none. */
#define WEIR_NO_IMMEDIATE UINT32_MAX

/* Starts a write of `bytes` bytes of `data` to all other ranks' copies from byte `offset` on; with
 * the region's `loopback` to this rank's too. When the request is done they are there. Until then
 * `data` belongs to the region. With an immediate, 0 .. 2^24 - 1, the others get a notice behind
 * the data, and behind all that this rank wrote before. `bytes` may be 0. Requests of a rank are
 * done in order, and a write behind a read of the same bytes waits for it.
 *
 * WEIR_INVALID_ARGUMENT: it does not lie within the region; nothing is sent. When the region ends,
 * all requests do, and later calls: with WEIR_NO_REGION and the switch's reason; with the error
 * that ended the group; WEIR_TIMEOUT, for want of progress for timeout_ms, the region's patience
 * and 3 s, in which the switch says nothing; WEIR_ABORTED, when this rank has closed it. What the
 * connection says comes 3 s later if the switch's reason does not come: WEIR_RETRY_EXCEEDED,
 * WEIR_TRANSPORT_FAILURE. */
weir_status weir_region_write(weir_region* region, size_t offset, const void* data, size_t bytes,
                              uint32_t immediate, weir_request** request);

/* Starts a read of `bytes` bytes from byte `offset` on by options.views[view]. When the request is
 * done, they are in `out`, and have all that this rank wrote before. `offset` and `bytes` are
 * multiples of 8, at most 2^18 packets of path_mtu. Beside writes of others to the same bytes it is
 * no snapshot. Errors are as of weir_region_write. weir_cancel of either request is WEIR_PENDING,
 * and weir_group_descriptor does not tell of it. */
weir_status weir_region_read(weir_region* region, size_t view, size_t offset, void* out,
                             size_t bytes, weir_request** request);

/* The oldest immediate that has come and was not taken yet, and the rank that wrote it. Never
 * waits. WEIR_PENDING: there is none. Take them: when 65536 wait, whoever writes another one does,
 * too. Errors are as of weir_region_write. */
weir_status weir_region_notice(weir_region* region, uint16_t* rank, uint32_t* immediate);

/* A collective of the region's group: waits until all ranks have called it, for farewell_ms at
 * most, because others may still write to this rank's copy. Before weir_group_close; without its
 * group it only ends. Requests that are not done end with WEIR_ABORTED, and are to be released all
 * the same. From then on the memory is the caller's. NULL: does nothing. */
void weir_region_close(weir_region* region);

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
