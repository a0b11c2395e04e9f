/* What the store does with each request, in one step. Part of holds.pml. */

/* --- skew: a worker that has noticed that the store's clock was set is wary for a lease ------- */

#ifdef WARY
bool compares[WORKERS] = false; /* it has looked before, and so knows how the clocks stood */
bool jumped[WORKERS];           /* they stand differently now */
byte wary[WORKERS];             /* ticks for which it trusts its own clock only */
bool watching[WORKERS];         /* it has seen the hold expired, for so many ticks */
byte watched[WORKERS];
bool extended[WORKERS];         /* but it was extended meanwhile */
#define I6_clock true
#else
#define I6_clock g_true_clock
#endif

inline note_extended(id)
{
#ifdef WARY
    i = 0;
    do
    :: i < WORKERS -> extended[i] = watching[i]; i++
    :: else -> break
    od;
    i = 0
#else
    skip
#endif
}

#define keeps(w, id) \
    (at[w] == running && job[w] == (id) && g_grant[w] == g_current[id] && age[w] < LEASE)
#if WORKERS == 2
#define kept_in_time(id) (I6_clock && (keeps(0, id) || keeps(1, id)))
#else
#define kept_in_time(id) (I6_clock && (keeps(0, id) || keeps(1, id) || keeps(2, id)))
#endif

/* --- what the store does, each in one step ---------------------------------------------------- */

hidden byte i, found, fresh; /* these are of one step alone */
hidden byte c_job, c_serial, c_grant;
hidden byte c_verdict;
hidden byte r_applied, r_repeated;

inline enqueue(id)
{
#ifdef BAD_ENQUEUE_FORGETS_WHAT_ENDED
    if
    :: is_over(id) -> state[id] = absent
    :: else
    fi;
#endif
    if
    :: state[id] == absent ->
        state[id] = pending;
        found = 0;
        i = 0;
        do
        :: i < JOBS -> found = found + (state[i] != absent); i++
        :: else -> break
        od;
        must(14, I14_one_dispatch_one_job, found <= g_dispatches)
    :: else /* known: the answer of the first time */
    fi
}

inline grant(id, with_token)
{
    must(2, I2_one_current_hold, g_current[id] == NOBODY);
    g_grants[id]++;
    g_current[id] = g_grants[id];
#ifndef BAD_CLAIM_KEEPS_SERIAL
    serial[id]++;
#endif
    attempt[id]++;
    hold_serial[id] = serial[id];
    hold_token[id] = with_token;
    left[id] = LEASE;
#ifdef BAD_CLAIM_DROPS_SETTLED
    settled_token[id] = NOBODY;
#endif
#ifdef BAD_CLAIM_TAKES_AWAY
    state[id] = absent
#else
    state[id] = processing
#endif
}

#ifdef PROMPT
#define claims_left(j) true
#else
#define claims_left(j) (g_grants[j] < CLAIMS)
#endif
#ifdef BAD_CLAIM_IGNORES_LEASE
#define claimable(j) ((state[j] == pending || state[j] == processing) && claims_left(j))
#else
#define claimable(j) (state[j] == pending && claims_left(j))
#endif

#ifdef BAD_AGAIN_RETURNS_ANY_HOLD
#define is_held_by(id, with_token) true
#else
#define is_held_by(id, with_token) (hold_token[id] == (with_token))
#endif

/* The answer is in c_...: a hold that the token has, where that is asked for, else a new one. */
inline claim(who, with_token, repeated)
{
    found = JOBS;
    i = 0;
    do
    :: i < JOBS ->
        if
#ifndef BAD_AGAIN_IS_NOT_LOOKED_UP
        :: repeated && hold_token[i] != NOBODY && is_held_by(i, with_token) -> found = i
#endif
        :: else
        fi;
        i++
    :: else -> break
    od;
    if
    :: found == JOBS ->
        i = 0;
        do
        :: i < JOBS ->
            if
            :: found == JOBS && claimable(i) -> found = i
            :: else
            fi;
            i++
        :: else -> break
        od;
        if
        :: found < JOBS -> grant(found, with_token)
        :: else
        fi
    :: else
    fi;
    c_verdict = no_job;
    c_job = 0;
    c_serial = NOBODY;
    c_grant = NOBODY;
    if
    :: found < JOBS ->
        c_job = found;
        c_serial = hold_serial[found];
        c_grant = g_current[found];
        if
        :: attempt[found] > MAX_ATTEMPTS || stalls[found] >= MAX_STALLS -> c_verdict = exhausted
        :: else -> c_verdict = (attempt[found] == MAX_ATTEMPTS -> last : start)
        fi
    :: else
    fi
}

#define current(id, with_serial, with_token) \
    (hold_token[id] != NOBODY && hold_token[id] == (with_token) && hold_serial[id] == (with_serial))

inline end_hold(id)
{
    hold_serial[id] = NOBODY;
    hold_token[id] = NOBODY;
    left[id] = 0;
    g_current[id] = NOBODY
}

/* The answer is APPLIED, REPEATED, or neither: FENCED. */
inline record(id, with_serial, with_token, what, of_grant)
{
    r_applied = false;
    r_repeated = false;
    if
#ifdef BAD_RECORD_IS_NOT_FENCED
    :: state[id] == processing ->
#else
    :: current(id, with_serial, with_token) ->
#endif
        r_applied = true
    :: else ->
        r_repeated = settled_token[id] == (with_token) && settled_serial[id] == (with_serial) &&
            settled_outcome[id] == (what);
#ifdef BAD_REPEAT_IS_APPLIED
        r_applied = r_repeated
#endif
    fi;
#ifdef BAD_REPEAT_IS_NOT_KNOWN
    r_repeated = false;
#endif
    must(14, I14_a_repeat_gets_the_first_answer,
        r_repeated || g_settled[id] != (of_grant) || g_outcome[id] != (what));
    if
    :: r_applied ->
        must(3, I3_other_holds_change_nothing, g_current[id] == (of_grant));
        if
        :: (what) == release || (what) == refuse -> attempt[id]--
        :: else
        fi;
        if
        :: (what) != release -> stalls[id] = 0; g_row[id] = 0
        :: else
        fi;
        settled_serial[id] = with_serial;
        settled_token[id] = with_token;
        settled_outcome[id] = what;
        g_settled[id] = of_grant;
        g_outcome[id] = what;
        if
        :: (what) == complete -> state[id] = completed; g_completions[id]++
        :: (what) == fail || (what) == refuse -> state[id] = failed
        :: else -> state[id] = pending
        fi;
        must(14, I14_completed_once, g_completions[id] <= 1);
        if
        :: is_over(id) -> g_ends[id]++
        :: else
        fi;
        must(14, I14_ends_once, g_ends[id] <= 1);
        end_hold(id)
    :: else
    fi
}

/* The answer is `lost_it`; where the hold is current it is extended, expired or not. */
inline extend(id, with_serial, with_token, of_grant, lost_it)
{
#ifdef BAD_EXTEND_REVIVES
    if
    :: state[id] == pending && !current(id, with_serial, with_token) ->
        state[id] = processing;
        hold_serial[id] = with_serial;
        hold_token[id] = with_token
    :: else
    fi;
#endif
    lost_it = !current(id, with_serial, with_token);
    if
    :: !lost_it ->
        must(3, I3_other_holds_change_nothing, g_current[id] == (of_grant));
        left[id] = LEASE;
        note_extended(id)
    :: else
    fi
}

/* Only the hold that was seen, and only where it is still current and still expired. */
inline reclaim(id, with_serial, with_token)
{
    if
#ifdef BAD_RECLAIM_CHECKS_NOT_EXPIRY
    :: current(id, with_serial, with_token) ->
#else
#ifdef BAD_RECLAIM_CHECKS_NOTHING
    :: state[id] == processing ->
#else
    :: current(id, with_serial, with_token) && left[id] == 0 ->
#endif
#endif
        must(6, I6_kept_in_time_stays, !kept_in_time(id));
        must(14, I14_a_lost_answer_costs_no_stall, !g_losses_only);
        state[id] = pending;
        serial[id]++;
        stalls[id]++;
#ifdef BAD_RECLAIM_GIVES_START_BACK
        attempt[id]--;
#endif
#ifdef BAD_RECLAIM_COUNTS_NO_STALL
        stalls[id]--;
#endif
#ifdef BAD_RECLAIM_KEEPS_HOLD
        g_current[id] = NOBODY
#else
        end_hold(id)
#endif
    :: else
    fi
}
