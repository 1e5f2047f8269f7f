"""The fine-tuning program that comes with an image: when it is written, with what, and how it reads samples.

torch, peft and transformers are not installed here: stand-ins of the names that the program imports take their place, so only
what it does by itself is tried. It was run as it stands on a GPU, for each method.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest

from chipwise.planner.values.split import TrainingSplit
from chipwise.renderer.launch import finetuning, handing
from chipwise.renderer.program_files import NOTES
from chipwise.renderer.targets import dockerfile
from deployments import on_few_offers as deployment

ARGUMENTS = Path(__file__).parents[2] / "support" / "arguments"
MARKS = {"user": 1, "assistant": 2}


class Words:
    """A tokenizer of one number a word, with or without a template."""

    eos_token_id = 9

    def __init__(self, template: str | None) -> None:
        self.chat_template = template

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": ([0] if add_special_tokens else []) + [int(word) for word in text.split()]}

    def apply_chat_template(self, said: list[dict[str, str]], tokenize: bool) -> str:
        assert not tokenize
        return " ".join(f"{MARKS[one['role']]} {one['content']}" for one in said)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The rendered program as a module, beside its settings."""
    for file in finetuning.files(deployment("finetune")):
        (tmp_path / file.path).write_text(file.text, encoding="utf-8")
    names = (
        "fsspec",
        "torch",
        "torch.distributed",
        "torch.distributed.checkpoint",
        "torch.utils",
        "torch.utils.data",
        "peft",
        "transformers",
    )
    for name in (*names, "transformers.trainer_utils", "torch.distributed.checkpoint.state_dict"):
        monkeypatch.setitem(sys.modules, name, MagicMock(name=name, spec=None))
    data, transformers = ModuleType("torch.utils.data"), MagicMock()
    data.Dataset = {dict[str, list[int]]: object}  # type: ignore[attr-defined]
    transformers.TrainerCallback = object
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    spec = importlib.util.spec_from_file_location("finetune", tmp_path / "finetune.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_answers_are_learnt(program: Any) -> None:
    talk = {"messages": [{"role": "user", "content": "5 6"}, {"role": "assistant", "content": "7"}]}
    assert program.tokens(talk, Words("yes"), 100) == {"input_ids": [1, 5, 6, 2, 7], "labels": [-100, -100, -100, 2, 7]}
    pair = {"prompt": "5 6", "completion": "7"}
    assert program.tokens(pair, Words(None), 100) == {"input_ids": [0, 5, 6, 7, 9], "labels": [-100, -100, -100, 7, 9]}
    text = {"text": "5 6"}
    assert program.tokens(text, Words(None), 100) == {"input_ids": [0, 5, 6, 9], "labels": [0, 5, 6, 9]}
    assert program.tokens(text, Words(None), 2) == {"input_ids": [0, 5], "labels": [0, 5]}


def test_a_template_that_rewrites_what_came_before_keeps_labels_at_their_tokens(program: Any) -> None:
    class Rewriting(Words):
        def apply_chat_template(self, said: list[dict[str, str]], tokenize: bool) -> str:
            return super().apply_chat_template(said, tokenize).replace("5", "8" if len(said) > 1 else "5")

    talk = {"messages": [{"role": "user", "content": "5 6"}, {"role": "assistant", "content": "7"}]}
    sample = program.tokens(talk, Rewriting("yes"), 100)
    assert len(sample["labels"]) == len(sample["input_ids"])
    assert sample["input_ids"] == [1, 8, 6, 2, 7]


@pytest.mark.parametrize("line", ['{"a": 1}', "[1]", "{", '"text"'])
def test_a_line_that_is_no_sample_is_named_with_its_file(program: Any, tmp_path: Path, line: str) -> None:
    class OpenFile:
        path = "x.jsonl"

        def __enter__(self) -> list[str]:
            return ["\n", json.dumps({"text": "1"}), line]

        def __exit__(self, *_: object) -> None: ...

    program.fsspec.open_files = lambda *_, **__: [OpenFile()]
    with pytest.raises(SystemExit, match=r"x\.jsonl:3: "):
        list(program.rows("s3://bucket/"))


def test_settings_are_the_plan_and_the_workload() -> None:
    planned = deployment("finetune")
    made = {file.path: file.text for file in dockerfile.render(planned)}
    settings = json.loads(made["finetune.json"])
    assert set(settings) - {NOTES} == set(re.findall(r'SETTINGS\["(\w+)"\]', made["finetune.py"]))
    assert isinstance(planned.split, TrainingSplit)
    assert (settings["METHOD"], settings["RANK"], settings["EPOCHS"]) == ("qlora", 32, 2)
    assert settings["BATCH_SAMPLES"] == 64
    assert settings["MICRO_BATCH"] == planned.split.micro_batch
    assert settings["MODEL"] == "meta-llama/Llama-3.1-70B"
    assert f"COPY {finetuning.REQUIREMENTS}" in made["Dockerfile"]
    assert {line.partition("==")[0] for line in made[finetuning.REQUIREMENTS].split()} >= {"peft", "bitsandbytes", "s3fs"}
    assert handing.written_by(planned) == finetuning.RESULT


def test_no_program_is_written_where_it_would_not_do_what_is_planned() -> None:
    planned = deployment("finetune")
    assert isinstance(planned.split, TrainingSplit)
    assert planned.finetuning is not None
    full = replace(planned.finetuning, method="full")
    small = replace(planned, node=replace(planned.node, chip_memory_bytes=24e9))
    others = [
        replace(planned, split=replace(planned.split, tp=2)),
        replace(small, split=replace(planned.split, dp=2, shard=3)),  # weights of four bits, above the room of one GPU
        replace(planned, finetuning=replace(full, optimizer="adafactor"), split=replace(planned.split, dp=2, shard=3)),
        replace(planned, finetuning=replace(planned.finetuning, optimizer="muon")),
        replace(planned, finetuning=None),
        replace(planned, software=replace(planned.software, is_custom=True)),
        replace(planned, node=replace(planned.node, kind="neuron")),
    ]
    assert not any(finetuning.is_written(one) for one in others)
    assert "finetune.py" not in {file.path for file in dockerfile.render(others[0])}


@pytest.mark.parametrize(
    ("method", "dp", "shard", "written"),
    [("full", 16, 3, 3), ("full", 8, 1, 1), ("full", 1, 3, 0), ("lora", 8, 3, 3), ("lora", 8, 1, 0), ("qlora", 3, 3, 3)],
)
def test_a_sharded_plan_gets_the_program_with_its_stage(method: str, dp: int, shard: int, written: int) -> None:
    planned = deployment("finetune")
    assert isinstance(planned.split, TrainingSplit)
    assert planned.finetuning is not None
    wanted = replace(planned.finetuning, method=method, optimizer="adamw")
    planned = replace(planned, finetuning=wanted, split=replace(planned.split, dp=dp, shard=shard))
    assert finetuning.is_written(planned)
    made = {file.path: file.text for file in finetuning.files(planned)}
    assert json.loads(made["finetune.json"])["SHARD"] == written


@pytest.mark.parametrize(("shard", "written"), [(3, "adamw"), (0, "adamw-8bit")])
def test_states_of_eight_bits_are_not_divided(shard: int, written: str) -> None:
    planned = deployment("finetune")
    assert isinstance(planned.split, TrainingSplit)
    assert planned.finetuning is not None
    wanted = replace(planned.finetuning, method="qlora", optimizer="adamw-8bit")
    planned = replace(planned, finetuning=wanted, split=replace(planned.split, dp=3, shard=shard))
    assert finetuning.is_written(planned)
    made = {file.path: file.text for file in finetuning.files(planned)}
    assert json.loads(made["finetune.json"])["OPTIMIZER"] == written


@pytest.mark.parametrize("package", ["transformers", "peft"])
def test_every_argument_is_one_that_the_pinned_version_takes(package: str) -> None:
    """Against the names of the packages' own sources, which are kept beside those of engines."""
    [pinned] = [one.partition("==")[2] for one in finetuning._PACKAGES if one.startswith(f"{package}==")]
    lists = {path.name.split("-")[1]: path for path in ARGUMENTS.glob(f"{package}-*-{pinned}.txt")}
    assert lists, f"no arguments are kept of {package} {pinned}: read them from its sources"
    source = (Path(finetuning.__file__).parents[1] / "programs" / "finetune.py").read_text(encoding="utf-8")
    calls = [
        (node.func.id, [word.arg for word in node.keywords if word.arg is not None])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in lists
    ]
    assert {name for name, _ in calls} == set(lists)
    for name, words in calls:
        assert set(words) <= set(lists[name].read_text(encoding="utf-8").split("\n")[1:]), name
