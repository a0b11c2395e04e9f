-- Stores schedules as they stood in another store: all or none.
-- In: one array for each column, equally long, no id twice.
-- Out: for each 0 stored, 1 known with the same definition, 2 with another one. With a 2 nothing was
--      changed.
-- Rows are written in the order of ids, as by all who write several.
CREATE OR REPLACE FUNCTION {schema}.restore_schedules(
    p_ids text[], p_revisions text[], p_definitions bytea[], p_created_ats timestamptz[],
    p_lasts timestamptz[], p_paused boolean[]
) RETURNS smallint[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_answers smallint[] := array_fill(0::smallint, ARRAY[cardinality(p_ids)]);
    v_new record;
BEGIN
    FOR v_new IN
        SELECT n.* FROM unnest(
            p_ids, p_revisions, p_definitions, p_created_ats, p_lasts, p_paused
        ) WITH ORDINALITY AS n (id, revision, definition, created_at, last, paused, place)
        ORDER BY n.id
    LOOP
        INSERT INTO {schema}.schedules (id, revision, created_at, last, paused, definition)
        VALUES (
            v_new.id, v_new.revision, v_new.created_at, v_new.last, v_new.paused, v_new.definition
        )
        ON CONFLICT (id) DO NOTHING;
        IF NOT FOUND THEN
            -- Who has dropped it this moment gave up the old definition, which is as good as the same.
            v_answers[v_new.place] := CASE WHEN EXISTS (
                SELECT FROM {schema}.schedules AS s
                WHERE s.id = v_new.id AND s.definition <> v_new.definition
            ) THEN 2 ELSE 1 END;
        END IF;
    END LOOP;
    IF 2 = ANY (v_answers) THEN
        RAISE EXCEPTION USING ERRCODE = 'TN002';
    END IF;
    RETURN v_answers;
EXCEPTION WHEN SQLSTATE 'TN002' THEN
    RETURN v_answers;
END $$;
