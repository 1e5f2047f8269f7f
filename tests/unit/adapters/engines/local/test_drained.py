from __future__ import annotations

from datetime import date
from pathlib import Path

from chipwise.adapters.engines.local import drained
from chipwise.adapters.engines.local.engine import Config, connect
from chipwise.api.observe.health import drain_here
from chipwise.api.session.config import Config as Directories
from chipwise.api.session.wiring import Session
from chipwise.observe.health.judge import judge
from chipwise.observe.health.kernel_log import xid_sign


def test_a_drained_gpu_is_given_to_no_job(tmp_path: Path) -> None:
    engine = connect(Config(root=tmp_path / "jobs", gpus=(0, 1, 2)))
    assert engine.look([], 0.0).room.gpus == (0, 1, 2)
    drained.write(tmp_path / "jobs", {1: "XID 79"})
    assert engine.look([], 0.0).room.gpus == (0, 2)


def test_a_file_that_is_none_of_ours_drains_nothing(tmp_path: Path) -> None:
    for text in ("", "[]", '{"gpus": 5}', '{"gpus": {"x": "y", "-1": "z"}}'):
        (tmp_path / drained.FILE).write_text(text)
        assert drained.usable(tmp_path / "jobs", (0, 1)) == (0, 1)


def test_a_gpu_that_is_well_again_is_used_again_and_one_that_was_not_looked_at_stays(tmp_path: Path) -> None:
    session = Session(Directories(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])
    root = session.config.run_dir / "jobs"
    sick, well = judge("nvidia:0", [xid_sign(79)]), judge("nvidia:1", [])
    assert list(drain_here(session, (sick, well))) == [0]
    assert drained.usable(root, (0, 1, 2)) == (1, 2)
    assert drain_here(session, (well,)) == {0: sick.reason}
    assert drain_here(session, (judge("nvidia:0", [xid_sign(31)]),)) == {}
    assert drained.usable(root, (0, 1)) == (0, 1)
