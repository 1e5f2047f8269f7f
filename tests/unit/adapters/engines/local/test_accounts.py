"""As whom programs run, where that is another user than the controller's; with real users in tests/contract/test_run_as.py."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chipwise.adapters.engines.local import accounts, folder, sights
from chipwise.adapters.engines.local import engine as local
from chipwise.errors import BadInput, NotAllowed

USER = accounts.Account("mia", 1000, 1000, (1000, 44), home="/home/mia", shell="/bin/sh")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root: only root gives folders to other system users")


def test_nobody_named_is_the_controllers_own_user_and_an_owner_who_is_not_named_has_none() -> None:
    assert accounts.account_of({}, "mia") is None
    with pytest.raises(NotAllowed, match="No system user is named for jobs of eve"):
        accounts.account_of({"mia": "nobody"}, "eve")
    for run_as in ({"mia": "nobody"}, {"": "nobody"}, {"": "daemon", "mia": "nobody"}):
        user = accounts.account_of(run_as, "mia")
        assert user is not None
        assert user.name == "nobody"


def test_jobs_never_run_as_root_or_as_nobody_who_is_there() -> None:
    with pytest.raises(BadInput, match="which is root"):
        accounts.account("root")
    with pytest.raises(BadInput, match="There is no system user"):
        accounts.account("no-such-user-here")


def test_an_account_goes_through_an_order_and_back(tmp_path: Path) -> None:
    folder.write(tmp_path, folder.ORDER, {"account": USER.written()})
    assert accounts.from_order((folder.read(tmp_path, folder.ORDER) or {})["account"]) == USER
    assert accounts.from_order(None) is None


def test_a_program_has_the_home_of_its_own_user() -> None:
    controllers = {
        "PATH": "/bin",
        "HOME": "/root",
        "XDG_CONFIG_HOME": "/root/.config",
        "CHIPWISE_DATA_DIR": "/srv/x",
        "TMPDIR": "/t",
    }
    ordered = {"HOME": "/home/ada", "USER": "ada", "XDG_RUNTIME_DIR": "/run/user/7", "LR": "1"}
    assert accounts.environment(controllers, ordered, None) == controllers | ordered
    own = {"HOME": "/home/mia", "USER": "mia", "LOGNAME": "mia", "SHELL": "/bin/sh"}
    assert accounts.environment(controllers, ordered, USER) == {"PATH": "/bin", "LR": "1", **own}


def test_who_is_not_root_cannot_run_jobs_as_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BadInput, match="Only a root controller"):
        local.connect(local.Config(tmp_path / "run" / "jobs", run_as={"": "nobody"})).ready()


@needs_root
def test_a_folder_that_is_somebody_elses_is_not_given_away(tmp_path: Path) -> None:
    nobody = accounts.account("nobody")
    accounts.give(tmp_path / "new", nobody)
    accounts.give(tmp_path / "new", nobody)
    state = (tmp_path / "new").stat()
    assert (state.st_uid, state.st_mode & 0o7777) == (nobody.uid, 0o700)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "checkpoint").touch()
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name in ("full", "link"):
        with pytest.raises(BadInput, match="does not belong to nobody"):
            accounts.give(tmp_path / name, nobody)


@needs_root
def test_root_does_not_take_a_place_over_that_ran_jobs_as_somebody_else() -> None:
    with TemporaryDirectory() as home:  # not that of the test, which others may not pass through
        Path(home).chmod(0o711)
        root = Path(home) / "run" / "jobs"
        local.connect(local.Config(root)).ready()
        local.connect(local.Config(root, run_as={"": "nobody"})).ready("anybody")
        with pytest.raises(BadInput, match="ran as another system user so far"):
            local.connect(local.Config(root)).ready()


def test_what_a_program_says_of_itself_is_read_from_no_link(tmp_path: Path) -> None:
    """It may name a file that only the controller can read."""
    (tmp_path / "private.json").write_text('{"step": 3}')
    (tmp_path / folder.PROGRESS).symlink_to(tmp_path / "private.json")
    assert sights.progress_of(tmp_path)["step"] is None
    (tmp_path / folder.PROGRESS).unlink()
    (tmp_path / folder.PROGRESS).write_text('{"step": 4}')
    assert sights.progress_of(tmp_path)["step"] == 4
    (tmp_path / folder.PROGRAM).mkdir()
    assert sights.progress_of(tmp_path)["step"] is None
