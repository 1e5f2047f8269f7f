"""The sixth migration: what one member writes or locks does not stop the others.

A job that no job can be does not come in (`spec_fault`), and what is unknown in one stays as it is (`guard_job`). Writers stand
in a line, so whoever leaves a transaction open keeps all the others waiting: any member may have such a session ended, once it
is older than any of ours becomes. The server lets the owner of the tables do so where the owner is a superuser, or has
`pg_signal_backend` and, to see for how long others have been at it, `pg_read_all_stats`; sessions of admins are left alone.
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import JOB_GUARD, SPEC_FAULT
from chipwise.adapters.stores.record.place_rights import FUNCTIONS, setting_rights

IDLE_S, HELD_S, BUSY_S = 3, 15, 60  # see `end_stalled`

_LOCKS = """pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
    WHERE c.relnamespace = 'chipwise'::regnamespace AND l.mode <> 'AccessShareLock'"""
_OF_RECORD = f"{_LOCKS} AND l.granted"
_WAITS_IN_LINE = f"""EXISTS (SELECT 1 FROM pg_catalog.pg_locks w WHERE w.pid = a.pid AND NOT w.granted
    AND w.locktype IN ('transactionid', 'tuple', 'relation'))
  AND EXISTS (SELECT 1 FROM {_OF_RECORD} AND l.pid = ANY (pg_blocking_pids(a.pid)))"""


def end_stalled(idle_s: int, held_s: int, busy_s: int) -> str:
    """What holds up the others: a transaction that did nothing, or was at one statement, for `idle_s`; one of `held_s` that
    does not wait in the line; and any of `busy_s`. Whoever waits in the line waits for a row that another holds. One that
    waits for anything else, such as an advisory lock of its own, is idle as far as the record goes. While the server is at work
    for it (its disk, its own locks), only the last counts, unless its login has more than one in the line. All of those go
    with it: else the next of the same kind would follow. A session of ours that is ended by mistake does its work again."""
    return f"""CREATE OR REPLACE FUNCTION end_stalled() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    DECLARE other record; now timestamptz := clock_timestamp();
    BEGIN
      FOR other IN WITH open AS MATERIALIZED (SELECT a.* FROM pg_catalog.pg_stat_activity a
          WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL
          AND EXISTS (SELECT 1 FROM {_LOCKS} AND l.pid = a.pid)
          AND a.usename <> current_user AND NOT EXISTS (SELECT 1 FROM members WHERE login = a.usename AND role = 'admin')
          AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = a.usename AND rolsuper)),
        stalled AS MATERIALIZED (SELECT a.usename FROM open a
          WHERE EXISTS (SELECT 1 FROM {_OF_RECORD} AND l.pid = a.pid)
          AND (a.xact_start < now - interval '{busy_s} s'
            OR (coalesce(a.wait_event_type, '') NOT IN ('IO', 'IPC', 'LWLock', 'BufferPin')
                OR (SELECT count(*) FROM open o WHERE o.usename = a.usename) > 1)
              AND (a.xact_start < now - interval '{held_s} s'
                OR greatest(a.query_start, a.state_change) < now - interval '{idle_s} s')
              AND NOT (coalesce(a.wait_event_type, '') = 'Lock' AND {_WAITS_IN_LINE})))
        SELECT a.pid, a.usename FROM open a WHERE a.usename IN (SELECT usename FROM stalled)
      LOOP
        BEGIN
          IF pg_terminate_backend(other.pid) THEN RETURN NEXT format('%s (process %s)', other.usename, other.pid); END IF;
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
      END LOOP;
    END $$"""


END_STALLED = end_stalled(IDLE_S, HELD_S, BUSY_S)
STALLS = (
    SPEC_FAULT,
    JOB_GUARD,
    END_STALLED,
    "REVOKE ALL ON FUNCTION spec_fault(jsonb), end_stalled() FROM PUBLIC",
    setting_rights(f"{FUNCTIONS}, spec_fault(jsonb), end_stalled()"),
    "SELECT set_rights(login) FROM (SELECT DISTINCT login FROM members) AS listed",
)
