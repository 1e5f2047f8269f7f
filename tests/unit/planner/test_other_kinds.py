"""Plans of all kinds of work but transformers on whole accelerators: sensible winners, sums, and reasons for every loss."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.reason_words import lost, missing_words, words
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.explain.row_words import brief
from chipwise.planner.explain.words import headline
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.values.plan import Plan

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


def example(session: Session, kind: str) -> Plan:
    return checked(plan(session, str(EXAMPLES / kind / "workload.yaml")))


def asked(session: Session, text: str, objective: str | None = None) -> Plan:
    return checked(plan(session, "workload.yaml", objective, text=text))


def checked(found: Plan) -> Plan:
    """What holds for every plan."""
    for choice in (*found.choices, *found.front):
        assert choice.usd == pytest.approx(sum(line.usd for line in choice.cost.lines))
        assert choice.low_s <= choice.seconds * 1.001
        assert choice.seconds > 0
        assert choice.kg >= 0
    families = [loss.family for loss in found.losses]
    assert len(families) == len(set(families))
    assert all(words(loss.why) for loss in found.losses)
    assert found.winner is not None or found.missing
    if found.winner is not None and found.objective == "cost":
        native = [one.usd for one in found.choices if not one.needs_porting] or [math.inf]
        ported = [one.usd for one in found.choices if one.needs_porting] or [math.inf]
        leads = min(native) if min(ported) > 0.8 * min(native) else min(ported)  # porting must save a fifth
        assert found.choices[0].usd <= 1.03 * leads
    return found


def why(found: Plan, family: str) -> str:
    return next(lost(loss) for loss in found.losses if loss.family == family)


def test_a_stencil_in_double_precision_goes_where_bandwidth_and_fp64_are(session: Session) -> None:
    found = example(session, "hpc")
    assert found.winner is not None
    assert found.winner.family in ("NVIDIA Blackwell", "NVIDIA Hopper", "AMD CDNA3")
    assert 4 <= found.winner.chips * found.winner.machines <= 64
    assert "TFLOP/s in double precision" in why(found, "NVIDIA Ada Lovelace")
    assert "tpu" in why(found, "Google TPU")


def test_more_chips_are_not_taken_once_the_deadline_is_kept_and_cost_counts(session: Session) -> None:
    text = "kind: hpc\nname: a\nsteps: 10\nflop_per_step: 1e15\nprecision: fp64\ngoals: {deadline: 10h}\n"
    found = asked(session, text)
    assert found.winner is not None
    assert found.winner.machines == 1


def test_work_that_is_bytes_only_may_be_won_by_a_processor(session: Session) -> None:
    found = asked(
        session, "kind: hpc\nname: a\nbytes_per_step: 3TB\nprecision: fp32\nlimits: {clouds: aws, interruptible: false}\n"
    )
    assert any(loss.family == "CPU" and loss.choice is not None for loss in found.losses) or (
        found.winner is not None and found.winner.family == "CPU"
    )


def test_a_film_goes_to_graphics_cards_that_hold_its_scene(session: Session) -> None:
    found = example(session, "render")
    assert found.winner is not None
    assert found.winner.memory_share is not None
    assert found.winner.memory_share < 0.85
    assert "of the 18 GiB needed for the scene" in why(found, "NVIDIA Pascal")
    assert any("hours a week" in note for note in found.notes)


def test_av1_needs_engines_that_encode_it(session: Session) -> None:
    found = example(session, "transcode")
    assert found.winner is not None
    assert found.winner.chip == "L4"
    assert found.winner.machines * found.winner.chips * found.winner.split.as_dict()["streams a chip"] >= 200
    assert "encoders: 0" in why(found, "NVIDIA Hopper")
    assert "av1" in why(found, "NVIDIA Turing")


def test_an_archive_of_video_is_a_job(session: Session) -> None:
    text = (
        "kind: transcode\nname: a\nduration: 20000h\nsource: {codec: h264, resolution: 1080p, fps: 30}\n"
        "outputs: [{codec: h264, resolution: 720p, fps: 30}]\ngoals: {deadline: 3d}\n"
    )
    found = asked(session, text)
    assert found.winner is not None
    assert found.per == "job"
    assert found.winner.seconds <= 3 * 86400


def test_a_chain_of_circuits_goes_to_an_fpga(session: Session) -> None:
    found = example(session, "stream")
    assert found.winner is not None
    assert found.winner.chip == "VU47P"
    assert "holds no chain of circuits" in why(found, "NVIDIA Hopper")
    assert found.notes[0].startswith("A rented FPGA has no network port")
    assert "not measured on a processor" in why(found, "CPU")


def test_what_the_measured_operations_take_of_a_processor_is_told_beside_an_fpga(session: Session) -> None:
    found = example(session, "stream")  # 4.5 million messages a second of 52 bytes; a core is 60% busy at most
    receive, encrypt, send = 530e-9 + 52 / 40e9, 450e-9 + 52 / 3.8e9, 560e-9 + 52 / 10.7e9
    cores = 4.5e6 * (receive + encrypt + send) / 0.6
    assert f"udp-receive, aes-256-gcm, tcp-send alone take {cores:.0f} cores" in why(found, "CPU")


def test_a_design_that_is_too_large_says_by_how_much(session: Session) -> None:
    text = (
        "kind: stream\nname: a\noperations: [parse]\nmessages: 1M messages/s\nmessage_size: 64B\ncircuit: {luts: 2M}\n"
        "limits: {clouds: aws}\n"
    )
    found = asked(session, text)
    assert found.winner is None
    assert "of the luts" in missing_words(found.missing[0])


def test_a_quantum_processor_is_paid_by_tasks_and_shots(session: Session) -> None:
    found = example(session, "hybrid")
    assert found.winner is not None
    lines = {line.name: line.usd for line in found.winner.cost.lines}
    assert lines["aws braket IQM Garnet tasks"] == pytest.approx(150 * 9 * 0.3)
    assert lines["aws braket IQM Garnet shots"] == pytest.approx(150 * 9 * 1000 * 0.00145)
    assert found.winner.country in ("SWE", "DEU")


def test_without_a_named_device_small_circuits_are_simulated(session: Session) -> None:
    text = "kind: hybrid\nname: a\niterations: 100\nquantum: {qubits: 20, shots: 1000}\nclassical: {flop: 1e10}\n"
    found = asked(session, text)
    assert found.winner is not None
    assert found.winner.usd < 5
    assert "12 qubits" in why(found, "aws braket AQT IBEX-Q1")
    assert "for circuits" in why(found, "aws braket IQM Garnet")


def test_too_many_qubits_for_any_memory_need_a_quantum_processor(session: Session) -> None:
    text = "kind: hybrid\nname: a\niterations: 10\nquantum: {qubits: 50, shots: 100, depth: 20}\nclassical: {flop: 1e10}\n"
    found = asked(session, text)
    assert found.winner is not None
    assert any("tasks" in line.name for line in found.winner.cost.lines)


def test_notebooks_share_chips_in_slices(session: Session) -> None:
    found = example(session, "interactive")
    assert found.winner is not None
    assert found.winner.machines * found.winner.chips * found.winner.split.as_dict()["seats a chip"] >= 8
    assert found.winner.usd < 3000


def test_people_who_may_not_share_get_a_chip_each(session: Session) -> None:
    text = "kind: interactive\nname: a\npeople: 6\nmemory: 10GiB\nlimits: {clouds: aws, interruptible: false}\n"
    found = asked(session, text)
    assert found.winner is not None
    assert found.winner.machines * found.winner.chips >= 6
    assert "(" not in found.winner.chip  # no slice


def test_a_picture_model_is_trained_by_samples(session: Session) -> None:
    text = (
        "kind: train\nname: a\nmodel: resnet50\nsamples: 1.2M images\nepochs: 60\nbatch_samples: 1024\n"
        'data: {size: 190GB, place: "azure:northeurope", access: epochs, files: 1.2M}\ngoals: {deadline: 10h, budget: $150}\n'
    )
    found = asked(session, text)
    assert found.winner is not None
    assert found.winner.seconds <= 36000
    assert found.winner.usd <= 150
    assert any(line.name.startswith("storage") for line in found.winner.cost.lines)


def test_an_encoder_is_served_within_its_goals(session: Session) -> None:
    text = (
        "kind: serve\nname: a\nmodel: bert-base-uncased\narrival: {rate: 900 req/s}\ninput_tokens: 40\nprecision: int8\n"
        "goals: {latency: {p95: 20ms}}\n"
    )
    found = asked(session, text)
    assert found.winner is not None
    assert found.winner.rate is not None
    assert found.winner.rate >= 900
    assert found.winner.purchase != "spot"
    assert "int8" in why(found, "NVIDIA Volta")


def test_a_burst_needs_more_machines_than_the_mean(session: Session) -> None:
    text = "kind: serve\nname: a\nmodel: resnet50\narrival: {rate: 3000 req/s}\nlimits: {clouds: aws, chips: t4}\n"
    usual = asked(session, text).winner
    burst = asked(session, text + "schedule: {kind: bursts, times: 8, lasts: 2h, every: 7d}\n").winner
    assert usual is not None
    assert burst is not None
    assert burst.machines > usual.machines


def test_goals_that_nothing_keeps_say_what_is_missing(session: Session) -> None:
    text = "kind: serve\nname: a\nmodel: stable-diffusion-xl\narrival: {rate: 1 req/s}\ngoals: {latency: {p95: 1ms}}\n"
    found = asked(session, text)
    assert found.winner is None
    assert "above 1 ms" in missing_words(found.missing[0])


def test_a_pile_of_pictures_is_a_job(session: Session) -> None:
    found = asked(session, "kind: batch\nname: a\nmodel: resnet50\nitems: 50M images\ngoals: {deadline: 2h}\n")
    assert found.winner is not None
    assert found.winner.seconds <= 7200


def test_devices_stand_at_every_place(session: Session) -> None:
    text = (
        "kind: serve\nname: a\nmodel: resnet50\narrival: {rate: 30 frames/s, burstiness: 0}\ndevices: 40\nprecision: int8\n"
        "goals: {latency: {p99: 33ms}}\nlimits: {where: edge, power_watts: 15, interruptible: false}\n"
    )
    found = asked(session, text)
    assert found.winner is not None
    assert (found.winner.provider, found.winner.purchase) == ("edge", "owned")
    assert found.winner.machines % 40 == 0
    assert "above 33 ms" in why(found, "edge Coral")


def test_a_language_model_at_the_edge_must_fit_the_device(session: Session) -> None:
    text = (
        "kind: serve\nname: a\nmodel: llama-3.1-8b\narrival: {rate: 0.01 req/s}\ninput_tokens: 200\noutput_tokens: 50\n"
        "devices: 5\nprecision: int8\nlimits: {where: edge}\n"
    )
    found = asked(session, text)
    assert found.winner is not None
    assert "Jetson" in found.winner.machine
    assert "Nano" not in found.winner.machine


def test_an_accelerator_without_memory_runs_no_language_model(session: Session) -> None:
    text = (
        "kind: serve\nname: a\nmodel: llama-3.2-1b\narrival: {rate: 0.01 req/s}\ninput_tokens: 200\noutput_tokens: 50\n"
        "devices: 5\nlimits: {where: edge}\n"
    )
    found = asked(session, text)
    assert "on the chip" in why(found, "edge Coral")
    assert "on the chip" in why(found, "edge Hailo")


@pytest.mark.parametrize(("model", "precision"), [("resnet50", "fp32"), ("resnet50", "fp16"), ("YOLOX-s", "fp32")])
def test_a_network_that_is_not_in_int8_is_not_run_on_a_chip_that_has_nothing_else(
    session: Session, model: str, precision: str
) -> None:
    text = (
        f"kind: serve\nname: a\nmodel: {model}\narrival: {{rate: 1 frames/s}}\ndevices: 5\nprecision: {precision}\n"
        "limits: {where: edge}\n"
    )
    found = asked(session, text)
    assert f"no {precision}" in why(found, "edge Coral")
    assert f"no {precision}" in why(found, "edge Hailo")


def test_a_detector_on_an_edge_tpu_is_not_faster_than_what_was_measured_of_smaller_ones(session: Session) -> None:
    text = (
        "kind: serve\nname: a\nmodel: YOLOX-s\narrival: {rate: 25 frames/s, burstiness: 0}\ndevices: 5\n"
        "goals: {latency: {p99: 40ms}}\nlimits: {where: edge}\n"
    )
    assert "above 40 ms" in why(asked(session, text), "edge Coral")


def test_a_device_runs_a_network_as_it_is_published_and_in_int8_where_that_is_asked_for(session: Session) -> None:
    """What has int8 alone stands beside."""
    text = "kind: serve\nname: a\nmodel: resnet50\narrival: {rate: 20 frames/s}\ndevices: 5\n"
    found = asked(session, text + "limits: {where: edge}\n")
    assert found.winner is not None
    assert {choice.precision for choice in found.choices} == {"fp16"}
    beside = [option.choice for option in found.alternatives if option.kind is RuleKind.PRECISION]
    assert [choice.precision for choice in beside] == ["int8"]
    lifted = asked(session, text + "precision: int8\nlimits: {where: edge}\n").winner
    assert lifted is not None
    assert lifted.chip == beside[0].chip
    assert lifted.usd == pytest.approx(beside[0].usd)
    assert lifted.usd < found.winner.usd


def test_a_machine_elsewhere_says_that_the_way_there_is_not_counted(session: Session) -> None:
    text = "kind: serve\nname: a\nmodel: resnet50\narrival: {rate: 20 frames/s}\ndevices: 40\nlimits: {where: [%s]}\n"
    away, here = asked(session, text % "edge, cloud"), asked(session, text % "edge")
    assert away.winner is not None
    assert away.winner.provider != "edge"
    assert "The way from the places there and back is in no latency" in away.notes[0]
    assert not any("there and back" in note for note in here.notes)


def test_a_network_that_must_be_quantised_first_says_so(session: Session) -> None:
    """Where no other format is on offer."""
    text = "kind: serve\nname: a\nmodel: resnet50\narrival: {rate: 20 frames/s}\ndevices: 5\n"
    found = asked(session, text + "limits: {where: edge, chips: [hailo-8l]}\n")
    assert found.winner is not None
    assert found.winner.precision == "int8"
    assert any("int8" in note and "accuracy" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["serve", "batch"])
def test_a_network_is_run_in_int8_only_where_that_is_asked_for(session: Session, kind: str) -> None:
    """On processors, too. What int8 would save stands beside."""
    amount = "arrival: {rate: 2500 req/s}" if kind == "serve" else "items: 2000M"
    text = f"kind: {kind}\nname: a\nmodel: resnet50\n{amount}\nlimits: {{clouds: aws, purchase: on-demand%s}}\n"
    found = plan(session, "a.yaml", text=text % "")
    assert found.winner is not None
    assert {choice.precision for choice in found.choices} <= {"fp16", "bf16", "fp32"}
    beside = [option for option in found.alternatives if option.kind is RuleKind.PRECISION]
    assert [option.choice.precision for option in beside] == ["int8"]
    assert beside[0].choice.usd < found.winner.usd
    lifted = plan(session, "a.yaml", text=text % ", precision: any").winner
    assert lifted is not None
    assert lifted.precision == "int8"
    assert lifted.usd == pytest.approx(beside[0].choice.usd, rel=0.1)
    stated = plan(session, "a.yaml", text=text % "" + "precision: fp16\n")
    assert not any(option.kind is RuleKind.PRECISION for option in stated.alternatives)


def test_a_cloud_competes_with_devices_where_the_file_lets_it(session: Session) -> None:
    text = (
        "kind: serve\nname: a\nmodel: resnet50\narrival: {rate: 1 frames/s}\ndevices: 2000\n"
        "limits: {where: [edge, cloud], interruptible: false}\n"
    )
    found = asked(session, text)
    assert found.winner is not None
    assert found.winner.provider != "edge"
    assert any(loss.family.startswith("edge") and loss.choice is not None for loss in found.losses)


@pytest.mark.parametrize("kind", ["hpc", "render", "transcode", "stream", "hybrid", "interactive"])
def test_every_family_that_lost_has_a_reason(session: Session, kind: str) -> None:
    found = example(session, kind)
    assert len(found.losses) >= 10


ARCHIVE = """
kind: batch
name: archive
model: bert-base
items: {items}
input_tokens: 200
goals: {{deadline: {deadline}, objective: balanced}}
limits: {{clouds: [aws, gcp], large: {large}}}
"""


def test_a_deadline_asks_for_no_larger_a_fleet_than_keeps_it(session: Session) -> None:
    """Two weeks are kept by one machine; an hour is not kept by 64 of them."""
    slow, large = (
        asked(session, ARCHIVE.format(items="100000M", deadline="14d", large=large)).winner for large in ("false", "true")
    )
    assert slow is not None
    assert large is not None
    assert slow.machines <= 64 < large.machines
    soon = asked(session, ARCHIVE.format(items="200000M", deadline="2h", large="false")).winner
    assert soon is not None
    assert soon.machines > 64


PICTURES = """
kind: serve
name: pictures
model: stable-diffusion-xl
arrival: {{rate: 0.1 req/s}}
goals: {{latency: {{p90: 60s}}}}
limits: {{precision: {precision}, chips: [{chip}]}}
"""


@pytest.mark.parametrize(
    ("chip", "precision", "planned"), [("l40s", "bf16", "bf16"), ("l40s", "[bf16, fp16]", "fp16"), ("t4", "bf16", None)]
)
def test_a_format_that_the_limits_name_is_the_one_that_is_planned(
    session: Session, chip: str, precision: str, planned: str | None
) -> None:
    found = asked(session, PICTURES.format(chip=chip, precision=precision))
    assert (found.winner and found.winner.precision) == planned
    assert planned or any("bf16" in missing_words(one) for one in found.missing)


def test_devices_are_bought_and_nobody_is_asked_how_many_he_owns(session: Session) -> None:
    text = "kind: serve\nname: a\nmodel: resnet50\narrival: {rate: 20 frames/s}\ndevices: 5\nlimits: {where: edge}\n"
    found = asked(session, text)
    assert found.winner is not None
    assert headline(found).startswith("Buy 5 x edge ")
    assert "you own" not in risk_line(found)
    assert brief(found.winner, found.per).startswith("bought")


def test_live_video_has_a_cost_interval_that_its_speed_makes(session: Session) -> None:
    """Encoders that are slower than expected take more machines, and faster ones fewer."""
    winner = example(session, "transcode").winner
    assert winner is not None
    assert winner.rate_spread > 1.0
    assert winner.low_usd < winner.usd < winner.high_usd


def test_live_video_is_kept_up_with_as_surely_as_a_latency_goal(session: Session) -> None:
    """A stream that falls behind is lost: 40 streams on a chip that takes about 41 are no plan."""
    video = "source: {codec: h264, resolution: 1080p, fps: 30}\noutputs: [{codec: h264, resolution: 720p, fps: 30}]\n"
    found = asked(session, f"kind: transcode\nname: a\nstreams: 40\n{video}")
    assert found.winner is not None
    assert (found.winner.load_chance or 0.0) >= 0.895


def test_live_video_says_that_no_managed_price_is_known(session: Session) -> None:
    """Silence would read as if machines had won against them."""
    video = "source: {codec: h264, resolution: 1080p, fps: 30}\noutputs: [{codec: h265, resolution: 720p, fps: 30}]\n"
    said = [note for note in asked(session, f"kind: transcode\nname: a\nstreams: 40\n{video}").notes if "managed" in note]
    assert said == [
        (
            "No price of a managed live service is known, so none stands beside the machines; "
            "aws Elemental MediaConvert and gcp Transcoder API take files."
        )
    ]
