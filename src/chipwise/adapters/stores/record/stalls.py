"""The sixth migration: what one member writes or locks does not stop the others.

A job that no job can be does not come in (`spec_fault`), and what is unknown in one stays as it is (`guard_job`). Writers stand
in a line, so whoever leaves a transaction open keeps all the others waiting: any member may have such a session ended, once it
is older than any of ours becomes. The server lets the owner of the tables do so where the owner is a superuser, or has
`pg_signal_backend` and, to see for how long others have been at it, `pg_read_all_stats`; sessions of admins are left alone.
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import JOB_GUARD, SPEC_FAULT
from chipwise.adapters.stores.record.place_rights import FUNCTIONS, setting_rights

IDLE_S, BUSY_S = 15, 60  # of a transaction that does nothing or waits for something else, and of any other

_OF_RECORD = """pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
    WHERE l.granted AND c.relnamespace = 'chipwise'::regnamespace AND l.mode <> 'AccessShareLock'"""


def end_stalled(idle_s: int, busy_s: int) -> str:
    """Whoever waits in the line waits for a row that another holds. One that waits for anything else, such as an advisory lock
    of its own, is idle as far as the record goes."""
    return f"""CREATE OR REPLACE FUNCTION end_stalled() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    DECLARE other record; late timestamptz := clock_timestamp() - interval '{idle_s} s';
    BEGIN
      FOR other IN SELECT a.pid, a.usename FROM pg_catalog.pg_stat_activity a
        WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
          AND (a.xact_start < clock_timestamp() - interval '{busy_s} s' OR a.xact_start IS NOT NULL
            AND (a.state <> 'active' AND a.state_change < late OR a.wait_event_type = 'Lock' AND a.query_start < late
              AND NOT (EXISTS (SELECT 1 FROM pg_catalog.pg_locks w WHERE w.pid = a.pid AND NOT w.granted
                    AND w.locktype IN ('transactionid', 'tuple', 'relation'))
                AND EXISTS (SELECT 1 FROM {_OF_RECORD} AND l.pid = ANY (pg_blocking_pids(a.pid))))))
          AND EXISTS (SELECT 1 FROM {_OF_RECORD} AND l.pid = a.pid)
          AND a.usename <> current_user AND NOT EXISTS (SELECT 1 FROM members WHERE login = a.usename AND role = 'admin')
          AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = a.usename AND rolsuper)
      LOOP
        BEGIN
          IF pg_terminate_backend(other.pid) THEN RETURN NEXT format('%s (process %s)', other.usename, other.pid); END IF;
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
      END LOOP;
    END $$"""


END_STALLED = end_stalled(IDLE_S, BUSY_S)
STALLS = (
    SPEC_FAULT,
    JOB_GUARD,
    END_STALLED,
    "REVOKE ALL ON FUNCTION spec_fault(jsonb), end_stalled() FROM PUBLIC",
    setting_rights(f"{FUNCTIONS}, spec_fault(jsonb), end_stalled()"),
    "SELECT set_rights(login) FROM (SELECT DISTINCT login FROM members) AS listed",
)
