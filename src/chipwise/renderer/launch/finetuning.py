"""The program that fine-tunes a model where the workload brings none: for what it is written, its settings, its packages.

It runs data parallel, each GPU with the whole model or with a shard of it (ZeRO, by PyTorch's fully_shard); the planner makes
plans for it (`planner/training/recipe.py`), and those that cut a model by tensors or layers need a program of the user's own.
Weights of four bits on AMD's GPUs were not tried: bitsandbytes has kernels for them and lists them as supported.
"""

from __future__ import annotations

from chipwise.planner.training import recipe
from chipwise.planner.values.split import TrainingSplit
from chipwise.renderer.deployment import Deployment, FineTuning
from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.program_files import Setting, python_files

RESULT = "/checkpoints/result"
REQUIREMENTS = "finetune-requirements.txt"
CHECKPOINT_S = 1800.0  # where nothing says how often machines are lost
OPTIMIZERS = ("adamw", "adamw-8bit", "adafactor", "sgd")
SHARDED_OPTIMIZERS = ("adamw", "sgd")
EIGHT_BITS = "adamw-8bit"
# The newest that the program was run with.
_PACKAGES = ("transformers==5.17.0", "peft==0.21.0", "accelerate==1.15.0")
_BITS = f"{recipe.SMALL_FORMATS}==0.50.2"
_STORES = {"s3": "s3fs==2026.9.0", "gs": "gcsfs==2026.10.1", "az": "adlfs==2026.8.0", "abfs": "adlfs==2026.8.0"}
_ANY_STORE = "fsspec==2026.9.0"


def is_written(deployment: Deployment) -> bool:
    """Whether the program comes with the image."""
    return not obstacle(deployment)


def obstacle(deployment: Deployment) -> str:
    """Why it is not written, as the end of a sentence; empty: it is."""
    wanted, split, software = deployment.finetuning, deployment.split, deployment.software
    if wanted is None or software.is_custom or not software.built or deployment.model is None:
        return "the workload brings a program, an image or a model of its own"
    if software.purpose != "pytorch" or deployment.node.kind != "gpu":
        return f"ours is for PyTorch on GPUs and {deployment.node.chip} has another stack"
    if not isinstance(split, TrainingSplit) or (split.tp, split.pp, split.cp, split.ep) != (1, 1, 1, 1):
        return "ours gives each GPU the whole model or a shard of it, and this plan cuts it by tensors, layers or experts"
    if wanted.optimizer not in OPTIMIZERS:
        return f"ours has no optimizer {wanted.optimizer}"
    return _undivided(deployment, wanted) if sharded(deployment) else ""


def _undivided(deployment: Deployment, wanted: FineTuning) -> str:
    """Why shards cannot be made: states of eight bits are no tensors that are divided (adapters are few, and take plain ones),
    and each GPU reads all weights of four bits before it gives the others' away."""
    model, room = deployment.model, deployment.node.chip_memory_bytes
    if wanted.optimizer not in (SHARDED_OPTIMIZERS if wanted.method == "full" else (*SHARDED_OPTIMIZERS, EIGHT_BITS)):
        return f"states of {wanted.optimizer} are not divided over GPUs"
    if model is None or not model.weight_bytes or not room or not recipe.loads(wanted.method, model.weight_bytes, room):
        return "each GPU would have to read all weights of four bits before they are divided, and has no room for them"
    return ""


def sharded(deployment: Deployment) -> int:
    """The stage of ZeRO by which ranks divide the model; 0: each has all of it. States of adapters are small: every rank may
    have them, so that stage 1 is none for these."""
    split, wanted = deployment.split, deployment.finetuning
    if not isinstance(split, TrainingSplit) or wanted is None or split.dp == 1:
        return 0
    return split.shard if wanted.method == "full" or split.shard > 1 else 0


def files(deployment: Deployment) -> list[File]:
    wanted, split, model = deployment.finetuning, deployment.split, deployment.model
    assert wanted is not None
    assert model is not None
    assert isinstance(split, TrainingSplit)
    settings = [
        Setting("MODEL", model.source),
        Setting("METHOD", wanted.method),
        Setting("RANK", wanted.rank),
        Setting("TARGETS", wanted.targets),
        Setting("EPOCHS", wanted.epochs),
        Setting("SEQUENCE_LENGTH", wanted.sequence_length),
        Setting("BATCH_SAMPLES", wanted.batch_samples),
        Setting("MICRO_BATCH", split.micro_batch),
        Setting("OPTIMIZER", _optimizer(deployment), _why(deployment)),
        Setting("LEARNING_RATE", 1e-5 if wanted.method == "full" else 2e-4, "Usual of its method; try half and twice of it."),
        Setting("PRECISION", model.precision if model.precision in ("bf16", "fp16") else "bf16"),
        Setting("RECOMPUTE", split.recompute > 0),
        Setting("SHARD", sharded(deployment)),
        Setting("CHECKPOINT_S", round(deployment.checkpoint_s or CHECKPOINT_S)),
    ]
    program = python_files("finetune.py", "finetune.py", heading(deployment), settings)
    return [*program, File(REQUIREMENTS, "\n".join(_packages(deployment)) + "\n")]


def _optimizer(deployment: Deployment) -> str:
    """States of eight bits are not divided; those of adapters are few, also as plain numbers."""
    wanted = deployment.finetuning
    assert wanted is not None
    return "adamw" if sharded(deployment) and wanted.optimizer == EIGHT_BITS else wanted.optimizer


def _why(deployment: Deployment) -> str:
    wanted = deployment.finetuning
    assert wanted is not None
    return f"In place of {EIGHT_BITS}, whose states are not divided." if _optimizer(deployment) != wanted.optimizer else ""


def _packages(deployment: Deployment) -> list[str]:
    wanted = deployment.finetuning
    assert wanted is not None
    bits = wanted.method == "qlora" or _optimizer(deployment) == EIGHT_BITS
    data = dict(deployment.software.env).get("DATA_URL", "")
    store = _STORES.get(data.partition("://")[0], _ANY_STORE)
    return [*_PACKAGES, *([_BITS] if bits else []), store]
