"""The settings that `measure_networks.py` measures, and the line that each becomes."""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import measure_models as base
import measure_variants as variants

STEPS = 20  # denoising steps of a picture
TOKENS = 64  # that a speech decoder writes
SIDES = {"stable-diffusion-1.5": 512, "stable-diffusion-xl": 1024, "flux.1-dev-transformer": 1024, "dit-xl-2": 512}
CNN = ("resnet18", "resnet34", "resnet50", "resnet152", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny")
NETS = (*CNN, "swin_t", "vit_b_16")
BERT = {"bert-base": (12, 768, 12), "bert-large": (24, 1024, 16)}
WHISPER = {"whisper-small": (12, 768, 12, 80, 51865), "whisper-large-v3": (32, 1280, 20, 128, 51866)}
SLICE = base.Model("llama-2-7b-8-layers", 8, 4096, 11008, 32, 32, 32000)
GPT = base.Model("llama-1.3b-shape", 24, 2048, 5504, 16, 16, 50304)
LONG = base.Model("llama-3.1-8b", 32, 4096, 14336, 32, 8, 128256)
MIXTRAL = variants.Moe("mixtral-8x7b-4-layers", 4, 4096, 14336, 32, 8, 32000, experts=8, active=2)
MANY = variants.Moe("qwen3-30b-a3b-6-layers", 6, 2048, 768, 32, 4, 151936, experts=128, active=8)
LLAMAS = {model.name: model for model in (SLICE, GPT, LONG, MIXTRAL, MANY, variants.SMALL)}


@dataclass(frozen=True, slots=True)
class Setting:
    domain: str
    model: str
    task: str
    batch: int
    length: int = 224  # side of a picture, tokens of a text
    precision: str = "bf16"
    mode: str = "eager"
    layout: str = ""  # nhwc, nchw
    steps: int = 0

    @property
    def training(self) -> bool:
        return self.task in ("train", "pretrain", "finetune", "lora")

    @property
    def long(self) -> bool:
        """Made of so many calls of one part that profiling that part is enough."""
        return self.steps > 1 or (self.domain == "speech" and not self.model.endswith("-encoder"))

    @property
    def key(self) -> str:
        parts = (
            self.domain,
            self.model,
            self.task,
            f"b{self.batch}",
            f"s{self.length}",
            self.precision,
            self.layout,
            self.mode,
        )
        return "-".join(part for part in parts if part)


def plan() -> Iterator[Setting]:
    yield from _vision()
    for model, sizes in (("bert-base", ((1, 128), (32, 128), (32, 512), (256, 128))), ("bert-large", ((1, 128), (32, 512)))):
        for batch, length in sizes:
            yield Setting("encoder", model, "bert", batch, length)
    for precision in ("fp16", "tf32", "fp32"):
        yield Setting("encoder", "bert-base", "bert", 32, 128, precision)
    yield Setting("encoder", "bge-large-en", "bert", 128, 512, "fp16")
    yield Setting("encoder", "bert-base", "finetune", 32, 128)
    for model, batch in (("bert-base", 32), ("bert-large", 32)):
        yield Setting("encoder", model, "bert", batch, 512, mode="compile")
    yield Setting("encoder", "bert-base", "bert", 1, 128, mode="graph")
    for mode in ("eager", "blocks"):
        for model, batch in (("stable-diffusion-1.5", 1), ("stable-diffusion-1.5", 4), ("stable-diffusion-xl", 1)):
            yield Setting("diffusion", model, "diffusion", batch, SIDES[model], "fp16", mode, "nhwc", STEPS)
        for model, batch in (("stable-diffusion-1.5-unet", 2), ("stable-diffusion-xl-unet", 2)):
            yield Setting("diffusion", model, "diffusion", batch, SIDES[model.removesuffix("-unet")], "fp16", mode, "nchw", 1)
        for model, batch in (("flux.1-dev-transformer", 1), ("dit-xl-2", 2), ("dit-xl-2", 32)):
            yield Setting("diffusion", model, "diffusion", batch, SIDES[model], mode=mode, steps=1)
    yield Setting("diffusion", "stable-diffusion-vae", "diffusion", 1, 1024, layout="nhwc", steps=1)
    for model in WHISPER:
        for batch in (1, 8):
            yield Setting("speech", model, "other", batch, 1500, "fp16")
        yield Setting("speech", f"{model}-encoder", "other", 8, 1500, "fp16")
    yield from _language()


def _vision() -> Iterator[Setting]:
    for model in NETS:
        yield Setting("vision", model, "image-classification", 256, layout="nhwc" if model in CNN else "nchw")
        yield Setting("vision", model, "image-classification", 1, layout="nchw")
    for model, precision in (("resnet50", "fp16"), ("efficientnet_b0", "fp16"), ("vit_b_16", "fp16"), ("resnet50", "tf32")):
        yield Setting("vision", model, "image-classification", 32, 224, precision, layout="nchw")
    for model, precision in (("vit_b_16", "tf32"), ("convnext_tiny", "tf32"), ("resnet50", "fp32"), ("vit_b_16", "fp32")):
        yield Setting("vision", model, "image-classification", 32, 224, precision, layout="nchw")
    yield Setting("vision", "resnet50", "image-classification", 256, layout="nchw")
    for model in ("resnet50", "vit_b_16"):
        yield Setting("vision", model, "image-classification", 1, mode="graph", layout="nchw")
    for model in NETS:
        yield Setting("vision-train", model, "train", 128, layout="nhwc" if model in CNN else "nchw")
    for precision in ("tf32", "fp32"):
        yield Setting("vision-train", "resnet50", "train", 128, 224, precision, layout="nchw")
    for model in ("resnet50", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "swin_t", "vit_b_16"):
        yield Setting("vision", model, "image-classification", 256, mode="compile", layout="nhwc" if model in CNN else "nchw")
    for model in ("resnet50", "vit_b_16"):
        yield Setting("vision", model, "image-classification", 1, mode="compile", layout="nchw")
    for model in ("resnet50", "convnext_tiny", "vit_b_16"):
        yield Setting("vision-train", model, "train", 128, mode="compile", layout="nhwc" if model in CNN else "nchw")


def _language() -> Iterator[Setting]:
    for mode in ("eager", "blocks"):
        for batch, length in ((1, 2048), (1, 20480)):
            yield Setting("llm-prefill", LONG.name, "llm-prefill", batch, length, mode=mode)
        for model, batch, length in ((GPT, 4, 2048), (SLICE, 2, 4096), (SLICE, 8, 1024)):
            yield Setting("llm-train", model.name, "pretrain", batch, length, mode=mode)
        yield Setting("lora", variants.SMALL.name, "lora", 4, 2048, mode=mode)
        yield Setting("lora", variants.SMALL.name, "pretrain", 4, 2048, mode=mode)
        for moe in (MIXTRAL, MANY):
            for task, batch, length in (("llm-prefill", 1, 4096), ("llm-decode", 1, 1024), ("llm-decode", 64, 1024)):
                yield Setting("moe", moe.name, task, batch, length, mode=mode)
    for mode in ("eager", "graph"):
        for batch, length in ((1, 2048), (32, 2048), (1, 32768), (1, 131072), (4, 32768)):
            yield Setting("llm-decode", LONG.name, "llm-decode", batch, length, mode=mode)
    for task, batch, length in (("llm-prefill", 1, 2048), ("llm-decode", 1, 2048), ("pretrain", 4, 1024), ("lora", 4, 1024)):
        yield Setting("transformers", "llama-3.2-1b", task, batch, length)
    for kind in ("flash", "cudnn", "efficient"):  # 32 queries, 8 heads of keys: where a context is split over the chip
        for length in (32768, 131072):
            yield Setting("attention", f"sdpa-{kind}", "attention-decode", 1, length, mode="graph")


def shape_of(setting: Setting) -> dict[str, object]:
    model = LLAMAS.get(setting.model)
    if model is None:
        return {}
    line: dict[str, object] = {"params_b": round(model.parameters / 1e9, 4), "layers": model.layers, "hidden": model.hidden}
    line |= {"ffn_hidden": model.ffn, "heads": model.heads, "kv_heads": model.kv_heads, "vocab": model.vocab}
    if isinstance(model, variants.Moe):
        line |= {"moe_experts_total": model.experts, "moe_experts_active": model.active}
    return line


def row(setting: Setting, machine: base.Machine, date: str, result: dict[str, Any]) -> dict[str, object]:
    torch, library = machine.torch, setting.domain in ("encoder", "speech", "transformers")
    chip, key = base.CHIPS.get(machine.name, (machine.name, machine.name))
    times = sorted(result.get("times", ()))
    middle = statistics.median(times) if times else None
    metric, scale = base.METRICS.get(setting.task, ("latency_ms", 1e3))
    if setting.task in ("lora", "finetune"):
        metric, scale = "step_time_s", 1.0
    value = middle * scale if middle else None
    if setting.batch > 1 and metric == "latency_ms":
        metric, value = "samples_per_s", setting.batch / middle if middle else None
    engine = f"PyTorch {torch.__version__.partition('+')[0]}"
    if setting.domain == "transformers":
        engine = f"transformers {importlib.import_module('transformers').__version__}"
    training = setting.training
    line: dict[str, object] = {
        "row_id": f"chipwise-{key}-{setting.key}".lower(),
        "source_repo": "chipwise",
        "model": setting.model,
    }
    line |= shape_of(setting) | {"task": setting.task, "domain": setting.domain, "chip": chip, "chip_key": key, "chips": 1}
    line |= {"tp": 1, "pp": 1}
    line |= {"precision": setting.precision} if training else {"engine": engine, "precision_weights": setting.precision}
    line |= {"micro_batch": setting.batch, "global_batch_sequences": setting.batch} if training else {}
    line |= {} if training else {"batch_or_concurrency": setting.batch, "precision_kv": setting.precision}
    picture = setting.domain in ("vision", "vision-train", "diffusion")
    line |= {"image_size": setting.length} if picture else {"seq_len" if training else "input_len": setting.length}
    line |= {"output_len": int(setting.task == "llm-decode")} if setting.task.startswith("llm-") else {}
    line |= {"output_len": TOKENS} if setting.domain == "speech" and not setting.model.endswith("-encoder") else {}
    line |= {"steps": setting.steps} if setting.steps else {}
    line |= {"activation_checkpointing": "none", "framework": "transformers" if library else "PyTorch"} if training else {}
    line |= {"compiled": setting.mode, "channels_last": int(setting.layout == "nhwc") if setting.layout else None}
    line |= {"metric_name": metric, "metric_value": value, "peak_gb": result.get("peak_gb"), "date": date}
    line["software"] = f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    line["software"] = f"{line['software']}, transformers" if library else line["software"]
    low, high = (times[int(share * (len(times) - 1))] for share in (0.1, 0.9)) if times else (0.0, 0.0)
    line |= {"spread": (high - low) / middle if middle else None, "repeats": len(times), "trust": "A"}
    return line | {name: result[name] for name in ("oom", "error") if name in result}
