from __future__ import annotations

import subprocess
import sys

import chipwise
from chipwise import api


def test_every_main_type_is_exported() -> None:
    assert [name for name in chipwise.__all__ if getattr(chipwise, name, None) is None] == []


def test_a_verb_stays_itself_after_its_module_was_imported() -> None:
    """A module of a verb's name would hide the verb."""
    code = """
from types import ModuleType
from chipwise import api
for name in api.__all__:
    first = getattr(api, name)
    assert not isinstance(first, ModuleType), name
    assert getattr(api, name) is first, name
print(len(api.__all__))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == str(len(api.__all__)), done.stderr


def test_importing_the_package_imports_nothing_of_it() -> None:
    code = "import sys, chipwise; print([m for m in sys.modules if m.startswith('chipwise.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_loaded_workload_is_a_workload() -> None:
    from chipwise.workload.parse import parse

    assert isinstance(parse("kind: batch\nname: x\nmodel: llama-3.1-8b\nitems: 5\n"), chipwise.Workload)
