from __future__ import annotations

from chipwise.adapters.environment import inherited, of_supervisor

THERE = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "k", "TOKEN": "t", "CHIPWISE_RECORD": "postgresql://u:p@h/d"}


def test_keys_of_whoever_woke_the_controller_do_not_go_along() -> None:
    assert inherited(THERE) == {"PATH": "/bin", "LC_ALL": "C"}
    assert of_supervisor(THERE, ()) == {"PATH": "/bin", "LC_ALL": "C"}


def test_a_program_gets_its_own_secrets_and_where_our_files_are() -> None:
    there = {**THERE, "CHIPWISE_DATA_DIR": "/d"}
    assert of_supervisor(there, ("TOKEN", "NOT_SET")) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "TOKEN": "t",
        "CHIPWISE_DATA_DIR": "/d",
    }
