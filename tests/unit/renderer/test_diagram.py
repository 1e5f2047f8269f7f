"""Pictures: everything that stands somewhere is drawn once, within the frame, over nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.renderer.deployment import Deployment, HandOff, Stand
from chipwise.renderer.picture.mermaid import label, mermaid
from chipwise.renderer.picture.scene import scene
from chipwise.renderer.picture.svg import broken, fitted, svg, width_of
from chipwise.renderer.targets import diagram
from fixed_deployments import BATCH, CASES, DEVICE, HPC, PIPELINE, SERVE, TRAIN

SVG = "{http://www.w3.org/2000/svg}"
REGIONS = ("eu-central-1", "us-east-1", "ap-northeast-1")
MANY = replace(
    PIPELINE,
    stages=tuple(replace(base, title=f"s{at}") for at, base in enumerate((BATCH, HPC, TRAIN, SERVE, BATCH, DEVICE))),
    hand_offs=tuple(
        HandOff(f"s{a}", f"s{b}", 1e9, "arrow") for a, b in ((0, 1), (0, 2), (1, 2), (2, 3), (0, 4), (2, 5), (4, 5))
    ),
)
REGIONAL = replace(SERVE, stands=tuple(Stand("aws", one, "g6e.xlarge", 2, 1 / 3) for one in REGIONS))
PICTURES = {**CASES, "many": MANY, "regional": REGIONAL}


def drawn(planned: Deployment) -> ElementTree.Element:
    files = {file.path: file.text for file in diagram.render(planned)}
    return ElementTree.fromstring(files["diagram.svg"])


@pytest.mark.parametrize("name", PICTURES)
def test_boxes_stand_within_the_frame_and_not_on_each_other(name: str) -> None:
    picture = drawn(PICTURES[name])
    wide, high = float(picture.attrib["width"]), float(picture.attrib["height"])
    boxes = [
        tuple(float(one.attrib[key]) for key in ("x", "y", "width", "height"))
        for one in picture.iter(f"{SVG}rect")
        if "rx" in one.attrib and "stroke-dasharray" not in one.attrib
    ]
    assert boxes
    for at, (x, y, w, h) in enumerate(boxes):
        assert 0 <= x <= x + w <= wide
        assert 0 <= y <= y + h <= high
        for x2, y2, w2, h2 in boxes[at + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


@pytest.mark.parametrize("name", PICTURES)
def test_all_arrows_lead_to_boxes_that_are_there(name: str) -> None:
    shown = scene(PICTURES[name])
    keys = [box.key for box in shown.boxes]
    assert len(keys) == len(set(keys))
    assert {end for arrow in shown.arrows for end in (arrow.source, arrow.target)} <= set(keys)
    assert len(list(drawn(PICTURES[name]).iter(f"{SVG}polyline"))) == len(shown.arrows)


def test_every_hand_off_is_an_arrow_with_its_size() -> None:
    shown = scene(MANY)
    assert sum("1 GB arrow" in arrow.label for arrow in shown.arrows) == 7


def test_every_region_has_its_machines_and_share() -> None:
    shown = scene(REGIONAL)
    assert [place.removeprefix("aws ") for place in shown.places] == list(REGIONS)
    assert sum(arrow.label == "33%" for arrow in shown.arrows) == 3


def test_cloud_and_edge_are_two_places() -> None:
    whole = replace(
        PIPELINE, stages=(replace(TRAIN, title="a"), replace(DEVICE, title="b")), hand_offs=(HandOff("a", "b", 3e7),)
    )
    assert scene(whole).places == ("aws eu-north-1", "on site, 40 places")


@given(st.text(max_size=80))
def test_any_title_stays_text(text: str) -> None:
    planned = replace(SERVE, title=text, description=text)
    ElementTree.fromstring(svg(scene(planned)))
    first, second, third, *_ = mermaid(scene(planned), "x").split("\n")
    assert (first, third) == ("---", "---")
    assert second.isascii()


@given(st.text(max_size=60))
def test_a_label_of_mermaid_holds_no_sign_that_means_something(text: str) -> None:
    assert re.fullmatch(r"([A-Za-z0-9 .,:/+%_-]|#\d+;)*", label(text))


@given(st.text(max_size=60), st.floats(20, 400))
def test_a_text_is_cut_to_its_room(text: str, room: float) -> None:
    assert width_of(fitted(text, room, 12.0), 12.0) <= max(room, width_of("…", 12.0))
    assert len(broken(text, room, 12.0)) <= 2
