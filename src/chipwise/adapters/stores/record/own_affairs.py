"""The seventh migration: a member with direct SQL asks about themselves alone, and writes of their own jobs only what a
controller can read. Whoever waits for something else while they hold up the record is ended, too (`stalls`)."""

from __future__ import annotations

from chipwise.adapters.stores.record import place_rights, roles
from chipwise.adapters.stores.record.job_guard import EVENT_GUARD, JOB_GUARD, SPEC_FAULT, WISHES
from chipwise.adapters.stores.record.roles import Question, asking
from chipwise.adapters.stores.record.stalls import END_STALLED
from chipwise.runner.job import Phase
from chipwise.runner.writing import LAST_MOMENT

# `current_user` is the owner of the tables in these. Controllers ask about whoever submits to them.
_MAY_ASK = asking(
    "may_ask",
    "who TEXT",
    "boolean",
    """who IN (session_user, current_setting('role')) OR session_user = current_user
       OR EXISTS (SELECT 1 FROM members WHERE login = session_user AND role IN ('controller', 'admin'))
       OR EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = session_user AND rolsuper)""",
)


def _of_themselves(question: Question) -> str:
    name, arguments, answers, query = question
    query = f"{query} AND may_ask(who)" if answers.startswith("SETOF") else f"may_ask(who) AND ({query})"
    return asking(name, arguments, answers, query).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


_ENDED_PHASES = ", ".join(f"'{one.value}'" for one in Phase if one.over)
# What was wanted before it was bounded. A row that the server cannot read or does not take stays as it is: it is damaged.
_SOUND_WISHES = f"""DO $$ DECLARE one record; held jsonb;
    BEGIN
      FOR one IN SELECT id, body FROM jobs WHERE phase NOT IN ({_ENDED_PHASES}) AND strpos(body, '"wish"') > 0 LOOP
        BEGIN held := one.body::jsonb;
          IF jsonb_typeof(held -> 'wish') <> 'string' OR held ->> 'wish' NOT IN ({WISHES}) THEN
            UPDATE jobs SET body = (held - 'wish')::text WHERE id = one.id; END IF;
        EXCEPTION WHEN OTHERS THEN NULL; END;
      END LOOP; END $$"""

OWN_AFFAIRS = (
    _MAY_ASK,
    "REVOKE ALL ON FUNCTION may_ask(text) FROM PUBLIC",
    *(_of_themselves(one) for one in (*roles.QUESTIONS, *place_rights.QUESTIONS)),
    SPEC_FAULT,
    JOB_GUARD,
    EVENT_GUARD,
    END_STALLED,
    _SOUND_WISHES,
    f"ALTER TABLE events ADD CONSTRAINT in_time CHECK (version >= 1 AND at BETWEEN 0 AND {LAST_MOMENT}) NOT VALID",
)
