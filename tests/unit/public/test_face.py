"""The package as a program sees it: which names there are, that they stay what they are, and that nothing is printed."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
import subprocess
import sys
from importlib import import_module

import click
import pytest

import chipwise as cw
from chipwise import errors
from chipwise.cli.main import COMMANDS

VERBS = tuple(cw._VERBS)
BESIDE = {"jobs", "find_job", "simulate", "targets"}  # of `ps`, `describe`, `run --simulate` and `render --list`


def commands() -> set[str]:
    """Every command that does something, a command of a group by both names."""
    found: set[str] = set()
    for name in COMMANDS:
        command = getattr(import_module(f"chipwise.cli.{name}"), name)
        if isinstance(command, click.Group):
            found |= {f"{name}_{inner}" for inner in command.commands} | ({name} if command.invoke_without_command else set())
        else:
            found.add(name)
    return found


def test_every_command_has_its_function_and_every_function_its_command() -> None:
    assert commands() == set(VERBS) - BESIDE


def test_every_name_is_there_and_listed() -> None:
    assert [name for name in cw.__all__ if getattr(cw, name, None) is None] == []
    assert set(cw.__all__) <= set(dir(cw))


def test_every_verb_says_what_it_does_with_an_example() -> None:
    for name in (*VERBS, "open"):
        text = inspect.getdoc(getattr(cw, name))
        assert text is not None, name
        assert ">>> " in text or "..." in text, name
        assert f"cw.{name}(" in text, name


def test_a_verb_stays_a_function_when_every_module_was_imported() -> None:
    modules = [module.name for module in pkgutil.walk_packages(cw.__path__, "chipwise.") if not _needs_an_extra(module.name)]
    code = "\n".join(
        [
            "import importlib, inspect, chipwise as cw",
            f"for name in {modules!r}: importlib.import_module(name)",
            f"print([name for name in {[*VERBS, 'open']!r} if not inspect.isroutine(getattr(cw, name))])",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _needs_an_extra(module: str) -> bool:
    """Those that import torch or jax at once, and programs."""
    return module.endswith("__main__") or module in ("chipwise.job.torch", "chipwise.job.jax")


def test_a_session_has_the_same_verbs() -> None:
    session = cw.open(as_of="2026-11-15")
    assert all(inspect.ismethod(getattr(session, name)) for name in VERBS)
    assert pickle.loads(pickle.dumps(session)) == session


def test_every_error_for_the_reader_is_exported() -> None:
    tree = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.ChipwiseError)]
    assert {one.__name__ for one in tree} <= set(cw.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="plann"):
        _ = cw.plann


def test_a_day_that_is_none_is_refused() -> None:
    with pytest.raises(cw.BadInput, match="not a date"):
        cw.open(as_of="yesterday")
