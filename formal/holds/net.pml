/* What lies between: requests arrive, are lost, come late or twice. Part of holds.pml. */

/* A request of `w` that is on its way is done by the store, and `w` is to hear of it. */
inline arrive(w)
{
    if
    :: at[w] == claiming ->
        claim(w, token[w], again[w]);
        job[w] = c_job;
        claim_serial[w] = c_serial;
        g_grant[w] = c_grant;
        verdict[w] = c_verdict
    :: else ->
        record(job[w], claim_serial[w], token[w], out[w], g_grant[w])
    fi;
    call[w] = answered
}

/* It is done, and the reply is lost. */
inline arrive_unheard(w)
{
    if
    :: at[w] == claiming -> claim(w, token[w], again[w])
    :: else -> record(job[w], claim_serial[w], token[w], out[w], g_grant[w])
    fi;
    call[w] = unsure;
    losses--
}

inline stray_off(w, what)
{
    strays--;
    g_losses_only = false;
    stray = what;
    stray_token = token[w];
    stray_job = job[w];
    stray_serial = claim_serial[w];
    stray_grant = g_grant[w];
    if
    :: what == stray_claim -> stray_again = again[w]
    :: what == stray_record -> stray_outcome = out[w]
    :: else
    fi
}

#define call_of(w) (at[w] == claiming -> stray_claim : stray_record)
#define may_stray (strays > 0 && stray == no_stray)

proctype Net(byte w)
{
end:
    do
    :: d_step { call[w] == sent -> printf("store: does the call of worker %d\n", w); arrive(w) }
    :: d_step { call[w] == sent && losses > 0 ->
        printf("store: does the call of worker %d, the reply is lost\n", w); arrive_unheard(w) }
    :: d_step { call[w] == sent && losses > 0 ->
        printf("net: the call of worker %d is lost\n", w); call[w] = unsure; losses-- }
    :: d_step { call[w] == sent && may_stray ->
        printf("net: the call of worker %d will come twice\n", w); stray_off(w, call_of(w)) }
    :: d_step { call[w] == sent && may_stray ->
        printf("net: the call of worker %d will come late\n", w);
        stray_off(w, call_of(w)); call[w] = unsure }

    :: d_step { keeping[w] == sent ->
        printf("store: extends for worker %d\n", w);
        extend(job[w], claim_serial[w], token[w], g_grant[w], lost[w]); keeping[w] = answered }
    :: d_step { keeping[w] == sent && losses > 0 ->
        printf("store: extends for worker %d, the reply is lost\n", w);
        extend(job[w], claim_serial[w], token[w], g_grant[w], r_applied); keeping[w] = unsure;
        losses-- }
    :: d_step { keeping[w] == sent && losses > 0 ->
        printf("net: the extend of worker %d is lost\n", w); keeping[w] = unsure; losses-- }
    :: d_step { keeping[w] == sent && may_stray ->
        printf("net: the extend of worker %d will come twice\n", w); stray_off(w, stray_extend) }

    :: d_step { looked[w] ->
        printf("store: reclaims for worker %d\n", w);
        reclaim(seen_job[w], seen_serial[w], seen_token[w]); forget_seen(w) }
    :: d_step { looked[w] && losses > 0 ->
        printf("net: the reclaim of worker %d is lost\n", w); forget_seen(w); losses-- }
    od
}

proctype Stray()
{
end:
    do
    :: d_step { stray != no_stray ->
        printf("store: does what has come late or twice: %e\n", stray);
        if
        :: stray == stray_enqueue -> enqueue(stray_job)
        :: stray == stray_claim -> claim(0, stray_token, stray_again)
        :: stray == stray_extend ->
            extend(stray_job, stray_serial, stray_token, stray_grant, r_applied)
        :: stray == stray_record ->
            record(stray_job, stray_serial, stray_token, stray_outcome, stray_grant)
        fi;
        stray = no_stray;
        stray_job = 0;
        stray_serial = NOBODY;
        stray_token = NOBODY;
        stray_grant = NOBODY;
        stray_again = false;
        stray_outcome = none }
    od
}
