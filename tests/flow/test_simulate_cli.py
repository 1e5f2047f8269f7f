"""`chipwise simulate spot` and `chipwise policies` as a user has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import Chipwise

SMALL = (
    "--job-hours",
    "4",
    "--deadline-hours",
    "6",
    "--restart-hours",
    "0.1,0.2",
    "--spot-price",
    "1",
    "--on-demand-price",
    "3",
)


def test_every_policy_is_one_object_of_the_answer(chipwise: Chipwise) -> None:
    done = chipwise("simulate", "spot", "--synthetic", "series=5", "--policy", "on-demand,greedy", *SMALL, "--json")
    assert done.code == 0
    answers = json.loads(done.out)
    assert [answer["policy"] for answer in answers] == ["on-demand", "greedy"]
    assert all(set(answer) == {"policy", "scenarios", "mean_usd", "late", "ratio_to_bound"} for answer in answers)
    assert answers[0]["mean_usd"] == pytest.approx((25 / 6 + 26 / 6) / 2 * 3)
    assert all(answer["scenarios"] == 10 and answer["late"] == 0 and answer["ratio_to_bound"] >= 1 for answer in answers)


def test_a_folder_of_flags_and_a_policy_of_ones_own(chipwise: Chipwise, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("0\n" * 40)
    own = tmp_path / "mine.py"
    own.write_text("def decide(state):\n    return 'spot' if state.spot else 'wait'\n")
    flags = ("--trace", str(tmp_path), "--tick", "600s", "--available-is", "0", *SMALL, "--json")
    done = chipwise("simulate", "spot", "--policy", f"{own},greedy", *flags)
    assert done.code == 0, done.err
    mine, greedy = json.loads(done.out)
    assert mine["scenarios"] == 4
    assert mine["mean_usd"] == greedy["mean_usd"] == pytest.approx((25 / 6 + 26 / 6) / 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Give either --trace or --synthetic."),
        (("--trace", "nowhere"), "nowhere is not there."),
        (("--synthetic", "serie=3"), "Did you mean series?"),
        (("--synthetic", "series=0"), "series=0 is not possible"),
        (("--synthetic", "series=3", "--policy", "gredy"), "Did you mean greedy?"),
        (("--synthetic", "series=3", "--policy", "nowhere.py"), "nowhere.py is not there."),
        (("--synthetic", "series=3", "--deadline-hours", "3"), "do not fit into 18 ticks"),
        (("--synthetic", "series=3", "--restart-hours", "soon"), "--restart-hours: 'soon' is not possible."),
        (("--synthetic", "series=3", "--restart-hours", "1e308"), "1e+308 hours in ticks of"),
        (("--synthetic", "series=3", "--tick", "1ms"), "ticks, and the limit is 5,000,000"),
        (("--synthetic", "series=3", "--tick", "1ns", "--deadline-hours", "1e9"), "are more than 500,000,000 flags"),
        (
            ("--synthetic", "series=100000", "--job-hours", "1000", "--deadline-hours", "2000"),
            "are more than 500,000,000 flags",
        ),
    ],
    ids=str,
)
def test_bad_input_ends_in_a_sentence(chipwise: Chipwise, arguments: tuple[str, ...], sentence: str) -> None:
    done = chipwise("simulate", "spot", *SMALL, *arguments)
    assert done.code == 2
    assert sentence in done.err


def test_an_answer_of_ones_own_policy_that_is_none_ends_in_a_sentence(chipwise: Chipwise, tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    for body, sentence in (
        ("return 'buy'", "answered 'buy'"),
        ("return 1 / 0", "ZeroDivisionError"),
        ("=", "could not be run"),
    ):
        own.write_text(f"def decide(state):\n    {body}\n")
        done = chipwise("simulate", "spot", "--synthetic", "series=2", "--policy", str(own), *SMALL)
        assert done.code == 2
        assert sentence in done.err


def test_the_policies_are_listed_with_what_they_need(chipwise: Chipwise) -> None:
    done = chipwise("policies", "--json")
    entries = {entry["name"]: entry for entry in json.loads(done.out)}
    assert {"greedy", "learned-survival", "on-demand", "slack", "uniform-progress"} <= set(entries)
    assert all(entry["summary"] and entry["needs"] and entry["kind"] for entry in entries.values())
    assert "learned-survival" in chipwise("policies").out


def test_many_pairs_of_deadline_and_restart_are_refused_before_they_are_made(chipwise: Chipwise) -> None:
    hours = ",".join(f"{9 + place / 1000}" for place in range(9000))
    done = chipwise("simulate", "spot", *SMALL, "--synthetic", "series=3", "--deadline-hours", hours)
    assert (done.code, "18,000 pairs of deadline and restart are too many" in done.err) == (2, True)


@pytest.mark.parametrize("text", ["raise SystemExit(0)", "def decide(state):\n    raise SystemExit(0)\n"])
def test_a_policy_that_exits_is_an_error_and_no_silent_success(chipwise: Chipwise, tmp_path: Path, text: str) -> None:
    (own := tmp_path / "mine.py").write_text(text)
    done = chipwise("simulate", "spot", *SMALL, "--synthetic", "series=3", "--policy", str(own))
    assert (done.code, "SystemExit" in done.err) == (2, True)


def test_a_folder_is_taken_as_it_is(chipwise: Chipwise, tmp_path: Path) -> None:
    """Series of several ticks, tables of something else, and traces that are too short for the deadline."""
    (tmp_path / "long.json").write_text(json.dumps({"metadata": {"gap_seconds": 600}, "data": [1] * 60}))
    (tmp_path / "slow.csv").write_text("time,available\n" + "".join(f"{hour * 3600},1\n" for hour in range(9)))
    (tmp_path / "short.json").write_text(json.dumps({"metadata": {"gap_seconds": 600}, "data": [1] * 12}))
    (tmp_path / "prices.csv").write_text("from,to,usd\na,b,0.08\n")
    done = chipwise("simulate", "spot", "--trace", str(tmp_path), "--policy", "greedy", *SMALL, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)[0]["scenarios"] == 2 * 2
    assert "1 trace shorter than the deadline of 6 h left out." in done.err
    assert "1 file of something else left out." in done.err


def test_a_short_trace_gets_a_job_in_proportion_unless_one_is_stated(chipwise: Chipwise, tmp_path: Path) -> None:
    (tmp_path / "day.json").write_text(json.dumps({"metadata": {"gap_seconds": 600}, "data": [1] * 144}))
    flags = ("--trace", str(tmp_path), "--policy", "greedy", "--restart-hours", "0.1", "--json")
    done = chipwise("simulate", "spot", *flags)
    assert (done.code, json.loads(done.out)[0]["late"]) == (0, 0)
    assert "The longest trace has 24.0 h: jobs of 16.4 h, until 17.8 h and 24 h." in done.err
    done = chipwise("simulate", "spot", *flags, "--job-hours", "20")
    assert (done.code, "has 144 ticks of 600 s, and the deadline needs 420" in done.err) == (2, True)


def test_the_page_draws_costs_and_ratios(chipwise: Chipwise, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = chipwise("simulate", "spot", "--synthetic", "series=5", *SMALL, "--policy", "greedy,slack", "--html", str(page))
    assert done.code == 0, done.err
    text = page.read_text()
    assert "Cheapest that is never late" in text
    assert all(f'id="{name}"' in text for name in ("cost", "ratios", "policies"))


@pytest.mark.parametrize(
    "words", ["spot --synthetic series=2", "queue --synthetic jobs=20", "serve --synthetic hours=1,rate=2"]
)
@pytest.mark.parametrize("policy", ["", " ", ","])
def test_no_policy_is_told_and_nothing_is_simulated(chipwise: Chipwise, words: str, policy: str) -> None:
    done = chipwise("simulate", *words.split(), "--policy", policy)
    assert done.code == 2
    assert "No policy is named." in done.err
