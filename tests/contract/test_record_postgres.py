"""The record in a real PostgreSQL: cut connections, lost answers, a server that is away, and passwords that stay secret."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.adapters.stores.record.address import Server as Address
from chipwise.adapters.stores.record.address import read_address
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.adapters.stores.record.schema import for_postgres
from chipwise.adapters.stores.record.store import Store
from chipwise.errors import BadInput, ChipwiseError, NotAllowed, NotFound, TryLater
from chipwise.runner.events import Told
from chipwise.runner.job import Job, Spec
from chipwise.runner.record import Change, Wanted
from cutting_proxy import cutting
from patience import deadline
from postgres_server import Server

psycopg = pytest.importorskip("psycopg")
SPEC = Spec(("true",), "a", place="here")
SECRET = "s3cret-Zq9"


@pytest.fixture
def name(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def store(postgres: Server, name: str) -> Iterator[Store]:
    opened = connect(postgres.url(name))
    assert isinstance(opened, Store)
    yield opened
    opened.close()


def _address(url: str) -> Address:
    address = read_address(url)
    assert isinstance(address, Address)
    return address


def test_work_goes_on_when_connections_are_cut_at_any_moment(postgres: Server, name: str, store: Store) -> None:
    store.submit([("one", SPEC)], 1.0)
    done = threading.Event()
    cuts, written, chance = 0, 0, random.Random(6)

    def cut() -> None:
        """Each write twice at most: on a busy machine one takes longer than the time between two cuts, and would never end."""
        nonlocal cuts
        often = Counter[int]()
        with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
            while not done.wait(chance.uniform(0.0, 0.1)):
                under_way = written
                if often[under_way] >= 2:
                    continue
                often[under_way] += 1
                found = admin.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s", (name,)
                ).fetchone()
                cuts += found[0] if found else 0

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        [job] = store.jobs(Wanted())
        until = deadline(60)
        for number in itertools.count():
            if cuts > 10 or time.monotonic() > until:
                break
            store.submit([(f"job{number}", SPEC)], 1.0)
            written += 1
            [answer] = store.write([Change(job, (Told(0, str(number)),))], 1.0)
            written += 1
            assert isinstance(answer, Job)  # never stale: nobody else writes, and nothing was written twice
            job = answer
    finally:
        done.set()
        cutter.join()
    assert cuts > 10
    assert job.version == number + 1
    assert store.job("one") == job
    told = [one.event.text for one in store.events("one") if isinstance(one.event, Told)]
    assert told == [str(one) for one in range(number)]
    assert len(store.rows(Wanted())) == number + 1


@pytest.mark.parametrize("hears", [True, False], ids=["written", "not written"])
def test_a_commit_whose_answer_is_lost_is_done_once(postgres: Server, name: str, hears: bool) -> None:
    with cutting(postgres.port, b"COMMIT\0") as proxy:
        proxy.hears = hears
        record = connect(postgres.url(name, port=proxy.port))
        for number in range(5):
            proxy.cuts = 1
            [job] = record.submit([(f"job{number}", SPEC)], 1.0)
            proxy.cuts = 1
            [answer] = record.write([Change(job, (Told(0, "x"),))], 2.0)
            assert isinstance(answer, Job)
            proxy.cuts = 1
            lease = record.lead("here", "me", float(number), 5.0)
            assert lease is not None
            assert lease.epoch == 1
            assert record.job(job.id) == answer
            assert len(record.events(job.id)) == 2
        assert proxy.made == 15
        record.close()


def test_a_server_that_is_away_is_told_after_a_bounded_time(postgres: Server, name: str) -> None:
    from chipwise.adapters.stores.record.postgres import PostgresDatabase

    with cutting(postgres.port, b"never said") as proxy:
        store = Store(PostgresDatabase(_address(postgres.url(name, port=proxy.port)), patience_s=0.5))
        store.submit([("one", SPEC)], 1.0)
    with pytest.raises(TryLater, match=rf"The database postgresql://admin@127.0.0.1:{proxy.port}/{name} cannot be reached"):
        store.submit([("two", SPEC)], 1.0)
    store.close()
    with pytest.raises(TryLater, match="Check that the server runs"):
        connect(postgres.url(name, port=proxy.port))


def test_a_session_that_holds_a_job_is_not_waited_for_for_ever(postgres: Server, name: str, store: Store) -> None:
    [job] = store.submit([("one", SPEC)], 1.0)
    with psycopg.connect(postgres.url(name)) as other:
        other.execute("SELECT 1 FROM chipwise.jobs FOR UPDATE")
        locks = "SELECT id FROM jobs FOR UPDATE"
        with pytest.raises(TryLater, match="locked by another program for longer than the time limit"):
            store.database.write(lambda tx: (tx.rows("SELECT set_config('lock_timeout', '100ms', true)"), tx.rows(locks)))
        other.rollback()
    assert isinstance(store.write([Change(job, (Told(0, "x"),))], 2.0)[0], Job)


@pytest.fixture
def login(postgres: Server) -> Iterator[str]:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE zoe LOGIN PASSWORD '{SECRET}'")
        yield "zoe"
        for (database,) in admin.execute("SELECT datname FROM pg_database WHERE datallowconn").fetchall():
            with psycopg.connect(postgres.url(database), autocommit=True) as owner:
                owner.execute("DROP OWNED BY zoe")
        admin.execute("DROP ROLE zoe")


def _everything_said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


def test_passwords_work_and_are_never_shown(
    postgres: Server,
    name: str,
    store: Store,
    login: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    members = connect_members(postgres.url(name))
    members.add(Member(login, "vision"))
    members.close()
    connect(postgres.url(name, login, SECRET)).close()
    monkeypatch.setenv("PGPASSWORD", SECRET)
    connect(postgres.url(name, login)).close()
    monkeypatch.delenv("PGPASSWORD")
    folder = tmp_path_factory.mktemp("logins")
    (folder / "pass").write_text(f"127.0.0.1:{postgres.port}:*:{login}:{SECRET}\n")
    (folder / "pass").chmod(0o600)
    (folder / "services").write_text(f"[team]\nhost=127.0.0.1\nport={postgres.port}\nuser={login}\ndbname={name}\n")
    monkeypatch.setenv("PGPASSFILE", str(folder / "pass"))
    monkeypatch.setenv("PGSERVICEFILE", str(folder / "services"))
    connect("postgresql:///?service=team").close()
    monkeypatch.delenv("PGPASSFILE")
    for url, kind in (
        (postgres.url(name, login, f"{SECRET}x"), NotAllowed),
        (postgres.url(name, login, f"{SECRET}%zz"), BadInput),
        (postgres.url("nowhere", "admin", SECRET), NotFound),
        (postgres.url(name, "nobody", SECRET), NotAllowed),
        (f"postgresql://{login}:{SECRET}@127.0.0.1:1/{name}", TryLater),
        (f"postgresql://{login}@127.0.0.1:1/{name}?password={SECRET}&wrong=1", BadInput),
        (f"postgresql://{login}:{SECRET}@no.such.host.invalid/{name}", NotFound),
        ("postgresql:///?service=other", NotFound),
    ):
        with pytest.raises(ChipwiseError) as caught:
            connect(url)
        assert isinstance(caught.value, kind), caught.value
        assert SECRET not in _everything_said(caught.value)
        assert "\n" not in str(caught.value)
    assert SECRET not in repr(_address(postgres.url(name, login, SECRET)))


def test_a_newer_record_is_refused_and_a_failed_migration_leaves_nothing(postgres: Server, name: str, store: Store) -> None:
    from chipwise.adapters.stores.record.postgres import PostgresDatabase

    store.submit([("one", SPEC)], 1.0)
    address = _address(postgres.url(name))
    broken = (*for_postgres(), ("ALTER TABLE jobs ADD COLUMN extra TEXT", "UPDATE nowhere SET x = 1"))
    with pytest.raises(NotAllowed, match="nowhere"):
        PostgresDatabase(address, migrations=broken)
    assert len(store.rows(Wanted())) == 1
    PostgresDatabase(address, migrations=(*for_postgres(), ("ALTER TABLE jobs ADD COLUMN extra TEXT",))).close()
    known = len(for_postgres())
    with pytest.raises(BadInput, match=f"its tables have version {known + 1}, and this one knows {known}"):
        connect(postgres.url(name))


_RULES = """
    SELECT 'function', p.proname, pg_get_functiondef(p.oid), p.proacl::text
    FROM pg_proc p WHERE pronamespace = 'chipwise'::regnamespace
    UNION ALL SELECT 'trigger', t.tgname, pg_get_triggerdef(t.oid), ''
    FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = 'chipwise'::regnamespace AND NOT tgisinternal
    UNION ALL SELECT 'policy', tablename || ' ' || policyname, concat_ws(' ', cmd, roles, qual, with_check), ''
    FROM pg_policies WHERE schemaname = 'chipwise'
    UNION ALL SELECT 'constraint', c.conname, pg_get_constraintdef(c.oid), ''
    FROM pg_constraint c WHERE connamespace = 'chipwise'::regnamespace
    UNION ALL SELECT 'column', table_name || ' ' || column_name, data_type, column_default
    FROM information_schema.columns WHERE table_schema = 'chipwise'
    UNION ALL SELECT 'table', relname, relacl::text, relrowsecurity::text
    FROM pg_class WHERE relnamespace = 'chipwise'::regnamespace ORDER BY 1, 2, 3"""


@pytest.mark.parametrize("version", range(1, len(for_postgres())))
def test_an_older_record_has_the_rules_of_a_new_one_when_it_is_opened(
    postgres: Server, store: Store, name: str, version: int
) -> None:
    from chipwise.adapters.stores.record.postgres import PostgresDatabase

    def rules(database: str) -> list[tuple[str, ...]]:
        with psycopg.connect(postgres.url(database)) as client:
            rows: list[tuple[str, ...]] = client.execute(_RULES).fetchall()
            return rows

    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE older TEMPLATE template0")
        try:
            PostgresDatabase(_address(postgres.url("older")), migrations=for_postgres()[:version]).close()
            older = rules("older")
            connect(postgres.url("older")).close()
            assert older != rules("older") == rules(name)
        finally:
            admin.execute("DROP DATABASE older")


def test_a_new_database_is_set_up_once_by_whoever_comes_first(postgres: Server, login: str) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE bare TEMPLATE template0")
        try:
            with pytest.raises(NotAllowed, match="is not set up for this version, and zoe may not do it"):
                connect(postgres.url("bare", login, SECRET))
            errors: list[BaseException] = []

            def begin() -> None:
                try:
                    connect(postgres.url("bare")).close()
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=begin) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert errors == []
            with pytest.raises(NotAllowed, match="zoe is not a member of this record"):
                connect(postgres.url("bare", login, SECRET))
        finally:
            admin.execute("DROP DATABASE bare WITH (FORCE)")


def test_another_encoding_is_refused(postgres: Server) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'")
        try:
            with pytest.raises(BadInput, match="with the encoding LATIN1; it needs UTF8"):
                connect(postgres.url("latin"))
        finally:
            admin.execute("DROP DATABASE latin WITH (FORCE)")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chipwise.events SET at = 0",
        "DELETE FROM chipwise.events",
        "TRUNCATE chipwise.events",
        "DELETE FROM chipwise.jobs",
    ],
)
def test_not_even_the_owner_changes_what_happened(postgres: Server, name: str, store: Store, statement: str) -> None:
    store.submit([("one", SPEC)], 1.0)
    with psycopg.connect(postgres.url(name)) as owner, pytest.raises(psycopg.Error, match="only ever added"):
        owner.execute(statement)


def test_without_psycopg_the_remedy_is_a_pip_line() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from chipwise.adapters.stores.record import connect
try:
    connect("postgresql://alice:s3cret@localhost/jobs")
except Exception as error:
    print(type(error).__name__, error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout.strip()
    assert said == (
        "MissingExtra A PostgreSQL record needs an optional part that is not installed. Try: pip install 'chipwise[postgres]'"
    )
