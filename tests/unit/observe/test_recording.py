"""A recording as text: what was written comes back, a cut is survived, and what cannot be is one sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.observe.recording import Decoder, Encoder, decoded, header_line, load, thinned, written
from chipwise.observe.sample import HOST, NoReading, Recording, Sample, SampledDevice

DEVICE = SampledDevice("nvidia:0", "NVIDIA H200", chip="H200", identity="GPU-1", numa_node=1, driver="580.1")
SAMPLES = (
    Sample(0.0, "nvidia:0", {"busy": 0.5, "power": 300.0, "memory_temperature": NoReading("no such sensor")}),
    Sample(0.0, HOST, {"cpu": 0.25}),
    Sample(1.0, "nvidia:0", {"busy": 0.5, "power": 310.5, "memory_temperature": NoReading("no such sensor")}),
    Sample(2.0, "nvidia:0", {"busy": 0.75, "power": 310.5}),
)
RECORDING = Recording(
    started_at="2026-11-18T08:00:00Z",
    devices=(DEVICE,),
    samples=SAMPLES,
    labels={"job": "train-1"},
    predicted={"steps_per_s": (1.0, 2.0, 3.0)},
    usd_per_hour=4.5,
)


def lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def test_what_was_written_comes_back() -> None:
    loaded = decoded(lines(written(RECORDING)))
    assert loaded.recording == RECORDING
    assert not loaded.is_cut


def test_a_line_holds_only_what_changed() -> None:
    encoder = Encoder()
    texts = [encoder.line(sample) for sample in SAMPLES]
    assert json.loads(texts[2]) == {"t": 1.0, "s": "nvidia:0", "r": {"power": 310.5}}
    assert json.loads(texts[3]) == {"t": 2.0, "s": "nvidia:0", "r": {"busy": 0.75, "memory_temperature": None}}


@given(st.integers(0, 400))
def test_a_cut_recording_is_read_up_to_the_cut(lost: int) -> None:
    text = written(RECORDING).encode()
    head = len(header_line(RECORDING))
    kept = text[: max(len(text) - lost, head)]
    loaded = decoded(kept.splitlines(keepends=True))
    assert loaded.recording.samples == SAMPLES[: len(loaded.recording.samples)]
    assert loaded.is_cut == (not kept.endswith(b"\n") and not _is_whole(kept.splitlines()[-1]))


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_zeros_at_the_end_are_a_cut() -> None:
    loaded = decoded([*lines(written(RECORDING)), b"\0" * 100])
    assert loaded.is_cut
    assert len(loaded.recording.samples) == 4


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"t": -1, "s": "host", "r": {}}', "has no time"),
        ('{"t": "now", "s": "host", "r": {}}', "has no time"),
        ('{"t": 0.5, "s": "host", "r": {}}', "goes back in time"),
        ('{"t": 3, "s": "", "r": {}}', "has no source"),
        ('{"t": 3, "s": "\\u001b[2J", "r": {}}', "has no source"),
        ('{"t": 3, "s": "host", "r": [1]}', "has no readings"),
        ('{"t": 3, "s": "host", "r": {"cpu": [1]}}', "is no number"),
        ('{"t": 3, "s": "host", "r": {"cpu": true}}', "is no number"),
        ('{"t": 3, "s": "host", "r": {"a b": 1}}', "the name 'a b'"),
        ('{"t": 3, "s": "host", "r": {"cpu": 1e999}}', "is no number"),
        ('{"t": 3, "s": "host", "r": {"cpu": 1e308}}', "is no number"),
        ('{"t": 3, "s": "host", "r": {"cpu": 1' + "0" * 400 + "}}", "is no number"),
        ('{"t": 1' + "0" * 400 + ', "s": "host", "r": {}}', "has no time"),
        ("[1]", "is not an object"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(line: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        decoded([*lines(written(RECORDING)), f"{line}\n".encode()], "x.jsonl")
    assert "x.jsonl: line 6" in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    "text", ["", "\n", "{}\n", "[1]\n", "hello\n", '{"chipwise_recording": "1"}\n', "\ufeff\n", "[" * 100_000 + "\n"]
)
def test_another_file_is_no_recording(text: str) -> None:
    with pytest.raises(BadInput, match=r"is not a recording|is empty|not an object") as caught:
        decoded(lines(text), "x")
    assert caught.value.remedy


def test_a_newer_format_asks_for_an_update() -> None:
    with pytest.raises(BadInput, match="newer chipwise"):
        decoded([b'{"chipwise_recording": 2}\n'])


def test_a_broken_line_in_the_middle_is_no_cut() -> None:
    text = written(RECORDING).replace('"power":310.5}', '"power":310.5')
    with pytest.raises(BadInput, match="in the middle"):
        decoded(lines(text))


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(junk: bytes) -> None:
    with suppress(BadInput):
        decoded([*lines(header_line(RECORDING)), *junk.splitlines(keepends=True)])


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no file"):
        load(tmp_path / "none")
    with pytest.raises(BadInput, match="is a folder"):
        load(tmp_path)
    path = tmp_path / "one.jsonl"
    path.write_text(written(RECORDING))
    assert load(path).recording == RECORDING


def test_a_coarser_recording_keeps_means_of_levels_and_the_last_of_counters() -> None:
    samples = [Sample(float(at), "nvidia:0", {"busy": float(at % 2), "energy": 10.0 * at}) for at in range(20)]
    coarse = list(thinned(samples, 10.0, 5.0))
    assert [sample.at_s for sample in coarse] == [0.0, 5.0, *map(float, range(10, 20))]
    assert coarse[0].readings == {"busy": 0.4, "energy": 40.0}
    assert coarse[1].readings == {"busy": 0.6, "energy": 90.0}


def test_a_coarser_recording_can_be_read_again() -> None:
    samples = [Sample(at / 10, source, {"cpu": at / 100}) for at in range(100) for source in (HOST, "program")]
    again = Recording("", samples=tuple(thinned(samples, 8.0, 2.0)))
    times = [sample.at_s for sample in decoded(lines(written(again))).recording.samples]
    assert times == sorted(times)


def test_a_decoder_needs_no_end() -> None:
    decoder = Decoder()
    text = lines(written(RECORDING))
    assert decoder.take(text[0]) is None
    assert decoder.take(text[1]) == SAMPLES[0]
