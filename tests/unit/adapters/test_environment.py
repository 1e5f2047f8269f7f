from __future__ import annotations

from chipwise.adapters.environment import inherited, of_supervisor

THERE = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "k", "TOKEN": "t", "CHIPWISE_RECORD": "postgresql://u:p@h/d"}


def test_keys_of_whoever_woke_the_controller_do_not_go_along() -> None:
    assert inherited(THERE) == {"PATH": "/bin", "LC_ALL": "C"}
    assert of_supervisor(THERE) == {"PATH": "/bin", "LC_ALL": "C"}


def test_a_program_is_told_where_our_files_are() -> None:
    assert of_supervisor({**THERE, "CHIPWISE_DATA_DIR": "/d"}) == {"PATH": "/bin", "LC_ALL": "C", "CHIPWISE_DATA_DIR": "/d"}
