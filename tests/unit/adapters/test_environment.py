from __future__ import annotations

import os
import pwd

from chipwise.adapters.environment import inherited, of_supervisor

USER = pwd.getpwuid(os.geteuid())
LOGIN = {"HOME": USER.pw_dir, "USER": USER.pw_name, "LOGNAME": USER.pw_name, "SHELL": USER.pw_shell}
THERE = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "k", "TOKEN": "t", "CHIPWISE_RECORD": "postgresql://u:p@h/d"}


def test_keys_of_whoever_woke_the_controller_do_not_go_along() -> None:
    assert inherited(THERE) == {"PATH": "/bin", "LC_ALL": "C"}
    assert of_supervisor(THERE) == {"PATH": "/bin", "LC_ALL": "C", **LOGIN}


def test_a_program_is_told_where_our_files_are() -> None:
    assert of_supervisor({**THERE, "CHIPWISE_DATA_DIR": "/d"})["CHIPWISE_DATA_DIR"] == "/d"


def test_a_home_that_this_user_chose_stays_and_that_of_another_does_not() -> None:
    chosen = {"HOME": "/scratch/me", "USER": USER.pw_name, "TMPDIR": "/scratch/tmp"}
    assert of_supervisor(chosen) == {**LOGIN, **chosen}
    assert of_supervisor({"HOME": "/scratch/me"})["HOME"] == "/scratch/me"
    another = {
        "HOME": "/home/mia",
        "LOGNAME": "mia",
        "USER": "mia",
        "XDG_CACHE_HOME": "/home/mia/.cache",
        "TMPDIR": "/home/mia/t",
    }
    assert of_supervisor(another) == LOGIN


def test_of_a_submitter_who_is_another_system_user_no_home_goes_along() -> None:
    assert inherited({**THERE, **LOGIN, "XDG_DATA_HOME": "/d", "HF_HOME": "/models"}, same_user=False) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HF_HOME": "/models",
    }
