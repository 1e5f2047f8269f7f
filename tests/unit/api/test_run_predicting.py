"""What a workload will take on this machine: from the names of its parts to figures, or to a reason why there are none."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from chipwise.adapters import this_machine
from chipwise.adapters.this_machine import Processor
from chipwise.api.catalog.check import check
from chipwise.api.running import predicting
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.runner.job import Needs, Spec, Work
from chipwise.runner.submission.predicted import Allocation, Unknown, on_machine, predict, work_of
from chipwise.workload.common import Common
from chipwise.workload.pipeline import Pipeline

TINY = (
    "kind: train\nname: tiny\nmodel: {layers: 4, hidden: 256, heads: 4, kv_heads: 4, ffn: 1024, vocab: 8000}\n"
    "tokens: 1M\nsequence_length: 256\nbatch_tokens: 2048\nprecision: fp32\nprogram: {command: [python, train.py]}\n"
)
BY_SAMPLES = TINY.replace("tokens: 1M", "samples: 500", 1).replace("batch_tokens: 2048", "batch_samples: 8")
HEAT = "kind: hpc\nname: heat\nsteps: 100\nbytes_per_step: 1GB\nruns: 2\n"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHIPWISE_CHIP", raising=False)


def work(session: Session, text: str) -> Common:
    found = check(session, "w.yaml", text=text).workload
    assert not isinstance(found, Pipeline)
    return found


def called(monkeypatch: pytest.MonkeyPatch, gpus: dict[int, str] | None = None, name: str = "", known_as: str = "") -> None:
    monkeypatch.setattr(this_machine, "gpu_names", lambda: gpus or {})
    monkeypatch.setattr(this_machine, "processor", lambda: Processor(name, known_as))


@pytest.mark.parametrize(("name", "chip"), [("NVIDIA H200", "H200"), ("Tesla T4", "T4"), ("NVIDIA A100-SXM4-80GB", "A100-80")])
def test_a_gpu_is_the_chip_that_its_driver_names(
    session: Session, monkeypatch: pytest.MonkeyPatch, name: str, chip: str
) -> None:
    called(monkeypatch, {0: name, 1: name})
    assert predicting.local_allocation(session, Needs(gpus=2)) == Allocation(chip, 2.0)


def test_some_cores_of_a_processor_are_a_share_of_it(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    called(monkeypatch, name="Intel Xeon", known_as="Xeon-Sapphire-Rapids")
    assert predicting.local_allocation(session, Needs(cpus=12)) == Allocation("Xeon-Sapphire-Rapids", 1.0, 12 / 48)
    assert predicting.local_allocation(session, Needs(cpus=96)) == Allocation("Xeon-Sapphire-Rapids", 2.0, 1.0)


@pytest.mark.parametrize(
    ("gpus", "needs", "reason"),
    [
        ({}, Needs(gpus=1), "no driver"),
        ({0: "Tesla T4", 1: "NVIDIA H200"}, Needs(gpus=1), "differ"),
        ({0: "Voodoo Banshee"}, Needs(gpus=1), "Voodoo Banshee is not in the catalog"),
        ({}, Needs(cpus=2), "Intel Xeon is not in the catalog"),
    ],
)
def test_a_machine_that_nobody_knows_is_a_reason(
    session: Session, monkeypatch: pytest.MonkeyPatch, gpus: dict[int, str], needs: Needs, reason: str
) -> None:
    called(monkeypatch, gpus, name="Intel Xeon")
    found = predicting.local_allocation(session, needs)
    assert isinstance(found, Unknown)
    assert reason in found.reason
    assert predict(session.known, "w.yaml", work(session, TINY), found) == {"why_not": found.reason}


def test_what_the_user_says_it_is_comes_first(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    called(monkeypatch, {0: "NVIDIA H200"}, name="Intel Xeon")
    monkeypatch.setenv("CHIPWISE_CHIP", "l4, epyc-genoa")
    assert predicting.local_allocation(session, Needs(gpus=1)) == Allocation("L4", 1.0)
    assert predicting.local_allocation(session, Needs(cpus=96)) == Allocation("EPYC-Genoa", 1.0)
    monkeypatch.setenv("CHIPWISE_CHIP", "l5")
    assert "l5" in str(predicting.local_allocation(session, Needs(gpus=1)))


def test_figures_have_intervals_and_agree_with_each_other(session: Session) -> None:
    found = predict(session.known, "w.yaml", work(session, TINY), Allocation("H200", usd_per_hour=3.6))
    seconds, speed = float(str(found["seconds"])), float(str(found["throughput"]))
    assert seconds * speed == pytest.approx(1e6)
    assert float(str(found["throughput_low"])) < speed < float(str(found["throughput_high"]))
    assert float(str(found["seconds_low"])) < seconds < float(str(found["seconds_high"]))
    assert found["usd"] == pytest.approx(seconds * 0.001)
    assert (found["unit"], found["steps"], found["chip"]) == ("tokens", 489, "H200")
    assert float(str(found["memory_bytes"])) > 1e8


def test_a_smaller_share_is_never_faster(session: Session) -> None:
    speeds = [
        float(
            str(
                predict(session.known, "w.yaml", work(session, text), Allocation("Xeon-Sapphire-Rapids", 1.0, share))["seconds"]
            )
        )
        for text in (TINY, HEAT)
        for share in (1.0, 0.5, 0.1)
    ]
    assert speeds[:3] == sorted(speeds[:3])
    assert speeds[3:] == sorted(speeds[3:])
    assert speeds[3] < speeds[5]
    assert session.parts["Xeon-Sapphire-Rapids"].bandwidth > 3e11  # the catalog's own chip is left as it is


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (TINY, Work("tokens", 1e6, 2048.0)),
        (TINY.replace("batch_tokens: 2048", "batch_samples: 8\nepochs: 2"), Work("tokens", 2e6, 2048.0)),
        (BY_SAMPLES, Work("samples", 500.0, 8.0)),
        (HEAT, Work("steps", 200.0, 1.0)),
        ("kind: batch\nname: b\nmodel: llama-3.1-8b\nitems: 5k\ninput_tokens: 100\n", Work("items", 5000.0)),
        ("kind: render\nname: r\nframes: 48\nresolution: 1080p\nsamples_per_pixel: 64\n", Work("frames", 48.0)),
        ("kind: interactive\nname: i\npeople: 3\nmemory: 10GB\n", Work()),
    ],
)
def test_a_file_says_what_is_counted(session: Session, text: str, unit: Work) -> None:
    assert work_of(work(session, text)) == unit


def test_a_kind_without_a_model_for_the_chip_is_a_reason(session: Session) -> None:
    found = predict(session.known, "w.yaml", work(session, TINY), Allocation("VU9P"))
    assert list(found) == ["why_not"]
    assert "VU9P" in str(found["why_not"])


def test_a_prediction_that_breaks_stops_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from chipwise.predictor import work as one_work

    def broken(*_: object) -> dict[str, object]:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(one_work, "predict_work", broken)
    spec = Spec(("true",), "a", needs=Needs(gpus=1))
    monkeypatch.setenv("CHIPWISE_CHIP", "H200")
    found = predicting.with_prediction(session, "w.yaml", work(session, TINY), spec)
    assert "ZeroDivisionError: oops" in str(found.predicted["why_not"])
    assert replace(found, predicted={}) == spec


def test_no_model_is_fetched_for_a_prediction(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from chipwise.adapters import hub

    monkeypatch.setattr(hub, "fetch_config", lambda *_: pytest.fail("it asked the hub"))
    text = TINY.replace("{layers: 4, hidden: 256, heads: 4, kv_heads: 4, ffn: 1024, vocab: 8000}", "some-org/some-model")
    found = predict(session.known, "w.yaml", work(session, text), Allocation("H200"))
    assert "some-org/some-model" in str(found["why_not"])


def test_an_own_machine_costs_what_the_user_s_catalog_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "config" / "catalog"
    folder.mkdir(parents=True)
    (folder / "own.yaml").write_text("machines:\n  - {name: box, chip: H200, chips: 8, vcpus: 64, price_per_hour: 16}\n")
    own = Session(Config(tmp_path / "config", tmp_path / "data"), date(2026, 11, 15), [])
    called(monkeypatch, {0: "NVIDIA H200"})
    assert predicting.local_allocation(own, Needs(gpus=2)) == Allocation("H200", 2.0, 1.0, 4.0)
    spec = predicting.with_prediction(own, "w.yaml", work(own, TINY), Spec(("true",), "a", needs=Needs(gpus=2)))
    assert [one.usd_per_hour for one in spec.places] == [4.0]
    assert spec.predicted["usd"] == pytest.approx(float(str(spec.predicted["seconds"])) / 900.0)
    assert spec.expected_s == spec.predicted["seconds"]


def test_what_its_owner_expects_is_not_overruled(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_CHIP", "H200")
    spec = Spec(("true",), "a", needs=Needs(gpus=1), expected_s=7.0)
    assert predicting.with_prediction(session, "w.yaml", work(session, TINY), spec).expected_s == 7.0


def test_a_machine_of_a_cloud_is_its_chips(session: Session) -> None:
    assert on_machine(session.known, "aws g6.xlarge", 2, 0.8) == Allocation("L4", 2.0, 1.0, 1.6)
    part = on_machine(session.known, "c7i.large")
    assert isinstance(part, Allocation)
    assert (part.chip, part.share) == ("Xeon-Sapphire-Rapids", 1 / 48)
    assert isinstance(on_machine(session.known, "z99.huge"), Unknown)
