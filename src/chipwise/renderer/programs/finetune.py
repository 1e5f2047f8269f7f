#!/usr/bin/env python3
"""Fine-tunes a language model by LoRA, QLoRA or in full, on the GPUs that torchrun gives it, and goes on where it was stopped.

    torchrun --standalone --nproc-per-node=8 finetune.py

Reads every *.jsonl file under DATA_URL or /data, one sample a line: {"messages": [{"role": ..., "content": ...}]},
{"prompt": ..., "completion": ...} or {"text": ...}. Only answers are learnt; of a plain text all of it.
Writes checkpoints to /checkpoints, and the adapters (or the whole model) to /checkpoints/result when it is done.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fsspec
import torch
import torch.distributed
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
MODEL: str = SETTINGS["MODEL"]  # an id of the hub, or a directory
METHOD: str = SETTINGS["METHOD"]  # lora, qlora or full
RANK: int = SETTINGS["RANK"]  # of the adapters
TARGETS: str = SETTINGS["TARGETS"]  # attention or all-linear: the matrices that get adapters
EPOCHS: float = SETTINGS["EPOCHS"]
SEQUENCE_LENGTH: int = SETTINGS["SEQUENCE_LENGTH"]  # tokens; longer samples are cut
BATCH_SAMPLES: int = SETTINGS["BATCH_SAMPLES"]  # of one step, over all GPUs
MICRO_BATCH: int = SETTINGS["MICRO_BATCH"]  # of one pass, on one GPU
OPTIMIZER: str = SETTINGS["OPTIMIZER"]
LEARNING_RATE: float = SETTINGS["LEARNING_RATE"]
PRECISION: str = SETTINGS["PRECISION"]
RECOMPUTE: bool = SETTINGS["RECOMPUTE"]  # activations in the backward pass, to save memory
SHARD: int = SETTINGS["SHARD"]  # stage of ZeRO: 0 each GPU has all, 1 and 2 gradients and states are divided, 3 weights too
CHECKPOINT_S: float = SETTINGS["CHECKPOINT_S"]  # time between checkpoints
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
DIVIDED = SHARD > 0 and WORLD > 1
WRAPPED = DIVIDED and METHOD == "full"  # who divides the model wraps its layers to compute them again; see `sharding`
WARMUP = 0.03  # of the steps
OPTIMIZERS = {"adamw": "adamw_torch_fused", "adamw-8bit": "paged_adamw_8bit", "adafactor": "adafactor", "sgd": "sgd"}
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
IGNORED = -100  # label of a token that is read and not learnt
STOPPED = 143  # as of a program that a signal ended: whoever started it starts it again

Sample = dict[str, list[int]]


def rows(place: str) -> Iterator[Mapping[str, Any]]:
    """One of each line of each file, in the order of their names, the same on every rank."""
    files = sorted(
        fsspec.open_files(f"{place.rstrip('/')}/**/*.jsonl", "rt", encoding="utf-8"), key=lambda file: str(file.path)
    )
    for file in files:
        with file as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        row = json.loads(line)
                    except ValueError as error:
                        raise SystemExit(f"{file.path}:{number}: not JSON: {error}") from None
                    if not isinstance(row, dict) or not ({"messages", "text"} & row.keys() or "completion" in row):
                        raise SystemExit(f"{file.path}:{number}: has neither messages, prompt and completion, nor text")
                    yield row


def turns(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who says what."""
    if "messages" in row:
        return [(message["role"], message["content"]) for message in row["messages"]]
    if "completion" in row:
        return [("user", row.get("prompt", "")), ("assistant", row["completion"])]
    return [("assistant", row["text"])]


def tokens(row: Mapping[str, Any], tokenizer: Any, longest: int) -> Sample:
    """Ids with their labels, cut to the longest sequence. A model without a chat template reads plain text."""
    ids: list[int] = []
    labels: list[int] = []
    conversation: list[dict[str, str]] = []
    for role, content in turns(row):
        conversation.append({"role": role, "content": content})
        if tokenizer.chat_template and "text" not in row:
            text = tokenizer.apply_chat_template(conversation, tokenize=False)
            now = tokenizer(text, add_special_tokens=False)["input_ids"]
        else:
            now = ids + tokenizer(content, add_special_tokens=not ids)["input_ids"]
        start = _common_length(ids, now)  # a template may rewrite what stood before
        new = len(now) - start
        labels = labels[:start] + (now[start:] if role == "assistant" else [IGNORED] * new)
        ids = now
    if not tokenizer.chat_template and tokenizer.eos_token_id is not None:
        ids, labels = [*ids, tokenizer.eos_token_id], [*labels, tokenizer.eos_token_id]
    return {"input_ids": ids[:longest], "labels": labels[:longest]}


def _common_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Of the beginning that both share."""
    return next(
        (at for at, (left, right) in enumerate(zip(first, second, strict=False)) if left != right), min(len(first), len(second))
    )


class Samples(Dataset[Sample]):
    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Sample:
        return self.samples[index]


def padded(samples: Sequence[Sample], filler: int) -> dict[str, torch.Tensor]:
    longest = max(len(sample["input_ids"]) for sample in samples)
    batch: dict[str, list[list[int]]] = {"input_ids": [], "labels": [], "attention_mask": []}
    for sample in samples:
        count = len(sample["input_ids"])
        room = longest - count
        batch["input_ids"].append(sample["input_ids"] + [filler] * room)
        batch["labels"].append(sample["labels"] + [IGNORED] * room)
        batch["attention_mask"].append([1] * count + [0] * room)
    return {name: torch.tensor(values) for name, values in batch.items()}


class Saving(TrainerCallback):
    """Saves when it is time, and when the machine is taken away: at the same step on every rank."""

    def __init__(self, every_s: float) -> None:
        self.every_s, self.saved_at, self.asked = every_s, time.monotonic(), False
        signal.signal(signal.SIGTERM, self._stop_soon)

    def _stop_soon(self, *_: object) -> None:
        self.asked = True

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        wanted = torch.tensor([float(self.asked), float(time.monotonic() - self.saved_at > self.every_s)])
        if torch.distributed.is_initialized():
            wanted = wanted.to(args.device)
            torch.distributed.all_reduce(wanted, op=torch.distributed.ReduceOp.MAX)
        self.asked = bool(wanted[0] > 0)
        if self.asked or wanted[1] > 0:
            control.should_save = True
            self.saved_at = time.monotonic()
        control.should_training_stop = control.should_training_stop or self.asked
        return control


def load() -> Any:
    """The model, with adapters unless all of it is trained."""
    number = torch.float16 if PRECISION == "fp16" else torch.bfloat16
    options: dict[str, Any] = {"dtype": torch.float32 if METHOD == "full" else number}
    if METHOD == "qlora":
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=number,
            bnb_4bit_quant_storage=number if DIVIDED else torch.uint8,  # bytes are not divided, numbers of the model's kind are
        )
        options["device_map"] = {"": int(os.environ.get("LOCAL_RANK", "0")) if torch.cuda.is_available() else "cpu"}
    model = AutoModelForCausalLM.from_pretrained(MODEL, **options)
    model.config.use_cache = False  # of answers; training needs none
    if METHOD == "full":
        return model
    if METHOD == "qlora" and not DIVIDED:  # it makes numbers of 32 bits of what is left of 16, and shards have one kind
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=RECOMPUTE)
    elif RECOMPUTE:
        model.enable_input_require_grads()  # else nothing that is computed again leads to an adapter
    adapters = LoraConfig(
        r=RANK,
        lora_alpha=2 * RANK,
        target_modules="all-linear" if TARGETS == "all-linear" else ATTENTION,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, adapters)


def sharding() -> dict[str, Any]:
    """How the model is divided over the ranks, by PyTorch's fully_shard. It has no stage 1: gradients are divided as well.

    Rank 0 reads the weights and hands them out: the memory of a machine need not hold a copy for each of its GPUs. Checkpoints
    are in parts, one of each rank, and may be read by another number of them.

    Layers that compute again are wrapped in full training only: PEFT finds no adapters in wrapped ones, and saves none."""
    config = {
        "version": 2,
        "reshard_after_forward": SHARD >= 3,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "cpu_ram_efficient_loading": True,
        "state_dict_type": "SHARDED_STATE_DICT",
        "activation_checkpointing": RECOMPUTE and WRAPPED,
    }
    os.environ["ACCELERATE_USE_FSDP"] = "true"  # else every rank reads all weights before they are divided
    return {"fsdp": True, "fsdp_config": config}


def main() -> int:
    place = os.environ.get("DATA_URL") or "/data"
    out = Path(os.environ.get("CHECKPOINT_DIR", "/checkpoints"))
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    samples = [tokens(row, tokenizer, SEQUENCE_LENGTH) for row in rows(place)]
    samples = [sample for sample in samples if any(label != IGNORED for label in sample["labels"])]
    if not samples:
        raise SystemExit(f"No sample to learn from under {place}: *.jsonl files with messages, completion or text.")
    divided = sharding() if DIVIDED else {}
    recomputing = RECOMPUTE and not WRAPPED
    arguments = TrainingArguments(
        **divided,
        output_dir=str(out),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=MICRO_BATCH,
        gradient_accumulation_steps=max(round(BATCH_SAMPLES / (MICRO_BATCH * WORLD)), 1),
        gradient_checkpointing=recomputing,
        gradient_checkpointing_kwargs={"use_reentrant": False} if recomputing else None,
        bf16=PRECISION == "bf16",
        fp16=PRECISION == "fp16",
        optim=OPTIMIZERS[OPTIMIZER],
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="cosine",
        warmup_steps=WARMUP,
        ddp_find_unused_parameters=False,
        use_cpu=not torch.cuda.is_available(),  # to try it out
        save_strategy="no",  # `Saving` says when
        save_total_limit=3,
        logging_steps=10,
        report_to=[],
        disable_tqdm=True,  # a log has no bars
        seed=0,
    )
    saving = Saving(CHECKPOINT_S)
    trainer = Trainer(
        model=load(),
        args=arguments,
        train_dataset=Samples(samples),
        data_collator=lambda chosen: padded(chosen, tokenizer.pad_token_id),
        callbacks=[saving],
    )
    last = get_last_checkpoint(str(out)) if out.is_dir() else None
    print(f"{len(samples):,} samples, {'from ' + last if last else 'from the start'}", flush=True)
    trainer.train(resume_from_checkpoint=last)
    if saving.asked:
        print("stopped: the next start goes on from the checkpoint", flush=True)
        return STOPPED
    if divided:  # every rank gives its parts; the first one has room for all of them in its machine's memory
        weights = get_model_state_dict(trainer.model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if trainer.is_world_process_zero():
            trainer.model.save_pretrained(str(out / "result"), state_dict=weights)
    else:
        trainer.save_model(str(out / "result"))
    if trainer.is_world_process_zero():
        tokenizer.save_pretrained(str(out / "result"))
    return 0


if __name__ == "__main__":
    code = main()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    sys.exit(code)
