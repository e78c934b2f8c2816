/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runs of a job and their hosts, for incarnation.pml and tree.pml: sizes, and what a host has and may send.
 *
 * A run is one start of the job on all ranks: run i has an epoch, a nonce, and a queue pair and a first PSN for every
 * rank. On each connection PSN 0 (counted from the first) is the hello, and 1 + (m-1)*L + k is packet k of data message
 * m. Whatever a process has ever sent may arrive at the switch at any time, any number of times, or never, also when
 * the process is dead; and so it is with the switch's results and the hosts.
 */

/* Sizes. */
#ifndef H
#define H 2       /* ranks */
#endif
#ifndef RUNS
#define RUNS 2    /* runs of the job, each started after the one before it */
#endif
#ifndef L
#define L 1       /* packets of a data message */
#endif
#ifndef D
#define D 1       /* data messages of a run */
#endif

/* What happens. */
#ifndef E0
#define E0 1      /* the epoch of each run */
#endif
#ifndef E1
#define E1 1
#endif
#ifndef E2
#define E2 1
#endif
#ifndef QPS_AGAIN
#define QPS_AGAIN 0    /* 1: every run has the queue pair numbers of the one before */
#endif
#ifndef AFTER
#define AFTER 0        /* 1: a run starts only when the one before it has begun at each switch, or has a larger epoch;
                          2: ... at the root */
#endif
#ifndef INPLACE
#define INPLACE 1      /* a result overwrites the gradient: repeats carry it */
#endif

#define P           (1 + D * L)                      /* PSNs of a connection */
#define LAST_RUN    (RUNS - 1)
#define SUCC(r)     (((r) + 1) % H)
#define PROC(i, r)  ((i) * H + (r))
#define EPOCH(i)    ((i) == 0 -> E0 : ((i) == 1 -> E1 : E2))
/* The PSN behind the last one that a process may send: message m only after result m-1, data only after the hello. */
#define LIMIT(i, r) (expect[PROC(i, r)] == 0 -> 1 : 1 + ((expect[PROC(i, r)] - 1) / L < D -> \
                     ((expect[PROC(i, r)] - 1) / L + 1) * L : D * L))

/* Hosts. A process that is dead keeps what it had: that is what it has sent. */
byte started = 1;         /* runs whose ranks have met; after that each process may have said hello */
bool dead[RUNS * H];
byte expect[RUNS * H];    /* the next PSN that a process takes; below it, it holds results */
byte session[RUNS * H];   /* the incarnation whose session it was given */

/* Scratch: written before it is read within one step, so no part of the state. (Breadth-first search, for the shortest
   counterexample, cannot do with hidden variables: it takes -DSCRATCH=byte.) */
#ifndef SCRATCH
#define SCRATCH hidden byte
#define SHORTEST 0
#else
#define SHORTEST 1
#endif
