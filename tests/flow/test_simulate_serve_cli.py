"""`chipwise simulate serve` as a user has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import Chipwise

SMALL = ("--synthetic", "hours=0.5,rate=5")


def test_every_policy_is_one_object_with_the_promised_fields(chipwise: Chipwise) -> None:
    done = chipwise("simulate", "serve", *SMALL, "--policy", "hpa:80,learned-headroom,clairvoyant,bare-work", "--json")
    assert done.code == 0, done.err
    answers = json.loads(done.out)
    assert [answer["policy"] for answer in answers] == ["hpa:80", "learned-headroom", "clairvoyant", "bare-work"]
    assert all(set(answer) == {"policy", "requests", "within_goal", "replica_hours", "ratio_to_bound"} for answer in answers)
    assert answers[2]["ratio_to_bound"] == 1.0
    assert answers[3]["within_goal"] is None
    assert answers[3]["ratio_to_bound"] < 1.0


def test_a_csv_a_policy_of_ones_own_and_a_page(chipwise: Chipwise, tmp_path: Path) -> None:
    trace, own, page = tmp_path / "load.csv", tmp_path / "mine.py", tmp_path / "page.html"
    trace.write_text("timestamp,input_tokens,output_tokens\n" + "".join(f"{second},100,20\n" for second in range(600)))
    own.write_text("def decide(signals):\n    return 2\n")
    for level in ("pooled", "servers", "tokens"):
        flags = ("--trace", str(tmp_path), "--level", level, "--slots", "8", "--kv-tokens", "5000", "--replica-rate", "1")
        done = chipwise("simulate", "serve", *flags, "--policy", str(own), "--html", str(page), "--force", "--json")
        assert done.code == 0, done.err
        (mine,) = json.loads(done.out)
        assert (mine["requests"], mine["within_goal"]) == (600, 1.0)
        text = page.read_text()
        assert "Cheapest that reaches the goal" in text
        assert text.count("<svg") >= 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--policy", "hpa"), "Give either --trace or --synthetic."),
        (("--trace", "nowhere"), "nowhere is not there."),
        (("--synthetic", "hour=3"), "Did you mean hours?"),
        (("--synthetic", "hours=0"), "A synthetic load has at most"),
        ((*SMALL, "--policy", "hpaa"), "Did you mean hpa?"),
        ((*SMALL, "--policy", "slack"), "slack"),
        ((*SMALL, "--policy", "hpa:high"), "hpa:high is not a policy with a setting."),
        ((*SMALL, "--policy", "queue-depth:3"), "queue-depth:3 is not a policy with a setting."),
        ((*SMALL, "--level", "servers"), "has rates, and no single requests."),
        ((*SMALL, "--level", "tokens"), "has no input and output tokens."),
        ((*SMALL, "--step", "9ms"), "--step: '9ms' is not possible."),
        ((*SMALL, "--wait", "soon"), "'soon' is not a duration."),
    ],
    ids=str,
)
def test_bad_input_ends_in_a_sentence(chipwise: Chipwise, arguments: tuple[str, ...], sentence: str) -> None:
    done = chipwise("simulate", "serve", *arguments)
    assert done.code == 2
    assert sentence in done.err


def test_an_answer_of_ones_own_policy_that_is_none_ends_in_a_sentence(chipwise: Chipwise, tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    for body, sentence in (
        ("def decide(signals):\n    return 'many'\n", "answered 'many' replicas"),
        ("def decide(signals):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("def begin(service):\n    return 3\n", "begin answered no function"),
        ("x = 1\n", "defines neither decide(signals) nor begin(service)"),
    ):
        own.write_text(body)
        done = chipwise("simulate", "serve", *SMALL, "--policy", str(own))
        assert done.code == 2
        assert sentence in done.err
