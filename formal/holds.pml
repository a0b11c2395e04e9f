/*
 * The token protocol: what a store does with dispatch, claim, extend, record and reclaim, and what
 * workers do with its answers, while workers crash, sleep through their leases, messages are lost,
 * come late or twice, and the clock of the store is set.
 *
 * README.md says what is left out, and which code each action stands for. A BAD_... switch turns
 * one rule off, so that a search must find how a guarantee then breaks. Times are in ticks, a
 * lease being LEASE of them, and count no further than they matter. What begins with `g_` is seen
 * by no store and no worker: only the guarantees are stated with it.
 */

/* --- bounds, each set with -D ----------------------------------------------------------------- */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef JOBS
#define JOBS 1 /* ids that may be stored */
#endif
#ifndef DISPATCHES
#define DISPATCHES JOBS
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef MAX_ATTEMPTS
#define MAX_ATTEMPTS 2
#endif
#ifndef MAX_STALLS
#define MAX_STALLS 2
#endif
#ifndef CLAIMS
#define CLAIMS 3 /* each job is claimed so often, then the search ends there; without PROMPT */
#endif
#ifndef CRASHES
#define CRASHES 1 /* over all workers, as are the following */
#endif
#ifndef LOSSES
#define LOSSES 1 /* requests or replies that are lost */
#endif
#ifndef STRAYS
#define STRAYS 1 /* requests that arrive after their sender gave them up, or twice */
#endif
#ifndef SLEEPS
#define SLEEPS 0 /* suspensions; with PROMPT, else each worker may be slow at every step */
#endif
#ifndef STEPS
#define STEPS 0 /* times that the clock of the store is set */
#endif
#ifndef ONLY
#define ONLY 0 /* check all guarantees, or that of this number */
#endif

/*
 * With PROMPT time passes only when nobody who is awake has anything to do, so that a lease runs
 * out for no other reason than a fault. Without it everything may take any time.
 */
#ifdef PROMPT
#define IS_PROMPT true
#define LONGEST_RUN 3 /* ticks that a handler takes at most */
#else
#define IS_PROMPT false
#endif

/* --- the guarantees --------------------------------------------------------------------------- */

bool I2_one_current_hold, I3_other_holds_change_nothing;
bool I4_starts_are_bounded, I4_stalls_in_a_row_are_bounded, I5_no_job_is_lost;
bool I6_kept_in_time_stays, I6_starts_under_the_current_hold;
bool I14_a_repeat_gets_the_first_answer, I14_completed_once, I14_one_dispatch_one_job;
bool I14_ends_once, I14_a_lost_answer_costs_no_stall, W19_a_lost_hold_stops_its_handler;

#define must(number, guarantee, ok) \
    if \
    :: (ok) || (ONLY && ONLY != number) \
    :: else -> guarantee = true; assert(!guarantee) \
    fi

/* --- the store -------------------------------------------------------------------------------- */

#define NOBODY 0 /* no token, no serial, no grant */

mtype = { absent, pending, processing, completed, failed };

mtype state[JOBS] = absent;
byte serial[JOBS], attempt[JOBS], stalls[JOBS];
byte hold_serial[JOBS], hold_token[JOBS]; /* the current hold */
byte left[JOBS];                          /* ticks until its lease has run out */
byte settled_serial[JOBS], settled_token[JOBS]; /* the last settled hold, kept apart */
/* `refuse` is Failed(started=False) */
mtype:outcome = { none, complete, retry, fail, release, refuse };
mtype:outcome settled_outcome[JOBS] = none;

byte g_grants[JOBS];  /* how often a claim was granted */
byte g_current[JOBS]; /* the grant that has not ended */
byte g_settled[JOBS]; /* the last grant that an outcome ended, and that outcome */
mtype:outcome g_outcome[JOBS] = none;
byte g_starts[JOBS], g_completions[JOBS], g_ends[JOBS];
bool g_answered[JOBS];
byte g_dispatches;
byte g_row[JOBS];     /* starts since an outcome other than a release */
bool g_true_clock = true; /* the clock of the store was never set */
#ifdef PROMPT
bool g_losses_only = true; /* nothing has happened but that messages were lost */
#else
bool g_losses_only = false;
#endif

#define is_over(j) (state[j] == completed || state[j] == failed)

/* --- the workers ------------------------------------------------------------------------------ */

mtype:worker = { down, idle, claiming, running, ending };
mtype:message = { nothing, sent, answered, unsure };

mtype:worker at[WORKERS] = idle;
bool asleep[WORKERS];
byte token[WORKERS], job[WORKERS], claim_serial[WORKERS]; /* the hold it has */
bool again[WORKERS];   /* its claim is a repeat */
byte age[WORKERS];     /* since what gave it its lease was first sent, by its monotonic clock */
mtype:outcome out[WORKERS] = none;
mtype:message call[WORKERS] = nothing; /* its claim or record */
mtype:message keeping[WORKERS] = nothing; /* its extend */
byte keeping_age[WORKERS];
bool lost[WORKERS];    /* the answer to its extend */
mtype:verdict = { no_job, start, last, exhausted };
mtype:verdict verdict[WORKERS] = no_job;
bool looked[WORKERS];  /* it has seen a hold that had expired, and asks to reclaim it */
byte seen_job[WORKERS], seen_serial[WORKERS], seen_token[WORKERS];
bool kept[WORKERS];    /* the keeper has had its turn in this tick */
byte ran[WORKERS];
bool told[WORKERS];    /* its handler goes on, although its hold was said to be lost */

byte g_grant[WORKERS];

/* --- what is on its way without anybody waiting for it ---------------------------------------- */

mtype:stray = { no_stray, stray_enqueue, stray_claim, stray_extend, stray_record };

mtype:stray stray = no_stray;
byte stray_job, stray_serial, stray_token, stray_grant;
bool stray_again;
mtype:outcome stray_outcome = none;

byte crashes = CRASHES, losses = LOSSES, strays = STRAYS, sleeps = SLEEPS, steps = STEPS;

#include "holds/store.pml"
#include "holds/worker.pml"
#include "holds/net.pml"

/* --- who dispatches --------------------------------------------------------------------------- */

bool dispatched; /* all that will be */

proctype Dispatcher()
{
    byte id = 0;
    mtype:message enqueuing = nothing;

    do
    :: d_step { enqueuing == nothing && g_dispatches < DISPATCHES ->
        printf("dispatcher: sends job %d\n", id);
        g_dispatches++; enqueuing = sent }
    :: d_step { enqueuing == unsure ->
#ifdef BAD_DISPATCH_REPEATS_UNDER_A_NEW_ID
        id = (id < JOBS - 1 -> id + 1 : id);
#endif
        printf("dispatcher: sends job %d again\n", id);
        enqueuing = sent }
    :: d_step { enqueuing == sent ->
        printf("store: enqueues job %d\n", id);
#ifndef BAD_ENQUEUE_ANSWERS_FIRST
        enqueue(id);
#endif
        enqueuing = answered }
    :: d_step { enqueuing == sent && losses > 0 ->
        printf("store: enqueues job %d, the reply is lost\n", id);
        enqueue(id); enqueuing = unsure; losses-- }
    :: d_step { enqueuing == sent && losses > 0 ->
        printf("net: the enqueue of job %d is lost\n", id);
        enqueuing = unsure; losses-- }
    :: d_step { enqueuing == sent && may_stray ->
        strays--; g_losses_only = false; stray = stray_enqueue; stray_job = id;
        printf("net: the enqueue of job %d will come twice\n", id) }
    :: d_step { enqueuing == sent && may_stray ->
        strays--; g_losses_only = false; stray = stray_enqueue; stray_job = id;
        printf("net: the enqueue of job %d will come late\n", id);
        enqueuing = unsure }
    :: d_step { enqueuing == answered ->
        g_answered[id] = true; nothing_is_lost(); id++; enqueuing = nothing }
    :: enqueuing == nothing && g_dispatches == DISPATCHES -> break
    :: enqueuing == unsure -> break /* it gives up, or its process has died */
    od;
    dispatched = true
}

/* --- time ------------------------------------------------------------------------------------- */

#ifdef PROMPT
#define rests(w) \
    (call[w] != sent && keeping[w] != sent && !looked[w] && \
    (at[w] == down || asleep[w] || \
        (!reclaims_now(w) && (at[w] == idle && !something_claimable || at[w] == running && \
            keeping[w] == nothing && (kept[w] || told[w]) && ran[w] < LONGEST_RUN))))
#ifdef WARY
#define reclaims_now(w) false /* it looks now and then */
#else
#define reclaims_now(w) something_expired(w)
#endif
#if WORKERS == 2
#define all_rest (dispatched && rests(0) && rests(1))
#else
#define all_rest (dispatched && rests(0) && rests(1) && rests(2))
#endif
#else
#define all_rest true
#endif

#define up_to(what, bound) what = (what < bound -> what + 1 : what)
#define down_to_0(what) what = (what > 0 -> what - 1 : what)

inline pass_time()
{
    i = 0;
    do
    :: i < JOBS -> down_to_0(left[i]); i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < WORKERS ->
        must(19, W19_a_lost_hold_stops_its_handler, !told[i]);
        if
        :: at[i] == claiming || at[i] == running -> up_to(age[i], LEASE)
        :: else
        fi;
        if
        :: keeping[i] != nothing -> up_to(keeping_age[i], LEASE)
        :: else
        fi;
#ifdef PROMPT
        if
        :: at[i] == running && !asleep[i] -> ran[i]++
        :: else
        fi;
#endif
        kept[i] = false;
#ifdef WARY
        down_to_0(wary[i]);
        if
        :: watching[i] -> up_to(watched[i], LEASE)
        :: else
        fi;
#endif
        i++
    :: else -> break
    od;
    i = 0
}

/* The store's clock is set: all leases look run out, or end later than they should. */
inline set_clock(to)
{
    steps--;
    g_true_clock = false;
    g_losses_only = false;
    i = 0;
    do
    :: i < JOBS ->
        if
        :: hold_token[i] != NOBODY -> left[i] = to
        :: else
        fi;
        i++
    :: else -> break
    od;
#ifdef WARY
    i = 0;
    do
    :: i < WORKERS -> jumped[i] = true; i++
    :: else -> break
    od;
#endif
    i = 0
}

#ifdef WARY
/* Who has not looked before knows nothing of a step; nor who asks to reclaim at this moment. */
#define may_step (compares[0] && compares[1] && !looked[0] && !looked[1])
#else
#define may_step true
#endif

#define over (dispatched && all_over && stray == no_stray)

proctype Time()
{
#ifndef PROMPT
end:
#endif
    do
    :: d_step { !over && all_rest -> printf("time: a tick\n"); pass_time() }
    :: d_step { !over && steps > 0 && may_step ->
        printf("time: the store's clock is set forward\n"); set_clock(0) }
    :: d_step { !over && steps > 0 && may_step ->
        printf("time: the store's clock is set back\n"); set_clock(LEASE + 1) }
    :: over -> break
    od
}

init
{
    byte w = 0;
    atomic {
        run Dispatcher();
        do
        :: w < WORKERS -> run Worker(w); run Net(w); w++
        :: else -> break
        od;
        run Stray();
        run Time()
    }
}

/* With weak fairness, and no more faults than the bounds allow: what is stored ends (I7). */
#ifdef LIVE
ltl I7_what_is_stored_ends { [] (state[0] == pending -> <> is_over(0)) }
#endif
