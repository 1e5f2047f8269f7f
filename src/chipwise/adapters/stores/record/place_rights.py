"""The fourth migration: who may run jobs at a place, and nothing at all for a login that is no member.

A controller runs what is submitted to its place as its own system user, so submitting there is a right that whoever acts for
the place gives: to a login or to a team, with the stored secrets that they may use. The server refuses a job without it, and
the controller looks again before it starts one (`may_submit`).

Strangers have no right to the schema, so they can neither lock a table nor ask who is a member. Each login that is listed has
the rights of its roles and no others; a trigger on the list gives and takes them.
"""

from __future__ import annotations

from chipwise.adapters.stores.record.job_guard import JOB_GUARD
from chipwise.adapters.stores.record.roles import Question, asking

_TABLE = """CREATE TABLE grants (
    place TEXT COLLATE "C" NOT NULL CHECK (length(place) BETWEEN 1 AND 500),
    login TEXT NOT NULL DEFAULT '' CHECK (length(login) <= 63),
    team TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (length(team) <= 500),
    secrets TEXT[] NOT NULL DEFAULT '{}' CHECK (cardinality(secrets) <= 1000),
    given_by NAME NOT NULL DEFAULT session_user,
    PRIMARY KEY (place, login, team), CHECK ((login = '') <> (team = '')))"""

_GRANTED = """FROM grants g WHERE g.place = there AND (g.login = who
    OR g.team IN (SELECT m.team FROM members m WHERE m.login = who AND m.team <> ''))"""

QUESTIONS: tuple[Question, ...] = (
    ("may_submit", "who TEXT, there TEXT", "boolean", f"acts_for(who, there) OR EXISTS (SELECT 1 {_GRANTED})"),
    ("secrets_for", "who TEXT, there TEXT", "SETOF TEXT", f"DISTINCT unnest(g.secrets) {_GRANTED}"),
)

_ME = "current_user::text"
_ACTS = f"acts_for({_ME}, place)"
_POLICIES = (
    "ALTER TABLE grants ENABLE ROW LEVEL SECURITY",
    f"""CREATE POLICY seen ON grants FOR SELECT USING (
        login = {_ME} OR team IN (SELECT teams_of({_ME})) OR {_ACTS})""",
    f"CREATE POLICY given ON grants FOR ALL USING ({_ACTS}) WITH CHECK ({_ACTS})",
    "DROP POLICY submitted ON jobs",
    # Nobody submits for another, whatever their role.
    f"""CREATE POLICY submitted ON jobs FOR INSERT WITH CHECK (
        owner = {_ME} AND (SELECT belongs({_ME})) AND (team = '' OR team IN (SELECT teams_of({_ME})))
        AND may_submit({_ME}, place))""",
)

_TABLES = "jobs, events, attempts, leases, meta, members"
FUNCTIONS = """is_admin(text), sees_all(text), belongs(text), teams_of(text), teams_led_by(text), places_of(text),
    acts_for(text, text), may_submit(text, text), secrets_for(text, text)"""

# Columns and not tables, where it can be said so: who may update or delete in a whole table may lock it against everybody.
_OF_MEMBERS = (
    "USAGE ON SCHEMA chipwise",
    f"SELECT ON {_TABLES}, grants",
    "INSERT ON jobs",
    "INSERT (job, version, at, kind, body) ON events",
    "UPDATE (version, mark, phase, attempts, begun, ended, reason, body) ON jobs",
)
_OF_CONTROLLERS = (
    "INSERT ON attempts, leases",
    "INSERT (place, login, team, secrets) ON grants",
    "UPDATE (secrets) ON grants",
    """UPDATE (purchase, provider, region, machine, machines, since, ended, usd_per_hour, gpus) ON attempts""",
    "UPDATE (holder, epoch, until) ON leases",
)
_OF_ADMINS = ("INSERT ON members", "UPDATE (team, role, place) ON members", "DELETE ON members")


def _granting(rights: tuple[str, ...]) -> str:
    return "\n        ".join(f"EXECUTE format('GRANT {right} TO %I', who);" for right in rights)


def setting_rights(functions: str) -> str:
    """Each login's rights, anew. Two that give rights in one table at once fail, so they wait for each other: by a lock that
    only the owner of the tables can take."""
    return f"""CREATE OR REPLACE FUNCTION set_rights(who TEXT) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    BEGIN
      IF who = current_user OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = who) THEN RETURN; END IF;
      PERFORM 1 FROM meta WHERE name = 'schema' FOR UPDATE;
      EXECUTE format('REVOKE ALL ON {_TABLES}, grants FROM %I', who);
      EXECUTE format('REVOKE ALL ON FUNCTION {functions} FROM %I', who);
      EXECUTE format('REVOKE ALL ON SCHEMA chipwise FROM %I', who);
      IF NOT EXISTS (SELECT 1 FROM members WHERE login = who) THEN RETURN; END IF;
      {_granting((*_OF_MEMBERS, f"EXECUTE ON FUNCTION {functions}"))}
      IF EXISTS (SELECT 1 FROM members WHERE login = who AND role IN ('controller', 'admin')) THEN
        {_granting(_OF_CONTROLLERS)}
      END IF;
      IF EXISTS (SELECT 1 FROM members WHERE login = who AND role = 'admin') THEN
        {_granting(_OF_ADMINS)}
      END IF;
    END $$"""


_RIGHTS = (
    setting_rights(FUNCTIONS),
    """CREATE FUNCTION rights_follow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = chipwise, pg_temp AS $$
    BEGIN
      IF TG_OP <> 'DELETE' AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = NEW.login) THEN
        RAISE EXCEPTION 'there is no login %', NEW.login USING ERRCODE = '42704';
      END IF;
      IF TG_OP <> 'INSERT' THEN PERFORM set_rights(OLD.login); END IF;
      IF TG_OP <> 'DELETE' THEN PERFORM set_rights(NEW.login); END IF;
      RETURN NULL;
    END $$""",
    "CREATE TRIGGER rights_follow AFTER INSERT OR UPDATE OR DELETE ON members FOR EACH ROW EXECUTE FUNCTION rights_follow()",
    f"REVOKE ALL ON {_TABLES}, grants FROM PUBLIC",
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA chipwise FROM PUBLIC",
    "REVOKE ALL ON SCHEMA chipwise FROM PUBLIC",
    "SELECT set_rights(login) FROM (SELECT DISTINCT login FROM members) AS listed",
)

PLACE_RIGHTS = (_TABLE, *(asking(*one) for one in QUESTIONS), *_POLICIES, JOB_GUARD, *_RIGHTS)
