"""The sixth migration: what one member writes or locks does not stop the others.

A job that no job can be does not come in (`spec_fault`), and what is unknown in one stays as it is (`guard_job`). Writers stand
in a line, so whoever leaves a transaction open keeps all the others waiting: any member may have such a session ended, once it
is older than any of ours becomes. The server lets the owner of the tables do so where the owner is a superuser or has
`pg_signal_backend`; sessions of admins are left alone.
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import JOB_GUARD, SPEC_FAULT
from chipwise.adapters.stores.record.place_rights import FUNCTIONS, setting_rights

IDLE_S, BUSY_S = 15, 60  # of a transaction in which nothing happens, and of any other

_END_STALLED = f"""CREATE FUNCTION end_stalled() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    DECLARE other record;
    BEGIN
      FOR other IN SELECT a.pid, a.usename FROM pg_catalog.pg_stat_activity a
        WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.wait_event_type IS DISTINCT FROM 'Lock'
          AND (a.xact_start < clock_timestamp() - interval '{BUSY_S} s' OR a.xact_start IS NOT NULL
            AND a.state <> 'active' AND a.state_change < clock_timestamp() - interval '{IDLE_S} s')
          AND EXISTS (SELECT 1 FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
              WHERE l.pid = a.pid AND l.granted AND c.relnamespace = 'chipwise'::regnamespace AND l.mode <> 'AccessShareLock')
          AND NOT is_admin(a.usename::text)
      LOOP
        BEGIN
          IF pg_terminate_backend(other.pid) THEN RETURN NEXT format('%s (process %s)', other.usename, other.pid); END IF;
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
      END LOOP;
    END $$"""

STALLS = (
    SPEC_FAULT,
    JOB_GUARD,
    _END_STALLED,
    "REVOKE ALL ON FUNCTION spec_fault(jsonb), end_stalled() FROM PUBLIC",
    setting_rights(f"{FUNCTIONS}, spec_fault(jsonb), end_stalled()"),
    "SELECT set_rights(login) FROM (SELECT DISTINCT login FROM members) AS listed",
)
