"""What a supervisor reads of the machine's processes does not grow with their number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import descendants

OTHERS = 2_000
# A supervisor of one process that sleeps, its turns counted while a hook hears of all that is opened or listed.
TURNS = """
import os, sys
from pathlib import Path
from chipwise.adapters.engines.local import supervisor
from chipwise.adapters.engines.local.supervisor import Supervisor

supervisor.TICK_S = 0.0
home = Path(sys.argv[1])
order = {"command": ["sleep", "60"], "mark": str(home)}
watch = Supervisor(home, order, os.open(home / "lock", os.O_CREAT | os.O_RDWR), {})
assert watch._start()
heard = []
hears = True
events = ("open", "os.listdir", "os.scandir")
sys.addaudithook(lambda event, args: heard.append(str(args[0])) if hears and event in events else None)
for _ in range(20):
    watch._turn()
hears = False
watch._end_all()
watch.children[0].wait()
print(len([name for name in heard if name.startswith("/proc")]), len(heard))
"""


def process(proc: Path, pid: int, children: str = "") -> None:
    thread = proc / str(pid) / "task" / str(pid)
    thread.mkdir(parents=True)
    (thread / "children").write_text(children)


@pytest.mark.parametrize("others", [0, OTHERS])
def test_only_a_jobs_own_processes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    process(tmp_path, 10, "11 12")
    process(tmp_path, 11, "13")
    process(tmp_path, 12)
    process(tmp_path, 13)
    for pid in range(100, 100 + others):
        (tmp_path / str(pid)).mkdir()
    (tmp_path / "self").symlink_to(tmp_path / "10")
    listed: list[str] = []
    listdir = os.listdir

    def count(path: Path) -> list[str]:
        listed.append(str(path))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", count)
    monkeypatch.setattr(descendants, "PROC", tmp_path)
    monkeypatch.setattr(os, "getpid", lambda: 10)
    assert sorted(descendants.below(10)) == [11, 12, 13]
    assert sorted(listed) == [str(tmp_path / str(pid) / "task") for pid in (10, 11, 12, 13)]


def test_a_turn_reads_nothing_of_the_machines_processes(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", TURNS, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    of_processes, of_anything = map(int, done.stdout.split())
    assert of_processes == 0
    assert 20 <= of_anything <= 40, "a turn looks for a wish to leave, and not for much else"
