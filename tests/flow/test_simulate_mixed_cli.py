"""`chipwise simulate serve` with machine types and spot zones, as a user has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import Chipwise

SMALL = ("--synthetic", "hours=0.5,rate=5", "--policy", "hpa:80")
MACHINES = ("--machine", "l4=0.5,0.7,0.28", "--machine", "h100=5,7.2,2.8")


def test_every_policy_and_purchase_is_one_object_in_dollars(chipwise: Chipwise, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    flags = (*SMALL, *MACHINES, "--spot", "series=3,losses=1", "--html", str(page))
    done = chipwise("simulate", "serve", *flags, "--json")
    assert done.code == 0, done.err
    answers = json.loads(done.out)
    assert [answer["purchase"] for answer in answers] == ["on-demand-fleet", "spot-fleet", "spot-hedge", "spot-spread"]
    fields = {"policy", "purchase", "requests", "within_goal", "replica_hours", "usd", "lost", "ratio_to_bound"}
    assert all(set(answer) == fields and answer["ratio_to_bound"] >= 1.0 for answer in answers)
    assert "hpa:80, spot-hedge" in page.read_text()
    done = chipwise("simulate", "serve", *SMALL, *MACHINES)
    assert (done.code, done.out.count("hpa:80")) == (0, 1)
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--spot", "series=3"), "--spot and --purchase need the machines."),
        (("--machine", "l4"), "--machine: 'l4' is not possible."),
        (("--machine", "l4=0,1"), "The speed of l4 must be above zero"),
        (("--machine", "l4=1,1", "--spot", "series=3"), "No machine has a spot price."),
        (("--machine", "l4=1,1,1", "--spot", "nowhere"), "nowhere is not there."),
        (("--machine", "l4=1,1", "--purchase", "spot-hedge"), "spot-hedge needs spot machines."),
        (("--machine", "l4=1,1", "--purchase", "spot-fleet:3"), "spot-fleet:3 is not a rule of purchase with a setting."),
        (("--machine", "l4=1,1", "--purchase", "hpa"), "hpa is a policy for the replicas of a service"),
        (("--machine", "l4=1,1", "--replica-rate", "1"), "Give either --replica-rate or --machine."),
        (("--machine", "l4=1,1", "--level", "servers"), "on the level pooled alone"),
    ],
    ids=str,
)
def test_bad_input_ends_in_a_sentence(chipwise: Chipwise, arguments: tuple[str, ...], sentence: str) -> None:
    done = chipwise("simulate", "serve", *SMALL, *arguments)
    assert done.code == 2
    assert sentence in done.err
