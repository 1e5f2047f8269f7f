"""The tenth migration: no member makes the writes of others wait, neither with an open transaction nor with a slow job.

Every write raised one counter, whose row a transaction keeps locked until its end; and a session that compares two large values
does not end when it is told to. Now a row gets its number from a sequence, which nobody holds, and the transaction that changed
it last, by which readers know what they have not seen (`snapshot_changes`). A trigger gives both, whatever a client writes.

Lists in a job are bounded (`spec_fault`), and what a job was submitted with is compared field by field (`has_fewer_fields`).
What decides who is next is bounded (priority, attempts) or given by the server (when a job was submitted).
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import EVENT_GUARD, HAS_FEWER_FIELDS, JOB_GUARD, SPEC_FAULT
from chipwise.adapters.stores.record.place_rights import FUNCTIONS, setting_rights

# With the rights of the owner, since nobody else may touch the sequence.
_OWN_MARK = """CREATE OR REPLACE FUNCTION own_mark() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    BEGIN
      NEW.mark := nextval('chipwise.marks'); NEW.xact := pg_current_xact_id();
      IF TG_OP = 'INSERT' THEN NEW.born := NEW.mark; END IF;
      RETURN NEW;
    END $$"""

NO_LINE = (
    # Whoever writes by the old rules holds the counter, which may not grow any more once it was read.
    "LOCK TABLE meta IN ACCESS EXCLUSIVE MODE",
    "CREATE SEQUENCE marks",
    "SELECT setval('marks', value + 1) FROM meta WHERE name = 'mark'",
    "DROP TRIGGER guarded ON meta",
    "DROP FUNCTION guard_mark()",
    "DROP POLICY counted ON meta",
    "DELETE FROM meta WHERE name = 'mark'",
    "ALTER TABLE jobs ADD COLUMN xact xid8 NOT NULL DEFAULT '0'",  # of rows that nobody changed since: seen by every reader
    "DROP INDEX jobs_changed",
    "CREATE INDEX jobs_changed ON jobs (place, xact, mark)",
    _OWN_MARK,
    "DROP TRIGGER own_mark ON jobs",
    "CREATE TRIGGER own_mark BEFORE INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION own_mark()",
    SPEC_FAULT,
    HAS_FEWER_FIELDS,
    JOB_GUARD,
    EVENT_GUARD,
    "REVOKE ALL ON FUNCTION has_fewer_fields(jsonb, jsonb) FROM PUBLIC",
    setting_rights(
        f"{FUNCTIONS}, spec_fault(jsonb), end_stalled(), close_place(text, text, text), has_fewer_fields(jsonb, jsonb)"
    ),
    "SELECT set_rights(login) FROM (SELECT DISTINCT login FROM members) AS listed",
)
