"""The measured networks: complete, apart from the published rows, and asked in the words that the model reads."""

from __future__ import annotations

import csv
from collections import defaultdict

from chipwise.calibration.measurements import packaged, read
from chipwise.perf.rows import Row
from score_networks import OPERATORS, ROWS, question

STATED = ("domain", "software", "date", "compiled", "metric_value", "spread", "repeats", "peak_gb", "bound", "chip_key")


def test_no_measured_network_is_among_the_published_rows() -> None:
    fitted = {row.text("row_id") for row in packaged()}
    assert not fitted & {row.text("row_id") for row in read(ROWS).rows}


def test_every_measured_network_states_how_it_was_run() -> None:
    rows = read(ROWS).rows
    assert len({row.text("row_id") for row in rows}) == len(rows) > 60
    for row in rows:
        assert all(row.text(name) for name in STATED), row.text("row_id")
        assert row.text("precision_weights") or row.text("precision")
        assert row.text("image_size") or row.text("input_len") or row.text("seq_len")
        assert row.number("repeats", 0.0) >= 3


def test_every_operator_belongs_to_a_row_and_none_beats_the_roofline() -> None:
    known = {row.text("row_id") for row in read(ROWS).rows}
    spent: dict[str, float] = defaultdict(float)
    ideal: dict[str, float] = defaultdict(float)
    with OPERATORS.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            assert line["row_id"] in known
            if line["compiled"] == "eager":
                spent[line["class"]] += float(line["measured_ms"] or 0)
                ideal[line["class"]] += float(line["ideal_ms"] or 0)
    assert all(ideal[name] < spent[name] for name in spent)


def test_size_and_steps_of_pictures_are_asked_in_notes() -> None:
    pipeline = question(Row({"model": "stable-diffusion-xl", "image_size": "1024", "steps": "20"}))
    assert pipeline.text("notes") == "1024x1024; 20 Euler steps"
    single = question(Row({"model": "stable-diffusion-xl-unet", "image_size": "1024", "steps": "1"}))
    assert single.text("input_len") == "1024"
