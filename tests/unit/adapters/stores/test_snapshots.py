"""Snapshots on disk: what is written is read back, and no accident leaves half of one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chipwise.adapters.stores import snapshots
from chipwise.catalog.fact import Fact
from chipwise.catalog.feed import Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import PURCHASES, Offer, Purchase, Verdict
from chipwise.catalog.region import Region
from chipwise.errors import BadInput, OutsideFailed
from effort import cases


def make(provider: str = "aws", count: int = 3, price: float = 1.5) -> Snapshot:
    machines = (
        Machine(
            provider, "p5.48xlarge", "H100-SXM", 8, vcpus=192, retired=True, fact=Fact(("EC2",), "2026-11-15", ("chip",), "é")
        ),
        Machine(provider, "box", None, None, purchase_usd=3e5, power_w=1e4),
    )
    offers = tuple(
        Offer(
            provider,
            "p5.48xlarge" if n % 2 else "box",
            f"region-{n}",
            PURCHASES[n % len(PURCHASES)],
            price + n,
            "2026-11-15",
            99.5 if n % 3 == 0 else None,
            Verdict.FLOOR if n % 2 else Verdict.FINE,
            "why" if n % 2 else "",
            "source",
            f"note {n}",
        )
        for n in range(count)
    )
    regions = (Region(provider, "region-0", "Oslo", "NOR", 59.9, 10.7, 30.0, 2025),)
    return Snapshot(provider, date(2026, 11, 15), machines, offers, regions, ("one was skipped",))


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    first, second = make("aws"), make("on prem / Süd", 0)
    for snapshot in (first, second):
        snapshots.save(tmp_path / "new" / "feeds", snapshot)
    assert snapshots.load(tmp_path / "new" / "feeds") == ([first, second], [])


@settings(max_examples=cases(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            Offer,
            st.just("x"),
            st.text(max_size=8),
            st.text(max_size=8),
            st.sampled_from(Purchase),
            st.floats(1e-6, 1e5),
            st.dates(date(1970, 1, 1)).map(str),
            st.none() | st.floats(1e-6, 1e5),
            st.sampled_from(Verdict),
            st.text(max_size=8),
        ),
        max_size=12,
    )
)
def test_any_offers_survive_the_disk(tmp_path: Path, offers: list[Offer]) -> None:
    snapshot = Snapshot("x", date(2026, 1, 1), (), tuple(offers))
    snapshots.save(tmp_path, snapshot)
    assert snapshots.load(tmp_path) == ([snapshot], [])


def test_a_new_snapshot_replaces_the_old_one_and_leaves_nothing_behind(tmp_path: Path) -> None:
    snapshots.save(tmp_path, make(price=1.0))
    path = snapshots.save(tmp_path, make(price=2.0))
    assert [entry.name for entry in tmp_path.iterdir()] == ["aws.json"] == [path.name]
    assert snapshots.load(tmp_path)[0][0].offers[0].usd_per_hour == 2.0


def test_names_are_safe_files_and_stay_apart(tmp_path: Path) -> None:
    odd = ["../../etc/passwd", "AWS", "aws", "a b", "a/b", ".", "x" * 300, "日本"]
    paths = [snapshots.save(tmp_path, make(name, 1)) for name in odd]
    assert len(set(paths)) == len(odd)
    assert all(path.parent == tmp_path for path in paths)
    loaded, problems = snapshots.load(tmp_path)
    assert ({snapshot.provider for snapshot in loaded}, problems) == (set(odd), [])
    with pytest.raises(BadInput):
        snapshots.save(tmp_path, make(" "))


def test_stored_snapshots_are_listed_and_removed(tmp_path: Path) -> None:
    assert snapshots.stored(tmp_path / "none") == []
    assert snapshots.load(tmp_path / "none") == ([], [])
    snapshots.save(tmp_path, make("gcp"))
    snapshots.save(tmp_path, make("aws"))
    assert snapshots.stored(tmp_path) == ["aws", "gcp"]
    assert snapshots.remove(tmp_path, "aws") is True
    assert snapshots.remove(tmp_path, "aws") is False
    assert snapshots.stored(tmp_path) == ["gcp"]


def broken(scratch: Path, change: tuple[Any, ...]) -> str:
    """A good file with one thing changed: a path of keys and the new value."""
    data = json.loads(snapshots.save(scratch, make()).read_text())
    holder = data
    for key in change[:-2]:
        holder = holder[key]
    holder[change[-2]] = change[-1]
    return json.dumps(data)


@pytest.mark.parametrize(
    "change",
    [
        ("format", 99),
        ("provider", None),
        ("taken", "yesterday"),
        ("offers", "price", [1.0]),
        ("offers", "price", [1.0, -1.0, 2.0]),
        ("offers", "price", [1.0, "2", 2.0]),
        ("offers", "price", [1.0, True, 2.0]),
        ("offers", "price", [1.0, float("nan"), 2.0]),
        ("offers", "price_max", [None]),
        ("offers", "machine", "at", [0, 1]),
        ("offers", "machine", "at", [0, 1, 7]),
        ("offers", "machine", "at", [0, 1, -1]),
        ("offers", "machine", "at", [0, 1, "0"]),
        ("offers", "machine", "texts", [1, 2]),
        ("offers", "purchase", "texts", ["barter", "spot", "on-demand"]),
        ("offers", "as_of", "texts", ["soon"]),
        ("offers", {}),
        ("offers", []),
        ("machines", "columns", ["provider"]),
        ("machines", "rows", [[1]]),
        ("machines", "rows", 0, 5, "many"),
        ("machines", "rows", 0, 0, None),
        ("regions", {"columns": ["colour"], "rows": [["red"]]}),
        ("skipped", [1]),
    ],
)
def test_a_damaged_file_is_told_and_the_rest_works(tmp_path: Path, change: tuple[Any, ...]) -> None:
    snapshots.save(tmp_path, make("gcp"))
    (tmp_path / "aws.json").write_text(broken(tmp_path / "scratch", change))
    loaded, problems = snapshots.load(tmp_path)
    assert [snapshot.provider for snapshot in loaded] == ["gcp"]
    assert len(problems) == 1
    assert "aws.json" in problems[0]
    assert "again, or delete the file" in problems[0]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 200_000, b'{"format": 1}', b"7"])
def test_a_file_that_is_no_snapshot_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "aws.json").write_bytes(content)
    (tmp_path / "notes.txt").write_text("not ours")
    (tmp_path / "dir.json").mkdir()
    loaded, problems = snapshots.load(tmp_path)
    assert (loaded, len(problems)) == ([], 2)


def test_a_truncated_file_is_told_wherever_it_was_cut(tmp_path: Path) -> None:
    path = snapshots.save(tmp_path, make())
    whole = path.read_bytes()
    for end in range(0, len(whole) - 1, 97):
        path.write_bytes(whole[:end])
        assert len(snapshots.load(tmp_path)[1]) == 1


def test_a_directory_that_cannot_be_written_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutsideFailed, match="could not be written"):
        snapshots.save(tmp_path / "file" / "feeds", make())


def test_a_failing_move_keeps_the_old_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots.save(tmp_path, make(price=1.0))

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutsideFailed, match="No space left"):
        snapshots.save(tmp_path, make(price=2.0))
    assert [entry.name for entry in tmp_path.iterdir()] == ["aws.json"]
    assert snapshots.load(tmp_path)[0][0].offers[0].usd_per_hour == 1.0


def test_two_refreshes_at_once_leave_one_whole_snapshot(tmp_path: Path) -> None:
    made = [make(count=2000, price=float(n + 1)) for n in range(4)]
    threads = [threading.Thread(target=lambda one=one: [snapshots.save(tmp_path, one) for _ in range(5)]) for one in made]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        loaded, problems = snapshots.load(tmp_path)
        assert not problems
        assert all(snapshot in made for snapshot in loaded)
    for thread in threads:
        thread.join()
    assert snapshots.load(tmp_path)[0][0] in made
    assert [entry.name for entry in tmp_path.iterdir()] == ["aws.json"]


KILLED = """
import sys
from datetime import date
from pathlib import Path
from chipwise.adapters.stores import snapshots
from chipwise.catalog.feed import Snapshot
from chipwise.catalog.offer import Offer, Purchase
offers = tuple(Offer("aws", f"m{n}", "r", Purchase.SPOT, 1.0 + n, "2026-11-15", notes="x" * 200 + str(n)) for n in range(3000))
print("go", flush=True)
while True:
    snapshots.save(Path(sys.argv[1]), Snapshot("aws", date(2026, 11, 15), (), offers))
"""


@pytest.mark.chance
def test_a_refresh_killed_at_any_moment_leaves_a_whole_snapshot(tmp_path: Path) -> None:
    old = make()
    snapshots.save(tmp_path, old)
    dice = random.Random(7)
    for _ in range(cases(12)):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout:
            process.stdout.readline()
            time.sleep(dice.uniform(0, 0.06))
            process.send_signal(signal.SIGKILL)
        process.wait(10)
        loaded, problems = snapshots.load(tmp_path)
        assert not problems
        assert loaded[0] == old or len(loaded[0].offers) == 3000


def test_what_a_killed_refresh_left_is_swept_away_later(tmp_path: Path) -> None:
    left, fresh = tmp_path / ".aws.1.abc.tmp", tmp_path / ".aws.2.def.tmp"
    for path in (left, fresh):
        path.write_text("half")
    os.utime(left, (time.time() - 7200, time.time() - 7200))
    snapshots.save(tmp_path, make())
    assert not left.exists()
    assert fresh.exists()
    assert snapshots.stored(tmp_path) == ["aws"]


def test_columns_hold_the_same_offers(tmp_path: Path) -> None:
    snapshots.save(tmp_path, make(count=50))
    (((bare, columns),), problems) = snapshots.read(tmp_path)
    assert (bare.offers, problems, len(columns)) == ((), [], 50)
    assert columns.offers() == make(count=50).offers
