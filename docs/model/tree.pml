/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tree of switches (docs/protocol.md, section 11), for spin: who begins an incarnation, whose sums are added to
 * whose, and what a switch may pass on that has forgotten the ring. Within one switch it is incarnation.pml, without
 * what that file looks at already; hosts and runs are those of runs.pml. docs/lab/model.md says what this leaves out.
 * tools/model runs every configuration.
 *
 * Switch 0 is the root. A child of a switch is a rank or a switch; a switch covers the ranks LO to HI. Connection r
 * goes from rank r to rank r+1 and turns at the lowest switch that covers both; so a switch meets a child as the
 * connection of the child's last rank, and its parent as connection LO-1. A switch with a parent
 *   - makes a PARTIAL hello of its children's hellos, sends it up ("climbs") and begins nothing,
 *   - begins when the hello's result of a set that has climbed and still waits comes from the parent,
 *   - sends the partial sum of its children up, with the parent's session, and keeps it,
 *   - passes a total on if it has sent the partial sum, with a session of its own.
 * Whatever a host or a switch has sent on a link may arrive at the link's end at any time, any number of times, or
 * never.
 */
/* The tree. */
#define PAIR  1 /* 0 has switch 1 (rank 0) and switch 2 (rank 1) */
#define MIXED 2 /* 0 has switch 1 (ranks 0, 1) and rank 2 */
#define RACKS 3 /* 0 has switch 1 (ranks 0, 1) and switch 2 (rank 2) */
#define CHAIN 4 /* 0 has switch 1 (rank 0, and switch 2 with rank 1) and rank 2 */
#ifndef TREE
#define TREE MIXED
#endif
#if TREE == PAIR
#define H 2
#else
#define H 3
#endif
#include "runs.pml"

#if TREE == PAIR
#define S 3
#define SWITCH(r)   ((r) + 1)
#define PARENT(w)   0
#define UNDER(w, r) ((w) == 0 -> (r) + 1 : 0)
#define LO(w)       ((w) - 1)
#define HI(w)       ((w) - 1)
#elif TREE == MIXED
#define S 2
#define SWITCH(r)   ((r) < 2)
#define PARENT(w)   0
#define UNDER(w, r) ((w) == 0 && (r) < 2)
#define LO(w)       0
#define HI(w)       1
#elif TREE == RACKS
#define S 3
#define SWITCH(r)   (1 + (r) / 2)
#define PARENT(w)   0
#define UNDER(w, r) ((w) == 0 -> 1 + (r) / 2 : 0)
#define LO(w)       (2 * (w) - 2)
#define HI(w)       ((w) == 1 -> 1 : 2)
#else
#define S 3
#define SWITCH(r)   ((r) == 2 -> 0 : 1 + (r))
#define PARENT(w)   ((w) - 1)
#define UNDER(w, r) ((w) == 0 -> (r) < 2 : 2 * ((w) == 1 && (r) == 1))
#define LO(w)       ((w) - 1)
#define HI(w)       1
#endif
/* SWITCH: the switch of a rank. UNDER: the child switch of w that covers r, or 0 where r is a child of w. */
#define INSIDE(w, r) ((w) == 0 || (LO(w) <= (r) && (r) <= HI(w)))
/* MEETS: w meets a child as connection r. UP: and sends partial sums on it. */
#define MEETS(w, r)  (INSIDE(w, r) && (UNDER(w, r) == 0 || HI(UNDER(w, r)) == (r)))
#define UP(w, r)     ((w) != 0 && HI(w) == (r))

/* What happens. */
#ifndef KILLED
#define KILLED 0       /* 1: a run's processes end when the next one starts; those of an equal epoch always do */
#endif
#ifndef RESTARTS
#define RESTARTS 0     /* how often a switch restarts and has forgotten everything */
#endif
#ifndef RESETS
#define RESETS 0       /* how often somebody resets the ring on a switch */
#endif
#ifndef WITHDRAWALS
#define WITHDRAWALS 0  /* how often the ring is withdrawn from a switch; it may be added again */
#endif

/* The rules. 1 is Weir. */
#ifndef KINDS
#define KINDS 1        /* 0: a child switch may send what a rank sends */
#endif
#ifndef RANGES
#define RANGES 1       /* 0: a PARTIAL hello's lo is not looked at */
#endif
#ifndef STOPS
#define STOPS 1        /* 0: a switch without the ring forwards PARTIAL hellos */
#endif
#ifndef TOTALS
#define TOTALS 1       /* 0: a hello that the parent forwarded counts as the parent's hello's result */
#endif
#ifndef SHUT
#define SHUT 1         /* 0: dead connections open when the ring is withdrawn: packets without header pass */
#endif
#ifndef CACHED
#define CACHED 1       /* 0: a contribution that comes again is folded again, and leaves as a new partial sum */
#endif
#ifndef TOGETHER
#define TOGETHER 1     /* 0: a switch with a parent begins by itself */
#endif
#ifndef CLIMBED
#define CLIMBED 1      /* 0: a hello's result from the parent begins what no set of hellos waits for */
#endif
#ifndef AGAIN
#define AGAIN 1        /* 0: a set of hellos climbs once */
#endif
#ifndef KEEPS
#define KEEPS 1        /* 0: when a switch with a parent begins, all other hellos that wait are given up */
#endif
#ifndef HOPS
#define HOPS 1         /* 0: a switch's own session is its parent's */
#endif
#ifndef CONSTANT
#define CONSTANT 1     /* 0: another session of the parent's is taken within an incarnation */
#endif
#ifndef TAKES_OUT
#define TAKES_OUT 1    /* 0: a packet behind a waiting hello leaves it waiting */
#endif
#ifndef SESSIONS
#define SESSIONS 1     /* 0: the session of what comes from below is not looked at */
#endif
#ifndef FROM_ABOVE
#define FROM_ABOVE 1   /* 0: ... nor of what comes from the parent */
#endif
#ifndef FLUSHES
#define FLUSHES 1      /* 0: what the slots hold stays when an incarnation begins */
#endif

/* Properties. I1 is always checked where a rank reads. */
#ifndef LINKS
#define LINKS 1        /* what a switch sends is the sum of its range, or the total */
#endif
#ifndef I11
#define I11 1          /* a switch begins only what a hello of each child waits for, and what its parent has begun */
#endif
#ifndef ONCE
#define ONCE 1         /* in one life a switch takes no two sessions of its parent in one incarnation */
#endif
#ifndef I3
#define I3 0           /* the last run forms and finishes, once nothing disturbs it any more */
#endif
#ifndef REACH
#define REACH 0        /* 1: fails when the last run can finish at all, and shows how */
#endif

/* Incarnations are numbered for each switch; the number is the session that the switch drew for it. 0 is none. */
#define LIVES        (1 + RESTARTS + WITHDRAWALS)
#define G            (RUNS * LIVES + 1)
#define GEN(w, nr)   ((w) * G + (nr))
#define OF(gen)      ((gen) / G) /* whose it is */
#define RUN(gen)     (who[gen] - 1)
#define BIT(i)       (1 << (i))
/* Do the processes of the run before end when run i starts? */
#define DIES(i)      (KILLED || QPS_AGAIN || EPOCH(i) <= EPOCH((i) - 1))

/* The sum of a range over run i is 1 + i; anything else is WRONG. */
#define WRONG        (RUNS + 1)

/* Switches. */
byte current[S];      /* the incarnation; 0: none */
byte gens[S];         /* incarnations so far */
byte epoch[S];
byte retired[S];      /* runs, as bits */
byte waiting[S * H];  /* hellos by connection: runs, as bits */
byte climbed[S];      /* runs, as bits: complete sets that have climbed and wait */
byte newest[S];       /* 1 + the run of the one whose hello came last; 0 none */
byte kept[S * P * H]; /* by PSN and connection: what has come; 0 nothing */
#if L > 1
bool noted[S * D * H]; /* by message and connection: its FIRST has come */
bool from_up[S * D];   /* the same for the connection from the parent */
#endif
bool unknown[S];      /* it has no such ring */
byte begun[S];        /* runs, as bits, that it has begun since it started: dead connections, once it is withdrawn */
#if !RANGES || !KINDS
byte wrong[S * H];    /* waiting hellos that are not their child's: runs, as bits */
#endif

/* What a switch has ever sent. */
byte climbs[S];       /* PARTIAL hellos: runs, as bits */
byte who[S * G];      /* by incarnation: 1 + the run */
byte parent[S * G];   /* ... the parent's incarnation */
byte partial[S * G * P]; /* ... and PSN: the partial sum that left; 0 none. It is the cache, too */
byte total[S * G * P];   /* ... the total */
byte passed[S * G];   /* child switches without the ring that have passed results on, as bits */
#if !HOPS
byte drawn[S * G];    /* the session */
#define SESSION(gen) drawn[gen]
#else
#define SESSION(gen) (gen)
#endif

byte restarts_left = RESTARTS;
byte resets_left = RESETS;
byte withdrawals_left = WITHDRAWALS;
bool excused;         /* the last run's incarnation was taken from it: I3 does not speak of it */

/* The packet or event under way; 0 between two steps. */
#define DATA    1     /* rank er of run ei sends PSN ep; PSN 0 is its hello */
#define REPEAT  2     /* the same, from a buffer that held the result */
#define CLIMB   3     /* switch ew sends run ei's PARTIAL hello */
#define SUM     4     /* switch ew sends incarnation eg's partial sum ep */
#define TOTAL   5     /* the parent's total ep of incarnation eg goes to switch ew */
#define RESULT  6     /* ... to rank er of run ei */
#define START   7
#define RESTART 8     /* of switch ew */
#define RESET   9
#define WITHDRAW 10
#define ADD     11
#define CALM    12
byte kind, ei, er, ep, ew, eg;

SCRATCH comes, di, dr, dv, ds, df, begins, bw, bi, ba;
SCRATCH fresh, at, down, x, y, q, s, v, ok, c, fits, calm, step, turn, z;
SCRATCH i1_fails, link_fails, i3_fails, i11_fails, once_fails;

#define HEADED(p) ((p) == 0 || ((p) - 1) % L == 0)
#define MESSAGE(p) (((p) - 1) / L)
#define SAME_QP(i, j) ((i) == (j) || QPS_AGAIN) /* the same queue pairs, and PSNs */

inline empty_slots(w)
{
    for (x : 0 .. P * H - 1) {
        kept[(w) * P * H + x] = 0
    }
#if L > 1
    for (x : 0 .. D * H - 1) {
        noted[(w) * D * H + x] = 0
    }
    for (x : 0 .. D - 1) {
        from_up[(w) * D + x] = 0
    }
#endif
}

/* All hellos that wait at switch w. */
inline give_up_waiting(w)
{
    for (x : 0 .. H - 1) {
        waiting[(w) * H + x] = 0;
#if !RANGES || !KINDS
        wrong[(w) * H + x] = 0
#endif
    }
    climbed[w] = 0;
    newest[w] = 0
}

/* Run i begins at switch w: hellos of others that still wait. A set that has climbed may have begun above, and then its
   hellos are acknowledged and do not come again. */
#define STAYS(w, i, x) \
    (KEEPS && (climbed[w] & BIT(x)) && ((x) != (i)) \
     && (EPOCH(x) > EPOCH(i) || (EPOCH(x) == EPOCH(i) && newest[w] == 1 + (x))))
inline give_up_others(w, i)
{
    c = 0; /* those that stay */
    for (z : 0 .. RUNS - 1) {
        if
        :: STAYS(w, i, z) -> c = c | BIT(z)
        :: else -> skip
        fi
    }
    for (x : 0 .. H - 1) {
        waiting[(w) * H + x] = waiting[(w) * H + x] & c;
#if !RANGES || !KINDS
        wrong[(w) * H + x] = wrong[(w) * H + x] & c
#endif
    }
    climbed[w] = climbed[w] & c;
    newest[w] = (newest[w] != 0 && (c & BIT(newest[w] - 1)) -> newest[w] : 0)
}

/* c: the value of run i's hellos at switch w, together. */
inline fold_hellos(w, i)
{
    c = 1 + (i);
#if !RANGES || !KINDS
    for (x : 0 .. H - 1) {
        if
        :: wrong[(w) * H + x] & BIT(i) -> c = WRONG
        :: else -> skip
        fi
    }
#endif
}

/* Switch w begins run i's incarnation, as incarnation above of its parent has. */
inline begin(w, i, above)
{
    printf("  SWITCH %d BEGINS run %d: session %d, the parent's is %d\n", w, i, GEN(w, gens[w] + 1), above);
    ok = ((w) == 0);
    for (x : 1 .. G - 1) {
        ok = (ok || who[GEN(PARENT(w), x)] == 1 + (i))
    }
    for (x : 0 .. H - 1) {
        ok = (ok && (!MEETS(w, x) || (waiting[(w) * H + x] & BIT(i))))
    }
    i11_fails = (I11 && !ok);
    assert(!i11_fails);
    once_fails = (ONCE && (begun[w] & BIT(i)));
    assert(!once_fails);
    begun[w] = begun[w] | BIT(i);
    if
    :: current[w] != 0 -> retired[w] = retired[w] | BIT(RUN(current[w]))
    :: else -> skip
    fi;
    fold_hellos(w, i);
    gens[w]++;
    current[w] = GEN(w, gens[w]);
    who[current[w]] = 1 + (i);
    parent[current[w]] = above;
#if !HOPS
    drawn[current[w]] = ((above) == 0 -> current[w] : drawn[above]);
#endif
    total[current[w] * P] = ((w) == 0 -> c : total[(above) * P]);
    epoch[w] = EPOCH(i);
    if
    :: FLUSHES -> empty_slots(w)
    :: else -> skip
    fi;
    give_up_others(w, i)
}

inline will_begin(w, i, above)
{
    begins = (gens[w] + 1 < G);
    bw = w;
    bi = i;
    ba = above
}

/* A hello of run i comes to switch w from its child of connection r. */
inline hello_comes(w, i, r)
{
    if
    :: current[w] != 0 && RUN(current[w]) == (i) -> skip /* message 0 again: R4 */
    :: EPOCH(i) < epoch[w] || (retired[w] & BIT(i)) -> skip
    :: else ->
#if !RANGES || !KINDS
        if
        :: !ok && !(waiting[(w) * H + (r)] & BIT(i)) -> wrong[(w) * H + (r)] = wrong[(w) * H + (r)] | BIT(i)
        :: else -> skip
        fi;
#endif
        waiting[(w) * H + (r)] = waiting[(w) * H + (r)] | BIT(i);
        ok = 1;
        for (x : 0 .. H - 1) {
            ok = (ok && (!MEETS(w, x) || (waiting[(w) * H + x] & BIT(i))))
        }
        if
        :: ok && (w) == 0 -> will_begin(w, i, 0)
        :: ok && (w) != 0 ->
            fresh = (climbed[w] & BIT(i) -> fresh : fresh | BIT(w));
            climbed[w] = climbed[w] | BIT(i);
            climbs[w] = climbs[w] | BIT(i);
            newest[w] = 1 + (i);
#if !TOGETHER
            will_begin(w, i, 0)
#endif
        :: else -> skip
        fi
    fi
}

/* Rank h of run i ends: it was told what is not its own. */
inline host_ends(i, h)
{
    printf("  rank %d of run %d refuses it, and ends\n", h, i);
    dead[PROC(i, h)] = 1
}

/* What a switch without the ring does not forward: hellos on dead connections, and PARTIAL ones. */
#define STUCK(w, i, sender) (unknown[w] && ((begun[w] & BIT(i)) || (STOPS && (sender) != 0)))
#define FORWARDED(w, i, sender) (unknown[w] && !STUCK(w, i, sender))

/* Run i's hello of connection r goes its way; it came from rank r, or as a PARTIAL hello from switch sender. */
inline hello_goes(w, i, r, sender)
{
    at = w;
    down = 0;
    do
    :: STUCK(at, i, sender) -> printf("  dropped by switch %d\n", at); break
    :: FORWARDED(at, i, sender) && !down && UP(at, r) ->
        printf("  forwarded by switch %d\n", at);
        at = PARENT(at)
    :: FORWARDED(at, i, sender) && (down || !UP(at, r)) ->
        printf("  forwarded by switch %d\n", at);
        c = (down -> 0 : UNDER(at, SUCC(r)));
        if
        :: c == 0 ->
            if
            :: !dead[PROC(i, SUCC(r))] && expect[PROC(i, SUCC(r))] == 0 -> host_ends(i, SUCC(r))
            :: else -> skip
            fi;
            break
        :: else -> at = c; down = 1
        fi
    :: !unknown[at] && !down ->
        c = UNDER(at, r);
        if
        :: (KINDS && (c != 0) != ((sender) != 0)) || (RANGES && (sender) != 0 && c != 0 && LO(sender) != LO(c)) ->
            printf("  dropped: not what switch %d has for this child\n", at)
        :: else ->
            ok = (c == (sender));
            hello_comes(at, i, r)
        fi;
        break
    :: !unknown[at] && down ->
#if !TOTALS
        if
        :: climbed[at] & BIT(i) -> will_begin(at, i, 0)
        :: else -> skip
        fi;
#endif
        break
    od
}

/* PSN p of run i, with value val, comes to switch w from its child of connection r. */
inline contribution(w, i, r, p, val)
{
    s = current[w] * P + (p);
    z = (current[w] == 0 -> 0 : ((w) == 0 -> total[s] : partial[s])); /* the sum has left */
    if
    :: z == 0 && kept[((w) * P + (p)) * H + (r)] == 0 -> kept[((w) * P + (p)) * H + (r)] = val
#if !CACHED
    :: z != 0 && (w) != 0 -> kept[((w) * P + (p)) * H + (r)] = val; z = 0
#endif
    :: else -> skip
    fi;
    ok = (z == 0);
    q = val;
    for (x : 0 .. H - 1) {
        if
        :: MEETS(w, x) ->
            ok = (ok && kept[((w) * P + (p)) * H + x] != 0);
            q = (q == kept[((w) * P + (p)) * H + x] -> q : WRONG)
        :: else -> skip
        fi
    }
    if
    :: ok ->
        printf("  switch %d has the sum of PSN %d: %d (1 + the run whose sum it is; %d: WRONG)\n", w, p, q, WRONG);
        link_fails = (LINKS && q != who[current[w]]);
        assert(!link_fails);
        if
        :: (w) == 0 -> total[s] = q
        :: else -> partial[s] = q
        fi;
#if CACHED
        for (x : 0 .. H - 1) {
            kept[((w) * P + (p)) * H + x] = 0
        }
#endif
    :: else -> skip
    fi
}

/* Waiting hellos of connection r at switch w whose sender is past them wait no longer. */
inline take_out(w, i, r, p)
{
    for (x : 0 .. RUNS - 1) {
        if
        :: TAKES_OUT && (waiting[(w) * H + (r)] & BIT(x)) && SAME_QP(i, x) && (!HEADED(p) || EPOCH(x) == EPOCH(i)) ->
            printf("  taken out by switch %d: the hello of run %d on connection %d\n", w, x, r);
            waiting[(w) * H + (r)] = waiting[(w) * H + (r)] & (255 - BIT(x));
            climbed[w] = climbed[w] & (255 - BIT(x));
            newest[w] = (newest[w] == 1 + x -> 0 : newest[w]);
#if !RANGES || !KINDS
            wrong[(w) * H + (r)] = wrong[(w) * H + (r)] & (255 - BIT(x))
#endif
        :: else -> skip
        fi
    }
}

/* Data with a session (of rank r, or a partial sum of switch sender) comes to switch w on connection r. */
inline data_comes(w, i, r, p, val, with, sender)
{
    take_out(w, i, r, p);
    fits = (current[w] != 0 && SAME_QP(i, RUN(current[w])));
    if
    :: fits && HEADED(p) ->
        fits = (!SESSIONS || (with) == SESSION(current[w])) && (!KINDS || (UNDER(w, r) != 0) == ((sender) != 0))
    :: else -> skip
    fi;
#if L > 1
    if
    :: fits && HEADED(p) -> noted[((w) * D + MESSAGE(p)) * H + (r)] = 1
    :: fits && !HEADED(p) -> fits = noted[((w) * D + MESSAGE(p)) * H + (r)]
    :: else -> skip
    fi;
#endif
    if
    :: fits ->
        v = (UNDER(w, r) == (sender) -> val : WRONG);
        contribution(w, i, r, p, v)
    :: else -> printf("  dropped by switch %d\n", w)
    fi
}

/* Data of rank r of run i goes to its switch. */
inline data_goes(i, r, p, sum)
{
    at = SWITCH(r);
    di = i;
    dr = r;
    dv = ((sum) -> WRONG : 1 + (i));
    ds = session[PROC(i, r)];
    df = 0;
    comes = !unknown[at];
#if !SHUT
    if
    :: unknown[at] && !HEADED(p) && (begun[at] & BIT(i)) ->
        printf("  forwarded by switch %d\n", at);
        if
        :: UP(at, r) -> at = PARENT(at); comes = !unknown[at]
        :: !UP(at, r) && UNDER(at, SUCC(r)) == 0 && expect[PROC(i, SUCC(r))] == (p) && !dead[PROC(i, SUCC(r))] ->
            i1_fails = 1;
            assert(!i1_fails)
        :: else -> skip
        fi
    :: else -> skip /* no raw data of a ring passes */
    fi
#endif
}

/* Partial sum p of switch w's incarnation gen goes to its parent. */
inline sum_goes(w, gen, p)
{
    at = PARENT(w);
    di = RUN(gen);
    dr = HI(w);
    dv = partial[(gen) * P + (p)];
    ds = SESSION(parent[gen]);
    df = w;
    comes = !unknown[at]
}

/* Total p of incarnation gen comes to child switch w. */
inline total_comes(w, gen, p)
{
    y = RUN(gen);
    fits = (current[w] != 0 && SAME_QP(y, RUN(current[w])));
    if
    :: unknown[w] && (begun[w] & BIT(y)) -> skip
    :: unknown[w] && !(begun[w] & BIT(y)) -> passed[gen] = passed[gen] | BIT(w); printf("  forwarded by switch %d\n", w)
    :: !unknown[w] && (p) == 0 ->
        if
        :: current[w] != 0 && RUN(current[w]) == y ->
            if
            :: parent[current[w]] != (gen) && !CONSTANT ->
                printf("  switch %d takes the parent's session %d for %d\n", w, gen, parent[current[w]]);
                once_fails = ONCE;
                assert(!once_fails);
                parent[current[w]] = (gen)
            :: else -> skip /* its repeat, or dropped: another session */
            fi
        :: else ->
            if
            :: (climbed[w] & BIT(y)) || (!CLIMBED && EPOCH(y) >= epoch[w]) -> will_begin(w, y, gen)
            :: else -> printf("  dropped: no set of hellos has climbed\n")
            fi
        fi
    :: else ->
        fits = (fits && !unknown[w]);
        if
        :: fits && HEADED(p) -> fits = (!FROM_ABOVE || SESSION(gen) == SESSION(parent[current[w]]))
        :: else -> skip
        fi;
#if L > 1
        if
        :: fits && HEADED(p) -> from_up[(w) * D + MESSAGE(p)] = 1
        :: fits && !HEADED(p) -> fits = from_up[(w) * D + MESSAGE(p)]
        :: else -> skip
        fi;
#endif
        if
        :: fits && partial[current[w] * P + (p)] != 0 && total[current[w] * P + (p)] == 0 ->
            printf("  switch %d passes on the total of PSN %d\n", w, p);
            total[current[w] * P + (p)] = total[(gen) * P + (p)];
            link_fails = (LINKS && total[current[w] * P + (p)] != who[current[w]]);
            assert(!link_fails)
        :: else -> printf("  dropped\n")
        fi
    fi
}

/* Rank h of run i takes what it expects, of incarnation gen. */
inline take(i, h, gen)
{
    q = expect[PROC(i, h)];
    if
    :: (q == 0 && RUN(gen) != (i)) || (q != 0 && HEADED(q) && SESSION(gen) != session[PROC(i, h)]) ->
        host_ends(i, h);
        i3_fails = (I3 && !excused && (i) == LAST_RUN);
        assert(!i3_fails)
    :: else ->
        printf("rank %d of run %d takes PSN %d, of incarnation %d\n", h, i, q, gen);
        i1_fails = (total[(gen) * P + q] != 1 + (i));
        assert(!i1_fails);
        if
        :: q == 0 -> session[PROC(i, h)] = SESSION(gen)
        :: else -> skip
        fi;
        expect[PROC(i, h)]++
    fi
}

/* Has switch OF(gen), in incarnation gen, sent what rank h of run i expects? */
#define SENT(i, h, gen) \
    (expect[PROC(i, h)] < P && who[gen] != 0 && SAME_QP(i, RUN(gen)) && total[(gen) * P + expect[PROC(i, h)]] != 0)

/* Do results of incarnation gen come to rank h: from its switch, or passed on by it? */
#define REACHES(gen, h) \
    (OF(gen) == SWITCH(h) || (SWITCH(h) != 0 && LO(SWITCH(h)) == (h) && (passed[gen] & BIT(SWITCH(h)))))

/* Switch w loses what it knows of the ring. Once its PARTIAL hello has left, or the root has begun, a rank below may be
   told that its hello has arrived, and does not repeat it: then the run ends by an error. */
inline forget(w)
{
    for (x : 1 .. G - 1) {
        excused = (excused || (I3 && ((w) == 0 -> who[x] == 1 + LAST_RUN : (climbs[w] & BIT(LAST_RUN)) != 0)))
    }
    current[w] = 0;
    epoch[w] = 0;
    give_up_waiting(w);
    empty_slots(w)
}

#define GONE_ON(i, r) (expect[PROC(i, SUCC(r))])

/* The next of the events of a calm time, in which all that is sent arrives, and nothing else: kind 0 for none. In each
   round the hosts repeat what is not acknowledged, sets climb, and sums and totals that are not acknowledged leave
   again. */
#define HOST_STEPS (RUNS * H * P)
#define UP_STEPS   ((S - 1) * P)
#define ROUNDS     (D + 3)
#define ALL_STEPS  (2 * HOST_STEPS + 2 * UP_STEPS)
inline next_event()
{
    kind = 0;
    if
    :: step < HOST_STEPS ->
        ei = step / (H * P);
        er = (step / P) % H;
        ep = step % P;
        if
        :: ei < started && !dead[PROC(ei, er)] && ep >= GONE_ON(ei, er) && ep < LIMIT(ei, er) ->
            kind = (ep > 0 && INPLACE && ep < expect[PROC(ei, er)] -> REPEAT : DATA)
        :: else -> skip
        fi
    :: step >= HOST_STEPS && step < HOST_STEPS + UP_STEPS ->
        ew = S - 1 - (step - HOST_STEPS) / P;
        ep = (step - HOST_STEPS) % P;
        eg = current[ew];
        if
        :: ep == 0 && newest[ew] != 0 && (climbed[ew] & BIT(newest[ew] - 1)) && (AGAIN || (fresh & BIT(ew))) ->
            kind = CLIMB;
            ei = newest[ew] - 1;
            fresh = fresh & (255 - BIT(ew))
        :: ep > 0 && eg != 0 && partial[eg * P + ep] != 0 -> kind = SUM
        :: else -> skip
        fi
    :: step >= HOST_STEPS + UP_STEPS && step < HOST_STEPS + 2 * UP_STEPS ->
        ew = 1 + (step - HOST_STEPS - UP_STEPS) / P;
        ep = (step - HOST_STEPS) % P;
        eg = current[PARENT(ew)];
        if
        :: eg != 0 && total[eg * P + ep] != 0 && ep >= expect[PROC(RUN(eg), LO(ew))] -> kind = TOTAL
        :: else -> skip
        fi
    :: else ->
        ei = (step - HOST_STEPS - 2 * UP_STEPS) / (H * P);
        er = ((step - HOST_STEPS - 2 * UP_STEPS) / P) % H;
        eg = current[SWITCH(er)];
        if
        :: ei < started && !dead[PROC(ei, er)] && eg != 0 && SENT(ei, er, eg) -> kind = RESULT
        :: else -> skip
        fi
    fi
}

/* ok: the last run has finished. y: dead processes of it, and switches without the ring. */
inline look()
{
    ok = 1;
    y = 0;
    for (x : 0 .. H - 1) {
        y = y + dead[PROC(LAST_RUN, x)];
        ok = (ok && expect[PROC(LAST_RUN, x)] == P)
    }
    for (x : 0 .. S - 1) {
        y = y + unknown[x]
    }
}

inline judge()
{
    look();
    i3_fails = (I3 && started == RUNS && y == 0 && !excused && !ok);
    assert(!i3_fails)
}

/* May the next run start? Into ok. One of an equal epoch does not while the older one may still begin somewhere. */
inline may_start()
{
    ok = 1;
    for (x : 0 .. S - 1) {
        ok = (ok && (!AFTER || EPOCH(started) > EPOCH(started - 1) \
              || (begun[x] & BIT(started - 1)) || (AFTER == 2 && x != 0)))
    }
}

inline happens()
{
    comes = 0; /* data: to switch at */
    begins = 0; /* run bi: at switch bw, as incarnation ba of its parent */
    if
    :: kind == DATA && ep == 0 ->
        printf("rank %d's hello of run %d arrives\n", er, ei);
        hello_goes(SWITCH(er), ei, er, 0)
    :: kind == CLIMB ->
        printf("switch %d's PARTIAL hello of run %d arrives\n", ew, ei);
        hello_goes(PARENT(ew), ei, HI(ew), ew)
    :: (kind == DATA && ep > 0) || kind == REPEAT ->
        printf("PSN %d of rank %d of run %d arrives, carrying %d (0 its gradient, 1 a result)\n", ep, er, ei,
               kind == REPEAT);
        data_goes(ei, er, ep, kind == REPEAT)
    :: kind == SUM ->
        printf("PSN %d of switch %d's incarnation %d arrives at its parent\n", ep, ew, eg);
        sum_goes(ew, eg, ep)
    :: kind == TOTAL ->
        printf("PSN %d of incarnation %d arrives at switch %d from its parent\n", ep, eg, ew);
        total_comes(ew, eg, ep)
    :: kind == RESULT -> take(ei, er, eg)
    :: kind == RESTART || kind == RESET || kind == WITHDRAW ->
        y = (kind == RESET -> retired[ew] | (current[ew] == 0 -> 0 : BIT(RUN(current[ew]))) : 0);
        forget(ew);
        retired[ew] = y;
        if
        :: kind == RESTART ->
            printf("SWITCH %d RESTARTS\n", ew);
            restarts_left--;
            begun[ew] = 0
        :: kind == RESET ->
            printf("THE RING IS RESET on switch %d\n", ew);
            resets_left--
        :: else ->
            printf("THE RING IS WITHDRAWN from switch %d\n", ew);
            withdrawals_left--;
            excused = (excused || (I3 && started == RUNS));
            unknown[ew] = 1
        fi
    :: kind == ADD ->
        printf("the ring is added to switch %d\n", ew);
        excused = (excused || (I3 && started == RUNS)); /* hosts may have been told that nobody aggregates */
        begun[ew] = 0;
        unknown[ew] = 0
    :: kind == START ->
        may_start();
        if
        :: ok ->
            printf("RUN %d starts: epoch %d\n", started, EPOCH(started));
            for (x : 0 .. H - 1) {
                dead[PROC(started - 1, x)] = (dead[PROC(started - 1, x)] || DIES(started))
            }
            started++
        :: else -> skip
        fi
    fi;
    if
    :: comes -> data_comes(at, di, dr, ep, dv, ds, df)
    :: else -> skip
    fi;
    if
    :: begins -> begin(bw, bi, ba)
    :: else -> skip
    fi
}

/* After a calm time there is nothing more to look at: one state for all. */
inline wipe()
{
    for (x : 0 .. RUNS * H - 1) {
        dead[x] = 0;
        expect[x] = 0;
        session[x] = 0
    }
    for (x : 0 .. S * G - 1) {
        who[x] = 0;
        parent[x] = 0;
        passed[x] = 0
#if !HOPS
        ;
        drawn[x] = 0
#endif
    }
    for (x : 0 .. S * G * P - 1) {
        partial[x] = 0;
        total[x] = 0
    }
    for (y : 0 .. S - 1) {
        current[y] = 0;
        gens[y] = 0;
        epoch[y] = 0;
        retired[y] = 0;
        climbs[y] = 0;
        unknown[y] = 0;
        begun[y] = 0;
        give_up_waiting(y);
        empty_slots(y)
    }
    started = 0;
    restarts_left = 0;
    resets_left = 0;
    withdrawals_left = 0;
    excused = 0
}

/* Where scratch is part of the state. */
inline tidy()
{
#if SHORTEST
    comes = 0; di = 0; dr = 0; dv = 0; ds = 0; df = 0; begins = 0; bw = 0; bi = 0; ba = 0;
    fresh = 0; at = 0; down = 0; y = 0; q = 0; s = 0; v = 0; ok = 0; c = 0; fits = 0; step = 0; turn = 0; z = 0;
#endif
    x = 0
}

#define CHOOSE(what, from, below) what = from; do :: what + 1 < (below) -> what++ :: break od

active proctype world()
{
end:
    do
    :: atomic {
        if
        :: CHOOSE(ei, 0, started); CHOOSE(er, 0, H); CHOOSE(ep, 0, P);
            if
            :: ep < LIMIT(ei, er) -> kind = DATA
            :: INPLACE && ep > 0 && ep < expect[PROC(ei, er)] -> kind = REPEAT
            :: else -> skip
            fi
        :: CHOOSE(ew, 1, S); CHOOSE(ei, 0, started);
            if
            :: climbs[ew] & BIT(ei) -> kind = CLIMB
            :: else -> skip
            fi
        :: CHOOSE(ew, 1, S); eg = GEN(ew, 1);
            do
            :: eg < GEN(ew, gens[ew]) -> eg++
            :: break
            od;
            CHOOSE(ep, 1, P);
            if
            :: partial[eg * P + ep] != 0 -> kind = SUM
            :: else -> skip
            fi
        :: CHOOSE(ew, 1, S); eg = GEN(PARENT(ew), 1);
            do
            :: eg < GEN(PARENT(ew), gens[PARENT(ew)]) -> eg++
            :: break
            od;
            CHOOSE(ep, 0, P);
            if
            :: who[eg] != 0 && total[eg * P + ep] != 0 -> kind = TOTAL
            :: else -> skip
            fi
        :: CHOOSE(ei, 0, started); CHOOSE(er, 0, H); CHOOSE(eg, 1, S * G);
            if
            :: !dead[PROC(ei, er)] && SENT(ei, er, eg) && REACHES(eg, er) ->
                kind = RESULT
            :: else -> skip
            fi
        :: started < RUNS -> kind = START
        :: restarts_left > 0 -> CHOOSE(ew, 0, S);
            if
            :: gens[ew] > 0 || climbs[ew] != 0 -> kind = RESTART
            :: else -> skip
            fi
        :: resets_left > 0 -> CHOOSE(ew, 0, S);
            if
            :: current[ew] != 0 || climbed[ew] != 0 -> kind = RESET
            :: else -> skip
            fi
        :: withdrawals_left > 0 -> CHOOSE(ew, 0, S);
            if
            :: !unknown[ew] -> kind = WITHDRAW
            :: else -> skip
            fi
        :: WITHDRAWALS > 0 -> CHOOSE(ew, 0, S);
            if
            :: unknown[ew] -> kind = ADD
            :: else -> skip
            fi
        :: I3 -> kind = CALM
        fi;
        d_step {
            calm = (kind == CALM);
            if
            :: calm -> printf("from here on nothing is lost, late or killed\n")
            :: else -> skip
            fi;
            fresh = 0; /* switches whose set has just been completed, as bits */
            step = 0;
            turn = 0;
            do
            :: calm && turn < ROUNDS ->
                next_event();
                step++;
                turn = (step == ALL_STEPS -> turn + 1 : turn);
                step = (step == ALL_STEPS -> 0 : step);
                if
                :: kind != 0 -> happens()
                :: else -> skip
                fi
            :: calm && turn >= ROUNDS -> judge(); wipe(); break
            :: !calm && kind != 0 -> happens(); break
            :: !calm && kind == 0 -> break
            od;
            kind = 0;
            ei = 0;
            er = 0;
            ep = 0;
            ew = 0;
            eg = 0;
            tidy()
        }
        if
        :: calm -> break
        :: else -> skip
        fi
       }
#if REACH
    :: atomic { d_step { look(); calm = ok; tidy() };
        if
        :: calm -> assert(!REACH)
        :: else -> skip
        fi }
#endif
    od
}
