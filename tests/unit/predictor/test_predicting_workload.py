from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan, predict
from chipwise.errors import BadInput, UnknownName
from chipwise.perf.steadiness import table

ROOT = Path(__file__).resolve().parents[3]
View = dict[str, Any]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def example(session: Session, name: str, on: str, **settings: Any) -> View:
    return predict(session, str(ROOT / "examples" / name / "workload.yaml"), on, None, settings)


def written(session: Session, folder: Path, text: str, on: str, **settings: Any) -> View:
    (folder / "w.yaml").write_text(f"name: w\n{text}", encoding="utf-8")
    return predict(session, str(folder / "w.yaml"), on, None, settings)


# --- training


def test_a_job_takes_its_tokens_over_the_tokens_per_second(session: Session) -> None:
    view = example(session, "train", "h100", chips=16.0)
    assert view["job_time_s"]["value"] == pytest.approx(20e9 / view["tokens_per_s"]["value"])
    assert view["job_time_s"]["low"] == pytest.approx(20e9 / view["tokens_per_s"]["high"])
    watts = view["power_per_chip"]["with_cooling_w"] * 16
    assert view["energy_kwh"] == pytest.approx(watts * view["job_time_s"]["value"] / 3.6e6)
    assert [goal["met"] for goal in view["goals"]] == [view["job_time_s"]["value"] <= 5 * 86400]


def test_an_option_wins_over_the_file(session: Session) -> None:
    usual, short = (example(session, "train", "h100", chips=16.0, **more) for more in ({}, {"seq": 2048.0}))
    assert (usual["setup"]["seq"], short["setup"]["seq"]) == (8192.0, 2048.0)
    assert example(session, "finetune", "h100", chips=8.0, method="lora")["setup"]["method"] == "lora"


def test_a_global_batch_divides_among_the_copies(session: Session) -> None:
    setup = example(session, "train", "h100", chips=16.0)["setup"]
    assert setup["global_batch"] % (setup["dp"] * setup["micro_batch"]) == 0
    assert setup["global_batch"] * 8192 == pytest.approx(4e6, rel=0.03)


def test_a_file_without_a_precision_trains_in_what_the_chip_has(session: Session, tmp_path: Path) -> None:
    text = "kind: train\nmodel: gpt2\ntokens: 1B\nsequence_length: 512\n"
    assert written(session, tmp_path, text, "v100")["setup"]["precision"] == "fp16"
    with pytest.raises(BadInput, match="no bf16 arithmetic"):
        written(session, tmp_path, text + "precision: bf16\n", "v100")


def test_small_files_in_an_object_store_starve_the_first_epoch(session: Session, tmp_path: Path) -> None:
    text = "kind: train\nmodel: resnet50\nsamples: 1.2M\nepochs: {}\n"
    text += "data: {{size: 190GB, place: 's3://x/y', access: epochs, files: {}}}\n"
    once = written(session, tmp_path, text.format(1, "1.2M"), "a100")
    assert once["feeding"]["bottleneck"] == "read"
    assert once["job_time_s"]["value"] > 5 * 1.2e6 / once["samples_per_s"]["value"]
    shards = written(session, tmp_path, text.format(1, "1200"), "a100")
    assert shards["feeding"]["bottleneck"] == "preprocess"
    again = written(session, tmp_path, text.format(60, "1.2M"), "a100")
    assert again["feeding"]["place_of_later_epochs"] == "local-nvme"
    assert again["job_time_s"]["value"] < 60 * once["job_time_s"]["value"] / 2


def test_data_without_a_place_is_not_guessed(session: Session, tmp_path: Path) -> None:
    view = written(session, tmp_path, "kind: train\nmodel: gpt2\ntokens: 1B\ndata: {size: 4GB}\n", "a100")
    assert view["feeding"] is None


def test_a_shape_in_the_file_is_predicted_like_the_model_of_that_shape(session: Session, tmp_path: Path) -> None:
    shape = "{kind: decoder, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}"
    text = "kind: batch\nitems: 1000\ninput_tokens: 500\noutput_tokens: 100\nmodel: "
    own, known = (written(session, tmp_path, text + model + "\n", "h100") for model in (shape, "llama-3.1-8b"))
    assert own["requests_per_s"]["value"] == pytest.approx(known["requests_per_s"]["value"], rel=0.25)
    assert "own shape" in own["model"]


def test_pictures_are_not_learnt_by_tokens(session: Session, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="learns from samples"):
        written(session, tmp_path, "kind: train\nmodel: resnet50\ntokens: 1B\n", "a100")


# --- serving


def test_goals_are_held_against_percentiles_and_the_highest_rate_meets_them(session: Session) -> None:
    view = example(session, "serve", "l40s")
    assert [(goal["goal"], goal["percentile"]) for goal in view["goals"]] == [
        ("ttft", 50.0),
        ("ttft", 95.0),
        ("tpot", 95.0),
        ("latency", 99.0),
    ]
    for goal in view["goals"]:  # an overloaded replica has no percentiles, and meets nothing
        assert goal["met"] == (goal["predicted_s"] is not None and goal["predicted_s"] <= goal["limit_s"])
    assert view["replicas"] == 2.0  # the file's least
    at_most = example(session, "serve", "l40s", rate=view["highest_rate_per_s"] * 0.98)
    assert all(goal["met"] for goal in at_most["goals"])
    assert view["needs"]["replicas"] == pytest.approx(12 / (view["highest_rate_per_s"] / 2), abs=1.0)


def test_too_many_requests_are_never_answered_in_time(session: Session) -> None:
    view = example(session, "serve", "l40s", rate=1e5)
    assert not any(goal["met"] for goal in view["goals"])
    assert any(note.startswith("Overloaded") for note in view["notes"])


def test_a_batch_needs_chips_in_proportion_to_its_delay(session: Session) -> None:
    one = example(session, "batch", "l4")
    many = example(session, "batch", "l4", chips=one["needs"]["chips_for_deadline"])
    assert not one["goals"][0]["met"]
    assert many["goals"][0]["met"]


def test_recorded_arrivals_give_the_mean_rate_and_lengths(session: Session, tmp_path: Path) -> None:
    rows = "".join(f"{at / 4},{100 + at % 3},50\n" for at in range(41))
    (tmp_path / "t.csv").write_text(f"arrival,input_tokens,output_tokens\n{rows}", encoding="utf-8")
    text = "kind: serve\nmodel: llama-3.1-8b\narrival: {trace: t.csv}\n"
    setup = written(session, tmp_path, text, "h100")["setup"]
    assert (setup["input_tokens"], setup["output_tokens"]) == (101.0, 50.0)
    (tmp_path / "t.csv").write_text("arrival,input_tokens,output_tokens\n0,1,2\nsoon,1,2\n", encoding="utf-8")
    with pytest.raises(BadInput, match="line 3: arrival is 'soon'"):
        written(session, tmp_path, text, "h100")


def test_an_encoder_is_served_by_samples_with_its_goals(session: Session, tmp_path: Path) -> None:
    text = "kind: serve\nmodel: bert-base\narrival: {rate: 900}\ninput_tokens: 40\ngoals: {latency: {p99: 50ms}}\n"
    view = written(session, tmp_path, text, "l4")
    assert (view["task"], view["sample"]) == ("samples", {"tokens": 40.0})
    assert view["goals"][0]["met"]
    assert view["highest_rate_per_s"] > 900
    assert view["needs"] == {"replicas": 1.0}


def test_a_device_answers_one_at_a_time_and_is_counted(session: Session, tmp_path: Path) -> None:
    text = "kind: serve\nmodel: llama-3.2-1b\ndevices: 12\nprecision: int4\narrival: {rate: 0.2}\n"
    text += "input_tokens: 300\noutput_tokens: 60\n"
    view = written(session, tmp_path, text, "jetson-orin-nano")
    assert (view["task"], view["needs"], view["steadiness"]["kind"]) == ("edge", {"devices": 12.0}, "edge")
    assert sum(view["terms_s"].values()) == pytest.approx(view["time_s"]["value"], rel=1e-3)
    with pytest.raises(BadInput, match="smallest mode"):
        written(session, tmp_path, text + "limits: {power_watts: 2}\n", "jetson-orin-nano")


# --- kernels


@pytest.mark.parametrize(
    ("name", "on"), [("hpc", "h100"), ("render", "l40s"), ("transcode", "l4"), ("stream", "vu47p"), ("hybrid", "h100")]
)
def test_the_terms_of_a_kernel_are_its_time(session: Session, name: str, on: str) -> None:
    view = example(session, name, on)
    assert view["task"] == name
    assert view["provenance"] == "formula"
    assert view["time_s"]["low"] < view["time_s"]["value"] < view["time_s"]["high"]
    assert sum(view["terms_s"].values()) == pytest.approx(view["time_s"]["value"], rel=1e-3)
    assert view["steadiness"]["relative_sd"] == table()[view["steadiness"]["kind"]].log_sd


def test_more_chips_finish_numerical_work_sooner(session: Session) -> None:
    times = [example(session, "hpc", "h100", chips=n)["time_s"]["value"] for n in (4.0, 8.0, 16.0)]
    assert times == sorted(times, reverse=True)
    usual = example(session, "hpc", "h100")
    assert usual["chips"] == usual["needs"]["chips_for_memory"] == 4.0
    assert not example(session, "hpc", "h100", chips=1.0)["fits"]


def test_live_streams_need_whole_chips(session: Session) -> None:
    view = example(session, "transcode", "l4")
    assert view["needs"]["chips"] == view["chips"]
    assert view["needs"]["chips"] * view["streams_per_chip"] >= 200
    assert view["busy_share"] <= 0.85


def test_a_stream_takes_as_long_on_a_processor_as_its_plan_says(session: Session, tmp_path: Path) -> None:
    text = "kind: stream\noperations: [tcp-receive, aes-256-gcm, tcp-send]\nbandwidth: 10 Gbit/s\n"
    text += "goals: {latency: {p50: 1ms, p99: 10ms}}\n"
    view = written(session, tmp_path, text, "graviton3")
    found = plan(session, str(tmp_path / "w.yaml"))
    assert found.winner is not None
    assert found.winner.family == "CPU"
    assert [goal["predicted_s"] for goal in view["goals"]] == pytest.approx(list(found.winner.latency.values()))
    assert f"Software on {view['needs']['cores']:.2g} cores" in found.notes[0]
    assert found.notes[0] == view["notes"][0]


def test_an_operation_that_was_not_measured_is_refused_on_a_processor(session: Session) -> None:
    with pytest.raises(BadInput, match="decode-itch, filter-symbols were not measured on a processor"):
        example(session, "stream", "graviton3")


def test_frames_in_the_night_only_take_longer_to_be_done(session: Session) -> None:
    view = example(session, "render", "l40s", chips=8.0)
    assert view["goals"][0]["predicted_s"] == pytest.approx(view["time_s"]["value"] * 168 / 60)


def test_circuits_have_a_price_and_a_size(session: Session, tmp_path: Path) -> None:
    assert example(session, "hybrid", "h100")["price_usd"] == pytest.approx(2362.5)
    text = "kind: hybrid\niterations: 10\nquantum: {{qubits: {}, shots: 100{}}}\n"
    simulated = written(session, tmp_path, text.format(34, ""), "h100")
    assert (simulated["device"], simulated["price_usd"], simulated["needs"]) == (None, None, {"chips_for_state": 4.0})
    for qubits, device in ((200, ", device: garnet"), (5000, "")):
        with pytest.raises(BadInput, match=r"quantum\.qubits"):
            written(session, tmp_path, text.format(qubits, device), "h100")


def test_people_share_chips_as_the_file_says(session: Session, tmp_path: Path) -> None:
    assert example(session, "interactive", "a100")["needs"] == {"chips": 2.0}
    text = "kind: interactive\npeople: 12\nmemory: 10GiB\nsharing: {}\n"
    chips = {way: written(session, tmp_path, text.format(way), "l4")["needs"]["chips"] for way in ("none", "time")}
    assert chips == {"none": 12.0, "time": 6.0}
    with pytest.raises(BadInput, match="cannot be cut"):
        written(session, tmp_path, text.format("slices"), "l4")


@pytest.mark.parametrize(
    ("name", "on", "said"),
    [
        ("train", "vu9p", "H100-SXM"),
        ("transcode", "h100", "These have: L4"),
        ("stream", "h100", "VU47P"),
        ("hpc", "vu9p", "gpu, cpu"),
        ("render", "tpu-v5e", "gpu, cpu"),
        ("hybrid", "vu9p", "gpu, cpu"),
        ("interactive", "vu9p", "gpu"),
        ("serve", "vu9p", "runs no models"),
    ],
)
def test_a_chip_that_cannot_is_refused_with_those_that_can(session: Session, name: str, on: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        example(session, name, on)
    assert said in str(refused.value)


# --- pipelines


def test_stages_have_chips_of_their_own(session: Session) -> None:
    view = example(session, "edge", "a100,inspect=jetson-orin-nano")
    assert [stage["chip"] for stage in view["stages"]] == ["A100-80", "Jetson-Orin-Nano-Super"]
    assert view["job_time_s"] == view["stages"][0]["job_time_s"]  # inspection is a service
    with pytest.raises(UnknownName, match="inspect"):
        example(session, "edge", "a100,inspct=l4")
    with pytest.raises(BadInput, match="No chip is given for train"):
        example(session, "edge", "inspect=l4")


def test_stages_that_wait_for_each_other_add_up(session: Session) -> None:
    view = example(session, "quantum", "h100")
    assert view["job_time_s"]["value"] == pytest.approx(sum(stage["job_time_s"]["value"] for stage in view["stages"]))
    assert view["price_usd"] == view["stages"][1]["price_usd"]


def test_an_option_that_no_stage_takes_is_refused(session: Session) -> None:
    with pytest.raises(BadInput, match="--seq does not go with any stage"):
        example(session, "quantum", "h100", seq=512.0)
    assert example(session, "edge", "a100,inspect=l4", micro_batch=64.0)["stages"][0]["batch"] == 1024.0
