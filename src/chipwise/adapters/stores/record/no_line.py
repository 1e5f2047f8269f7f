"""The tenth migration: no job that a member submits makes the writes of others slow.

Lists in a job are bounded (`spec_fault`), and what a job was submitted with is compared field by field (`has_fewer_fields`).
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import HAS_FEWER_FIELDS, JOB_GUARD, SPEC_FAULT
from chipwise.adapters.stores.record.place_rights import FUNCTIONS, setting_rights

NO_LINE = (
    SPEC_FAULT,
    HAS_FEWER_FIELDS,
    JOB_GUARD,
    "REVOKE ALL ON FUNCTION has_fewer_fields(jsonb, jsonb) FROM PUBLIC",
    setting_rights(
        f"{FUNCTIONS}, spec_fault(jsonb), end_stalled(), close_place(text, text, text), has_fewer_fields(jsonb, jsonb)"
    ),
    "SELECT set_rights(login) FROM (SELECT DISTINCT login FROM members) AS listed",
)
