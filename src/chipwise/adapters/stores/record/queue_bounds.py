"""The twelfth migration: the jobs of one login that are not over are bounded, in number and in bytes. A controller holds all
of them in memory, and looks at each in every iteration.

Counted once for each statement that submits, which our client writes for many jobs. Sessions of one login submit one after the
other, else each would count without the jobs of the others: by a row that only this login's submissions lock. Whoever retries a
job that is over counts as well. Controllers of all places and admins are trusted.
"""

from __future__ import annotations

from chipwise.runner.bounds import MOST_QUEUED, MOST_QUEUED_BYTES
from chipwise.runner.job import Phase

_OVER = ", ".join(f"'{phase.value}'" for phase in Phase if phase.over)

# The length in bytes is known without reading a value; one of characters is not.
CHECK = f"""CREATE FUNCTION check_queued(who TEXT) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    DECLARE queued bigint; size bigint;
    BEGIN
      IF who = session_user THEN
        INSERT INTO submitters VALUES (who) ON CONFLICT DO NOTHING;
        PERFORM 1 FROM submitters WHERE login = who FOR UPDATE;
      END IF;
      SELECT count(*), coalesce(sum(octet_length(body)), 0) INTO queued, size FROM jobs
        WHERE owner = who AND phase NOT IN ({_OVER});
      IF queued > {MOST_QUEUED} OR size > {MOST_QUEUED_BYTES} THEN
        RAISE EXCEPTION '% would have % jobs of % bytes that are not over; at most {MOST_QUEUED} of {MOST_QUEUED_BYTES} bytes',
          who, queued, size USING ERRCODE = '53400';
      END IF;
    END $$"""

_SUBMITTED = """CREATE FUNCTION bound_submitted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    BEGIN
      IF sees_all(session_user::text) THEN RETURN NULL; END IF;
      PERFORM check_queued(owner) FROM (SELECT DISTINCT owner FROM added) AS owners;
      RETURN NULL;
    END $$"""

_RETRIED = """CREATE FUNCTION bound_retried() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    BEGIN
      IF NOT acts_for(session_user::text, NEW.place) THEN PERFORM check_queued(NEW.owner); END IF;
      RETURN NULL;
    END $$"""

QUEUE_BOUNDS = (
    'CREATE TABLE submitters (login TEXT COLLATE "C" PRIMARY KEY)',
    "ALTER TABLE submitters ENABLE ROW LEVEL SECURITY",
    f"CREATE INDEX jobs_queued ON jobs (owner) WHERE phase NOT IN ({_OVER})",
    CHECK,
    _SUBMITTED,
    _RETRIED,
    "REVOKE ALL ON FUNCTION check_queued(text), bound_submitted(), bound_retried() FROM PUBLIC",
    """CREATE TRIGGER bounded_submitted AFTER INSERT ON jobs REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION bound_submitted()""",
    f"""CREATE TRIGGER bounded_retried AFTER UPDATE ON jobs FOR EACH ROW
        WHEN (OLD.phase IN ({_OVER}) AND NEW.phase NOT IN ({_OVER})) EXECUTE FUNCTION bound_retried()""",
)
