/*
 * One schedule: any worker fires its instants, none is a leader. Firing is a compare-and-set of the
 * last instant and an enqueue, in one step of the store, while workers crash, answers are lost,
 * requests come late or twice, clocks differ, and people change, pause and resume the schedule.
 *
 * README.md says what is left out, and which code each action stands for. A BAD_... switch turns
 * one rule off, so that a search must find how a guarantee then breaks. The schedule has an instant
 * at each hour from 1 to LAST, and all that were missed are to be fired. What begins with `g_` is
 * seen by no store and no worker: only the guarantees are stated with it.
 */

/* --- bounds, each set with -D ----------------------------------------------------------------- */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef LAST
#define LAST 3
#endif
#ifndef CHANGES
#define CHANGES 1 /* how often the definition is replaced */
#endif
#ifndef PAUSES
#define PAUSES 1
#endif
#ifndef CRASHES
#define CRASHES 1 /* over all workers, as are the following */
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef STRAYS
#define STRAYS 1 /* requests that arrive after their sender gave them up, or twice */
#endif
#ifndef AHEAD
#define AHEAD 1 /* hours that a worker's idea of the store's clock may be ahead of it */
#endif
#ifndef STEPS
#define STEPS 0 /* times that the store's clock is set back by an hour */
#endif
#ifndef ONLY
#define ONLY 0 /* check all guarantees, or that of this number */
#endif

/* --- the guarantees --------------------------------------------------------------------------- */

bool I13_an_instant_fires_once, I13_a_tick_has_one_job, I13_an_old_revision_fires_nothing;
bool I13_a_pause_fires_nothing, I13_nothing_fires_early;

#define must(number, guarantee, ok) \
    if \
    :: (ok) || (ONLY && ONLY != number) \
    :: else -> guarantee = true; assert(!guarantee) \
    fi

/* --- the store -------------------------------------------------------------------------------- */

#define HOURS (LAST + 1)
#define REVISIONS (CHANGES + 2)
#define tick_id(with_revision, hour) ((with_revision) * HOURS + (hour))

byte now = 0;
byte revision = 1, definition = 1, last = 0;
bool paused = false;

byte g_jobs[REVISIONS * HOURS]; /* jobs that were made for a tick */
byte g_fired[HOURS];            /* jobs that were made for an instant, whatever the revision */
bool g_owed[HOURS];             /* it has come, and no change or pause has let it go */
bool g_true_clock = true;

/* --- the workers ------------------------------------------------------------------------------ */

mtype:message = { nothing, sent, half, answered, unsure };
mtype:verdict = { fired, gone, early }; /* FIRED, LOST, EARLY */

bool knows[WORKERS]; /* what it saw at its last look, and has fired since */
byte known_revision[WORKERS], known_last[WORKERS];
bool known_paused[WORKERS];
mtype:message call[WORKERS] = nothing;
mtype:verdict answer[WORKERS] = gone;

bool stray; /* a request that nobody waits for */
byte stray_revision, stray_previous;

byte crashes = CRASHES, losses = LOSSES, strays = STRAYS, steps = STEPS;
byte changes = CHANGES, pauses = PAUSES;

hidden byte i, f_answer;

/* --- what the store does, each in one step ---------------------------------------------------- */

/*
 * No id is remembered, as if each job had ended and been deleted by the next request: that an
 * instant fires once must not rest on the id that is derived from it.
 */
inline enqueue(with_revision, hour)
{
    g_jobs[tick_id(with_revision, hour)]++;
    g_fired[hour]++;
    g_owed[hour] = false;
    must(1, I13_an_instant_fires_once, g_fired[hour] <= 1 || !g_true_clock && revision > 1);
    must(2, I13_a_tick_has_one_job, g_jobs[tick_id(with_revision, hour)] <= 1);
    must(5, I13_nothing_fires_early, hour <= now)
}

#ifdef BAD_FIRE_LOOKS_AT_NO_REVISION
#define is_revision(with_revision) true
#else
#define is_revision(with_revision) (revision == (with_revision))
#endif
#ifdef BAD_FIRE_COMPARES_NOT
#define is_last(previous) true
#else
#define is_last(previous) (last == (previous))
#endif
#ifdef BAD_FIRE_IN_A_PAUSE
#define is_running true
#else
#define is_running (!paused)
#endif
#ifdef BAD_FIRE_EARLY
#define is_early(hour) false
#else
#define is_early(hour) ((hour) > now)
#endif

/* The answer is in f_answer. */
inline fire(with_revision, previous)
{
    if
    :: !is_running || !is_revision(with_revision) || !is_last(previous) -> f_answer = gone
    :: else ->
        if
        :: is_early(previous + 1) -> f_answer = early
        :: else ->
            must(3, I13_an_old_revision_fires_nothing, revision == (with_revision));
            must(4, I13_a_pause_fires_nothing, !paused);
#ifdef BAD_TICK_FIRST
            last = previous + 1;
#else
#ifdef BAD_JOB_FIRST
            enqueue(with_revision, previous + 1);
#else
            last = previous + 1;
            enqueue(with_revision, previous + 1);
#endif
#endif
            f_answer = fired
        fi
    fi
}

/* In two steps instead of one: the second, unless the worker that takes them is gone by then. */
inline fire_the_rest(with_revision, previous)
{
#ifdef BAD_TICK_FIRST
    enqueue(with_revision, previous + 1)
#else
    last = previous + 1
#endif
}

#if defined(BAD_TICK_FIRST) || defined(BAD_JOB_FIRST)
#define done_by(what) (what == fired -> half : answered)
#else
#define done_by(what) answered
#endif

inline owe_nothing()
{
    i = 1;
    do
    :: i <= LAST -> g_owed[i] = false; i++
    :: else -> break
    od;
    i = 0
}

inline put(new)
{
    if
#ifdef BAD_PUT_ALWAYS_RENEWS
    :: true ->
#else
    :: definition != new ->
#endif
        if
        :: definition != new -> revision++; owe_nothing()
        :: else
        fi;
        definition = new;
        last = now
    :: else /* the same definition stays as it is */
    fi
}

inline resume()
{
    paused = false;
    last = (last < now -> now : last);
    owe_nothing()
}

/* --- what a worker does ----------------------------------------------------------------------- */

#define is_old(w) \
    (known_revision[w] != revision || known_last[w] != last || known_paused[w] != paused)

inline look(w)
{
    knows[w] = true;
    known_revision[w] = revision;
    known_last[w] = last;
    known_paused[w] = paused
}

inline forget(w)
{
    knows[w] = false;
    known_revision[w] = 0;
    known_last[w] = 0;
    known_paused[w] = false
}

inline hear(w)
{
    call[w] = nothing;
    if
    :: answer[w] == fired -> known_last[w]++
    :: else -> forget(w) /* another was first, or the clocks disagree: it looks again */
    fi;
    answer[w] = gone
}

proctype Worker(byte w)
{
end:
    do
    :: d_step { call[w] == nothing && !knows[w] ->
        printf("worker %d: looks\n", w); look(w) }
    :: d_step { call[w] == nothing && knows[w] && is_old(w) ->
        printf("worker %d: looks again\n", w); look(w) }
    :: d_step { call[w] == nothing && knows[w] && !known_paused[w] && known_last[w] < LAST &&
        known_last[w] + 1 <= now + AHEAD ->
        printf("worker %d: asks to fire %d of revision %d\n",
            w, known_last[w] + 1, known_revision[w]);
        call[w] = sent }
    :: d_step { call[w] == answered ->
        printf("worker %d: is told %e\n", w, answer[w]); hear(w) }
    :: d_step { call[w] == unsure ->
        printf("worker %d: does not know whether it fired\n", w);
        call[w] = nothing; forget(w) }

    :: d_step { crashes > 0 && call[w] != nothing ->
        printf("worker %d: dies, and starts anew\n", w);
        crashes--; call[w] = nothing; answer[w] = gone; forget(w) }
    od
}

/* --- what lies between ------------------------------------------------------------------------ */

inline stray_off(w)
{
    strays--;
    stray = true;
    stray_revision = known_revision[w];
    stray_previous = known_last[w]
}

proctype Net(byte w)
{
end:
    do
    :: d_step { call[w] == sent ->
        printf("store: fires for worker %d\n", w);
        fire(known_revision[w], known_last[w]); answer[w] = f_answer;
        call[w] = done_by(answer[w]) }
    :: d_step { call[w] == half ->
        printf("store: does the second step for worker %d\n", w);
        fire_the_rest(known_revision[w], known_last[w]); call[w] = answered }
    :: d_step { call[w] == sent && losses > 0 ->
        printf("store: fires for worker %d, the reply is lost\n", w);
        fire(known_revision[w], known_last[w]); call[w] = unsure; losses-- }
    :: d_step { call[w] == sent && losses > 0 ->
        printf("net: the call of worker %d is lost\n", w); call[w] = unsure; losses-- }
    :: d_step { call[w] == sent && strays > 0 && !stray ->
        printf("net: the call of worker %d will come twice\n", w); stray_off(w) }
    :: d_step { call[w] == sent && strays > 0 && !stray ->
        printf("net: the call of worker %d will come late\n", w);
        stray_off(w); call[w] = unsure }
    od
}

proctype Stray()
{
end:
    do
    :: d_step { stray ->
        printf("store: fires what has come late or twice\n");
        fire(stray_revision, stray_previous);
        stray = false; stray_revision = 0; stray_previous = 0 }
    od
}

/* --- who changes the schedule ----------------------------------------------------------------- */

proctype Owner()
{
    bool repeats = false; /* the answer was lost: the same once more */

end:
    do
    :: d_step { !repeats && changes > 0 ->
        printf("owner: changes the schedule\n"); changes--; put(definition + 1) }
    :: d_step { !repeats && losses > 0 && changes > 0 ->
        printf("owner: changes the schedule, the reply is lost\n");
        losses--; changes--; put(definition + 1); repeats = true }
    :: d_step { repeats ->
        printf("owner: makes the same change again\n"); put(definition); repeats = false }
    :: d_step { pauses > 0 && !paused ->
        printf("owner: pauses\n"); pauses--; paused = true }
    :: d_step { paused -> printf("owner: resumes\n"); resume() }
    :: d_step { changes + pauses > 0 -> changes = 0; pauses = 0 } /* it stays as it is */
    od
}

/* --- time ------------------------------------------------------------------------------------- */

proctype Time()
{
end:
    do
    :: d_step { now < LAST ->
        printf("time: %d\n", now + 1);
        now++;
        if
        :: !paused && now > last -> g_owed[now] = true
        :: else
        fi }
#ifdef LIVE
    :: now == LAST -> skip /* so that no run ends: a search for cycles with fairness wants that */
#endif
    :: d_step { steps > 0 && now > 0 ->
        printf("time: the store's clock is set back to %d\n", now - 1);
        steps--; now--; g_true_clock = false }
    od
}

init
{
    byte w = 0;
    atomic {
        run Owner();
        do
        :: w < WORKERS -> run Worker(w); run Net(w); w++
        :: else -> break
        od;
        run Stray();
        run Time()
    }
}

#if LAST == 3
#define something_owed (g_owed[1] || g_owed[2] || g_owed[3])
#else
#define something_owed (g_owed[1] || g_owed[2])
#endif

#ifdef LIVE
ltl I13_each_due_instant_fires { <> [] !something_owed }
#endif
