-- What decides about a job, for the given ids: where it stands and under which hold; and its size,
-- for which nothing of a large payload is read (see finished_before).
-- In: a JSON array of ids. Out: the fields of marks.Mark in their order.
-- CROSS JOIN fixes the order: one index seek for each given id. A join that starts from the
-- processing jobs turns quadratic.
SELECT
    j.seq, j.id, j.queue, j.state, j.run_at, j.attempt, j.stalls, j.serial, j.token,
    j.cancel_requested, j.settled_serial, j.settled_token, j.settled_outcome, j.unique_key, j.limits,
    length(j.payload) + ifnull(length(j.result), 0)
FROM json_each(?1) AS given
CROSS JOIN tenure_jobs AS j INDEXED BY tenure_jobs_id ON j.id = given.value;
