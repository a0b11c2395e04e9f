/*
 * One worker: claimer, judge, keeper, handler, recorder, reclaimer, and its faults.
 * Part of holds.pml.
 */

#define has(w, id) \
    ((at[w] == running || at[w] == ending) && job[w] == (id) && \
    claim_serial[w] == hold_serial[id] && token[w] == hold_token[id])
#define expired_elsewhere(w, id) (hold_token[id] != NOBODY && left[id] == 0 && !has(w, id))
#if JOBS == 1
#define something_claimable claimable(0)
#define something_expired(w) expired_elsewhere(w, 0)
#define all_over (state[0] == absent || is_over(0))
#else
#define something_claimable (claimable(0) || claimable(1))
#define something_expired(w) (expired_elsewhere(w, 0) || expired_elsewhere(w, 1))
#define all_over ((state[0] == absent || is_over(0)) && (state[1] == absent || is_over(1)))
#endif

inline nothing_is_lost()
{
    i = 0;
    do
    :: i < JOBS ->
        must(5, I5_no_job_is_lost, !g_answered[i] || state[i] != absent);
        i++
    :: else -> break
    od;
    i = 0 /* a d_step may not end with a loop */
}

/* A token is random: here the least that nobody and nothing remembers. */
inline draw(w)
{
    fresh = 1;
    do
    :: found = 0;
        i = 0;
        do
        :: i < JOBS ->
            found = found + (hold_token[i] == fresh || settled_token[i] == fresh); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < WORKERS ->
            found = found + (token[i] == fresh || seen_token[i] == fresh); i++
        :: else -> break
        od;
        if
        :: found == 0 && stray_token != fresh -> break
        :: else -> fresh++
        fi
    od;
    token[w] = fresh
}

inline rest(w)
{
    at[w] = idle;
    token[w] = NOBODY;
    again[w] = false;
    job[w] = 0;
    claim_serial[w] = NOBODY;
    g_grant[w] = NOBODY;
    age[w] = 0;
    out[w] = none;
    call[w] = nothing;
    keeping[w] = nothing;
    keeping_age[w] = 0;
    lost[w] = false;
    verdict[w] = no_job;
    kept[w] = false;
    ran[w] = 0;
    told[w] = false
}

inline end_with(w, what)
{
    at[w] = ending;
    out[w] = what;
    call[w] = sent;
    keeping[w] = nothing;
    keeping_age[w] = 0;
    kept[w] = false;
    lost[w] = false;
    age[w] = 0;
    ran[w] = 0;
    verdict[w] = no_job
}

/* What was claimed is looked at before its handler starts. */
inline judge(w)
{
    call[w] = nothing;
    again[w] = false;
    if
    :: verdict[w] == no_job -> rest(w)
#ifndef BAD_LATE_CLAIM_IS_STARTED
    :: verdict[w] != no_job && age[w] >= LEASE -> end_with(w, release)
    :: verdict[w] == exhausted && age[w] < LEASE -> end_with(w, refuse)
#else
    :: verdict[w] == exhausted -> end_with(w, refuse)
#endif
    :: else ->
        must(6, I6_starts_under_the_current_hold,
            !I6_clock || g_grant[w] == g_current[job[w]]);
        at[w] = running;
        g_starts[job[w]]++;
        g_row[job[w]]++;
        must(4, I4_starts_are_bounded, g_starts[job[w]] <= MAX_ATTEMPTS);
        must(4, I4_stalls_in_a_row_are_bounded, g_row[job[w]] <= MAX_STALLS)
    fi
}

#define keeper_is_due(w) (!kept[w])

inline hear_keeper(w)
{
    keeping[w] = nothing;
    if
    :: !lost[w] -> age[w] = keeping_age[w]
    :: else ->
#ifdef BAD_LOST_HANDLER_GOES_ON
        told[w] = true
#else
        rest(w)
#endif
    fi;
    lost[w] = false;
    keeping_age[w] = 0
}

inline note_seen(w, id)
{
    looked[w] = true;
    seen_job[w] = id;
    seen_serial[w] = hold_serial[id];
    seen_token[w] = hold_token[id]
}

#ifdef WARY

inline look(w)
{
    if
    :: compares[w] && jumped[w] ->
#ifndef BAD_NEVER_WARY
        wary[w] = LEASE;
#endif
        watching[w] = false;
        watched[w] = 0
    :: else
    fi;
    compares[w] = true;
    jumped[w] = false;
    if
    :: !something_expired(w) -> watching[w] = false; watched[w] = 0
    :: something_expired(w) && wary[w] == 0 && !watching[w] -> note_seen(w, 0)
    :: else ->
        if
        :: !watching[w] || extended[w] -> watching[w] = true; watched[w] = 0
        :: else
        fi;
        if
        :: watched[w] >= LEASE -> note_seen(w, 0)
        :: else
        fi
    fi;
    extended[w] = false
}

#endif

inline forget_seen(w)
{
    looked[w] = false;
    seen_job[w] = 0;
    seen_serial[w] = NOBODY;
    seen_token[w] = NOBODY
}

#define awake(w) (at[w] != down && !asleep[w])

proctype Worker(byte w)
{
end:
    do
    /* claim, and repeat it under its token where the answer was lost */
    :: d_step { awake(w) && at[w] == idle && something_claimable ->
        printf("worker %d: asks for a job\n", w);
        draw(w); at[w] = claiming; call[w] = sent; age[w] = 0 }
    :: d_step { awake(w) && at[w] == claiming && call[w] == unsure ->
        printf("worker %d: asks again, by the same token\n", w);
#ifdef BAD_AGE_FROM_THE_REPEAT
        age[w] = 0;
#endif
        again[w] = true; call[w] = sent }
    :: d_step { awake(w) && at[w] == claiming && call[w] == answered ->
        printf("worker %d: is told of a claim: %e\n", w, verdict[w]); judge(w) }

    /* the keeper */
    :: d_step { awake(w) && at[w] == running && !told[w] && keeping[w] == nothing &&
        keeper_is_due(w) ->
        printf("worker %d: asks to extend\n", w);
        keeping[w] = sent; keeping_age[w] = 0; kept[w] = IS_PROMPT }
    :: d_step { awake(w) && at[w] == running && keeping[w] == answered ->
        printf("worker %d: is told of its extend, lost: %d\n", w, lost[w]); hear_keeper(w) }
    :: d_step { awake(w) && at[w] == running && keeping[w] == unsure ->
        printf("worker %d: does not know whether it extended\n", w);
        keeping[w] = nothing; kept[w] = false }

    /* the handler ends, in one of the ways that its attempt allows */
    :: d_step { awake(w) && at[w] == running ->
        printf("worker %d: its handler completed\n", w); end_with(w, complete) }
    :: d_step { awake(w) && at[w] == running ->
        printf("worker %d: its handler failed\n", w);
        end_with(w, (verdict[w] == last -> fail : retry)) }
#ifdef BAD_OUTCOME_IS_GIVEN_UP
    :: d_step { awake(w) && at[w] == ending && call[w] == unsure ->
        printf("worker %d: gives its outcome up\n", w); rest(w) }
#else
    :: d_step { awake(w) && at[w] == ending && call[w] == unsure ->
        printf("worker %d: records again\n", w); call[w] = sent }
#endif
    :: d_step { awake(w) && at[w] == ending && call[w] == answered ->
        printf("worker %d: is told of its record\n", w); rest(w) }

    /* the reclaimer */
#ifndef BAD_NOTHING_IS_RECLAIMED
#ifdef WARY
    :: d_step { awake(w) && !looked[w] ->
        printf("worker %d: looks for what has expired\n", w); look(w) }
#else
    :: d_step { awake(w) && !looked[w] && expired_elsewhere(w, 0) ->
        printf("worker %d: asks to reclaim job 0\n", w); note_seen(w, 0) }
#if JOBS > 1
    :: d_step { awake(w) && !looked[w] && expired_elsewhere(w, 1) ->
        printf("worker %d: asks to reclaim job 1\n", w); note_seen(w, 1) }
#endif
#endif
#endif

    /* faults */
    :: d_step { crashes > 0 && at[w] != down && (at[w] != idle || looked[w]) ->
        printf("worker %d: dies\n", w);
        crashes--; g_losses_only = false; rest(w); forget_seen(w); asleep[w] = false; at[w] = down;
        nothing_is_lost() }
    :: d_step { at[w] == down -> printf("worker %d: starts anew\n", w); at[w] = idle }
    :: d_step { awake(w) && sleeps > 0 && at[w] != idle ->
        printf("worker %d: is suspended\n", w);
        sleeps--; g_losses_only = false; asleep[w] = true }
    :: d_step { asleep[w] -> printf("worker %d: goes on\n", w); asleep[w] = false }
    od
}
