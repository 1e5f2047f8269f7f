"""`chipwise plan` of a load over time: layers, regions and advice in 80 columns, in JSON and on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import Chipwise

pytestmark = pytest.mark.real_catalog

CHAT = """kind: serve
name: chat
model: llama-3.1-8b
arrival: 40 req/s
input_tokens: 1000
output_tokens: 300
schedule: {kind: bursts, times: 5, lasts: 3h, every: 7d}
traffic: {DE: 50%, FR: 50%}
goals: {ttft: {p90: 800ms}}
limits: {clouds: [aws, gcp, azure], countries: [EU]}
"""


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    (tmp_path / "chat.yaml").write_text(CHAT)
    return tmp_path / "chat.yaml"


def test_layers_regions_and_advice_are_shown_within_80_columns(chipwise: Chipwise, chat: Path) -> None:
    done = chipwise("plan", str(chat), "--full", "--commit", "any", "--chip", "a100")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    for part in (
        "Over a week (bursty)",
        "under an",
        "together",
        "only on-demand",
        "Regions for the traffic",
        "Assumed:",
        "with a commitment of $",
    ):
        assert part in " ".join(done.out.split())


def test_json_and_the_page_carry_the_same_layers(chipwise: Chipwise, chat: Path, tmp_path: Path) -> None:
    done = chipwise("plan", str(chat), "--json", "--html", str(tmp_path / "report.html"))
    assert done.code == 0, done.err
    load = json.loads(done.out[: done.out.rindex("}") + 1])["load"]
    assert sum(one["usd"] for one in load["layers"]) == pytest.approx(load["usd"])
    assert sum(one["hours"] for one in load["duration_curve"]) == pytest.approx(730)
    page = (tmp_path / "report.html").read_text()
    assert 'id="chart-load"' in page
    assert "Load over time" in page
    assert "Regions for the traffic" in page


def test_a_broken_trace_is_a_sentence_with_its_line(chipwise: Chipwise, chat: Path, tmp_path: Path) -> None:
    chat.write_text(CHAT.replace("arrival: 40 req/s", "arrival: {trace: t.csv}"))
    (tmp_path / "t.csv").write_text("arrival,input_tokens,output_tokens\n1,2,3\n2,3")
    done = chipwise("plan", str(chat))
    assert done.code == 2
    assert "t.csv, line 3 is cut off" in done.err
    assert "Traceback" not in done.err
