"""Bytes that a description tells, each against its own few-line computation; what the file states wins."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.workload.kinds import Learning
from chipwise.workload.model.registry import find
from chipwise.workload.parse import parse
from chipwise.workload.volume import Volume, checkpoint_bytes, sized, volume_of
from effort import cases

MONTH_S = 730 * 3600
SOURCE = "{codec: h264, resolution: 1080p, fps: 25, bitrate: 45 Mbit/s}"
SMALL = "{codec: h264, resolution: 720p, fps: 25, bitrate: 2.5 Mbit/s}"
OUTPUTS = f"[{{codec: h265, resolution: 1080p, fps: 25, bitrate: 4 Mbit/s}}, {SMALL}]"
ARCHIVE = f"kind: transcode\nname: a\nsource: {SOURCE}\noutputs: {OUTPUTS}\n"


def volume(text: str) -> Volume:
    work = parse(text)
    model = getattr(work, "model", None)
    return volume_of(work, find(model).shape if model else None)


def sizes(text: str) -> tuple[float | None, float | None]:
    derived = volume(text)
    return (
        derived.read.bytes if derived.read else None,
        derived.written.bytes if derived.written else None,
    )


def test_twenty_thousand_hours_of_video_are_405_terabytes() -> None:
    derived = volume(f"{ARCHIVE}duration: 20000h\n")
    assert derived.read is not None
    assert derived.written is not None
    assert derived.read.bytes == pytest.approx(20_000 * 3600 * 45e6 / 8)
    assert derived.read.bytes == pytest.approx(405e12)
    assert derived.read.formula == "20,000 h x 45 Mbit/s"
    assert derived.written.bytes == pytest.approx(20_000 * 3600 * (4e6 + 2.5e6) / 8)
    assert not derived.monthly


def test_live_streams_flow_all_month_or_as_long_as_they_are_on() -> None:
    derived = volume(f"{ARCHIVE}streams: 200\n")
    assert derived.monthly
    assert derived.read is not None
    assert derived.read.bytes == pytest.approx(200 * MONTH_S * 45e6 / 8)
    by_day = f"{ARCHIVE}streams: 200\nschedule: {{kind: business-hours, time_zone: UTC, start: '08:00', end: '16:00'}}\n"
    assert sizes(by_day)[0] == pytest.approx(derived.read.bytes * 40 / 168)


def test_a_video_without_a_bitrate_counts_by_its_pixels() -> None:
    text = "kind: transcode\nname: a\nduration: 10h\nsource: {codec: h264, resolution: 1920x1080, fps: 30}\n"
    outputs = "outputs: [{codec: raw, resolution: 1280x720, fps: 30, bit_depth: 8}]\n"
    read, written = sizes(text + outputs)
    assert read == pytest.approx(10 * 3600 * 30 * 1920 * 1080 * 0.1 / 8)
    assert written == pytest.approx(10 * 3600 * 30 * 1280 * 720 * 1.5)


def test_tokens_of_a_large_vocabulary_take_four_bytes_and_others_two() -> None:
    large = volume("kind: train\nname: a\nmodel: llama-3.1-405b\ntokens: 15T\n")
    assert large.read is not None
    assert large.read.bytes == pytest.approx(15e12 * 4)
    assert large.read.formula == "15 trillion tokens x 4 bytes"
    assert sizes("kind: train\nname: a\nmodel: llama-2-7b\ntokens: 2T\n")[0] == pytest.approx(2e12 * 2)


def test_a_checkpoint_holds_weights_copies_and_moments_of_what_learns() -> None:
    whole = volume("kind: train\nname: a\nmodel: llama-3.1-405b\ntokens: 15T\n")
    parameters = find("llama-3.1-405b").shape.parameters
    assert whole.checkpoint is not None
    assert whole.checkpoint.bytes == pytest.approx(parameters * (2 + 4 + 4 + 4))
    assert 5.6e12 < whole.checkpoint.bytes < 5.8e12
    assert whole.written is not None
    assert whole.written.bytes == pytest.approx(parameters * 2)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("rank: 32", 80 * 32 * (2 * 16384 + 2 * 9216 + 3 * 36864)),  # q and o, k and v, the three of the feed-forward
        ("rank: 8", 80 * 8 * 161_792),
        ("", 80 * 16 * 161_792),
        ("rank: 8\ntargets: attention", 80 * 8 * (2 * 16384 + 2 * 9216)),
    ],
)
def test_adapters_have_their_rank_for_every_input_and_output_of_their_matrices(options: str, parameters: float) -> None:
    found = volume(f"kind: finetune\nname: a\nmodel: llama-3.1-70b\nmethod: qlora\ntokens: 1B\n{options}\n")
    assert found.written is not None
    assert found.written.bytes == pytest.approx(2 * parameters)
    assert found.checkpoint is not None
    assert found.checkpoint.bytes == pytest.approx(14 * parameters)


def test_experts_have_no_adapters_and_networks_without_a_stack_count_a_hundredth() -> None:
    text = "kind: finetune\nname: a\nmodel: {}\nmethod: lora\nrank: 8\nsamples: 1M\nsequence_length: 512\n"
    mixtral = volume(text.format("mixtral-8x7b")).written
    assert mixtral is not None
    assert mixtral.bytes == pytest.approx(2 * 32 * 8 * (2 * 8192 + 2 * 5120))
    resnet = volume(text.format("resnet-50").replace("sequence_length: 512\n", "")).written
    assert resnet is not None
    assert resnet.bytes == pytest.approx(2 * 0.01 * find("resnet-50").shape.parameters)


@pytest.mark.parametrize(
    ("optimizer", "each"), [("adamw", 14), ("adamw-16bit", 10), ("adamw-8bit", 8), ("lion", 10), ("sgd", 10), ("adafactor", 6)]
)
def test_a_checkpoint_holds_what_its_optimizer_keeps(optimizer: str, each: float) -> None:
    work = parse(f"kind: train\nname: a\nmodel: llama-3.1-8b\ntokens: 1B\noptimizer: {optimizer}\n")
    shape = find("llama-3.1-8b").shape
    assert isinstance(work, Learning)
    assert checkpoint_bytes(work, shape) == pytest.approx(each * shape.parameters)


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("kind: batch\nname: a\nmodel: resnet-50\nitems: 100M\n", 1e8 * 110e3, 1e8 * 100),
        (
            "kind: batch\nname: a\nmodel: llama-3.1-8b\nitems: 5M\ninput_tokens: 1800\noutput_tokens: 200\n",
            5e6 * 1800 * 4,
            5e6 * 200 * 4,
        ),
        ("kind: batch\nname: a\nmodel: bert-large\nitems: 50M\ninput_tokens: 300\n", 5e7 * 300 * 4, 5e7 * 1024 * 4),
        ("kind: batch\nname: a\nmodel: sdxl\nitems: 1000\n", 1000 * 77 * 4, 1000 * 1024 * 1024 * 1.5),
        ("kind: batch\nname: a\nmodel: whisper-large-v3\nitems: 1000\noutput_tokens: 90\ninput_tokens: 1500\n", 96e7, 360e3),
        ("kind: train\nname: a\nmodel: resnet-50\nsamples: 1.28M\n", 1.28e6 * 110e3, None),
        ("kind: train\nname: a\nmodel: llama-3.1-8b\nsamples: 10k\nsequence_length: 4096\n", 1e4 * 4096 * 4, None),
        ("kind: train\nname: a\nmodel: llama-3.1-8b\nsamples: 10k\n", None, None),
        (
            "kind: serve\nname: a\nmodel: llama-3.1-8b\narrival: 12 req/s\ninput_tokens: 500\noutput_tokens: 200\n",
            12 * MONTH_S * 500 * 4,
            12 * MONTH_S * 200 * 4,
        ),
        ("kind: render\nname: a\nframes: 240\nresolution: 4k\nsamples_per_pixel: 128\n", None, 240 * 3840 * 2160 * 8),
        ("kind: hpc\nname: a\nflop_per_step: 1e15\nworking_set: 2TB\nruns: 6\n", None, 12e12),
        ("kind: stream\nname: a\noperations: [filter]\nmessages: 1M/s\nmessage_size: 200 B\n", 2e8 * MONTH_S, 2e8 * MONTH_S),
        (
            "kind: hybrid\nname: a\niterations: 100\nquantum: {qubits: 24, shots: 1000, circuits: 5}\n",
            None,
            100 * 5 * 1000 * 24 / 8,
        ),
        ("kind: interactive\nname: a\npeople: 5\nmemory: 10GB\n", None, None),
    ],
)
def test_what_is_read_and_written_follows_from_the_description(text: str, read: float | None, written: float | None) -> None:
    derived = sizes(text)
    assert derived[0] == (None if read is None else pytest.approx(read))
    if written is not None:
        assert derived[1] == pytest.approx(written)


@settings(deadline=None, max_examples=cases(200))
@given(hours=st.floats(0.1, 1e6), megabits=st.floats(0.01, 1e4))
def test_twice_the_duration_is_twice_the_bytes(hours: float, megabits: float) -> None:
    source = SOURCE.replace("45 Mbit/s", f"{megabits} Mbit/s")
    text = f"kind: transcode\nname: a\nsource: {source}\noutputs: {OUTPUTS}\nduration: "
    single, double = sizes(f"{text}{hours}h\n"), sizes(f"{text}{2 * hours}h\n")
    assert double == pytest.approx([2 * (amount or 0.0) for amount in single])
    assert single[0] == pytest.approx(hours * 3600 * megabits * 1e6 / 8)


def test_what_the_file_states_wins() -> None:
    derived = volume(f"{ARCHIVE}duration: 20000h\ndata: {{size: 300TB, results: 0}}\n")
    assert derived.read is not None
    assert derived.written is not None
    assert (derived.read.bytes, derived.read.formula) == (300e12, "")
    assert derived.written.bytes == 0


def test_a_place_alone_is_filled_in_with_sizes_and_what_nobody_tells_is_asked_for() -> None:
    work = sized(parse(f"{ARCHIVE}duration: 20000h\ndata: {{place: gs://archive}}\n"))
    assert work.data is not None
    assert work.data.size == pytest.approx(405e12)
    assert work.data.results == pytest.approx(58.5e12)
    unsaid = parse("kind: train\nname: a\nmodel: llama-3.1-8b\nsamples: 10k\ndata: {place: gs://archive}\n")
    with pytest.raises(BadInput, match=r"data\.size"):
        sized(unsaid, find("llama-3.1-8b").shape)
