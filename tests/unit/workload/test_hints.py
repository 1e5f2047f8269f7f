"""Options that are written into a file under the names that they have on the command line."""

from __future__ import annotations

import pytest
import yaml

from chipwise.errors import BadInput, InvalidFile, Problem
from chipwise.planner.overriding import with_service
from chipwise.workload.demand import Length
from chipwise.workload.kinds import Serve
from chipwise.workload.parse import parse

SERVE = "kind: serve\nname: x\nmodel: llama-3.1-8b\narrival: 10 req/s\ninput_tokens: 1000\noutput_tokens: 300\n"


def problems(text: str) -> dict[str, Problem]:
    with pytest.raises(InvalidFile) as refused:
        parse(text)
    return {problem.field: problem for problem in refused.value.problems}


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("rps: 5", "arrival: 5 req/s"),
        ("cloud: aws", "limits.clouds"),
        ("ttft: 1s", "goals.ttft"),
        ("budget: $500", "goals.budget"),
        ("chip: h100", "limits.chips"),
        ("input: 1000", "input_tokens"),
        ("goals.ttft: 1s", "goals: {ttft: 1s}"),
    ],
)
def test_an_option_in_a_file_names_its_field(line: str, hint: str) -> None:
    assert problems(f"{SERVE}{line}\n")[line.partition(":")[0]].nearest == (hint,)


def test_what_is_allowed_is_listed_once() -> None:
    found = problems(f"{SERVE}rps: 5\ncloud: aws\nttft: 1s\n")
    assert [bool(found[name].allowed) for name in ("rps", "cloud", "ttft")] == [True, False, False]


def test_the_rate_and_lengths_of_a_service_are_replaced() -> None:
    text = f"{SERVE}environments:\n  prod:\n    arrival: 99 req/s\n    input_tokens: 7\n"
    changed = parse(with_service(text, "x.yaml", {"rps": 20, "output": 50}), environment="prod")
    assert isinstance(changed, Serve)
    assert (changed.arrival.rate, changed.input_tokens, changed.output_tokens) == (20, Length(mean=7), Length(mean=50))
    bursty = yaml.safe_load(with_service(SERVE.replace("10 req/s", "{rate: 1, burstiness: 3}"), "x.yaml", {"rps": 2}))
    assert bursty["arrival"] == {"rate": 2, "burstiness": 3}
    with pytest.raises(BadInput, match="--rps is for a service"):
        with_service("kind: train\n", "x.yaml", {"rps": 2})
