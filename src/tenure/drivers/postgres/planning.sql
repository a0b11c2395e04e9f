-- What every function of ours pins while it runs. Put in for {planning}.
--
-- A plan that was made while the table was small is kept by the session and used when the table is
-- large; on an empty table the planner likes to read all of it. So each statement in a function is
-- written for one index, and everything else is priced out: no reading of whole tables, no bitmap
-- (it gives up the order of the index, and so the order in which rows are locked), no join that
-- reads a side in whole. Generic plans, since the indexes are right for any argument and planning
-- anew costs more than running. The settings end with the call and need nothing from the session,
-- so that they work behind a pooler too. The names in a function mean what they say, whatever
-- search_path the caller has.
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
SET jit = off
