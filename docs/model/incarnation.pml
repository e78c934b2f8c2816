/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incarnations of a ring's job (docs/protocol.md, version 2), for spin: who may end one, who may begin one, and whose
 * data meets whose. weir.pml looks at one incarnation from inside; here each message has slots of its own, and its
 * window and history are not looked at again. Hosts and runs are those of runs.pml. docs/lab/model.md says what this
 * leaves out. tools/model runs every configuration.
 */

#include "runs.pml"

/* Sizes, beside those of runs. */
#ifndef W
#define W 2       /* waiting hellos that the switch keeps for each rank */
#endif

/* What happens. */
#ifndef TWINS
#define TWINS 0        /* 1: runs 0 and 1 have the same nonce, against the rule for hosts */
#endif
#ifndef PSNS
#define PSNS 0         /* first PSNs: 0 each run's lie behind those before, 1 every run has the same, 2 before them */
#endif
#ifndef RESTARTS
#define RESTARTS 0     /* how often the switch restarts and has forgotten everything */
#endif
#ifndef RESETS
#define RESETS 0       /* how often somebody resets the ring */
#endif
#ifndef RECONFIGURED
#define RECONFIGURED 0 /* 1: a restarted switch may have no such ring (but another between the same neighbours) */
#endif
#ifndef STRANGERS
#define STRANGERS 0    /* 1: at another port than rank r's, somebody sends plain messages with r's headers */
#endif
#ifndef LATE
#define LATE 1         /* 0: no hello of a dead rank 0 arrives, so never the hellos of all ranks of a dead run */
#endif

/* The rules. 1 is Weir. */
#ifndef NONCES
#define NONCES 1       /* 0: an incarnation is an epoch alone */
#endif
#ifndef COMPARE
#define COMPARE 1      /* 0: a host does not compare the nonce in its hello's result */
#endif
#ifndef CHECKS
#define CHECKS 1       /* 0: a host does not compare the session in a result */
#endif
#ifndef FLAG
#define FLAG 1         /* 0: a host does not look for RESULT */
#endif
#ifndef SETS
#define SETS 1         /* 0: one rank's hello begins an incarnation */
#endif
#ifndef HELD
#define HELD 1         /* 0: a repeat of a waiting hello is another one, and H of them begin an incarnation */
#endif
#ifndef LAST
#define LAST 1         /* 0: of a rank's waiting hellos the first ones stay, and later ones find no room */
#endif
#ifndef BESIDE
#define BESIDE 0       /* 1: a waiting hello's twin with another queue pair waits too, and both are admitted */
#endif
#ifndef OTHER
#define OTHER 0        /* 1: a hello of the current incarnation is admitted on any connection */
#endif
#ifndef RETIRES
#define RETIRES 1      /* 0: retired nonces are forgotten */
#endif
#ifndef EPOCHS
#define EPOCHS 1       /* 0: hellos of smaller epochs wait too */
#endif
#ifndef TAKES_OUT
#define TAKES_OUT 1    /* 0: a packet behind a waiting hello leaves it waiting */
#endif
#ifndef FLUSHES
#define FLUSHES 1      /* 0: what the slots hold stays when an incarnation begins */
#endif
#ifndef KILLS
#define KILLS 1        /* 0: the connections before stay admitted */
#endif
#ifndef DRAWS
#define DRAWS 1        /* 0: the session stays the same */
#endif
#ifndef GIVES_UP
#define GIVES_UP 1     /* 0: other waiting hellos stay when an incarnation begins */
#endif
#ifndef SESSIONS
#define SESSIONS 1     /* 0: the switch does not look at the session of data */
#endif
#ifndef EPOCH_CHECK
#define EPOCH_CHECK 1  /* 0: ... nor, apart from that, at its epoch */
#endif
#ifndef ADMITTED
#define ADMITTED 1     /* 0: the current session is enough, on any connection */
#endif
#ifndef DATA_MOVES
#define DATA_MOVES 0   /* 1: data of a larger epoch ends the incarnation */
#endif
#ifndef MAGIC
#define MAGIC 2        /* data of an unknown ring: 2 dropped; 1 forwarded where its hello was; 0 forwarded */
#endif
#ifndef BY_PORT
#define BY_PORT 1      /* 0: a plain message makes its queue pair plain for the packets of all ports */
#endif
#ifndef GONE
#define GONE 1         /* 0: a run may have the epoch of one whose processes live */
#endif

/* Properties. I1 and I11 are always checked. */
#ifndef I3
#define I3 1           /* the last run forms and finishes, once nothing disturbs it any more */
#endif
#ifndef PAST
#define PAST 1         /* then no hello waits whose sender is past it: the switch would keep that sender waiting */
#endif
#ifndef REACH
#define REACH 0        /* 1: fails when the last run can finish at all, and shows how */
#endif

#ifndef G
#define G           ((RESTARTS + RESETS + 1) * RUNS + 2) /* incarnations that are recorded; 0 is none */
#endif
#define PRED(r)     (((r) + H - 1) % H)
#define NONCE(i)    (TWINS && (i) == 1 -> 0 : (i))
#define QP(i)       (QPS_AGAIN -> 0 : (i))
#define FIRST(i)    (PSNS == 1 -> 0 : (PSNS == 2 -> RUNS - 1 - (i) : (i))) /* the first PSN, in strides of P */
#define CONN(i, r)  ((r) * RUNS + QP(i))
#define SESSION(g)  (DRAWS -> (g) : 1)
#define SAME(i, j)  (EPOCH(i) == EPOCH(j) && (!NONCES || NONCE(i) == NONCE(j))) /* runs of one incarnation */
#define MEETS(i, j) (QP(i) == QP(j) && FIRST(i) == FIRST(j)) /* what is sent to run i's queue pair fits run j's */

/* The switch. */
bool unknown;             /* it has no such ring */
bool live;                /* incarnation g is current */
byte g;                   /* incarnations so far */
byte epoch;
byte retired;             /* nonces, as bits */
byte waiting[H * W];      /* each rank's: 1 + run; the oldest first */
bool admitted[H * RUNS];  /* connections */
byte psn[H * RUNS];       /* 1 + the first PSN of an admitted connection */
byte noted[H * RUNS * D]; /* by connection and message: 1 + the first PSN of the connection that its FIRST fits */
byte kept[D * L * H];     /* each rank's packet: 0 none; else 1 + 2 * run + (1: the buffer held a result) */
byte result[D * L];       /* 0 filling; 1 + run: that run's right sum; RUNS + 1: anything else */
#if RECONFIGURED
bool foreign[H * RUNS];   /* connections whose packets are forwarded */
#endif

#if STRANGERS
byte plain[H * RUNS];     /* connections: ports, as bits, by which the last message that started was plain */
#define OWN 1             /* the port of the rank's host */
#define OTHER_PORT 2
#endif

/* What the switch has sent, by incarnation. */
byte who[G];              /* a run of that epoch and nonce */
byte to[G * H];           /* by rank: runs, as bits, on whose connections its results go out */
byte out[G * D * L];      /* as result[] */

/* What the properties look at. */
byte heard[H];            /* by rank: runs, as bits, whose hellos have come since the incarnation last changed, and were
                             neither put out by later ones nor left behind by their senders */
bool excused;             /* the last run's incarnation was taken from it: I3 does not speak of it */

byte restarts_left = RESTARTS;
byte resets_left = RESETS;
byte pi, pr, pp, pg, pj;  /* choices, undone within their step */

SCRATCH x, y, z, m, k, s, c, ok, emits, complete, round, ci, cr, cp;
SCRATCH i1_fails, i3_fails, i11_fails, past_fails;

#define WAITS(r, nr) (waiting[(r) * W + (nr)] - 1)

/* Rank r's waiting hello nr leaves the list. */
inline remove_waiting(r, nr)
{
    heard[r] = heard[r] & (255 - (1 << WAITS(r, nr)));
    y = nr;
    do
    :: y + 1 < W -> waiting[(r) * W + y] = waiting[(r) * W + y + 1]; y++
    :: else -> break
    od;
    waiting[(r) * W + W - 1] = 0
}

#define BEHIND(i, r, p, headed, nr) (waiting[(r) * W + (nr)] != 0 && TAKES_OUT && QP(WAITS(r, nr)) == QP(i) \
     && (!(headed) || EPOCH(WAITS(r, nr)) == EPOCH(i)) && FIRST(i) * P + (p) > FIRST(WAITS(r, nr)) * P)

/* A packet at p of run i, rank r arrives; headed: it has a header. Hellos that its sender is past wait no longer. */
inline take_out(i, r, p, headed)
{
    x = 0;
    do
    :: x < W && BEHIND(i, r, p, headed, x) ->
        printf("  taken out: rank %d's hello of run %d\n", r, WAITS(r, x));
        remove_waiting(r, x)
    :: x < W && !BEHIND(i, r, p, headed, x) -> x++
    :: x >= W -> break
    od
}

/* complete: has every rank a waiting hello of run i's incarnation? */
inline count_waiting(i)
{
    complete = 0;
    z = 0;
    x = 0;
    do
    :: x < H ->
        y = 0;
        c = 0;
        do
        :: y < W ->
            if
            :: waiting[x * W + y] != 0 && SAME(WAITS(x, y), i) -> c = 1; z++
            :: else -> skip
            fi;
            y++
        :: else -> break
        od;
        complete = complete + c;
        x++
    :: else -> break
    od;
    complete = (complete == H)
}

inline forget_heard()
{
    x = 0;
    do
    :: x < H -> heard[x] = 0; x++
    :: else -> break
    od
}

inline give_up_waiting()
{
    x = 0;
    do
    :: x < H * W -> waiting[x] = 0; x++
    :: else -> break
    od
}

inline flush()
{
    x = 0;
    do
    :: x < D * L * H -> kept[x] = 0; x++
    :: else -> break
    od;
    x = 0;
    do
    :: x < D * L -> result[x] = 0; x++
    :: else -> break
    od
}

inline kill_connections()
{
#if STRANGERS
    x = 0;
    do
    :: x < H * RUNS -> plain[x] = 0; x++
    :: else -> break
    od;
#endif
    x = 0;
    do
    :: x < H * RUNS -> admitted[x] = 0; psn[x] = 0; x++
    :: else -> break
    od;
    x = 0;
    do
    :: x < H * RUNS * D -> noted[x] = 0; x++
    :: else -> break
    od
}

inline admit(i, r)
{
    admitted[CONN(i, r)] = 1;
    psn[CONN(i, r)] = 1 + FIRST(i);
#if STRANGERS
    plain[CONN(i, r)] = 0;
#endif
    to[g * H + (r)] = to[g * H + (r)] | (1 << (i));
    x = 0;
    do
    :: x < D -> noted[CONN(i, r) * D + x] = 0; x++
    :: else -> break
    od
}

/* I11, wherever a packet changes the ring's incarnation or epoch, or empties its slots: since it changed last, a hello
   of the new incarnation has come from every rank. */
inline ring_changes(i)
{
    i11_fails = 0;
    x = 0;
    do
    :: x < H ->
        c = 0;
        y = 0;
        do
        :: y < RUNS ->
            c = (c || ((heard[x] & (1 << y)) && SAME(y, i)));
            y++
        :: else -> break
        od;
        i11_fails = (i11_fails || !c);
        heard[x] = 0;
        x++
    :: else -> break
    od;
    assert(!i11_fails)
}

/* Run i's incarnation begins. */
inline begin(i)
{
    printf("  INCARNATION %d begins: epoch %d, nonce %d\n", g + 1, EPOCH(i), NONCE(i));
    ring_changes(i);
    if
    :: live -> retired = retired | (1 << NONCE(who[g]))
    :: else -> skip
    fi;
    g++;
    live = 1;
    who[g] = i;
    epoch = EPOCH(i);
    if
    :: FLUSHES -> flush()
    :: else -> skip
    fi;
    if
    :: KILLS -> kill_connections()
    :: else -> skip
    fi;
    z = 0;
    do
    :: z < H ->
        y = 0;
        do
        :: y < W ->
            if
            :: waiting[z * W + y] != 0 && SAME(WAITS(z, y), i) -> admit(WAITS(z, y), z)
            :: else -> skip
            fi;
            y++
        :: else -> break
        od;
        z++
    :: else -> break
    od;
    if
    :: GIVES_UP -> give_up_waiting()
    :: else ->
        z = 0;
        do
        :: z < H ->
            m = 0;
            do
            :: m < W && waiting[z * W + m] != 0 && SAME(WAITS(z, m), i) -> remove_waiting(z, m)
            :: m < W && !(waiting[z * W + m] != 0 && SAME(WAITS(z, m), i)) -> m++
            :: m >= W -> break
            od;
            z++
        :: else -> break
        od
    fi
}

/* A hello that is neither the current incarnation's nor refused. */
inline hello_waits(i, r)
{
    heard[r] = heard[r] | (1 << (i));
    c = 0; /* 0: it joins the list */
    x = 0;
    do
    :: x < W ->
        if
        :: waiting[(r) * W + x] == 0 -> skip
        :: waiting[(r) * W + x] == 1 + (i) && HELD -> c = 1
        :: waiting[(r) * W + x] != 0 && waiting[(r) * W + x] != 1 + (i) && SAME(WAITS(r, x), i) && !BESIDE -> c = 1
        :: else -> skip
        fi;
        x++
    :: else -> break
    od;
    if
    :: c == 0 && waiting[(r) * W + W - 1] != 0 && LAST -> remove_waiting(r, 0)
    :: c == 0 && waiting[(r) * W + W - 1] != 0 && !LAST -> c = 1
    :: else -> skip
    fi;
    x = 0;
    do
    :: c == 0 && waiting[(r) * W + x] == 0 -> waiting[(r) * W + x] = 1 + (i); c = 1
    :: c == 0 && waiting[(r) * W + x] != 0 -> x++
    :: c != 0 -> break
    od;
    count_waiting(i);
    if
    :: (complete || !SETS || (!HELD && z >= H)) && g + 1 < G -> begin(i); emits = 1
    :: else -> skip
    fi
}

/* A packet at p crosses the switch as it is; sum: the buffer held run i's result. */
inline forwarded(i, r, p, sum)
{
    printf("  forwarded\n");
    z = 0;
    do
    :: z < started ->
        if
        :: MEETS(i, z) && !dead[PROC(z, SUCC(r))] && expect[PROC(z, SUCC(r))] == (p) ->
            if
            :: FLAG && ((p) == 0 || ((p) - 1) % L == 0) ->
                printf("  rank %d of run %d sees that nobody aggregates, and ends\n", SUCC(r), z);
                dead[PROC(z, SUCC(r))] = 1
            :: else ->
                printf("  rank %d of run %d takes PSN %d\n", SUCC(r), z, p);
                i1_fails = ((p) > 0 && !((sum) && z == (i)));
                assert(!i1_fails);
                session[PROC(z, SUCC(r))] = g;
                expect[PROC(z, SUCC(r))]++
            fi
        :: else -> skip
        fi;
        z++
    :: else -> break
    od
}

inline hello_arrives(i, r)
{
    printf("rank %d's hello of run %d arrives\n", r, i);
    emits = 0;
    if
#if RECONFIGURED
    :: unknown ->
        foreign[CONN(i, r)] = 1;
        forwarded(i, r, 0, 0)
#endif
    :: !unknown && live && SAME(i, who[g]) ->
        take_out(i, r, 0, 1);
        if
        :: admitted[CONN(i, r)] && psn[CONN(i, r)] == 1 + FIRST(i) -> emits = 1 /* message 0, and complete */
        :: !(admitted[CONN(i, r)] && psn[CONN(i, r)] == 1 + FIRST(i)) && OTHER -> admit(i, r); emits = 1
        :: else -> skip
        fi
    :: !unknown && !(live && SAME(i, who[g])) ->
        take_out(i, r, 0, 1);
        if
        :: (EPOCHS && EPOCH(i) < epoch) || (RETIRES && (retired & (1 << NONCE(i)))) -> skip
        :: else -> hello_waits(i, r)
        fi
    fi
}

/* The sum over slot s: into c. */
inline reduce()
{
    c = (kept[s * H] - 1) / 2;
    x = 0;
    do
    :: x < H ->
        if
        :: kept[s * H + x] != 1 + 2 * c -> c = RUNS
        :: else -> skip
        fi;
        x++
    :: else -> break
    od;
    c++
}

/* Rank r's packet for slot s. */
inline slot(i, r, sum)
{
    if
    :: result[s] == 0 && kept[s * H + (r)] == 0 -> kept[s * H + (r)] = 1 + 2 * (i) + (sum)
    :: else -> skip /* complete, or a repeat: what it carries is not looked at */
    fi;
    y = 0;
    x = 0;
    do
    :: x < H && kept[s * H + x] != 0 -> x++; y++
    :: x < H && kept[s * H + x] == 0 -> x++
    :: x >= H -> break
    od;
    if
    :: result[s] == 0 && y == H ->
        reduce();
        result[s] = c;
        x = 0;
        do
        :: x < H -> kept[s * H + x] = 0; x++
        :: else -> break
        od
    :: else -> skip
    fi;
    if
    :: result[s] != 0 -> out[g * D * L + s] = result[s]; emits = 1
    :: else -> skip
    fi
}

inline data_arrives(i, r, p, sum)
{
    printf("PSN %d of rank %d of run %d arrives, carrying %d (0 its gradient, 1 a result)\n", p, r, i, sum);
    emits = 0;
    s = (p) - 1;
    m = s / L;
    k = s % L;
    if
#if RECONFIGURED
    :: unknown ->
        if
        :: MAGIC == 0 && k == 0 -> foreign[CONN(i, r)] = 1
        :: else -> skip
        fi;
        if
        :: MAGIC < 2 && foreign[CONN(i, r)] -> forwarded(i, r, p, sum)
        :: else -> skip /* the magic rule; or, without a header, never guess */
        fi
#endif
    :: !unknown ->
        take_out(i, r, p, k == 0);
        if
        :: DATA_MOVES && k == 0 && live && EPOCH(i) > epoch ->
            ring_changes(i);
            live = 0;
            epoch = EPOCH(i)
        :: else -> skip
        fi;
        ok = live && (admitted[CONN(i, r)] || !ADMITTED);
        if
        :: ok && k == 0 ->
            ok = ((EPOCH(i) == epoch || !EPOCH_CHECK)
                  && (!SESSIONS || SESSION(session[PROC(i, r)]) == SESSION(g))
                  && (noted[CONN(i, r) * D + m] == 0 || noted[CONN(i, r) * D + m] == 1 + FIRST(i)))
        :: ok && k != 0 -> ok = (noted[CONN(i, r) * D + m] == 1 + FIRST(i))
        :: else -> skip
        fi;
        if
        :: ok -> noted[CONN(i, r) * D + m] = 1 + FIRST(i); slot(i, r, sum)
#if STRANGERS
        :: !ok && k == 0 && !admitted[CONN(i, r)] -> plain[CONN(i, r)] = plain[CONN(i, r)] & OTHER_PORT
        :: !ok && k != 0 && !admitted[CONN(i, r)] ->
            if
            :: plain[CONN(i, r)] & (BY_PORT -> OWN : OWN | OTHER_PORT) -> forwarded(i, r, p, sum)
            :: else -> skip /* never guess */
            fi
#endif
        :: else -> skip
        fi
    fi
}

#if STRANGERS
/* The receiver ignores it: whatever its PSN is, it fits nothing. */
inline stranger_speaks(i, r)
{
    printf("A STRANGER sends a plain message with the headers of rank %d of run %d\n", r, i);
    plain[CONN(i, r)] = plain[CONN(i, r)] | OTHER_PORT
}
#endif

inline host_ends(i, h)
{
    printf("rank %d of run %d is told what is not its own, and ends\n", h, i);
    dead[PROC(i, h)] = 1;
    i3_fails = I3; /* it cannot, where queue pairs are new */
    assert(!i3_fails)
}

/* Process (i, h) takes what it expects, from incarnation gen. */
inline take(i, h, gen)
{
    cp = expect[PROC(i, h)];
    if
    :: cp == 0 && (EPOCH(who[gen]) != EPOCH(i) || (COMPARE && NONCE(who[gen]) != NONCE(i))) -> host_ends(i, h)
    :: cp == 0 && !(EPOCH(who[gen]) != EPOCH(i) || (COMPARE && NONCE(who[gen]) != NONCE(i))) ->
        printf("rank %d of run %d takes its hello's result: the session of incarnation %d\n", h, i, gen);
        session[PROC(i, h)] = gen;
        expect[PROC(i, h)] = 1
    :: cp != 0 && CHECKS && (cp - 1) % L == 0 && SESSION(gen) != SESSION(session[PROC(i, h)]) -> host_ends(i, h)
    :: cp != 0 && !(CHECKS && (cp - 1) % L == 0 && SESSION(gen) != SESSION(session[PROC(i, h)])) ->
        printf("rank %d of run %d takes PSN %d of incarnation %d\n", h, i, cp, gen);
        i1_fails = (out[gen * D * L + cp - 1] != 1 + (i));
        assert(!i1_fails);
        expect[PROC(i, h)]++
    fi
}

/* Has the switch, in incarnation gen, sent what process (i, h) expects, on run j's connection? */
#define SENT(i, h, gen, j) \
    (MEETS(i, j) && (to[(gen) * H + PRED(h)] & (1 << (j))) && expect[PROC(i, h)] < P \
     && (expect[PROC(i, h)] == 0 || out[(gen) * D * L + (expect[PROC(i, h)] > 0 -> expect[PROC(i, h)] - 1 : 0)] != 0))

/* The last run's incarnation is taken away, if it has begun. */
inline excuse()
{
    x = 1;
    do
    :: x <= g ->
        if
        :: SAME(who[x], LAST_RUN) -> excused = 1
        :: else -> skip
        fi;
        x++
    :: else -> break
    od
}

inline restart()
{
    printf("THE SWITCH RESTARTS\n");
    excuse();
    restarts_left--;
    live = 0;
    epoch = 0;
    retired = 0;
    give_up_waiting();
    forget_heard();
    flush();
    kill_connections()
#if RECONFIGURED
    ;
    x = 0;
    do
    :: x < H * RUNS -> foreign[x] = 0; x++
    :: else -> break
    od
#endif
}

inline reset()
{
    printf("THE RING IS RESET\n");
    excuse();
    resets_left--;
    if
    :: live -> retired = retired | (1 << NONCE(who[g]))
    :: else -> skip
    fi;
    live = 0;
    epoch = 0;
    give_up_waiting();
    forget_heard();
    flush();
    kill_connections()
}

/* Nothing disturbs any more: in turn, each living process repeats what its successor has not, and what the switch
   answers arrives. Afterwards the last run has finished. */
inline calm()
{
    printf("from here on nothing is lost, late or killed\n");
    round = 0;
    do
    :: round < P + 2 ->
        ci = 0;
        do
        :: ci < started ->
            cr = 0;
            do
            :: cr < H -> repeat_all(ci, cr); cr++
            :: else -> break
            od;
            ci++
        :: else -> break
        od;
        round++
    :: else -> break
    od
}

inline repeat_all(i, r)
{
    cp = expect[PROC(i, SUCC(r))];
    do
    :: !dead[PROC(i, r)] && cp < LIMIT(i, r) ->
        pp = cp;
        if
        :: cp == 0 -> hello_arrives(i, r)
        :: else -> data_arrives(i, r, pp, (INPLACE && pp < expect[PROC(i, r)] -> 1 : 0))
        fi;
        if
        :: emits && !dead[PROC(i, SUCC(r))] && expect[PROC(i, SUCC(r))] == pp -> take(i, SUCC(r), g)
        :: else -> skip
        fi;
        cp = pp + 1
    :: else -> break
    od
}

inline judge()
{
    x = 0;
    y = 0;
    z = 0;
    do
    :: x < H ->
        y = y + dead[PROC(LAST_RUN, x)];
        z = z + (expect[PROC(LAST_RUN, x)] < P);
        x++
    :: else -> break
    od;
    i3_fails = (I3 && started == RUNS && y == 0 && z > 0 && !excused && !unknown && g + 1 < G);
    assert(!i3_fails);
    x = 0;
    do
    :: x < H * W ->
        if
        :: waiting[x] != 0 ->
            y = waiting[x] - 1;
            past_fails = (PAST && !dead[PROC(y, x / W)] && expect[PROC(y, x / W)] > 0
                          && expect[PROC(y, SUCC(x / W))] < LIMIT(y, x / W));
            assert(!past_fails)
        :: else -> skip
        fi;
        x++
    :: else -> break
    od
}

/* Whether the next run may start: into ok. */
inline may_start()
{
    ok = 1;
    y = 0; /* has the run before it begun? */
    x = 1;
    do
    :: x <= g ->
        y = (y || who[x] == started - 1);
        x++
    :: else -> break
    od;
    if
    :: AFTER && !y && EPOCH(started) <= EPOCH(started - 1) -> ok = 0
    :: else -> skip
    fi;
    x = 0;
    do
    :: x < started * H ->
        if
        :: !dead[x] && (QPS_AGAIN || (GONE && EPOCH(x / H) == EPOCH(started))) -> ok = 0
        :: else -> skip
        fi;
        x++
    :: else -> break
    od
}

active proctype world()
{
end:
    do
    :: atomic { /* what a process has sent arrives */
        do
        :: pi + 1 < started -> pi++
        :: break
        od;
        do
        :: pr + 1 < H -> pr++
        :: break
        od;
        do
        :: pp + 1 < P -> pp++
        :: break
        od;
        if
        :: pp == 0 && (LATE || pr > 0 || !dead[PROC(pi, pr)]) -> d_step { hello_arrives(pi, pr); x = 0 }
        :: pp > 0 && pp < LIMIT(pi, pr) -> d_step { data_arrives(pi, pr, pp, 0); x = 0 }
        :: INPLACE && pp > 0 && pp < expect[PROC(pi, pr)] -> d_step { data_arrives(pi, pr, pp, 1); x = 0 }
        :: else -> skip
        fi;
        pi = 0;
        pr = 0;
        pp = 0
       }
    :: atomic { g > 0 -> /* what the switch has sent arrives */
        pg = 1;
        do
        :: pg < g -> pg++
        :: break
        od;
        do
        :: pi + 1 < started -> pi++
        :: break
        od;
        do
        :: pj + 1 < started -> pj++
        :: break
        od;
        do
        :: pr + 1 < H -> pr++
        :: break
        od;
        if
        :: !dead[PROC(pi, pr)] && SENT(pi, pr, pg, pj) -> d_step { take(pi, pr, pg); x = 0 }
        :: else -> skip
        fi;
        pi = 0;
        pr = 0;
        pj = 0;
        pg = 0
       }
#if STRANGERS
    :: atomic {
        do
        :: pi + 1 < started -> pi++
        :: break
        od;
        do
        :: pr + 1 < H -> pr++
        :: break
        od;
        if
        :: !admitted[CONN(pi, pr)] -> d_step { stranger_speaks(pi, pr); x = 0 }
        :: else -> skip /* not by the port of the connection's hello */
        fi;
        pi = 0;
        pr = 0
       }
#endif
    :: atomic { /* a process is killed */
        do
        :: pi + 1 < started -> pi++
        :: break
        od;
        do
        :: pr + 1 < H -> pr++
        :: break
        od;
        if
        :: !dead[PROC(pi, pr)] -> dead[PROC(pi, pr)] = 1; printf("rank %d of run %d is KILLED\n", pr, pi)
        :: else -> skip
        fi;
        pi = 0;
        pr = 0
       }
    :: atomic { started < RUNS -> d_step { may_start(); x = 0 };
        if
        :: ok -> started++; printf("RUN %d starts: epoch %d, nonce %d\n", started - 1, EPOCH(started - 1),
                                   NONCE(started - 1))
        :: else -> skip
        fi }
    :: atomic { restarts_left > 0 -> d_step { restart(); unknown = 0; x = 0 } }
#if RECONFIGURED
    :: atomic { restarts_left > 0 -> d_step { restart(); unknown = 1; printf("  and has no such ring\n") } }
#endif
    :: atomic { resets_left > 0 -> d_step { reset(); x = 0 } }
    :: atomic { I3 || PAST -> d_step { calm(); judge(); x = 0 }; break }
#if REACH
    :: atomic { expect[PROC(LAST_RUN, 0)] == P && expect[PROC(LAST_RUN, 1)] == P -> assert(!REACH) }
#endif
    od
}
