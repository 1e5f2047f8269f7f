"""Two ordinary scripts, the doctor's advice for each, and what following it gives.

    python benchmarks/bottlenecks/advice.py

An eager loop over a small transformer (few tokens in a batch), and a classifier whose main process decodes JPEGs on one core.
Each runs as it was written and is diagnosed; then it runs with the change that the first finding names. The measured gain is
printed beside the interval that the doctor stated. It needs a GPU, torch and torchvision.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT / "src"), str(ROOT / "tests" / "support")]

WARM_S, MEASURED_S = 6.0, 12.0


def steps_per_s(step: Callable[[], None], warm_s: float) -> float:
    torch = import_module("torch")

    end = time.monotonic() + warm_s
    while time.monotonic() < end:
        step()
    torch.cuda.synchronize()
    count, began = 0, time.monotonic()
    while time.monotonic() - began < MEASURED_S:
        step()
        count += 1
    torch.cuda.synchronize()
    return count / (time.monotonic() - began)


def transformer(changed: bool) -> float:
    torch = import_module("torch")

    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0, device="cuda", dtype=torch.bfloat16)
    model: Any = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    tokens = torch.randn(4, 128, 512, device="cuda", dtype=torch.bfloat16)
    if changed:  # as launch-bound advises
        model = torch.compile(model, mode="reduce-overhead")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(tokens).float().square().mean().backward()
        optimizer.step()

    return steps_per_s(step, 60.0 if changed else WARM_S)


class Photos:
    def __init__(self) -> None:
        torch = import_module("torch")
        encode_jpeg = import_module("torchvision.io").encode_jpeg

        torch.manual_seed(0)
        small = torch.rand(3, 48, 64)
        picture = torch.nn.functional.interpolate(small[None], size=(768, 1024), mode="bicubic")[0].clamp(0, 1)
        self.content = encode_jpeg((255 * picture).to(torch.uint8), quality=90)

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Any:
        torch = import_module("torch")
        decode_jpeg = import_module("torchvision.io").decode_jpeg

        picture = decode_jpeg(self.content)[None].float() / 255
        return torch.nn.functional.interpolate(picture, size=(224, 224), mode="bilinear")[0]


def classifier(changed: bool) -> float:
    torch = import_module("torch")
    torchvision = import_module("torchvision")

    torch.set_num_threads(1)
    model = torchvision.models.resnet50().cuda().to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    settings: dict[str, Any] = {"num_workers": 8, "persistent_workers": True} if changed else {}  # as one-core advises
    batches: Iterator[Any] = iter(torch.utils.data.DataLoader(Photos(), batch_size=64, pin_memory=True, **settings))
    labels = torch.zeros(64, dtype=torch.long, device="cuda")

    def step() -> None:
        images = next(batches).to("cuda", torch.bfloat16, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images).float(), labels).backward()
        optimizer.step()

    return steps_per_s(step, WARM_S)


SCRIPTS: dict[str, tuple[Callable[[bool], float], str]] = {
    "transformer": (transformer, "launch-bound"),
    "classifier": (classifier, "one-core"),
}


def measured(name: str, changed: bool) -> tuple[float, Any]:
    """Steps per second in a process of its own, and what the doctor says of it."""
    from bottlenecks.drive import CHIPS
    from bottlenecks.sampling import Gpu, Program, Watcher
    from chipwise.observe.diagnosis import diagnose
    from chipwise.observe.sample import Recording

    process = subprocess.Popen([sys.executable, __file__, name, str(int(changed))], stdout=subprocess.PIPE, text=True)
    gpu, answer = Gpu(), list[str]()
    watcher = Watcher([Program(process.pid)], gpu)
    assert process.stdout is not None
    reader = threading.Thread(target=lambda out: answer.extend(out.readlines()), args=(process.stdout,))
    reader.start()
    while process.poll() is None:
        watcher.look()
        time.sleep(0.1)
    reader.join()
    last = watcher.samples[-1].at_s if watcher.samples else 0.0
    samples = [sample for sample in watcher.samples if sample.at_s >= last - MEASURED_S]
    recording = Recording(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), (gpu.device(),), samples)
    return float(json.loads(answer[-1])), diagnose(recording, CHIPS)


def main() -> int:
    fine = True
    for name, (_, expected) in SCRIPTS.items():
        before, diagnosis = measured(name, False)
        first = diagnosis.first
        after, healed = measured(name, True)
        stated = first.speedup if first is not None else None
        gain = after / before
        right = first is not None and first.rule == expected and stated is not None and gain >= stated.low
        fine &= right
        words = "nothing" if stated is None else f"{stated.value:.1f} ({stated.low:.1f} to {stated.high:.1f})"
        print(f"{name}: {before:.2f} steps/s; {first.rule if first else 'nothing'}; stated gain {words}", flush=True)
        print(f"  advice: {first.next_step if first else '-'}")
        then = healed.first.rule if healed.first else "nothing"
        print(
            f"  followed: {after:.2f} steps/s, {gain:.2f} times as fast; then {then}; {'right' if right else 'WRONG'}",
            flush=True,
        )
    return 0 if fine else 1


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(SCRIPTS[sys.argv[1]][0](sys.argv[2] == "1")))
    else:
        sys.exit(main())
