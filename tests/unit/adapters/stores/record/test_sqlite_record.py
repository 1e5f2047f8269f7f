"""The record in a file: who may read it, and one clear sentence for everything that can be wrong with it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.adapters.stores.record.address import File
from chipwise.adapters.stores.record.schema import for_sqlite
from chipwise.adapters.stores.record.sqlite import SqliteDatabase
from chipwise.adapters.stores.record.sqlite_troubles import refuse_network
from chipwise.adapters.stores.record.store import Store
from chipwise.errors import BadInput, ChipwiseError, NotFound, OutsideFailed, TryLater
from chipwise.runner.job import Needs, Spec
from chipwise.runner.record import Wanted

SPEC = Spec(("true",), "a", place="here")


def filled(path: Path, jobs: int = 50) -> Path:
    record = connect(str(path))
    record.submit([(f"job{number}", SPEC) for number in range(jobs)], 1.0)
    record.close()
    return path


def test_a_record_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deeper" / "jobs.db"
    record = connect(f"sqlite://{path}")
    record.submit([("a", SPEC)], 1.0)
    kept = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    record.close()
    assert kept == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET at = 0",
        "DELETE FROM events",
        "DELETE FROM jobs",
        "UPDATE jobs SET owner = 'eve'",
        "INSERT OR REPLACE INTO events SELECT * FROM events",
        "REPLACE INTO events (job, version, at, kind, body) VALUES ('job0', 1, 0, '', '')",
    ],
)
def test_what_happened_cannot_be_changed_by_any_client(tmp_path: Path, statement: str) -> None:
    path = filled(tmp_path / "jobs.db", 1)
    other = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match=r"only ever added|never changes"):
        other.execute(statement)
    other.close()
    record = connect(str(path))
    assert len(record.events("job0")) == 1
    record.close()


def _garbage(path: Path) -> None:
    path.write_bytes(b"these are my notes, and no database at all\n" * 200)


def _cut(path: Path) -> None:
    filled(path)
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def _scribbled(path: Path) -> None:
    filled(path)
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 200)


def _others(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE cookies (name)")
    other.close()


def _newer(path: Path) -> None:
    filled(path)
    other = sqlite3.connect(path)
    other.execute("UPDATE meta SET value = 999 WHERE name = 'schema'")
    other.commit()
    other.close()


WRONG: list[tuple[Callable[[Path], object], type[ChipwiseError], str]] = [
    (_garbage, BadInput, "is not a SQLite database"),
    (_cut, OutsideFailed, "is damaged or cut off"),
    (_scribbled, OutsideFailed, "is damaged or cut off"),
    (_others, BadInput, "is a SQLite database of something else"),
    (_newer, BadInput, "was written by a newer chipwise: its tables have version 999, and this one knows 2"),
    (Path.mkdir, BadInput, "is a folder"),
]


@pytest.mark.parametrize(("make", "kind", "said"), WRONG, ids=lambda value: getattr(value, "__name__", None))
def test_a_file_that_is_no_record_gets_one_sentence(
    tmp_path: Path, make: Callable[[Path], object], kind: type[ChipwiseError], said: str
) -> None:
    path = tmp_path / "jobs.db"
    make(path)

    def used() -> None:
        record = connect(str(path))
        try:
            record.rows(Wanted())
        finally:
            record.close()

    with pytest.raises(kind, match=said) as caught:
        used()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE meta SET value = 'abc' WHERE name = 'schema'",
        "UPDATE meta SET value = -1 WHERE name = 'schema'",
        "DELETE FROM meta WHERE name = 'schema'",
        "DELETE FROM meta WHERE name = 'mark'",
        "UPDATE meta SET value = 9223372036854775807 WHERE name = 'mark'",
    ],
)
def test_a_record_that_lost_its_own_numbers_is_told_as_damaged(tmp_path: Path, change: str) -> None:
    path = tmp_path / "jobs.db"
    filled(path)
    with sqlite3.connect(path) as other:
        other.execute(change)
    other.close()

    def used() -> None:
        record = connect(str(path))
        try:
            record.submit([("new", Spec(("true",), "new"))], 1.0)
        finally:
            record.close()

    with pytest.raises(OutsideFailed, match="is damaged or cut off"):
        used()


def test_a_file_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    with pytest.raises(BadInput, match="is inside something that is not a folder"):
        connect(str(tmp_path / "notes" / "jobs.db"))


def test_a_record_that_somebody_holds_is_told_after_the_wait(tmp_path: Path) -> None:
    path = filled(tmp_path / "jobs.db")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    store = Store(SqliteDatabase(File(path), wait_s=0.1))
    with pytest.raises(TryLater, match=r"is held by another process for longer than 0\.1 s"):
        store.submit([("b", SPEC)], 1.0)
    assert len(store.rows(Wanted())) == 50  # it can be read meanwhile
    holder.execute("ROLLBACK")
    holder.close()
    store.submit([("b", SPEC)], 1.0)
    store.close()


def test_a_record_that_was_removed_or_replaced_is_not_written_into_the_void(tmp_path: Path) -> None:
    path = filled(tmp_path / "jobs.db")
    record = connect(str(path))
    path.rename(tmp_path / "moved.db")
    with pytest.raises(NotFound, match="no longer exists"):
        record.submit([("b", SPEC)], 1.0)
    path.write_bytes(b"")
    with pytest.raises(OutsideFailed, match="was replaced by another file"):
        record.rows(Wanted())
    record.close()


def test_a_closed_record_says_so(tmp_path: Path) -> None:
    record = connect(str(tmp_path / "jobs.db"))
    record.close()
    record.close()
    with pytest.raises(BadInput, match="was closed"):
        record.rows(Wanted())


PROGRAM = """
import sys
from chipwise.adapters.stores.record import connect
from chipwise.errors import ChipwiseError
from chipwise.runner.job import Spec
try:
    record = connect(sys.argv[1])
    for number in range(10_000):
        record.submit([(f"new{number}", Spec(("x" * 10_000,), "a"))], 1.0)
except ChipwiseError as error:
    print(type(error).__name__, error)
"""


COUNT = "import sys, sqlite3; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM jobs').fetchone()[0])"


def on_a_disk_of_its_own(folder: Path, then: str) -> list[str]:
    """Runs a shell script with a disk of 2 MB mounted at the folder, which nobody else sees. $1 submits, $2 counts."""
    folder.mkdir()
    own = shutil.which("unshare")
    if own is None or subprocess.run([own, "-rm", "true"], capture_output=True).returncode:
        pytest.skip("unshare: cannot mount a small disk here")
    script = f"set -e; mount -t tmpfs -o size=2m none '{folder}'; python='{sys.executable}'; record='{folder}/jobs.db'; {then}"
    command = [own, "-rm", "sh", "-c", script, "sh", PROGRAM, COUNT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_full_disk_gets_one_sentence_and_what_was_told_stays(tmp_path: Path) -> None:
    told, kept = on_a_disk_of_its_own(tmp_path / "small", '"$python" -c "$1" "$record"; "$python" -c "$2" "$record"')
    where = tmp_path / "small" / "jobs.db"
    assert told == (
        f"OutsideFailed The database {where} cannot grow: the disk is full. Free some space; nothing was half written."
    )
    assert int(kept) > 10


def test_a_record_that_can_only_be_read_gets_one_sentence(tmp_path: Path) -> None:
    again = '"$python" -c "$1" "$record"; '
    frozen = f'mount -o remount,ro "{tmp_path}/small"; '
    _, old, new = on_a_disk_of_its_own(tmp_path / "small", again + frozen + again + again.replace("$record", "$record.new"))
    assert old.startswith(f"NotAllowed The database {tmp_path}/small/jobs.db can")
    assert new.startswith(f"NotAllowed The database {tmp_path}/small/jobs.db.new is on a read-only file system.")


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local\\040disk ext4 rw 0 0
x /s fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/alice/jobs.db", "nfs4 at /home"),
        ("/s/jobs.db", "fuse.sshfs at /s"),
        ("/home/local disk/jobs.db", None),
        ("/homely/jobs.db", None),
        ("/var/jobs.db", None),
    ],
)
def test_a_network_file_system_is_refused(path: str, kind: str | None) -> None:
    if kind is None:
        refuse_network(Path(path), MOUNTS)
    else:
        with pytest.raises(BadInput, match=f"is on a network file system \\({kind}\\)"):
            refuse_network(Path(path), MOUNTS)


def test_a_migration_that_fails_leaves_the_record_as_it_was(tmp_path: Path) -> None:
    path = filled(tmp_path / "jobs.db")
    broken = (*for_sqlite(), ("ALTER TABLE jobs ADD COLUMN extra TEXT", "UPDATE nowhere SET x = 1"))
    with pytest.raises(OutsideFailed, match="no such table: nowhere"):
        SqliteDatabase(File(path), migrations=broken)
    record = connect(str(path))
    assert len(record.rows(Wanted())) == 50
    record.close()
    mended = (*for_sqlite(), ("ALTER TABLE jobs ADD COLUMN extra TEXT",))
    database = SqliteDatabase(File(path), migrations=mended)
    assert database.read(lambda tx: tx.rows("SELECT value FROM meta WHERE name = 'schema'")) == [(3,)]
    assert database.read(lambda tx: tx.rows("SELECT count(extra), count(*) FROM jobs")) == [(0, 50)]
    database.close()
    with pytest.raises(BadInput, match="its tables have version 3, and this one knows 2"):
        connect(str(path))


def test_a_record_of_the_first_version_is_taken_over_with_what_it_holds(tmp_path: Path) -> None:
    """Then nobody noted what an attempt held: it was what its job wanted."""
    path = tmp_path / "jobs.db"
    old = Store(SqliteDatabase(File(path), migrations=for_sqlite()[:1]))
    old.submit([("a", replace(SPEC, needs=Needs(4)))], 1.0)
    columns = "(job, number, purchase, provider, region, machine, machines, since, ended, usd_per_hour)"
    values = "('a', 1, 'owned', '', '', '', 1, 2.0, 5.0, NULL)"
    old.database.write(lambda tx: tx.rows(f"INSERT INTO attempts {columns} VALUES {values} RETURNING job"))
    old.close()
    record = connect(str(path))
    [use] = record.uses(0.0, 10.0)
    record.close()
    assert (use.job, use.gpus, use.placed, use.ended) == ("a", 4, 2.0, 5.0)


@pytest.mark.parametrize(
    ("synchronous", "levels"), [("", (2, 1)), ("?synchronous=full", (2, 2)), ("?synchronous=normal", (1, 1))]
)
def test_decisions_are_flushed_and_submissions_as_the_url_says(
    tmp_path: Path, synchronous: str, levels: tuple[int, int]
) -> None:
    record = connect(f"sqlite://{tmp_path / 'jobs.db'}{synchronous}")
    assert isinstance(record, Store)
    found = tuple(
        record.database.write(lambda tx: tx.rows("PRAGMA synchronous"), flushed=flushed)[0][0] for flushed in (True, False)
    )
    record.close()
    assert found == levels
