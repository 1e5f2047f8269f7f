"""A benchmark's places, its figures, and its rows as `calibrate` reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from chipwise.api.measure import bench as benching
from chipwise.api.measure import places as benching_places
from chipwise.api.measure.places import BenchPlace, BenchRequest
from chipwise.api.running import asking
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.calibration import measured
from chipwise.calibration.guesses import guesses
from chipwise.calibration.score import predict
from chipwise.errors import BadInput, ChipwiseError, UnknownName
from chipwise.perf.model import packaged
from chipwise.runner.bench.measuring import speed_of
from chipwise.runner.bench.values import Result, Run
from chipwise.runner.job import Job, Work
from chipwise.runner.submission import predicted
from chipwise.runner.submission.predicted import Allocation, Unknown
from chipwise.views.bench import result_view

SHAPE = "{layers: 4, hidden: 256, heads: 4, kv_heads: 4, ffn: 1024, vocab: 8000}"
TINY = (
    f"kind: train\nname: tiny\nmodel: {SHAPE}\ntokens: 1M\nsequence_length: 256\nbatch_tokens: 2048\nprecision: bf16\n"
    "program: {command: [python, train.py]}\n"
)
TUNED = TINY.replace("kind: train", "kind: finetune\nmethod: lora").replace(SHAPE, "llama-3.1-8b")
BY_SAMPLES = TUNED.replace("tokens: 1M", "samples: 4k", 1).replace("batch_tokens: 2048", "batch_samples: 8")
PICTURES = (
    "kind: train\nname: p\nmodel: resnet-50\nsamples: 1M\nbatch_samples: 256\nprecision: bf16\n"
    "program: {command: [python, t.py]}\n"
)
ANSWERS = (
    "kind: batch\nname: b\nmodel: llama-3.1-8b\nitems: 5k\ninput_tokens: 1000\noutput_tokens: 200\nprecision: bf16\n"
    "program: {command: [python, b.py]}\n"
)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "config").mkdir()
    return Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])


def run(speed: float | None, **more: object) -> Run:
    told = {
        "job": "j",
        "seconds": 10.0,
        "steps": 5,
        "attempts": 1,
        "usd": None,
        "usd_per_hour": None,
        "neighbours": 0,
        "reason": "",
    }
    return Run(speed=speed, **(told | more))  # type: ignore[arg-type]


def wanted(session: Session, text: str, *places: BenchPlace) -> BenchRequest:
    path = session.config.config_dir / "w.yaml"
    path.write_text(text)
    return BenchRequest(str(path), benching_places.checked(session, str(path), None), places or (BenchPlace("local", "local"),))


def result(session: Session, asked: BenchRequest, held: Allocation | Unknown, *runs: Run, formula: bool = False) -> Result:
    figures = predicted.predict(session.known, asked.path, asked.work, held)
    return Result(asked.places[0], "tokens", runs, figures, held, formula)


# Places


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("local", BenchPlace("local", "local")),
        ("local:gpus=1", BenchPlace("local:gpus=1", "local", gpus=1)),
        ("local:gpus=1,cpus=4", BenchPlace("local:gpus=1,cpus=4", "local", gpus=1, cpus=4)),
        ("kubernetes", BenchPlace("kubernetes", "kubernetes")),
        ("kubernetes:prod", BenchPlace("kubernetes:prod", "kubernetes", context="prod")),
        ("simulated", BenchPlace("simulated", "simulated", simulated=True)),
    ],
)
def test_a_place_is_an_engine_and_what_of_it(session: Session, text: str, found: BenchPlace) -> None:
    assert benching_places.place(session, text) == found


def test_a_machine_of_ec2_and_engines_of_the_user_s_own(session: Session) -> None:
    session.config.engines.write_text("ec2: {region: eu-west-1, keep: 's3://b/c'}\nbig: {kind: kubernetes, context: prod}\n")
    assert benching_places.place(session, "ec2:g6.xlarge") == BenchPlace("ec2:g6.xlarge", "ec2", machine="g6.xlarge")
    assert benching_places.place(session, "big") == BenchPlace("big", "big")
    with pytest.raises(BadInput, match=r"no machine is called 'g6.xlrage'. Near it: .*g6\.xlarge"):
        benching_places.place(session, "ec2:g6.xlrage")


@pytest.mark.parametrize(
    "text",
    ["lokal", "local:", "local:gpus", "local:gpus=-1", "local:cpus=0", "local:tpus=1", "local:gpus=x", "simulated:fast", ""],
)
def test_a_place_that_is_none_is_refused_with_a_remedy(session: Session, text: str) -> None:
    with pytest.raises(ChipwiseError) as caught:
        benching_places.place(session, text)
    assert isinstance(caught.value, BadInput | UnknownName)
    assert caught.value.remedy


# Figures


def test_a_speed_is_the_median_and_its_spread_that_of_the_runs(session: Session) -> None:
    found = result(session, wanted(session, TINY), Allocation("H200"), run(100.0), run(90.0), run(104.0, attempts=2))
    assert (found.speed, found.attempts) == (100.0, 4)
    assert found.spread == pytest.approx(0.14)
    assert found.expected is not None
    assert found.ratio == pytest.approx(100.0 / found.expected)


def test_a_unit_costs_what_its_machines_cost_meanwhile(session: Session) -> None:
    found = result(session, wanted(session, TINY), Allocation("H200"), run(1000.0, usd_per_hour=3.6))
    assert found.usd_per_unit == pytest.approx(1e-6)
    assert result(session, wanted(session, TINY), Allocation("H200"), run(1000.0)).usd_per_unit is None  # nobody says


def test_fewer_steps_than_all_that_nobody_tells_are_no_measurement() -> None:
    """A program that did 130 of 5,000 steps and says nothing of it would look as if it had done all of them."""
    whole, work = {"throughput": 1.6e6, "seconds": 6.0}, Work("tokens", 1e7, 2048.0)
    assert speed_of(whole, work, None) == 1.6e6
    assert speed_of(whole, work, 130) is None
    assert speed_of({**whole, "steps": 130, "steps_per_s": 49.0}, work, 130) == 1.6e6


def test_a_formula_is_never_a_speed(session: Session) -> None:
    found = result(session, wanted(session, TINY), Allocation("H200", usd_per_hour=3.6), formula=True)
    assert (found.speed, found.ratio) == (None, None)
    assert result_view(found)["formula"] is True


# Rows


@pytest.mark.parametrize(
    ("text", "chip", "metric", "per_chip"),
    [
        (TINY, "H200", "tokens_per_s_per_chip", True),
        (TUNED, "H200", "tokens_per_s_per_chip", True),
        (BY_SAMPLES, "H200", "samples_per_s", False),
        (PICTURES, "H100-SXM", "samples_per_s", False),
        (ANSWERS, "H100-SXM", "requests_per_s", False),
    ],
)
@pytest.mark.parametrize("chips", [1.0, 2.0])
def test_a_row_asks_calibrate_what_was_predicted(
    session: Session, tmp_path: Path, text: str, chip: str, metric: str, per_chip: bool, chips: float
) -> None:
    """A run that goes exactly as predicted is a row that calibrate predicts as well: both speak of the same run."""
    asked, held = wanted(session, text), Allocation(chip, chips)
    expected = result(session, asked, held).expected
    assert expected is not None
    table, left_out = benching.rows(session, asked, [result(session, asked, held, run(expected))])
    assert not left_out
    (tmp_path / "runs.csv").write_text(table)
    [row] = measured.read(session.parts, session.names, str(tmp_path / "runs.csv"), None).rows
    assert row.text("metric_name") == metric
    assert row.number("metric_value", 0.0) == pytest.approx(expected / (chips if per_chip else 1.0), rel=1e-4)
    assert guesses(row) == ()
    [answer] = predict([row], session.parts, packaged())
    assert answer.predicted is not None, answer.reason
    assert answer.predicted == pytest.approx(row.number("metric_value", 0.0), rel=0.03)  # a row has a source of its own


def test_what_is_no_measurement_of_a_whole_chip_is_left_out_and_told(session: Session) -> None:
    asked = wanted(session, TINY)
    results = [
        result(session, asked, Allocation("H200"), formula=True),
        result(session, asked, Allocation("H200"), run(None, reason="failed")),
        result(session, asked, Allocation("Xeon-Sapphire-Rapids", 1.0, 0.25), run(10.0)),
        result(session, asked, Unknown("nobody knows it"), run(10.0)),
    ]
    table, told = benching.rows(session, asked, results)
    assert table == ""
    for one, reason in zip(told, ("formula", "not measured", "25.0% of a Xeon", "nobody knows it"), strict=True):
        assert reason in one


def test_a_file_that_could_hold_no_row_is_refused_before_anything_runs(session: Session) -> None:
    numbers = "kind: hpc\nname: h\nsteps: 5\nbytes_per_step: 1GB\nprogram: {command: [python, h.py]}\n"
    with pytest.raises(BadInput, match="of the kind hpc"):
        benching.check_rows(session, wanted(session, numbers))
    with pytest.raises(BadInput, match="simulated was not measured"):
        benching.check_rows(session, wanted(session, TINY, BenchPlace("simulated", "simulated", simulated=True)))
    benching.check_rows(session, wanted(session, TINY))


# What is started


def asked_for(session: Session, monkeypatch: pytest.MonkeyPatch, asked: BenchRequest) -> asking.RunRequest:
    """What `run` would have been asked; nothing is."""
    seen: list[asking.RunRequest] = []

    def refuses(_: Session, one: asking.RunRequest, say: Callable[[str], None]) -> list[Job]:
        seen.append(one)
        raise BadInput("Nothing is started here.")

    monkeypatch.setattr(asking, "run", refuses)
    monkeypatch.setenv("CHIPWISE_GPUS", "0")
    monkeypatch.setenv("CHIPWISE_CPUS", "0,1")
    with pytest.raises(BadInput, match="Nothing is started here"):
        benching.bench(session, asked, lambda *_: None)
    [found] = seen
    return found


def test_a_named_machine_is_asked_for_instead_of_planned(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan would choose its own machine."""
    text = TINY.replace("{command:", "{image: 'team/t:1', env: {A: b}, checkpoints: 's3://b/c', command:")
    asked = replace(wanted(session, text, BenchPlace("ec2:g6.xlarge", "ec2", machine="g6.xlarge")), steps=50)
    found = asked_for(session, monkeypatch, asked)
    assert (found.words, found.is_command, found.machine) == ((asked.path,), False, "g6.xlarge")
    assert (found.engine, found.settings) == ("ec2", ("CHIPWISE_STEPS=50",))
    assert found.checkpoints is not None
    assert found.checkpoints.startswith("s3://b/c/bench-")


def test_a_workload_goes_to_its_engine_with_what_it_may_hold(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked_for(session, monkeypatch, wanted(session, TINY, BenchPlace("local:gpus=1", "local", gpus=1)))
    assert (found.is_command, found.engine, found.gpus, found.retries, found.checkpoints) == (False, "local", 1, 0, None)
    cluster = asked_for(
        session, monkeypatch, wanted(session, TINY, BenchPlace("kubernetes:prod", "kubernetes", context="prod"))
    )
    assert (cluster.engine, cluster.context) == ("kubernetes", "prod")


def test_devices_that_are_not_there_are_refused_before_the_first_run(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "run", lambda *_: pytest.fail("it started something"))
    monkeypatch.setenv("CHIPWISE_GPUS", "none")
    places = (BenchPlace("local", "local"), BenchPlace("local:gpus=1", "local", gpus=1))
    with pytest.raises(BadInput, match="asks for 1 GPUs, and this machine has 0"):
        benching.bench(session, wanted(session, TINY, *places), lambda *_: None)
