/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slot and window protocol of docs/protocol.md (sections 3 and 4), for spin. What it says and what it leaves out:
 * docs/lab/model.md. tools/model runs every configuration. The rules that the mutants change are the preprocessor switches
 * below; netreduce.pml is this file with NetReduce's switches.
 *
 * Ranks 0..H-1 in a ring: rank r sends on connection r to rank r+1. A packet is its PSN p = m*L + k (message m,
 * packet k); its payload is one of a few classes instead of numbers:
 */
#define RAW  0 /* one rank's own gradient for (m,k) */
#define GOOD 1 /* the right sum for (m,k) */
#define BAD  2 /* anything else: a rank twice, a rank missing, a sum inside a sum, another message */

/* Sizes. */
#ifndef H
#define H 2      /* ranks */
#endif
#ifndef N
#define N 1      /* the hosts' window, messages */
#endif
#ifndef L
#define L 1      /* packets of a message */
#endif
#ifndef MSGS
#define MSGS (2 * N + 2)
#endif

/* The network: SOUP 1: whatever was ever sent may arrive at any time, any number of times, in any order, or never.
   SOUP 0: FIFO links, go-back-N with ACK, NAK and timeouts, and FAULTS faults of any kind at any place. */
#ifndef SOUP
#define SOUP 1
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef CAP
#define CAP (N * L + 1) /* packets a FIFO link holds */
#endif

/* The rules. 1 (or 2N) is Weir. */
#ifndef INPLACE
#define INPLACE 1       /* a host's result overwrites its gradient at once: repeats carry the result */
#endif
#ifndef CACHING
#define CACHING 1       /* 0: a repeat after completion refreshes the slot, and the sum is computed again */
#endif
#ifndef TAGS
#define TAGS 1          /* 0: no tag; a packet of m clears the slot of m+N instead (NetReduce) */
#endif
#ifndef CLT
#define CLT 0           /* 1: NetReduce's connection table: the last FIRST seen, whichever it was */
#endif
#ifndef DEPTH
#define DEPTH (2 * N)   /* messages of history */
#endif
#ifndef SLOTS
#define SLOTS (2 * N)   /* slots, in messages */
#endif
#ifndef BITMAP
#define BITMAP 1        /* 0: a slot counts packets instead of ranks */
#endif
#ifndef HOLES
#define HOLES 1         /* 0: what lies behind the newest FIRST is taken for stale even where its FIRST was lost */
#endif
#ifndef QUITS
#define QUITS 0         /* 1: a host that holds every result sends nothing more, acknowledged or not (SOUP 0 only) */
#endif
#ifndef RESTARTS
#define RESTARTS 0      /* 1: the switch may restart once (SOUP only) */
#endif
#ifndef RECOVERY
#define RECOVERY 0      /* 1: section 9: results leave in order (R1); SOUP 0: the switch asks (R2), mends from its cache
                           (R3) and swallows repeats (R4) */
#endif
#ifndef SAYS
#define SAYS heard[r]   /* what the switch acknowledges to rank r. Weir: a, never more */
#endif
#ifndef SESSION
#define SESSION 1       /* 0: after a restart the first FIRST admits its connection again */
#endif

/* Properties. I1 is always checked. */
#ifndef I3
#define I3 1            /* progress (SOUP 0 only) */
#endif
#ifndef LEMMA
#define LEMMA 1         /* the lemma of section 4, and what follows from it: see lemma() */
#endif
#ifndef I9
#define I9 1            /* the switch acknowledges nothing that the receiver has not (RECOVERY, SOUP 0) */
#endif
#ifndef ORDER
#define ORDER 0         /* 1: I7 while no packet was lost or delayed before the switch; 2: I7 always */
#endif

#ifndef REACH
#define REACH 0         /* 1: fails when the job can complete at all, and shows how (SOUP only) */
#endif

#define P          (MSGS * L)
#define SUCC(r)    (((r) + 1) % H)
#define MIN(a, b)  ((a) < (b) -> (a) : (b))
#define LIMIT(r)   (MIN(expect[r] / L + N, MSGS) * L) /* host r sends m only after result m-N arrived whole */
#define FINISHED(r) (expect[r] == P)
#if H == 2
#define ALL(f)     (f(0) && f(1))
#define ANY(f)     (f(0) || f(1))
#else
#define ALL(f)     (f(0) && f(1) && f(2))
#define ANY(f)     (f(0) || f(1) || f(2))
#endif

/* Hosts. expect[r] is the next PSN that rank r's receiver (connection r-1) takes; below it r holds results. */
byte expect[H];

/* Switch: the history of each connection. newest[r] = M + 1; before the first message M is the hello. */
byte newest[H];
bool known[H * DEPTH];
byte past[H];            /* the floor, in messages: just past the newest known message that has left */

/* Switch: slots. */
byte tag[SLOTS * L];     /* message + 1; 0 empty */
byte res[SLOTS * L];     /* 0 filling; else 1 + class of the result */
byte kept[SLOTS * L * H]; /* each rank's packet: 0 none; else 1 + 2 * message + (1: the buffer held a result) */
#if RECOVERY
byte due;                /* the PSN whose results leave next; below it they have left (s) */
#if !SOUP
byte heard[H];           /* a: what answers that passed the switch have acknowledged on connection r */
byte said[H];            /* a NAK of the switch is under way to rank r: 1 + its PSN; 0: none */
bool naked[H];           /* one for each advance of a */
byte mend[H];            /* 1 + the PSN of the next result to send again on connection r; 0: none */
#endif
#endif
#if !BITMAP
byte count[SLOTS * L];
bool twice[SLOTS * L];
#endif

#if SOUP
byte sent[H * P];        /* what the switch has sent towards rank r+1, by PSN: bit per class */
bool restarted;
byte pick;
#else
chan up[H] = [CAP] of { byte };   /* host r to switch: 4 * PSN + class */
#if RECOVERY
#define DOWN_CAP (CAP + N * L - 1) /* a closed gap releases a window */
#else
#define DOWN_CAP CAP
#endif
chan down[H] = [DOWN_CAP] of { byte }; /* switch to host r+1 */
byte next[H];            /* go-back-N sender of connection r: next PSN to send */
byte una[H];             /* oldest PSN not acknowledged */
bool asked[H];           /* the receiver has sent a NAK for this gap already */
byte back;
byte left = FAULTS;      /* faults still to come */
bool tried[H];           /* timed out since anything moved last */
bool disturbed;          /* a packet was lost or delayed on its way to the switch */
#endif

/* Scratch: written before it is read within one step, so no part of the state. (Breadth-first search, for the shortest
   counterexample, cannot do with hidden variables: it takes -DSCRATCH=byte.) */
#ifndef SCRATCH
#define SCRATCH hidden byte
#endif
SCRATCH m, k, s, x, y, z, c, q, act, in_psn, in_class, whole, has_left;

#define TO_SLOT 0
#define STALE   1
#define DROP    2
#define SWALLOW 3 /* its result has left */

#if LEMMA
#define lemma(cond) assert(cond)
#else
#define lemma(cond) skip
#endif

/* The switch sends packet p of class cl on connection r. */
inline emit(r, p, cl)
{
    printf("  switch sends PSN %d (message %d packet %d) to rank %d carrying %d (0 raw, 1 right sum, 2 WRONG)\n", p,
           (p) / L, (p) % L, SUCC(r), cl);
#if SOUP
    if
    :: (p) >= expect[SUCC(r)] -> sent[(r) * P + (p)] = sent[(r) * P + (p)] | (1 << (cl))
    :: else -> skip /* a duplicate: the receiver does not execute it */
    fi
#else
#if ORDER
    z = 0;
    do
    :: z < SLOTS * L ->
        /* An earlier packet of this connection is held and will leave later. */
        assert(res[z] != 0 || kept[z * H + (r)] == 0 || ((kept[z * H + (r)] - 1) / 2) * L + (z % L) >= (p)
               || (ORDER == 1 && disturbed));
        z++
    :: else -> break
    od;
    z = 0;
#endif
    down[r] ! (4 * (p) + (cl))
#endif
}

/* What the sum over slot s is to the message w: into q. */
inline reduce(w)
{
    q = GOOD;
    x = 0;
    do
    :: x < H ->
        if
        :: kept[s * H + x] != 1 + 2 * (w) -> q = BAD
        :: else -> skip
        fi;
        x++
    :: else -> break
    od
#if !BITMAP
    ;
    if
    :: twice[s] -> q = BAD
    :: else -> skip
    fi
#endif
}

inline is_full()
{
    whole = 1;
    x = 0;
    do
    :: x < H ->
        if
        :: kept[s * H + x] == 0 -> whole = 0
        :: else -> skip
        fi;
        x++
    :: else -> break
    od
}

inline clear(t)
{
    tag[t] = 0;
    res[t] = 0;
#if !BITMAP
    count[t] = 0;
    twice[t] = 0;
#endif
    x = 0;
    do
    :: x < H -> kept[(t) * H + x] = 0; x++
    :: else -> break
    od
}

/* Section 3: which message is it? Sets act. */
inline classify(r, p)
{
#if CLT
    if
    :: k == 0 -> newest[r] = m + 1; act = TO_SLOT
    :: k != 0 && newest[r] == m + 1 -> act = TO_SLOT
    :: else -> act = DROP
    fi
#else
    if
#if RESTARTS
    :: restarted && SESSION -> act = DROP
    :: restarted && !SESSION && k == 0 && newest[r] == 0 ->
        newest[r] = m + 1;
        known[(r) * DEPTH + m % DEPTH] = 1;
        act = TO_SLOT
#endif
    :: else ->
        if
        :: k == 0 && m + 1 + DEPTH <= newest[r] -> act = STALE
        :: k == 0 && m >= newest[r] + N -> act = DROP; lemma(false) /* a host broke its window */
        :: k == 0 && m + 1 + DEPTH > newest[r] && m < newest[r] + N ->
            do
            :: newest[r] <= m ->
                /* message newest leaves no hole behind when it pushes message newest - DEPTH out */
                if
                :: newest[r] >= DEPTH ->
                    lemma(known[(r) * DEPTH + newest[r] % DEPTH]);
                    if
                    :: known[(r) * DEPTH + newest[r] % DEPTH] -> past[r] = newest[r] - DEPTH + 1
                    :: else -> skip
                    fi
                :: else -> skip
                fi;
                known[(r) * DEPTH + newest[r] % DEPTH] = 0;
                newest[r]++
            :: else -> break
            od;
            known[(r) * DEPTH + m % DEPTH] = 1;
            act = TO_SLOT
        :: k != 0 ->
            if
            :: m < newest[r] && m + DEPTH >= newest[r] && known[(r) * DEPTH + m % DEPTH] -> act = TO_SLOT
            :: m < past[r] -> act = STALE
#if !HOLES
            :: m < newest[r] && m + DEPTH >= newest[r] && !known[(r) * DEPTH + m % DEPTH] -> act = STALE
#endif
            :: else -> act = DROP
            fi
        fi
    fi
#endif
}

/* NetReduce: every header in the slot goes out with the sum, each under its own PSN. */
inline complete_untagged()
{
    c = 0;
    do
    :: c < H ->
        y = (kept[s * H + c] - 1) / 2;
        reduce(y);
        emit(c, y * L + k, q);
        c++
    :: else -> break
    od;
#if CACHING
    reduce(m);
    res[s] = 1 + q;
    tag[s] = m + 1;
    x = 0;
    do
    :: x < H -> kept[s * H + x] = 0; x++
    :: else -> break
    od
#endif
}

#if RECOVERY
#define AT(p) (((p) / L % SLOTS) * L + (p) % L) /* its slot */
#define HAS_COME(r, p) (tag[AT(p)] == (p) / L + 1 && (res[AT(p)] != 0 || kept[AT(p) * H + (r)] != 0))

/* R1: results leave in the order of message and packet. */
inline release()
{
    do
    :: due < P && tag[AT(due)] == due / L + 1 && res[AT(due)] != 0 ->
        c = res[AT(due)] - 1;
        q = 0;
        do
        :: q < H -> emit(q, due, c); q++
        :: else -> break
        od;
        due++
    :: else -> break
    od
}
#endif

/* Section 4: the slot. */
inline slot(r, p, cl)
{
    s = (m % SLOTS) * L + k;
#if !TAGS
    y = ((m + N) % SLOTS) * L + k;
    clear(y);
    if
    :: CACHING && res[s] != 0 ->
        q = (tag[s] == m + 1 -> res[s] - 1 : BAD);
        emit(r, p, q)
    :: else ->
        kept[s * H + (r)] = 1 + 2 * m + (cl);
        is_full();
        if
        :: whole -> complete_untagged()
        :: else -> skip
        fi
    fi;
    y = 0
#else
#if RECOVERY
    has_left = (tag[s] != 0 && (tag[s] - 1) * L + k < due);
#else
    has_left = (tag[s] != 0 && res[s] != 0);
#endif
    if
    :: tag[s] > m + 1 -> act = STALE
    :: tag[s] < m + 1 && tag[s] != 0 && !has_left -> act = DROP; lemma(false) /* a host broke its window */
    :: tag[s] < m + 1 && (tag[s] == 0 || has_left) ->
        /* The lemma: reclaimed only when every host holds the old result whole. */
#if H == 2
        lemma(expect[0] >= tag[s] * L && expect[1] >= tag[s] * L);
#else
        lemma(expect[0] >= tag[s] * L && expect[1] >= tag[s] * L && expect[2] >= tag[s] * L);
#endif
        clear(s);
        tag[s] = m + 1
    :: else -> skip
    fi;
    if
    :: act != TO_SLOT -> skip
#if RECOVERY
    :: act == TO_SLOT && res[s] != 0 && p >= due -> skip /* ready, and earlier results have not left */
    :: act == TO_SLOT && res[s] != 0 && p < due ->
#else
    :: act == TO_SLOT && res[s] != 0 ->
#endif
#if CACHING
        emit(r, p, res[s] - 1)
#else
        kept[s * H + (r)] = 1 + 2 * m + (cl);
        reduce(m);
        emit(r, p, q)
#endif
    :: act == TO_SLOT && res[s] == 0 ->
#if BITMAP
        if
        :: kept[s * H + (r)] == 0 -> kept[s * H + (r)] = 1 + 2 * m + (cl)
        :: else -> skip /* a repeat: one copy is kept */
        fi;
        is_full();
#else
        if
        :: kept[s * H + (r)] != 0 -> twice[s] = 1
        :: else -> skip
        fi;
        kept[s * H + (r)] = 1 + 2 * m + (cl);
        count[s]++;
        whole = (count[s] == H);
#endif
        if
        :: whole ->
            reduce(m);
            res[s] = 1 + q;
#if RECOVERY
            release();
#else
            c = q;
            q = 0;
            do
            :: q < H -> emit(q, p, c); q++
            :: else -> break
            od;
#endif
#if CACHING && !(RECOVERY && ORDER)
            x = 0;
            do
            :: x < H -> kept[s * H + x] = 0; x++ /* only the result is held from here on */
            :: else -> break
            od
#endif
        :: else -> skip
        fi
    fi
#endif
}

#if RECOVERY && !SOUP
/* R4: one resend for a pass of the sender, when it reaches a; ACK(a-1) below. */
inline swallow(r, p)
{
    if
    :: (p) < heard[r] -> acknowledge(r, heard[r])
    :: (p) == heard[r] && mend[r] == 0 -> mend[r] = 1 + (p)
    :: else -> skip
    fi
}

/* R2: has a packet of rank r come above one that has not? Then it is asked by NAK(SAYS). */
inline look_for_gap(r, p)
{
    x = due; /* becomes e */
    do
    :: x < (p) && HAS_COME(r, x) -> x++
    :: else -> break
    od;
    if
    :: x < (p) && !naked[r] ->
        naked[r] = 1;
        said[r] = 1 + (SAYS);
        printf("the switch asks rank %d by NAK(%d)\n", r, said[r] - 1);
        assert(!I9 || said[r] - 1 <= expect[SUCC(r)])
    :: else -> skip
    fi
}
#endif

/* The switch receives packet p on connection r; cl: RAW, or GOOD where the sender's buffer held its result. */
inline receive(r, p, cl)
{
    m = (p) / L;
    k = (p) % L;
#if RECOVERY && !SOUP
    if
    :: (p) < due -> act = SWALLOW; swallow(r, p)
    :: else -> classify(r, p)
    fi;
#else
    classify(r, p);
#endif
    printf("  switch takes PSN %d (message %d packet %d) of rank %d carrying %d: %d (0 slot, 1 stale, 2 drop)\n", p, m, k,
           r, cl, act);
    if
    :: act == TO_SLOT -> slot(r, p, cl)
    :: else -> skip
    fi;
    if
    :: act == STALE ->
        lemma((p) < expect[SUCC(r)]); /* who gets a stale repeat holds its result */
#if !RECOVERY
        emit(r, p, cl)
#endif
    :: else -> skip
    fi
#if RECOVERY && !SOUP
    ;
    if
    :: act != SWALLOW -> look_for_gap(r, p)
    :: else -> skip
    fi
#endif
}

/* I1: what a host takes is the right sum. */
inline take(h, cl)
{
    printf("rank %d takes PSN %d\n", h, expect[h]);
    assert((cl) == GOOD); /* I1 */
    expect[h]++
}

#if SOUP

#define TAKES(r, cl) (pick == 0 && !FINISHED(SUCC(r)) && SENT(r, cl))
#define SOUP_RANK(r) \
    :: atomic { pick < LIMIT(r) -> \
        d_step { printf("the gradient of rank %d arrives\n", r); receive(r, pick, RAW); pick = 0 } } \
    :: atomic { INPLACE && pick < expect[r] -> \
        d_step { printf("a repeat of rank %d arrives with the result in it\n", r); receive(r, pick, GOOD); pick = 0 } } \
    :: atomic { TAKES(r, RAW) -> d_step { take(SUCC(r), RAW) } } \
    :: atomic { TAKES(r, BAD) -> d_step { take(SUCC(r), BAD) } } \
    :: atomic { TAKES(r, GOOD) -> d_step { sent[(r) * P + expect[SUCC(r)]] = 0; take(SUCC(r), GOOD) } }
#define SENT(r, cl) (sent[(r) * P + expect[SUCC(r)]] & (1 << (cl)))

active proctype world()
{
end:
    do
    :: atomic {
        /* Choose a PSN, then what happens to it; the choice is undone at once, so it makes no states. */
        do
        :: pick < P - 1 -> pick++
        :: break
        od;
        if
        SOUP_RANK(0)
        SOUP_RANK(1)
#if H == 3
        SOUP_RANK(2)
#endif
#if RESTARTS
        :: pick == 0 && !restarted ->
            d_step {
                printf("the switch restarts\n");
                restarted = 1;
                s = 0;
                do
                :: s < SLOTS * L -> clear(s); s++
                :: else -> break
                od;
                s = 0;
                do
                :: s < H * DEPTH -> known[s] = 0; s++
                :: else -> break
                od;
                s = 0;
                do
                :: s < H -> newest[s] = 0; past[s] = 0; s++
                :: else -> break
                od;
                s = 0
            }
#endif
#if REACH
        :: pick == 0 && ALL(FINISHED) -> assert(!REACH) /* vacuity check: the job can complete */
#endif
        :: else -> pick = 0
        fi
    }
    od
}

#else /* FIFO links, finite faults, progress */

/* Anything moved, or a fault came: who has timed out before may do so again. */
inline moved()
{
    tried[0] = 0;
    tried[1] = 0;
#if H == 3
    tried[2] = 0
#endif
}

inline fault()
{
    left--;
    moved()
}

inline host_sends(r)
{
    printf("rank %d sends PSN %d carrying %d (0 raw, 1 the result it holds)\n", r, next[r], INPLACE && next[r] < expect[r]);
    up[r] ! (4 * next[r] + (INPLACE && next[r] < expect[r] -> GOOD : RAW));
    next[r]++
}

/* Rank r learns that its receiver has all below `next`. */
inline acknowledge(r, upto)
{
    if
    :: una[r] < (upto) -> una[r] = (upto); moved()
    :: else -> skip
    fi;
    if
    :: next[r] < una[r] -> next[r] = una[r]
    :: else -> skip
    fi
}

#define LOST_EARLY 0 /* an answer: before the switch */
#define ARRIVES    1
#define LOST_LATE  2 /* behind the switch */

/* The switch sees an answer that passes. */
inline hear(r)
{
#if RECOVERY
    if
    :: heard[r] < expect[SUCC(r)] -> heard[r] = expect[SUCC(r)]; naked[r] = 0
    :: else -> skip
    fi
#else
    skip
#endif
}

/* The receiver of connection r takes what comes. Its answer arrives at once or is lost. */
inline host_receives(r, fate)
{
    down[r] ? c;
    q = c / 4;
    c = c % 4;
    if
    :: fate != ARRIVES -> fault(); printf("LOST: the answer to the next packet\n")
    :: else -> skip
    fi;
    if
    :: q == expect[SUCC(r)] ->
        take(SUCC(r), c);
        moved();
        asked[r] = 0;
        answer(r, fate)
    :: q < expect[SUCC(r)] -> answer(r, fate)
    :: q > expect[SUCC(r)] ->
        if
        :: !asked[r] -> answer_gap(r, fate)
        :: else -> skip
        fi;
        asked[r] = 1
    fi
}

inline answer(r, fate)
{
    if
    :: fate != LOST_EARLY -> hear(r)
    :: else -> skip
    fi;
    if
    :: fate == ARRIVES -> acknowledge(r, expect[SUCC(r)])
    :: else -> skip
    fi
}

/* A NAK for what the receiver expects. R3: the switch mends it, if the result has left. */
inline answer_gap(r, fate)
{
    answer(r, fate);
#if RECOVERY
    if
    :: fate != LOST_EARLY && expect[SUCC(r)] < due -> mend[r] = 1 + expect[SUCC(r)]
    :: else -> skip
    fi
#else
    if
    :: fate == ARRIVES ->
        next[r] = una[r];
        printf("rank %d gets a NAK, goes back to PSN %d\n", r, una[r])
    :: else -> skip
    fi
#endif
}

#if RECOVERY
/* The next of the results that are sent again; older ones than the cache has nobody needs. */
inline send_again(r)
{
    y = mend[r] - 1;
    if
    :: tag[AT(y)] == y / L + 1 && res[AT(y)] != 0 -> emit(r, y, res[AT(y)] - 1)
    :: else -> lemma(y < expect[SUCC(r)])
    fi;
    mend[r] = (y + 1 < due -> y + 2 : 0);
    y = 0
}
#endif

#define GONE(r)     (QUITS && FINISHED(r))
#define MAY_SEND(r) (next[r] < LIMIT(r) && !GONE(r))
#define ROOM(r)     (len(down[r]) < CAP)
#if RECOVERY
#define IDLE(r)     (said[r] == 0 && mend[r] == 0) /* the switch has nothing to say on connection r */
#define RECOVERY_RANK(r) \
    :: atomic { GOING && said[r] != 0 -> d_step { acknowledge(r, said[r] - 1); next[r] = una[r]; said[r] = 0; \
        printf("rank %d gets the switch's NAK, goes back to PSN %d\n", r, una[r]) } } \
    :: atomic { FAULT && said[r] != 0 -> d_step { said[r] = 0; fault(); \
        printf("LOST: the switch's NAK to rank %d\n", r) } } \
    :: atomic { GOING && mend[r] != 0 && nfull(down[r]) -> d_step { send_again(r) } } \
    :: atomic { FAULT && nempty(down[r]) -> d_step { host_receives(r, LOST_LATE) } }
#else
#define IDLE(r)     true
#define RECOVERY_RANK(r)
#endif
#define QUIET(r)    (empty(up[r]) && empty(down[r]) && !MAY_SEND(r) && IDLE(r))
#define WAITS(r)    (una[r] < next[r])
#define MAY_TRY(r)  (WAITS(r) && !tried[r] && !GONE(r))
#define DONE(r)     (QUITS -> FINISHED(r) : una[r] == P) /* una: the successor has everything, and r knows it */
#define GOING       (!ALL(DONE))
#define FAULT       (left > 0 && GOING)

#define FIFO_RANK(r) \
    RECOVERY_RANK(r) \
    :: atomic { GOING && MAY_SEND(r) && nfull(up[r]) -> d_step { host_sends(r) } } \
    :: atomic { GOING && nempty(up[r]) && ALL(ROOM) -> \
        d_step { up[r] ? c; in_psn = c / 4; in_class = c % 4; receive(r, in_psn, in_class) } } \
    :: atomic { GOING && nempty(down[r]) -> d_step { host_receives(r, ARRIVES) } } \
    :: atomic { GOING && ALL(QUIET) && MAY_TRY(r) -> d_step { tried[r] = 1; next[r] = una[r]; \
        printf("rank %d times out, goes back to PSN %d\n", r, una[r]) } } \
    /* faults */ \
    :: atomic { FAULT && nempty(down[r]) -> d_step { host_receives(r, LOST_EARLY) } } \
    :: atomic { FAULT && nempty(up[r]) -> d_step { up[r] ? c; fault(); disturbed = (ORDER != 0); \
        printf("LOST: PSN %d of rank %d before the switch\n", c / 4, r) } } \
    :: atomic { FAULT && nempty(down[r]) -> d_step { down[r] ? c; fault(); \
        printf("LOST: PSN %d of rank %d behind the switch\n", c / 4, r) } } \
    :: atomic { FAULT && nempty(up[r]) && nfull(up[r]) -> d_step { up[r] ? <c>; up[r] ! c; fault(); \
        printf("TWICE: PSN %d of rank %d before the switch\n", c / 4, r) } } \
    :: atomic { FAULT && nempty(down[r]) && nfull(down[r]) -> d_step { down[r] ? <c>; down[r] ! c; fault(); \
        printf("TWICE: PSN %d of rank %d behind the switch\n", c / 4, r) } } \
    :: atomic { FAULT && len(up[r]) > 1 -> d_step { up[r] ? c; up[r] ! c; fault(); disturbed = (ORDER != 0); \
        printf("LATE: PSN %d of rank %d before the switch\n", c / 4, r) } } \
    :: atomic { FAULT && len(down[r]) > 1 -> d_step { down[r] ? c; down[r] ! c; fault(); \
        printf("LATE: PSN %d of rank %d behind the switch\n", c / 4, r) } } \
    :: atomic { FAULT && next[r] > 0 -> back = una[r]; \
        do :: back > 0 -> back-- :: break od; \
        d_step { fault(); una[r] = back; next[r] = back; back = 0; \
        printf("EARLY: every ACK from PSN %d on is lost; rank %d times out, goes back there\n", una[r], r) } }

active proctype world()
{
    do
    FIFO_RANK(0)
    FIFO_RANK(1)
#if H == 3
    FIFO_RANK(2)
#endif
    :: atomic { GOING && ALL(QUIET) && !ANY(MAY_TRY) -> printf("nothing moves any more\n"); assert(!I3); break }
#if RECOVERY
    :: atomic { !GOING -> assert(!I3 || ALL(FINISHED)); break } /* nobody was told what is not so */
#else
    :: !GOING -> break
#endif
    od
}
#endif
