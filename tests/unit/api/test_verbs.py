from __future__ import annotations

import subprocess
import sys

import pytest

import chipwise
from chipwise import api


@pytest.mark.parametrize("name", chipwise.__all__)
def test_a_main_type_is_exported(name: str) -> None:
    assert getattr(chipwise, name) is not None


@pytest.mark.parametrize("name", api.__all__)
def test_a_verb_stays_itself_after_its_module_was_imported(name: str) -> None:
    """A module of a verb's name would hide the verb."""
    code = f"from chipwise import api; first = api.{name}; assert callable(first); assert api.{name} is first"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_importing_the_package_imports_nothing_of_it() -> None:
    code = "import sys, chipwise; print([m for m in sys.modules if m.startswith('chipwise.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_loaded_workload_is_a_workload() -> None:
    from chipwise.workload.parse import parse

    assert isinstance(parse("kind: batch\nname: x\nmodel: llama-3.1-8b\nitems: 5\n"), chipwise.Workload)
