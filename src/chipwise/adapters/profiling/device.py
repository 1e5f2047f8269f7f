"""The device that is measured, and torch, which is imported here and nowhere else.

torch is a download of gigabytes and an optional extra, so it is imported when somebody measures, and is `Any` to the type
checker: this is a door.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chipwise.errors import BadInput, MissingExtra, NotFound, OutsideFailed

CHOICES = ("auto", "cuda", "cpu")
_COLD = 4  # times the cache: a buffer that comes round again after this much other traffic is no longer in the cache
_MOST_COPIES = {"cuda": 256, "cpu": 8}  # a processor takes seconds to make random numbers for more
_CPU_CACHE = 32e6  # bytes; torch does not tell, and only the number of copies depends on it
_WIDTHS = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}


@dataclass(frozen=True, slots=True)
class Device:
    torch: Any
    kind: str  # one of perf.profile.DEVICE_KINDS
    name: str
    place: str  # what torch calls it: "cuda" (AMD's too) or "cpu"
    count: int  # devices of this kind in the machine
    memory_bytes: float
    cache_bytes: float

    @property
    def gpu(self) -> bool:
        return self.place == "cuda"

    @property
    def software(self) -> str:
        version = self.torch.version
        below = {"rocm": f", ROCm {version.hip}", "cuda": f", CUDA {version.cuda}"}.get(self.kind, "")
        return f"torch {self.torch.__version__}{below}"

    def dtype(self, precision: str) -> Any:
        names = {
            "fp64": "float64",
            "fp32": "float32",
            "tf32": "float32",
            "bf16": "bfloat16",
            "fp16": "float16",
            "fp8": "float8_e4m3fn",
            "int8": "int8",
        }
        return getattr(self.torch, names[precision])

    def random(self, precision: str, *size: int) -> Any:
        """Normal numbers, never zeros: on zeros a chip draws less power, clocks higher and looks faster than it is."""
        if precision == "int8":
            return self.torch.randint(-127, 128, size, device=self.place, dtype=self.torch.int8)
        first = self.dtype("bf16" if precision == "fp8" else precision)  # random numbers are not made in fp8
        return self.torch.randn(size, device=self.place, dtype=first).to(self.dtype(precision))

    def cold(self, bytes_each: float, make: Callable[[], Callable[[], object]]) -> list[Callable[[], object]]:
        """As many copies of one call, each on buffers of its own, as it takes for none to find its data in the cache."""
        copies = math.ceil(_COLD * self.cache_bytes / max(bytes_each, 1.0))
        room = int(0.5 * self.memory_bytes / max(bytes_each, 1.0))
        return [make() for _ in range(max(1, min(copies, room, _MOST_COPIES[self.place])))]

    def wait(self) -> None:
        if self.gpu:
            self.torch.cuda.synchronize()

    def free(self) -> None:
        gc.collect()
        if self.gpu:
            with contextlib.suppress(RuntimeError):  # after a fatal error; `alive` tells
                self.torch.cuda.empty_cache()

    def alive(self) -> bool:
        """False after an error that no later call of this process survives, such as an illegal memory access."""
        try:
            self.torch.ones(1, device=self.place).add_(1)
            self.wait()
        except RuntimeError:
            return False
        return True


def width(precision: str) -> int:
    """Bytes of one number."""
    return _WIDTHS[precision]


def connect(wanted: str) -> Device:
    """The device called `wanted`; "auto" takes a GPU where there is one."""
    if wanted not in CHOICES:
        raise BadInput(f"No device is called {wanted[:60]!r}.", remedy=f"Choose one of {', '.join(CHOICES)}.")
    torch = _torch()
    seen = torch.cuda.is_available()
    if wanted == "cuda" and not seen:
        raise NotFound(
            f"torch {torch.__version__} sees no GPU on this machine.",
            remedy="Check `nvidia-smi` (or `rocm-smi`), or measure the processor with --device cpu.",
        )
    if wanted == "cpu" or not seen:
        return Device(
            torch=torch, kind="cpu", name=_processor(), place="cpu", count=1, memory_bytes=4e9, cache_bytes=_CPU_CACHE
        )
    try:
        properties = torch.cuda.get_device_properties(0)
        free, _ = torch.cuda.mem_get_info()
    except RuntimeError as error:
        raise OutsideFailed(
            f"The GPU does not answer: {str(error).splitlines()[0][:200]}", remedy="Check `nvidia-smi` for what holds it."
        ) from error
    cache = getattr(properties, "L2_cache_size", 0) or 64e6
    kind = "rocm" if torch.version.hip else "cuda"
    return Device(
        torch=torch,
        kind=kind,
        name=properties.name,
        place="cuda",
        count=torch.cuda.device_count(),
        memory_bytes=float(free),
        cache_bytes=float(cache),
    )


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        if getattr(error, "name", None) == "torch":
            raise MissingExtra("Measuring a device", "torch") from error
        raise _broken(error) from error
    except OSError as error:  # a shared library of its own is missing
        raise _broken(error) from error


def _broken(error: Exception) -> OutsideFailed:
    return OutsideFailed(
        f"torch is installed and cannot be imported: {str(error)[:200]}", remedy="Try: pip install --force-reinstall torch"
    )


def _processor() -> str:
    """The processor's name as Linux gives it, else the architecture."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    import platform

    return platform.processor() or platform.machine() or "cpu"
