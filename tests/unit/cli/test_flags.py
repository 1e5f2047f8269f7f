"""Messages of `predict` and `fits` name what was typed, and flags that would change nothing are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chipwise.cli.main import app, main

# Columns and settings as they are called inside; nobody typed these.
INNER = re.compile(
    r"(?<![-\w])(shard|micro_batch|global_batch|input_len|output_len|prefix_len|precision_\w+|seq|tp|dp|batch): "
)
COUNTS = {
    "--train": ("chips", "tp", "pp", "cp", "ep", "seq", "micro-batch", "global-batch", "interleave", "chips-per-node"),
    "--serve": ("chips", "tp", "pp", "ep", "concurrency", "batch", "input", "replicas", "chips-per-node"),
}
FROM_ZERO = {"--train": ("zero",), "--serve": ("output", "prefix")}
SERVED = ("llama-3.1-8b", "--serve", "--on", "h100")
TRAINED = ("llama-3.1-8b", "--train", "--on", "h100")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parents[3])
    for name in ("CONFIG", "DATA"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"CHIPWISE_{name}_DIR", str(tmp_path / name))


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said of bad input."""
    assert main(list(arguments)) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert not INNER.search(found.err)
    return found.err


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, found = main([*arguments, "--json"]), capsys.readouterr()
    assert code == 0, found.err
    return json.loads(found.out)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "1e30", "nan", "inf", "many", ""])
@pytest.mark.parametrize("task", COUNTS)
def test_a_count_that_cannot_be_is_told_by_its_flag(capsys: pytest.CaptureFixture[str], task: str, value: str) -> None:
    for name in COUNTS[task]:
        said = told(capsys, "predict", "llama-3.1-8b", task, "--on", "h100", f"--{name}", value)
        assert f"--{name}: {value or repr('')} is not possible. Allowed: whole numbers from 1 to 1e12." in said
    for name in FROM_ZERO[task]:
        if value != "0":
            assert f"--{name}: " in told(capsys, "predict", "llama-3.1-8b", task, "--on", "h100", f"--{name}", value)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "nan", "many"])
@pytest.mark.parametrize("name", ["chips", "tp", "pp", "batch", "context"])
def test_counts_of_fits_likewise(capsys: pytest.CaptureFixture[str], name: str, value: str) -> None:
    for task in ((), ("--train",)):
        assert f"--{name}: {value} is not possible" in told(
            capsys, "fits", "llama-3.1-8b", "--on", "h100", *task, f"--{name}", value
        )


def test_no_flag_of_a_count_is_called_a_float() -> None:
    shown = {}
    for name in ("predict", "fits"):
        command = app.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for one in command.params:
            if one.type.name == "float":
                shown[one.name] = name
    assert shown == {"rate": "predict", "percentile": "predict"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--zero", "4"), "--zero: 4 is not possible. Allowed: whole numbers from 0 to 3."),
        (
            ("--micro-batch", "8", "--global-batch", "4"),
            "--global-batch: 4 is not possible. Allowed: at least --micro-batch x dp.",
        ),
        (("--cp", "8", "--seq", "4"), "--cp: 8 is not possible. Allowed: at most --seq."),
        (("--chips", "8", "--tp", "16"), "--chips: tp x pp x cp = 16 does not divide 8 chips."),
        (("--optimizer", "adam-ish"), "--optimizer: 'adam-ish' is not possible."),
        (("--precision", "fp7"), "--precision: 'fp7' is not possible."),
        (("--framework", "megatrn"), "--framework: 'megatrn' was never measured."),
        (("--tp", "3"), "--tp: 3 is not possible. Allowed: divisors of its 32 attention heads: 1, 2, 4, 8, 16, 32."),
        (("--tp", "64"), "--tp: 64 is not possible."),
        (
            ("--pp", "64"),
            "--pp: 64 is not possible. Allowed: at most one stage (--pp x --interleave) for each of its 32 layers",
        ),
        (("--pp", "16", "--interleave", "4"), "--pp: 16 is not possible."),
        (("--ep", "2", "--chips", "2"), "--ep: 2 is not possible. Allowed: 1: the model has no experts."),
        (("--serve",), "--train and --serve cannot be combined."),
        (("--engine", "vllm"), "--engine does not go with --train."),
        (("--rate", "3", "--ttft", "1s"), "--rate, --ttft do not go with --train."),
        (("--replicas", "3"), "--replicas does not go with --train."),
        (("--no-cuda-graphs",), "--cuda-graphs does not go with --train."),
    ],
)
def test_what_cannot_be_trained_is_told_by_flag(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in told(capsys, "predict", *TRAINED, *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--prefix", "20", "--input", "10"), "--prefix: 20 is not possible. Allowed: whole numbers from 0 to --input."),
        (("--output", "0"), "--output: nothing would be generated."),
        (("--precision", "fp7", "--kv", "fp9"), "--precision: 'fp7' is not possible."),
        (("--kv", "fp9"), "--kv: 'fp9' is not possible."),
        (("--engine", "vlm"), "--engine: 'vlm' is not possible."),
        (("--tp", "2", "--chips", "3"), "--chips: 3 is not a multiple of tp x pp = 2. Allowed: multiples of --tp x --pp."),
        (("--chips", "8", "--tp", "2", "--replicas", "3"), "--chips 8 is not --tp x --pp x --replicas = 6."),
        (("--tp", "5"), "--tp: 5 is not possible. Allowed: divisors of its 32 attention heads"),
        (("--pp", "40"), "--pp: 40 is not possible."),
        (("--cp", "2"), "--cp does not go with --serve."),
        (("--cp", "1"), "--cp does not go with --serve."),
        (("--seq", "2048", "--zero", "3"), "--seq, --zero do not go with --serve."),
        (("--rate", "2", "--concurrency", "4"), "--concurrency and --rate cannot be combined."),
        (("--rate", "0"), "--rate: 0 is not possible. Allowed: numbers above 0, up to 1e12."),
        (("--ttft", "0s"), "--ttft: 0s is not possible. Allowed: durations above 0"),
        (("--tpot", "5 parsecs"), "--tpot: 'parsecs' is not a unit of time."),
        (("--percentile", "101", "--ttft", "1s"), "--percentile: 101 is not possible. Allowed: numbers above 0, up to 100."),
        (("--percentile", "99"), "--percentile says how many requests must keep a goal, and none is given."),
    ],
)
def test_what_cannot_be_served_is_told_by_flag(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in told(capsys, "predict", *SERVED, *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("llama-3.1-8b", "--on", "tpu-v5e", "--serve", "--no-cuda-graphs"), "--cuda-graphs: a tpu has none"),
        (
            ("mixtral-8x7b", "--on", "h100", "--serve", "--ep", "16", "--tp", "16"),
            "--ep: 16 is not possible. Allowed: divisors of its 8",
        ),
        (("resnet-50", "--on", "l4", "--serve", "--input", "128"), "--input does not go with resnet-50"),
        (("resnet-50", "--on", "l4", "--serve", "--tpot", "5ms"), "--tpot does not go with resnet-50"),
        (("resnet-50", "--on", "l4", "--serve", "--precision", "fp7"), "--precision: 'fp7' is not known. Allowed: fp32"),
        (("resnet-50", "--on", "l4", "--serve", "--engine", "vllm"), "--engine: 'vllm' is not known. Allowed: tensorrt"),
        (
            ("resnet-50", "--on", "l4", "--train", "--micro-batch", "8", "--global-batch", "8"),
            "cannot be combined for resnet-50",
        ),
        (("resnet-50", "--on", "jetson-orin-nano", "--serve", "--engine", "tensorrt"), "--engine does not go with Jetson"),
        (("examples/serve/workload.yaml", "--on", "l40s", "--train"), "--train does not go with a workload of the kind serve"),
        (("examples/serve/workload.yaml", "--on", "l40s", "--kv", "fp9"), "--kv: 'fp9' is not possible."),
        (("examples/train/workload.yaml", "--on", "t4", "--precision", "fp8"), "--precision: T4 has no fp8 arithmetic."),
    ],
)
def test_what_does_not_go_together_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in told(capsys, "predict", *arguments)


def test_a_setting_of_a_file_is_told_by_its_field(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    text = Path("examples/train/workload.yaml").read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^precision:.*\n", "", text) + "precision: fp8\n", encoding="utf-8")
    assert "chipwise: precision: A100-80 has no fp8 arithmetic." in told(capsys, "predict", str(path), "--on", "a100")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--train", "--kv", "fp8"), "--kv does not go with this task. Leave out --train."),
        (("--zero", "3", "--method", "lora"), "--method, --zero do not go with this task. Add --train."),
        (("--chips", "3"), "--chips: 3 is not possible. Allowed: divisors of its 32 attention heads"),
        (("--tp", "3"), "--tp: 3 is not possible. Allowed: divisors of its 32 attention heads"),
        (("--chips", "3", "--tp", "2"), "--chips: 3 is not a multiple of tp x pp = 2."),
        (("--train", "--zero", "9"), "--zero: 9 is not possible."),
        (("--precision", "fp7"), "--precision: 'fp7' is not possible."),
    ],
)
def test_what_cannot_fit_anywhere_is_told_by_flag(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in told(capsys, "fits", "llama-3.1-8b", "--on", "h100", *arguments)


def test_no_speed_is_predicted_for_a_longer_context_than_stated(capsys: pytest.CaptureFixture[str]) -> None:
    said = "tokens are more than the 8,192 that llama-3-8b is stated for"
    model = ("llama-3-8b", "--on", "h200")
    assert said in told(capsys, "predict", *model, "--serve", "--batch", "1", "--input", "8192", "--output", "1")
    assert said in told(capsys, "predict", *model, "--train", "--seq", "16384")
    held = answered(capsys, "fits", *model, "--context", "20000")
    assert any(note.endswith(f"{said}.") for note in held["notes"])
    fine = answered(capsys, "predict", *model, "--serve", "--batch", "1", "--input", "8191", "--output", "1")
    assert not any("is stated for" in note for note in fine["notes"])
    encoded = answered(capsys, "predict", "bert-large", "--serve", "--on", "h100", "--input", "4096")
    assert any("more than the 512 that bert-large" in note for note in encoded["notes"])


def test_goals_find_the_highest_rate_and_are_held_against_a_given_one(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("predict", "llama-3.1-70b", "--serve", "--on", "h200", "--tp", "4", "--input", "1024", "--output", "256")
    goals = ("--ttft", "800ms", "--tpot", "50ms")
    alone = answered(capsys, *asked, *goals)
    rate = alone["highest_rate_per_s"]
    assert rate > 0
    assert "goals" not in alone
    below, above = (answered(capsys, *asked, *goals, "--rate", str(rate * share)) for share in (0.9, 1.3))
    assert [one["met"] for one in below["goals"]] == [True, True]
    assert not all(one["met"] for one in above["goals"])
    assert above["needs"]["replicas"] == 2
    assert {one["percentile"] for one in below["goals"]} == {90}
    stricter = answered(capsys, *asked, *goals, "--percentile", "99")
    assert stricter["highest_rate_per_s"] < rate


def test_goals_of_pictures_are_of_their_latency(capsys: pytest.CaptureFixture[str]) -> None:
    view = answered(capsys, "predict", "resnet-50", "--serve", "--on", "l4", "--rate", "100", "--latency", "20ms")
    assert view["goals"][0]["goal"] == "latency"
    assert view["highest_rate_per_s"] > 100


def test_goals_beside_a_file_win_over_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    view = answered(capsys, "predict", "examples/serve/workload.yaml", "--on", "l40s", "--ttft", "7s", "--percentile", "75")
    assert [(one["percentile"], one["limit_s"]) for one in view["goals"] if one["goal"] == "ttft"] == [(75, 7)]


def test_launches_show_without_cuda_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("predict", "llama-3.1-70b", "--serve", "--on", "h200", "--tp", "8", "--concurrency", "4")
    plain, with_graphs, without = (answered(capsys, *asked, *more) for more in ((), ("--cuda-graphs",), ("--no-cuda-graphs",)))
    assert plain == with_graphs
    assert (plain["setup"]["cuda_graphs"], without["setup"]["cuda_graphs"]) == (True, False)
    assert without["tpot_ms"]["terms_s"]["launches"] > 1.5 * plain["tpot_ms"]["terms_s"]["launches"]
    assert without["tpot_ms"]["value"] > plain["tpot_ms"]["value"]
    assert any("no engine was measured without" in note for note in without["notes"])


@pytest.mark.parametrize("command", ["pack", "check"])
def test_links_in_a_ring_are_told_as_such(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> None:
    (tmp_path / "a.yaml").symlink_to("b.yaml")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    assert "cannot be read: Too many levels of symbolic links" in told(capsys, command, str(tmp_path / "a.yaml"))
