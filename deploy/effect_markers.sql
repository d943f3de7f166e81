-- The marker table of the tool sql.execute (docs/tools/sql-execute.md). Run it once in each foreign database, as the
-- owner of what the tool may change, naming the role that workers connect as:
--
--   psql -d shop -v role=shop_agent -f deploy/effect_markers.sql
--
-- Running it again changes nothing. Rows are the proof of what happened: never delete any that is younger than the
-- workflows which may still ask for it. The role may neither delete rows nor change whose key one is.

CREATE SCHEMA IF NOT EXISTS checkpoint;

CREATE TABLE IF NOT EXISTS checkpoint.effects (
  key text PRIMARY KEY,
  arguments_sha256 text NOT NULL,
  fence bigint NOT NULL,
  workflow text NOT NULL,
  step text NOT NULL,
  noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  done_at timestamptz,         -- empty: looked up, and not there
  transaction_id text,
  row_count bigint,
  returned jsonb,
  CHECK ((done_at IS NULL) = (transaction_id IS NULL) AND (done_at IS NULL) = (row_count IS NULL))
);

-- What happened, happened: a statement of an agent, which runs as the same role, cannot make it undone.
CREATE OR REPLACE FUNCTION checkpoint.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the marker of an effect is final' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE OR REPLACE TRIGGER done_is_final BEFORE UPDATE ON checkpoint.effects FOR EACH ROW
  WHEN (OLD.done_at IS NOT NULL AND (OLD.done_at, OLD.transaction_id, OLD.row_count, OLD.returned)
        IS DISTINCT FROM (NEW.done_at, NEW.transaction_id, NEW.row_count, NEW.returned))
  EXECUTE FUNCTION checkpoint.refuse();

GRANT USAGE ON SCHEMA checkpoint TO :"role";
GRANT SELECT, INSERT ON checkpoint.effects TO :"role";
GRANT UPDATE (fence, done_at, transaction_id, row_count, returned) ON checkpoint.effects TO :"role";
