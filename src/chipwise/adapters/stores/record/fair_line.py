"""The eighth migration: no member keeps the others from writing for long, nor makes a controller read what it cannot hold.

Whoever holds the line again and again goes with all their sessions (`stalls`). Closing a place is a function: who may delete
from a whole table may lock it against everybody. A job that a member submits has at most `LONGEST_JOB` characters
(`job_guard`).
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import JOB_GUARD
from chipwise.adapters.stores.record.place_rights import FUNCTIONS, setting_rights
from chipwise.adapters.stores.record.stalls import END_STALLED

_CLOSE_PLACE = """CREATE FUNCTION close_place(there TEXT, who TEXT, of_team TEXT) RETURNS boolean LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = chipwise, pg_temp AS $$
    BEGIN
      IF NOT acts_for(CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END, there) THEN
        RETURN false;
      END IF;
      DELETE FROM grants WHERE place = there AND login = who AND team = of_team;
      RETURN FOUND;
    END $$"""

FAIR_LINE = (
    END_STALLED,
    JOB_GUARD,
    _CLOSE_PLACE,
    "REVOKE ALL ON FUNCTION close_place(text, text, text) FROM PUBLIC",
    setting_rights(f"{FUNCTIONS}, spec_fault(jsonb), end_stalled(), close_place(text, text, text)"),
    "SELECT set_rights(login) FROM (SELECT DISTINCT login FROM members) AS listed",
)
