from __future__ import annotations

import pickle

import pytest

from chipwise.errors import BadInput, ChipwiseError, InvalidFile, InvalidSettings, MissingExtra, Problem, UnknownName

FLAGS = {"shard": "--zero", "prefix_len": "--prefix", "input_len": "--input", "tp": "--tp"}


def test_settings_are_told_by_the_names_they_were_given_under() -> None:
    found = InvalidSettings(
        Problem("shard", "4 is not possible", None, "0, 1, 2, 3"),
        Problem("prefix_len", "'input_len' is not possible", None, "whole numbers from 0 to input_len"),
    )
    told = str(found.with_names(FLAGS)).splitlines()
    assert told[0] == "--zero: 4 is not possible. Allowed: 0, 1, 2, 3."
    assert told[1] == "--prefix: 'input_len' is not possible. Allowed: whole numbers from 0 to --input."
    assert str(found).startswith("shard: 4")


def test_a_name_that_nobody_gave_another_stays() -> None:
    found = InvalidSettings(Problem("tp, pp", "below 1", None, "http, tp x dp"))
    assert str(found.with_names(FLAGS)) == "--tp, pp: below 1. Allowed: http, --tp x dp."


def test_what_others_say_brings_no_second_full_stop() -> None:
    assert str(BadInput("It cannot be read: the stream is not seekable..", remedy="Give a path.")) == (
        "It cannot be read: the stream is not seekable. Give a path."
    )
    assert str(BadInput("It says: wait...", remedy="Wait.")) == "It says: wait... Wait."


@pytest.mark.parametrize(
    "error",
    [
        BadInput("a", remedy="b"),
        UnknownName("chip", "h1000", ["h100"], remedy="b"),
        InvalidSettings(Problem("a", "b")),
        InvalidFile("w.yaml", [Problem("a", "b", 3)], remedy="c"),
        MissingExtra("A thing", "aws"),
    ],
)
def test_an_error_of_another_process_is_the_same_error(error: ChipwiseError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.args, vars(copy)) == (type(error), str(error), error.args, vars(error))
