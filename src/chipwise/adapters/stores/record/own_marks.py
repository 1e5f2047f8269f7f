"""The ninth migration: a change has a mark of its own, and the columns of a new job say what is in it.

A controller reads what changed page by page, from one mark on. With the mark of another's job on thousands of their own, a
member could have a page end between them: the controller would pass the other's job by. A job waits for a bounded number of
others (`job_guard`).
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import JOB_GUARD, REFUSED, SPEC_FAULT

# With the rights of the owner, since members do not see the jobs of others. Nobody can call what is a trigger's.
_OWN_MARK = f"""CREATE FUNCTION own_mark() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM jobs WHERE place = NEW.place AND mark = NEW.mark AND id <> NEW.id) THEN
        RAISE EXCEPTION 'job % cannot have the mark of another change', NEW.id {REFUSED};
      END IF;
      RETURN NEW;
    END $$"""

OWN_MARKS = (
    SPEC_FAULT,
    JOB_GUARD,
    _OWN_MARK,
    "REVOKE ALL ON FUNCTION own_mark() FROM PUBLIC",
    "CREATE TRIGGER own_mark BEFORE INSERT OR UPDATE OF mark ON jobs FOR EACH ROW EXECUTE FUNCTION own_mark()",
)
