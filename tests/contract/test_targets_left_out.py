"""Every target holds all of a plan, or says which part it leaves out; what it says it writes, it writes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from chipwise.renderer.deployment import Deployment, Form, MachineLayer, Stand
from chipwise.renderer.file import CannotRender
from chipwise.renderer.left_out import (
    CLAIMS,
    GROUPS,
    HOURS,
    LAYERS,
    NO_RUN,
    PULLS,
    REGIONS,
    RESERVATIONS,
    SLICES,
    STREAMS,
    with_notes,
)
from chipwise.renderer.named_targets import files, target, target_names
from fixed_deployments import CASES
from golden_files import cases_of

SERVE = CASES["serve"]
HERE, THERE = (Stand("aws", region, "g6e.xlarge", 2, 0.5) for region in ("eu-central-1", "eu-north-1"))
WIDE = replace(
    SERVE,
    layers=(MachineLayer("reserved-3y", 2), MachineLayer("on-demand", 3)),
    machines=5,
    stands=(HERE, THERE),
    regions=("eu-central-1", "eu-north-1"),
)


def text_of(name: str, deployment: Deployment) -> str:
    made = files(name, target(name), deployment)
    return re.sub(r"[\s#%/*]+", " ", "\n".join(file.text for file in made))


@pytest.mark.parametrize("name", target_names())
def test_a_part_of_the_plan_is_written_or_told(name: str) -> None:
    holds: frozenset[str] = getattr(target(name), "EXPRESSES", frozenset())
    assert holds <= {GROUPS, LAYERS, REGIONS, STREAMS, HOURS, NO_RUN, PULLS, RESERVATIONS, SLICES, CLAIMS}
    try:
        text = text_of(name, WIDE)
    except CannotRender:
        return
    assert LAYERS in holds or "The plan buys these machines in layers, from the base up: 2 reserved-3y; 3 on-demand." in text
    assert REGIONS in holds or "the plan is in 2 regions" in text
    assert {HOURS, NO_RUN} & holds or "The plan pays for its hours only" in text


@pytest.mark.parametrize("name", ["karpenter", "eksctl", "terraform", "diagram"])
def test_a_target_of_all_regions_names_them(name: str) -> None:
    text = text_of(name, WIDE)
    assert "eu-north-1" in text or "The plan is in 2 regions" in text


def test_regions_with_other_machines_are_told_by_all() -> None:
    other = replace(WIDE, stands=(HERE, replace(THERE, machine="g6.xlarge")))
    assert any("2 x g6.xlarge" in note for note in with_notes(other, {LAYERS, REGIONS}).notes)
    apart = replace(WIDE, stands=(THERE, replace(THERE, region="eu-west-1")))
    assert any("which is none of them" in note for note in with_notes(apart, {LAYERS, REGIONS}).notes)


def test_one_way_to_buy_in_one_place_needs_no_note() -> None:
    always = replace(SERVE, starts="", stops="")
    assert with_notes(always, ()) == always


@pytest.mark.parametrize("name", target_names())
def test_what_stands_in_the_way_is_known_before(name: str) -> None:
    for case in cases_of(name):
        if CASES[case].form is not Form.PIPELINE:
            made = {file.path for file in files(name, target(name), CASES[case])}
            assert set(getattr(target(name), "WRITES", ())) <= made, case
