"""The rendered fine-tuning program as it is written, over two processes: it learns, goes on, and leaves a whole model.

Without GPUs accelerate divides no model: `sharding_on_cpu` lets it.
PyTorch, transformers and PEFT take gigabytes: CHIPWISE_FINETUNE_PYTHON names a Python that has them, or this one does.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.planner.values.split import TrainingSplit
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch import finetuning
from deployments import deployment

PYTHON = os.environ.get("CHIPWISE_FINETUNE_PYTHON", sys.executable)
_NEEDED = "import torch, transformers, peft, accelerate, fsspec"
HAS_BITS = subprocess.run([PYTHON, "-c", "import bitsandbytes"], capture_output=True).returncode == 0
HERE = subprocess.run([PYTHON, "-c", _NEEDED], capture_output=True).returncode == 0
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not HERE, reason="torch: not installed, or transformers, peft, accelerate")]
SUPPORT = Path(__file__).parents[1] / "support"
TINY = SUPPORT / "tiny_model.py"
MATRICES = ("q_proj", "k_proj", "v_proj", "o_proj")
ADAPTERS = {
    f"base_model.model.model.layers.{layer}.self_attn.{matrix}.lora_{side}.weight"
    for layer in range(2)
    for matrix in MATRICES
    for side in "AB"
}
LINES = [{"prompt": f"{one} two", "completion": "three four five"} for one in ("one", "six", "seven", "five")] * 16


def planned(method: str, shard: int) -> Deployment:
    found = deployment("finetune")
    assert found.finetuning is not None
    assert isinstance(found.split, TrainingSplit)
    wanted = replace(found.finetuning, method=method, epochs=2, batch_samples=8, sequence_length=16, optimizer="adamw", rank=4)
    return replace(found, finetuning=wanted, split=replace(found.split, dp=2, shard=shard, micro_batch=2, recompute=1))


def written(folder: Path, method: str, shard: int, **changed: object) -> Path:
    """The program beside its settings, a model and samples."""
    one = planned(method, shard)
    assert finetuning.is_written(one)
    for file in finetuning.files(one):
        (folder / file.path).write_text(file.text, encoding="utf-8")
    settings = json.loads((folder / "finetune.json").read_text(encoding="utf-8"))
    assert settings["SHARD"] == (shard if method == "full" or shard > 1 else 0)
    settings |= {"MODEL": str(folder / "model"), "TARGETS": "attention", "LEARNING_RATE": 1e-2} | changed
    (folder / "finetune.json").write_text(json.dumps(settings), encoding="utf-8")
    subprocess.run([PYTHON, str(TINY), str(folder / "model")], check=True, capture_output=True)
    data = folder / "data"
    data.mkdir()
    (data / "a.jsonl").write_text("\n".join(map(json.dumps, LINES)), encoding="utf-8")
    return folder


def start(folder: Path, ranks: int = 2) -> subprocess.Popen[str]:
    words = [PYTHON, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "finetune.py"]
    places = {"DATA_URL": str(folder / "data"), "CHECKPOINT_DIR": str(folder / "out"), "CUDA_VISIBLE_DEVICES": ""}
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "60"}
    environment = {**os.environ, **places, **quiet, "PYTHONPATH": str(SUPPORT / "sharding_on_cpu")}
    return subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def names(path: Path) -> set[str]:
    """Of the numbers in a file of weights, from its head."""
    content = path.read_bytes()
    return set(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])) - {"__metadata__"}


def losses(text: str) -> list[float]:
    marked = [line for line in text.splitlines() if "'loss'" in line]
    return [float(line.split("'loss':")[1].split(",")[0].strip(" '")) for line in marked]


@pytest.mark.parametrize(
    ("method", "shard"),
    [("full", 3), ("full", 2), ("lora", 3), ("lora", 0), ("qlora", 3), ("qlora", 2)],
    ids=lambda value: str(value),
)
def test_it_learns_over_two_processes_and_leaves_a_whole_model(tmp_path: Path, method: str, shard: int) -> None:
    if method == "qlora" and not HAS_BITS:
        pytest.skip("torch: not installed with bitsandbytes")
    folder = written(tmp_path, method, shard)
    running = start(folder)
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 0, said[-3000:]
    seen = losses(said)
    assert len(seen) >= 1, said[-2000:]
    untrained = math.log(16)  # of as many words; adapters of weights that know nothing learn little
    assert seen[-1] < (2.0 if method == "full" else untrained), seen
    result = folder / "out" / "result"
    name = "model.safetensors" if method == "full" else "adapter_model.safetensors"
    assert (result / name).is_file(), sorted(path.name for path in result.iterdir())
    if method == "full":
        assert names(result / name) == names(folder / "model" / name), "all of it, under its own names"
    else:
        assert names(result / name) == ADAPTERS
    loads = (
        "import sys; from transformers import AutoModelForCausalLM as M; import peft;"
        " m = M.from_pretrained(sys.argv[2]);"
        " m = m if sys.argv[1] == sys.argv[2] else peft.PeftModel.from_pretrained(m, sys.argv[1]);"
        " print(sum(p.abs().sum().item() for p in m.parameters()))"
    )
    base = result if method == "full" else folder / "model"
    loaded = subprocess.run([PYTHON, "-c", loads, str(result), str(base)], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr[-2000:]
    assert float(loaded.stdout.split()[-1]) > 0


PARTS = (
    "import sys; from torch.distributed.checkpoint import FileSystemReader as R;"
    " print(len(R(sys.argv[1]).read_metadata().state_dict_metadata))"
)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_what_is_stopped_goes_on_from_its_parts(tmp_path: Path, method: str) -> None:
    folder = written(tmp_path, method, 3, EPOCHS=400, CHECKPOINT_S=1)
    running = start(folder)
    until = time.monotonic() + 240
    while not list((folder / "out").glob("checkpoint-*")) and time.monotonic() < until and running.poll() is None:
        time.sleep(0.5)
    running.send_signal(signal.SIGTERM)
    said, _ = running.communicate(timeout=120)
    saved = {path.name for path in (folder / "out").glob("checkpoint-*")}
    assert saved, said[-2000:]
    settings = json.loads((folder / "finetune.json").read_text(encoding="utf-8"))
    (folder / "finetune.json").write_text(json.dumps(settings | {"EPOCHS": 1}), encoding="utf-8")
    again = start(folder)
    said, _ = again.communicate(timeout=240)
    assert again.returncode == 0, said[-3000:]
    assert "samples, from " in said
    assert "from the start" not in said
    newest = max((folder / "out").glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    [part] = [path for path in newest.iterdir() if path.is_dir() and "fsdp" in path.name]
    counted = subprocess.run([PYTHON, "-c", PARTS, str(part)], capture_output=True, text=True, check=True)
    assert int(counted.stdout) == (21 if method == "full" else len(ADAPTERS)), "a checkpoint without weights begins anew"
    name = "model.safetensors" if method == "full" else "adapter_model.safetensors"
    assert (folder / "out" / "result" / name).is_file()
