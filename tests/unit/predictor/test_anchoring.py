"""Speeds that follow from a run on another chip."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput, UnknownName
from chipwise.predictor.predict import predict
from chipwise.predictor.workload import predict_workload
from chipwise.views.predict import prediction_view
from chipwise.workload.parse import parse

TRAIN = {"seq": 2048.0, "global_batch": 8.0}
LINES = {
    "hpc": "kind: hpc\nname: a\nsteps: 1000\nflop_per_step: 4e12\nbytes_per_step: 900GB\nworking_set: 30GB\n",
    "solver": "kind: hpc\nname: a\nsteps: 1000\n",
    "photos": "kind: train\nname: a\nmodel: resnet-50\nsamples: 1.28M\nepochs: 90\n",
    "unknown": "kind: train\nname: a\nepochs: 30\n",
    "chat": "kind: serve\nname: a\nmodel: llama-3.1-8b\narrival: {rate: 2 req/s}\ninput_tokens: 800\noutput_tokens: 200\n",
    "film": "kind: render\nname: a\nframes: 100\nresolution: 4k\nsamples_per_pixel: 512\nengine: cycles\n",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def trained(session: Session, on: str, *measured: str) -> dict[str, Any]:
    return prediction_view(predict(session.known, "llama-3.1-8b", on, "train", {**TRAIN, "method": "lora"}, measured))


def from_file(session: Session, name: str, on: str, measured: str = "") -> dict[str, Any]:
    work = parse(LINES[name] + (f"measured: {measured}\n" if measured else ""))
    return prediction_view(predict_workload(session.known, "a.yaml", work, on, {}))


def width(figure: dict[str, float]) -> float:
    return math.log(figure["high"] / figure["low"])


def test_the_measured_chip_is_as_measured(session: Session) -> None:
    step = trained(session, "a100", "a100=3.1s/step")["step_time"]
    assert step["value"] == pytest.approx(3.1)
    assert step["provenance"] == "measured"
    assert width(step) == pytest.approx(0.1)


def test_other_chips_move_by_the_same_factor(session: Session) -> None:
    before, here = trained(session, "h100")["step_time"], trained(session, "a100")["step_time"]
    after = trained(session, "h100", f"a100={1.6 * here['value']:.9g}s/step")["step_time"]
    assert after["value"] == pytest.approx(1.6 * before["value"])
    assert sum(after["terms_s"].values()) == pytest.approx(after["value"], rel=1e-3)
    assert after["low"] < after["value"] < after["high"]


def test_the_answer_says_where_its_level_comes_from(session: Session) -> None:
    notes = from_file(session, "photos", "h100", "{on: rtx-4090, takes: 25min, per: epoch}")["notes"]
    assert notes[0] == "Speed from your 25 min per epoch on one RTX-4090."


def test_a_rate_and_the_time_of_an_epoch_say_the_same(session: Session) -> None:
    timed = from_file(session, "photos", "h100", "{on: rtx-4090, takes: 1280s, per: epoch}")["samples_per_s"]
    rated = from_file(session, "photos", "h100", "{on: rtx-4090, rate: 1000 images/s}")["samples_per_s"]
    assert timed["value"] == pytest.approx(rated["value"], rel=1e-6)


def test_a_network_that_was_never_measured_gets_a_narrower_interval(session: Session) -> None:
    before = prediction_view(predict(session.known, "whisper-large-v3", "h100", "serve", {"batch": 8.0}))["samples_per_s"]
    after = prediction_view(predict(session.known, "whisper-large-v3", "h100", "serve", {"batch": 8.0}, ["l4=2 samples/s"]))
    assert width(after["samples_per_s"]) < width(before)


def test_two_runs_that_agree_are_nearer_to_the_one_on_a_like_chip(session: Session) -> None:
    here = {chip: trained(session, chip)["step_time"]["value"] for chip in ("a100", "h200", "h100")}
    lines = [f"a100={1.5 * here['a100']:.6g}s/step", f"h200={1.2 * here['h200']:.6g}s/step"]
    factor = trained(session, "h100", *lines)["step_time"]["value"] / here["h100"]
    assert 1.2 < factor < 1.5


@pytest.mark.parametrize(
    ("name", "measured", "message"),
    [
        ("photos", "{on: rtx-4090, takes: 1s, per: epoch}", "faster than 1 RTX-4090 can be"),
        ("hpc", "{on: a100, takes: 1s}", "faster than 1 A100"),
        ("chat", "{on: l4, rate: 9M tokens/s}", "faster than 1 L4 can be"),
        ("photos", "{on: rtx-4090, rate: 3 tokens/s}", "not counted in tokens"),
        ("photos", "{on: rtx-4090, takes: 1s, per: step}", "how many samples a step has"),
        ("photos", "[{on: rtx-4090, takes: 20min, per: epoch}, {on: h100, takes: 9h, per: epoch}]", "contradict each other"),
        ("solver", "[{on: a100, takes: 1h}, {on: h100, takes: 90h}]", "contradict each other"),
        ("film", "[{on: rtx-4090, takes: 90s}, {on: rtx-4090, chips: 2, takes: 9h}]", "contradict each other"),
        ("unknown", "{on: rtx-4090, takes: 1s, per: step}", "how many steps there are is not stated"),
    ],
)
def test_a_run_that_cannot_be_is_refused(session: Session, name: str, measured: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        from_file(session, name, "h100", measured)


def test_a_chip_that_nobody_knows_is_refused_with_the_nearest(session: Session) -> None:
    with pytest.raises(UnknownName, match="rtx-4909") as error:
        trained(session, "h100", "rtx-4909=3s/step")
    assert "RTX-4090" in str(error.value)


def test_a_run_that_is_far_too_slow_names_likely_causes(session: Session) -> None:
    notes = from_file(session, "photos", "h100", "{on: rtx-4090, takes: 30h, per: epoch}")["notes"]
    assert any("times what is predicted for RTX-4090. Likely:" in note for note in notes)


def test_numerical_work_follows_its_run(session: Session) -> None:
    plain, here = from_file(session, "hpc", "h100")["time_s"], from_file(session, "hpc", "a100")["time_s"]
    moved = from_file(session, "hpc", "h100", f"{{on: a100, takes: {2 * here['value']:.9g}s}}")["time_s"]
    assert moved["value"] == pytest.approx(2 * plain["value"])
    per_step = from_file(session, "hpc", "h100", f"{{on: a100, takes: {2 * here['value'] / 1000:.9g}s, per: step}}")["time_s"]
    assert per_step["value"] == pytest.approx(moved["value"])


def test_work_known_by_a_run_alone_compares_chips_by_their_sheets(session: Session) -> None:
    parts = session.known.parts
    for bound, ratio in (
        ("memory", parts["A100-80"].bandwidth / parts["H100-SXM"].bandwidth),
        ("compute", parts["A100-80"].rate("fp64") / parts["H100-SXM"].rate("fp64")),
    ):
        view = from_file(session, "solver", "h100", f"{{on: a100-80, takes: 10h, bound: {bound}}}")["time_s"]
        assert view["value"] == pytest.approx(36000 * ratio)
    unknown = from_file(session, "unknown", "h100", "{on: rtx-4090, takes: 6h, per: epoch}")
    assert unknown["task"] == "unknown"
    assert width(unknown["time_s"]) > 1.0
    assert from_file(session, "unknown", "rtx-4090", "{on: rtx-4090, takes: 6h, per: epoch}")["time_s"][
        "value"
    ] == pytest.approx(30 * 21600)


def test_a_frame_may_be_timed_as_a_rate_of_several_chips(session: Session) -> None:
    timed = from_file(session, "film", "l40s", "{on: rtx-4090, takes: 90s}")["frame_s"]
    rated = from_file(session, "film", "l40s", "{on: rtx-4090, chips: 4, rate: 160 frames/hour}")["frame_s"]
    assert rated == pytest.approx(timed)


def test_a_service_is_timed_at_its_load(session: Session) -> None:
    alone = from_file(session, "chat", "l40s")
    lone = prediction_view(
        predict(
            session.known, "llama-3.1-8b", "l40s", "serve", {"input_tokens": 800.0, "output_tokens": 200.0, "concurrency": 1.0}
        )
    )
    measured = f"{{on: l40s, takes: {lone['latency_ms']['value'] / 1e3:.9g}s}}"
    assert from_file(session, "chat", "l40s", measured)["tpot_ms"]["value"] == pytest.approx(
        alone["tpot_ms"]["value"], rel=1e-3
    )


def test_a_run_on_a_part_of_a_processor_is_not_taken_for_the_whole_chip(session: Session) -> None:
    few, whole = (f"{{on: Xeon-Sapphire-Rapids, {vcpus}takes: 4000h}}" for vcpus in ("vcpus: 48, ", ""))  # half of its 96
    solved = [from_file(session, "hpc", "h100", line)["time_s"]["value"] for line in (few, whole)]
    trained_at = [from_file(session, "photos", "h100", line)["samples_per_s"]["value"] for line in (few, whole)]
    assert solved[0] == pytest.approx(solved[1] / 2, rel=0.02)
    assert trained_at[0] == pytest.approx(2 * trained_at[1], rel=0.02)


def test_what_one_thread_does_is_no_faster_on_a_larger_processor(session: Session) -> None:
    line = "{on: Xeon-Sapphire-Rapids, vcpus: 2, takes: 40s, per: step}"
    serial = from_file(session, "solver", "Xeon-Sapphire-Rapids", f"{line}\nparallel: 0.1%")["time_s"]["value"]
    split = from_file(session, "solver", "Xeon-Sapphire-Rapids", f"{line}\nparallel: 100%")["time_s"]["value"]
    assert serial == pytest.approx(40_000, rel=0.01)
    assert split == pytest.approx(40_000 / 48, rel=0.01)


def test_vcpus_are_of_processors(session: Session) -> None:
    with pytest.raises(BadInput, match="is no processor"):
        from_file(session, "hpc", "h100", "{on: a100, vcpus: 2, takes: 6h}")
