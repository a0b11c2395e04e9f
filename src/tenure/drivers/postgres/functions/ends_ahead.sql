-- Whether a hold ends later than its whole lease from now, which only a clock that was set back can do.
-- In: its end, its lease, now.
-- In exact seconds: infinite instants and lengths, which are damage, cannot be added as intervals, and
-- floats of seconds since 1970 are not true to the microsecond.
CREATE OR REPLACE FUNCTION {schema}.ends_ahead(
    p_until timestamptz, p_lease double precision, p_now timestamptz
) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(
        extract(epoch FROM p_until) - extract(epoch FROM p_now) > round(p_lease::numeric, 6), false
    )
$$;
