"""The locks of a PostgreSQL server are one pool for all its databases, and any login can take all of them by functions that
everybody may call: then nobody can connect any more. An administrator of the server takes these functions from everybody.

A superuser alone can do so, in one database at a time; neither chipwise nor its tables need any of them from members.
"""

from __future__ import annotations

from chipwise.adapters.stores.record.database import Database
from chipwise.errors import NotAllowed

_FUNCTIONS = "'^(pg_advisory_|pg_try_advisory_|lo_creat|lo_from_bytea)'"
_OF_EVERYBODY = "g.grantee = 0"
_CALLABLE = f"""SELECT count(*) > 0 FROM pg_catalog.pg_proc p,
    LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) g WHERE p.proname ~ {_FUNCTIONS} AND {_OF_EVERYBODY}"""
_REVOKE = f"""DO $$ DECLARE function_name regprocedure; BEGIN
    EXECUTE 'REVOKE TEMPORARY ON DATABASE ' || quote_ident(current_database()) || ' FROM PUBLIC';
    FOR function_name IN SELECT oid FROM pg_catalog.pg_proc WHERE proname ~ {_FUNCTIONS} LOOP
      EXECUTE 'REVOKE EXECUTE ON FUNCTION ' || function_name || ' FROM PUBLIC'; END LOOP; END $$"""
_OTHER_DATABASES = f"""SELECT d.datname FROM pg_catalog.pg_database d,
    LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) g
    WHERE d.datallowconn AND d.datname <> current_database() AND {_OF_EVERYBODY} AND g.privilege_type = 'CONNECT' ORDER BY 1"""
_IS_SUPERUSER = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"


def is_open(database: Database) -> bool:
    """Whether everybody may call these functions in this database."""
    return bool(database.read(lambda tx: tx.rows(_CALLABLE))[0][0])


def close(database: Database) -> list[str]:
    """In this database; the names of those in which every login still can."""
    if not database.read(lambda tx: tx.rows(_IS_SUPERUSER))[0][0]:
        raise NotAllowed(
            f"{database.login} is not a superuser of the server, and cannot revoke functions of PostgreSQL.",
            remedy="Let a superuser of the server run `chipwise members protect`.",
        )
    database.write(lambda tx: tx.execute_many(_REVOKE, [()]))
    return [name for (name,) in database.read(lambda tx: tx.rows(_OTHER_DATABASES))]
