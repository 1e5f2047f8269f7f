"""`chipwise predict` as a user has it: every example answers within 80 columns, and bad input ends in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import Chipwise

EXAMPLES = {
    "train": ("h100", "--chips", "16"),
    "finetune": ("h100", "--chips", "8"),
    "serve": ("l40s",),
    "batch": ("l4",),
    "measured": ("h100",),
    "hpc": ("h100", "--chips", "16"),
    "render": ("l40s", "--chips", "8"),
    "transcode": ("l4",),
    "stream": ("vu47p",),
    "hybrid": ("h100",),
    "interactive": ("a100",),
    "edge": ("a100,inspect=jetson-orin-nano",),
    "quantum": ("h100",),
    "pipeline": ("l4,preprocess=xeon-sapphire-rapids", "--chips", "8"),
}
BY_NAME = [
    ("llama-3.1-8b", "--train", "--on", "h100", "--chips", "8", "--micro-batch", "2"),
    ("resnet-50", "--serve", "--on", "l4", "--batch", "8"),
    ("bert-large", "--serve", "--on", "a100", "--rate", "200", "--input", "384"),
    ("resnet-50", "--train", "--on", "h100", "--chips", "8"),
    ("stable-diffusion-xl", "--serve", "--on", "h100"),
]


def test_every_example_is_tried() -> None:
    root = Path(__file__).resolve().parents[2] / "examples"
    assert set(EXAMPLES) == {path.parent.name for path in root.glob("*/workload.yaml")}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_predicted_in_text_that_fits(chipwise: Chipwise, name: str) -> None:
    done = chipwise("predict", f"examples/{name}/workload.yaml", "--on", *EXAMPLES[name])
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "run to run" in done.out


@pytest.mark.parametrize("arguments", BY_NAME, ids=" ".join)
def test_a_model_is_predicted_in_text_that_fits(chipwise: Chipwise, arguments: tuple[str, ...]) -> None:
    done = chipwise("predict", *arguments)
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("name", ["serve", "quantum"])
def test_json_holds_every_stage_and_goal(chipwise: Chipwise, name: str) -> None:
    view = chipwise("predict", f"examples/{name}/workload.yaml", "--on", *EXAMPLES[name], "--json").json
    assert [stage["name"] for stage in view.get("stages", ())] == {"quantum": ["integrals", "correlate", "dress"]}.get(name, [])
    assert {"goal", "percentile", "limit_s", "predicted_s", "met"} == set(view["goals"][0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nosuch.yaml", "--on", "h100"), "no file 'nosuch.yaml'"),
        (("examples/train/workload.yaml", "--on", "vu9p"), "VU9P (fpga) trains no models"),
        (("examples/transcode/workload.yaml", "--on", "h100"), "These have: L4"),
        (("examples/edge/workload.yaml", "--on", "jetson-orin-nano"), "Stage train: Jetson-Orin-Nano-Super (edge)"),
        (("examples/train/workload.yaml", "--on", "h100", "--chips", "0"), "--chips: 0 is not possible"),
        (("examples/hpc/workload.yaml", "--on", "h100", "--chips", "nan"), "--chips: nan is not possible"),
        (("examples/hpc/workload.yaml", "--on", "h100", "--seq", "512"), "--seq does not go with"),
        (("no-such-model", "--serve", "--on", "h100"), "No model is called"),
        (("resnet-50", "--serve", "--on", "l4", "--batch", "inf"), "--batch: inf is not possible"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_ends_in_a_sentence_and_exit_code_two(chipwise: Chipwise, arguments: tuple[str, ...], said: str) -> None:
    done = chipwise("predict", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_the_first_line_says_how_many_of_the_chips_are_used(chipwise: Chipwise) -> None:
    done = chipwise("predict", "llama-3.1-70b", "--serve", "--on", "h100", "--chips", "6")
    assert done.out.splitlines()[0].startswith("llama-3.1-70b on 4 of 6 H100-SXM")
