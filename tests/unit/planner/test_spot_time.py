"""The time of a job on spot machines is told in parts that add up to it."""

from __future__ import annotations

import re

import pytest

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.money.interruption import Interruptions
from chipwise.planner.explain.row_words import running
from chipwise.units import DAY, HOUR, MINUTE

KINDS = {
    "train": "model: llama-3.1-8b\ntokens: 2B\nsequence_length: 4096\n",
    "finetune": "model: llama-3.1-8b\nmethod: lora\nsamples: 50k\nsequence_length: 2048\n",
    "batch": "model: qwen2.5-7b\nitems: 1M\ninput_tokens: 1800\noutput_tokens: 120\n",
    "render": "engine: cycles\n"
    "frames: 2000\nresolution: 4k\nsamples_per_pixel: 512\nscene: 18GiB\nmeasured: {on: rtx-4090, takes: 95s}\n",
    "transcode": "duration: 20000h\nsource: {codec: h264, resolution: 1080p, fps: 30}\n"
    "outputs: [{codec: h264, resolution: 720p, fps: 30}]\n",
}
LATE = (
    "kind: train\nname: a\nmodel: llama-2-7b\ntokens: 1B\nsequence_length: 4096\n"
    "limits: {{purchase: [spot], clouds: [aws, gcp], chips: [{chip}]}}\ngoals: {{deadline: 3d}}\n"
)
SECONDS = {"s": 1.0, "min": MINUTE, "h": HOUR, "d": DAY}


def _told_s(text: str) -> float:
    matched = re.match(r"([\d.,]+) (s|min|h|d)\b", text)
    assert matched is not None, text
    value, unit = matched.groups()
    return float(value.replace(",", "")) * SECONDS[unit]


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_a_time_on_spot_add_up(kind: str) -> None:
    text = f"kind: {kind}\nname: a\n{KINDS[kind]}limits: {{purchase: [spot]}}\n"
    winner = plan(open_session(), "a.yaml", text=text).winner
    assert winner is not None
    rows = dict(running(winner))
    parts = rows["of which"].split("; ")
    assert sum(map(_told_s, parts)) == pytest.approx(winner.seconds, rel=0.01), rows["of which"]
    assert _told_s(rows["time"]) == pytest.approx(winner.seconds, rel=0.01)


def test_the_rate_of_tpus_is_assumed_and_said_to_be() -> None:
    """No row of the table is of a TPU: GPUs of the same cloud are no evidence."""
    winner = plan(open_session(), "a.yaml", text=LATE.format(chip="tpu-v6e")).choices[0]
    assert winner.interruptions_assumed
    assert "assumed: not published for gcp TPU-v6e" in dict(running(winner))["checkpoint"]


@pytest.mark.parametrize("chip", ["tpu-v6e", "l4"])
def test_a_rate_that_is_not_known_exactly_makes_a_late_end_likelier(monkeypatch: pytest.MonkeyPatch, chip: str) -> None:
    """Published or assumed."""
    wide = plan(open_session(), "a.yaml", text=LATE.format(chip=chip)).choices[0]
    for name in ("seldom", "often"):
        monkeypatch.setattr(Interruptions, name, 1.0)
    narrow = plan(open_session(), "a.yaml", text=LATE.format(chip=chip)).choices
    same = next(one for one in narrow if (one.where, one.machines) == (wide.where, wide.machines))
    assert wide.p90_s > same.p90_s
    assert wide.late_share is not None
    assert same.late_share is not None
    assert wide.late_share > same.late_share
