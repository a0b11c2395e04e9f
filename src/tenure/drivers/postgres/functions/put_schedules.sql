-- Stores schedules; one with the same definition stays as it is.
-- In: ids, revisions, definitions, equally long; now or NULL for the server's. Out: nothing.
-- Rows are written, and so locked, in the order of ids, as by all who write several; for one id in the
-- order given.
CREATE OR REPLACE FUNCTION {schema}.put_schedules(
    p_ids text[], p_revisions text[], p_definitions bytea[], p_now timestamptz
) RETURNS void LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_new record;
BEGIN
    FOR v_new IN
        SELECT n.id, n.revision, n.definition
        FROM unnest(p_ids, p_revisions, p_definitions)
            WITH ORDINALITY AS n (id, revision, definition, place)
        ORDER BY n.id, n.place
    LOOP
        INSERT INTO {schema}.schedules AS s (id, revision, created_at, last, definition)
        VALUES (v_new.id, v_new.revision, v_now, v_now, v_new.definition)
        ON CONFLICT (id) DO UPDATE
        SET revision = excluded.revision, created_at = excluded.created_at, last = excluded.last,
            definition = excluded.definition
        WHERE s.definition <> excluded.definition;
    END LOOP;
END $$;
