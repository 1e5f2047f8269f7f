from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import chipwise
from chipwise.catalog.load import load
from chipwise.perf.family_vision import BLOCKS, TERM_OF, question_of
from chipwise.perf.fitting import fit
from chipwise.perf.part import Part, Parts
from chipwise.perf.published_vision import (
    ENGINES,
    FORMATS,
    METRICS,
    TASKS,
    VisionCase,
    case_of,
    clock,
    engine_of,
    handles,
    stacked,
)
from chipwise.perf.question import answer
from chipwise.perf.rows import Row
from chipwise.perf.vision import BASES, TERMS

MEASURED = Path(chipwise.__file__).parent / "data" / "measurements"
RESULTS = re.compile(r"\d[\d.e+]*-\d[\d.e+]*(?= (?:/s|seq/s))|(?<=run spread )[\d.]+")  # as notes print them


@cache
def parts() -> Parts:
    return Parts(load(prices=False).chips.values())


@cache
def rows() -> tuple[Row, ...]:
    found = []
    for name in ("inference.csv", "training.csv"):
        with (MEASURED / name).open(encoding="utf-8", newline="") as file:
            found += [Row(row) for row in csv.DictReader(file)]
    return tuple(row for row in found if handles(row))


def part_of(row: Row) -> Part:
    part = parts().find(row.text("chip")) or parts().find(row.text("chip_key")) or parts().find(row.text("chips_csv_name"))
    assert part is not None, row.text("chip")
    return part


def case(row: Row) -> VisionCase:
    return case_of(row, part_of(row))


def changed(row: Row, **cells: str) -> Row:
    return Row({**row.cells, **cells})


def bert(**cells: str) -> Row:
    usual = {
        "task": "bert",
        "model": "BERT-large",
        "chip": "H100-SXM-80GB",
        "chips": "8",
        "engine": "TensorRT 9.3.0, CUDA 12.2",
        "precision_weights": "int8",
        "input_len": "384",
        "metric_name": "samples_per_s",
        "source_repo": "mlcommons/inference_results_v4.0",
        "notes": "MLPerf Inference v4.0 closed; submitter NVIDIA; scenario Offline; benchmark bert-99; SQuAD v1.1",
    }
    return Row(usual | cells)


def test_every_row_of_the_family_becomes_a_case() -> None:
    assert len(rows()) > 650
    for row in rows():
        found = case(row)
        assert found.engine in ENGINES
        assert found.precision in FORMATS
        assert found.metric in METRICS
        assert found.batch >= 1
        assert found.copies >= 1
        assert 0 < found.share <= 1


def test_a_blank_value_is_fine_and_a_value_changes_nothing() -> None:
    for row in rows():
        found = case(row)
        assert case(changed(row, metric_value="")) == found
        assert case(changed(row, metric_value="123456", other_reported="mfu 0.99; 1 s")) == found


def test_results_that_notes_print_change_nothing() -> None:
    printed = 0
    for row in rows():
        notes = row.text("notes")
        other = RESULTS.sub("1-9", notes)
        printed += other != notes
        for text in (other, f"{notes}; 4711.5 images/s, 12.3 ms, 1234 samples/s measured"):
            assert case(changed(row, notes=text)) == case(row)
    assert printed > 20


def test_language_models_are_left_to_other_families() -> None:
    assert not handles(Row({"task": "llm-offline", "model": "Llama-2-70B"}))
    assert not handles(Row({"task": "pretrain", "model": "BERT-Large"}))
    assert handles(Row({"task": "train", "model": "ResNet-50-v1.5"}))
    assert handles(Row({"task": "pretrain", "model": "ViT-B/16"}))
    assert all(handles(Row({"task": task})) for task in TASKS)


def test_mlperf_asks_bert_short_questions_in_batches_that_fit_the_scenario() -> None:
    offline, server = case(bert()), case(bert(notes=bert().text("notes").replace("Offline", "Server")))
    assert offline.net.flop == pytest.approx(2 * 302e6 * 178, rel=0.05)
    assert offline.scenario == "offline"
    assert server.scenario == "server"
    assert 1 <= server.batch < offline.batch
    assert offline.copies == 8


def test_hopper_runs_the_accurate_bert_in_8_bits_whatever_the_results_say() -> None:
    assert case(bert(precision_weights="fp16")).precision == "fp8"
    assert case(bert(precision_weights="fp16", chip="L40S")).precision == "fp16"


def test_pictures_and_steps_come_from_the_notes() -> None:
    row = Row(
        {
            "task": "diffusion",
            "model": "SDXL-base",
            "chip": "H100-SXM-80GB",
            "metric_name": "latency_ms",
            "notes": "COCO-2014 prompts, 1024x1024, 20 Euler steps",
        }
    )
    found = case(row)
    small, short = (case(changed(row, notes=text)) for text in ("512x512, 20 Euler steps", "1024x1024, 10 Euler steps"))
    assert small.net.flop < found.net.flop / 3.5
    assert short.net.flop == pytest.approx(found.net.flop / 2, rel=0.05)  # text and decoder run once
    assert found.model == "stable-diffusion-xl"


@pytest.mark.parametrize(
    ("notes", "task", "batch", "copies", "share", "in_flight"),
    [
        ("Inf2.xlarge, data parallel over all NeuronCores; batch is per core", "bert", "4", 2, 0.5, 1),
        ("Inf2.xlarge (2 NeuronCores); image 224x224; Data Parallel", "image-classification", "1", 1, 0.5, 1),
        ("Inf2.xlarge (2 NeuronCores); image 224x224; Data Parallel", "image-classification", "64", 2, 0.5, 1),
        ("Inf2.xlarge (2 NeuronCores); image 512x512; Data Parallel", "diffusion", "1", 1, 1.0, 1),
        ("inf1.xlarge (4 NeuronCores); 4 model copies x 2 workers", "bert", "6", 4, 0.25, 2),
    ],
)
def test_cores_of_a_chip_work_apart(notes: str, task: str, batch: str, copies: float, share: float, in_flight: float) -> None:
    model = {"bert": "BERT-base", "image-classification": "ResNet-18", "diffusion": "SD-1.5"}[task]
    row = Row(
        {
            "task": task,
            "model": model,
            "chip": "Inferentia2",
            "batch_or_concurrency": batch,
            "notes": notes,
            "metric_name": "latency_ms",
            "input_len": "128",
        }
    )
    found = case(row)
    assert (found.copies, found.share, found.in_flight) == (copies, share, in_flight)
    assert found.precision == "bf16"


def test_faster_transformers_example_skips_padding() -> None:
    row = Row(
        {
            "task": "bert",
            "model": "BERT-6B",
            "layers": "32",
            "hidden": "4096",
            "ffn_hidden": "16384",
            "heads": "32",
            "chip": "A100-SXM4-80GB",
            "input_len": "1024",
            "batch_or_concurrency": "32",
            "metric_name": "latency_ms",
        }
    )
    padded, skipped = (case(changed(row, engine=f"FasterTransformer 5{end}")).net for end in ("", " (Triton)"))
    assert skipped.products[0].rows == padded.products[0].rows / 2
    assert skipped.score_flop == padded.score_flop


def test_training_rows_share_their_batch_over_the_chips() -> None:
    row = Row(
        {
            "task": "train",
            "model": "ResNet-50-v1.5",
            "chip": "A100-80GB-PCIe",
            "chips": "8",
            "chips_per_node": "8",
            "global_batch_sequences": "3264",
            "metric_name": "samples_per_s",
            "source_repo": "mlcommons/training_results_v2.1",
        }
    )
    found = case(row)
    assert found.batch == 408
    assert found.engine == "mxnet"
    assert found.decoded > 0
    assert found.training


@pytest.mark.parametrize(
    ("text", "chip", "name"),
    [
        ("TensorRT 9.3.0, CUDA 12.2", "L4", "tensorrt"),
        ("Triton + PyTorch", "T4", "triton-pytorch"),
        ("PyTorch 2.5 (Neuron 2.21.0)", "Inferentia2", "neuron"),
        ("PyTorch", "Xeon-8380", "pytorch-cpu"),
        ("TensorFlow 1.15 XLA", "T4", "xla"),
        ("PyTorch eager", "T4", "pytorch-1"),
        ("PyTorch", "L4", "pytorch"),
        ("something new", "Gaudi2", "habana"),
        ("", "L4", "tensorrt"),
    ],
)
def test_engines_are_known_by_their_names(text: str, chip: str, name: str) -> None:
    assert engine_of(text, parts()[chip])[0] == name


def test_the_catalog_tells_clocks_and_stacked_memory() -> None:
    assert clock(parts()["T4"]) == pytest.approx(585 / 1590)
    assert stacked(parts()["A100-80"])
    assert not stacked(parts()["A10"])


def test_a_question_has_a_level_for_every_block_and_terms_for_every_base() -> None:
    question = question_of([case(row) for row in rows()[:40]])
    assert {block.level for block in BLOCKS} <= set(question.levels)
    assert {block.feature for block in BLOCKS} - {"1"} <= set(question.features)
    assert {block.base for block in BLOCKS} - {"*"} <= set(BASES) == set(question.bases) == set(TERM_OF)
    assert set(TERM_OF.values()) == set(TERMS)
    assert len({block.key for block in BLOCKS}) == len(BLOCKS)
    assert len(question) == 40


def test_a_fit_explains_most_rows_and_what_it_answers_adds_up() -> None:
    used = [row for row in rows() if (row.text("trust") or row.text("quality")) in ("A", "B")]
    question = question_of([case(row) for row in used])
    measured = np.array([row.number("metric_value", np.nan) for row in used])
    factors = fit(question.problem(measured, np.ones(len(used))), BLOCKS, rounds=5)
    found = answer(question, factors)
    assert np.median(np.abs(found.value / measured - 1)) < 0.06
    assert sum(found.terms.values()) == pytest.approx(found.seconds)
