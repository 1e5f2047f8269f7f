"""`chipwise init`: files that pass the check and have a plan, also with every commented option in use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chipwise.api import templates
from chipwise.api.catalog.check import check
from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan_any
from chipwise.planner.values.plan import Plan
from chipwise.workload.common import Common
from chipwise.workload.pipeline import Pipeline
from command import Chipwise

KINDS = sorted(templates.kinds())
OPTION = re.compile(r"^( *)# ( *(?:\w+:|- ).*)$", re.MULTILINE)


def test_every_kind_has_a_template() -> None:
    kinds = {str(one.model_fields["kind"].default) for one in _leaves(Common)} | {Pipeline.model_fields["kind"].default}
    assert kinds <= set(KINDS)


def _leaves(base: type[Common]) -> list[type[Common]]:
    below = base.__subclasses__()
    return [leaf for one in below for leaf in _leaves(one)] if below else [base]


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_is_valid_and_has_a_plan(kind: str) -> None:
    session = open_session()
    found = plan_any(session, f"{kind}.yaml", text=templates.text(kind))
    assert found.winner is not None if isinstance(found, Plan) else found.fits


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_of_a_template_is_valid(kind: str) -> None:
    text, options = OPTION.subn(r"\1\2", templates.text(kind))
    assert options or kind == "edge"
    check(open_session(), f"{kind}.yaml", text=text)


def test_a_file_is_written_once(chipwise: Chipwise, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    done = chipwise("init", "finetune", "-o", str(file))
    assert done.code == 0
    assert f"chipwise plan {file}" in done.err
    file.write_text("mine")
    done = chipwise("init", "finetune", "-o", str(file))
    assert done.code == 2
    assert "--force" in done.err
    assert file.read_text() == "mine"
    assert chipwise("init", "serve", "-o", str(file), "--force").code == 0
    assert file.read_text().startswith("# A model that answers requests")


def test_a_template_can_be_printed(chipwise: Chipwise) -> None:
    done = chipwise("init", "batch", "-o", "-")
    assert done.out == templates.text("batch")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("serv",), "serve"), (("serve", "-o", "no/such/folder/a.yaml"), "no folder"), (("serve", "-o", "."), "folder")],
)
def test_what_cannot_be_written_is_a_sentence(chipwise: Chipwise, arguments: tuple[str, ...], told: str) -> None:
    done = chipwise("init", *arguments)
    assert done.code == 2
    assert told in done.err


def test_the_help_names_every_kind(chipwise: Chipwise) -> None:
    out = chipwise("init", "--help").out
    assert all(re.search(rf"^ +{kind} +\w", out, re.MULTILINE) for kind in KINDS)
