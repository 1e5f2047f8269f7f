"""Who may see and do what in a team's database: PostgreSQL's own logins, held to rules by the server and not by us.

    member       submits jobs as their own, sees them, and says what they want of them
    lead         the same with every job of the team
    controller   acts for one place (`place`), or for all (empty): writes what happens to the jobs there
    admin        everything, and decides who is what; the owner of the tables is one without being listed

The rules hold for any client, psql too: rows are hidden or refused by policies on `current_user`, events cannot be changed by
anybody, and a trigger lets members change nothing of a job but what is wanted of it. Otherwise a job could be made to claim
somebody else's machines. What members can do is use up room and time: the server's own limits per role are for that.
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import EVENT_GUARD, JOB_GUARD, REFUSED

ROLES = ("member", "lead", "controller", "admin")

SCHEMA = ("CREATE SCHEMA IF NOT EXISTS chipwise", "GRANT USAGE ON SCHEMA chipwise TO PUBLIC")

APPEND_ONLY = (
    """CREATE FUNCTION only_added() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '% are only ever added', TG_TABLE_NAME USING ERRCODE = '42501'; END $$""",
    """CREATE TRIGGER only_added BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION only_added()""",
    """CREATE TRIGGER never_emptied BEFORE TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION only_added()""",
    """CREATE TRIGGER only_added BEFORE DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION only_added()""",
    # Who was logged in when it was written, for looking back; nobody can say it was somebody else.
    """ALTER TABLE events ADD COLUMN login NAME NOT NULL DEFAULT session_user""",
    """CREATE TABLE members (
        login TEXT NOT NULL, team TEXT COLLATE "C" NOT NULL DEFAULT '',
        role TEXT NOT NULL CHECK (role IN ('member', 'lead', 'controller', 'admin')),
        place TEXT COLLATE "C" NOT NULL DEFAULT '', PRIMARY KEY (login, team, role, place),
        CHECK (place = '' OR role = 'controller'), CHECK (team <> '' OR role <> 'lead'))""",
)


Question = tuple[str, str, str, str]  # name, arguments, what it answers, and how


def asking(name: str, arguments: str, answers: str, question: str) -> str:
    """A function that reads `members` with the rights of the tables' owner, who is `current_user` inside of it. In plpgsql,
    which plans once in a session: as plain SQL the guards below took 0.3 ms for each row."""
    returns = "RETURN QUERY SELECT" if answers.startswith("SETOF") else "RETURN"
    return f"""CREATE FUNCTION {name}({arguments}) RETURNS {answers} LANGUAGE plpgsql STABLE SECURITY DEFINER
        SET search_path = chipwise, pg_temp AS $$ BEGIN {returns} {question}; END $$"""


QUESTIONS: tuple[Question, ...] = (
    (
        "is_admin",
        "who TEXT",
        "boolean",
        """who = current_user OR EXISTS (SELECT 1 FROM members WHERE login = who AND role = 'admin')
           OR EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = who AND rolsuper)""",
    ),
    (
        "sees_all",
        "who TEXT",
        "boolean",
        """who = current_user OR EXISTS (SELECT 1 FROM members WHERE login = who AND role = 'controller' AND place = '')
           OR is_admin(who)""",
    ),
    ("belongs", "who TEXT", "boolean", "EXISTS (SELECT 1 FROM members WHERE login = who) OR sees_all(who)"),
    ("teams_of", "who TEXT", "SETOF TEXT", "team FROM members WHERE login = who AND team <> ''"),
    ("teams_led_by", "who TEXT", "SETOF TEXT", "team FROM members WHERE login = who AND role = 'lead'"),
    ("places_of", "who TEXT", "SETOF TEXT", "place FROM members WHERE login = who AND role = 'controller' AND place <> ''"),
    (
        "acts_for",
        "who TEXT, there TEXT",
        "boolean",
        """EXISTS (SELECT 1 FROM members WHERE login = who AND role = 'controller' AND place IN ('', there))
           OR is_admin(who)""",
    ),
)

# Questions without a row in them are in a SELECT of their own: the server asks them once and not for every row.
_ALL = "(SELECT sees_all(current_user::text))"
_MAY_SEE = f"""{_ALL} OR (SELECT belongs(current_user::text)) AND (owner = current_user::text
    OR team IN (SELECT teams_led_by(current_user::text)) OR place IN (SELECT places_of(current_user::text)))"""
_OF_A_JOB = f"{_ALL} OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = job)"
_OF_A_PLACE = f"{_ALL} OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = job AND j.place IN (SELECT places_of(current_user::text)))"

POLICIES = (
    *(asking(*one) for one in QUESTIONS),
    *(
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
        for table in ("jobs", "events", "attempts", "leases", "meta", "members")
    ),
    f"CREATE POLICY seen ON jobs FOR SELECT USING ({_MAY_SEE})",
    f"""CREATE POLICY submitted ON jobs FOR INSERT WITH CHECK ({_ALL} OR owner = current_user::text
        AND (SELECT belongs(current_user::text)) AND (team = '' OR team IN (SELECT teams_of(current_user::text))))""",
    f"CREATE POLICY changed ON jobs FOR UPDATE USING ({_MAY_SEE})",
    f"CREATE POLICY seen ON events FOR SELECT USING ({_OF_A_JOB})",
    f"CREATE POLICY added ON events FOR INSERT WITH CHECK ({_OF_A_JOB})",
    f"CREATE POLICY seen ON attempts FOR SELECT USING ({_OF_A_JOB})",
    f"CREATE POLICY added ON attempts FOR INSERT WITH CHECK ({_OF_A_PLACE})",
    f"CREATE POLICY changed ON attempts FOR UPDATE USING ({_OF_A_PLACE})",
    "CREATE POLICY seen ON leases FOR SELECT USING ((SELECT belongs(current_user::text)))",
    "CREATE POLICY taken ON leases FOR INSERT WITH CHECK (acts_for(current_user::text, place))",
    "CREATE POLICY changed ON leases FOR UPDATE USING (acts_for(current_user::text, place))",
    "CREATE POLICY seen ON meta FOR SELECT USING (true)",
    "CREATE POLICY counted ON meta FOR UPDATE USING (name = 'mark' AND (SELECT belongs(current_user::text)))",
    f"""CREATE POLICY seen ON members FOR SELECT USING (login = current_user::text OR {_ALL}
        OR team IN (SELECT teams_led_by(current_user::text)))""",
    "CREATE POLICY decided ON members FOR ALL USING ((SELECT is_admin(current_user::text)))",
    "GRANT SELECT ON jobs, events, attempts, leases, meta, members TO PUBLIC",
    "GRANT INSERT ON jobs, attempts, leases, members TO PUBLIC",
    "GRANT INSERT (job, version, at, kind, body) ON events TO PUBLIC",
    "GRANT UPDATE (version, mark, phase, attempts, begun, ended, reason, body) ON jobs TO PUBLIC",
    "GRANT UPDATE (value) ON meta TO PUBLIC",
    "GRANT UPDATE ON attempts, leases, members TO PUBLIC",
    "GRANT DELETE ON members TO PUBLIC",
)

GUARDS = (
    JOB_GUARD,
    "CREATE TRIGGER guarded BEFORE INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION guard_job()",
    EVENT_GUARD,
    "CREATE TRIGGER guarded BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION guard_event()",
    f"""CREATE FUNCTION guard_mark() RETURNS trigger LANGUAGE plpgsql SET search_path = chipwise, pg_temp AS $$
    BEGIN
      IF is_admin(current_user::text) OR NEW.value - OLD.value BETWEEN 1 AND 1000000 THEN RETURN NEW; END IF;
      RAISE EXCEPTION 'the counter of changes only grows, one by one' {REFUSED};
    END $$""",
    "CREATE TRIGGER guarded BEFORE UPDATE ON meta FOR EACH ROW EXECUTE FUNCTION guard_mark()",
)
