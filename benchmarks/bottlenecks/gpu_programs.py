"""Programs with an induced bottleneck on a GPU: each takes a size, prepares, and runs until it is time.

Sizes 0 to 2 were seen when the rules were made; 3 to 5 were not, and only they say how good the rules are.

They are written as people write such programs, and say nothing about themselves: the doctor sees what the machine shows.
"""

from __future__ import annotations

import mmap
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

Until = Callable[[], bool]  # whether there is time left

SIZES = 6


def torch() -> Any:
    import torch as library

    return library


def tensor(*shape: int, dtype: str = "bfloat16") -> Any:
    library = torch()
    return library.randn(*shape, device="cuda", dtype=getattr(library, dtype))


def launch_bound(size: int, until: Until) -> None:
    """Elementwise work on few numbers, tiny perceptrons, tiny transformer layers, a recurrent cell in a loop: all eager."""
    library = torch()
    if size in (0, 3):
        numbers = tensor((1000, 50_000)[size == 3], dtype="float32")
        while until():
            for _ in range(2000):
                numbers.mul_(1.01) if size == 3 else numbers.add_(1.0)
            library.cuda.synchronize()
        return
    if size == 5:
        cell, inputs = library.nn.LSTMCell(96, 96).cuda(), tensor(4, 96, dtype="float32")
        with library.no_grad():
            while until():
                state = None
                for _ in range(200):
                    state = cell(inputs, state)
                library.cuda.synchronize()
        return
    if size in (1, 4):
        width, layers = (128, 20) if size == 1 else (256, 8)
        model: Any = library.nn.Sequential(*(library.nn.Linear(width, width) for _ in range(layers))).cuda()
        batch = tensor(8 if size == 1 else 32, width, dtype="float32")
    else:
        layer = library.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, device="cuda")
        model = library.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
        batch = tensor(2, 16, 64, dtype="float32")
    optimizer: Any = library.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
    if size == 4:
        optimizer = library.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    while until():
        for _ in range(20):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        library.cuda.synchronize()


def synchronisation(size: int, until: Until) -> None:
    """Large kernels, and after every step the loss is read and written down."""
    side, products = ((2048, 2), (2048, 4), (3072, 2), (1792, 3), (2560, 2), (2304, 3))[size]
    left, right = tensor(side, side), tensor(side, side)
    history: list[float] = []
    while until():
        for _ in range(50):
            value = left
            for _ in range(products):
                value = value @ right * 0.01
            loss = value.float().mean().item()
            history.append(loss)
            f"{loss:.6f} {sum(history[-200:]) / 200:.6f}".split()
        del history[:-1000]


def transfer_bound(size: int, until: Until) -> None:
    """Batches of a large table from the host, one after the other, with little to do for each."""
    library = torch()
    pinned, megabytes = ((True, 64), (True, 512), (False, 128), (True, 16), (False, 384), (True, 200))[size]
    table = library.empty(megabytes * 2**20, dtype=library.uint8, pin_memory=pinned).fill_(1)
    while until():
        for _ in range(4):
            table.cuda(non_blocking=True)[:1024].sum()
        library.cuda.synchronize()


def memory_bound(size: int, until: Until) -> None:
    """Elementwise passes over large tensors, not fused; a normalisation."""
    library = torch()
    if size in (0, 1, 3):
        values = tensor({0: 64, 1: 512, 3: 200}[size] << 20, dtype="bfloat16" if size == 3 else "float32")
        while until():
            for _ in range(8):
                values.mul_(1.0001).add_(0.5).clamp_(-10, 10)
            library.cuda.synchronize()
        return
    if size == 4:  # one token at a time: a matrix times a vector
        weights, vector = tensor(16384, 16384), tensor(16384, 1)
        while until():
            for _ in range(50):
                weights @ vector
            library.cuda.synchronize()
        return
    width = 8192 if size == 2 else 3072
    rows = tensor((64 << 20) * 8 // width, width)
    while until():
        for _ in range(8):
            if size == 2:
                library.nn.functional.gelu(library.nn.functional.layer_norm(rows, (width,)))
            else:
                library.softmax(rows, dim=1)
        library.cuda.synchronize()


def tensor_cores_idle(size: int, until: Until) -> None:
    """Matrix products and convolutions in plain 32-bit arithmetic."""
    library = torch()
    library.backends.cuda.matmul.allow_tf32 = False
    library.backends.cudnn.allow_tf32 = False
    if size in (0, 1, 3):
        side = {0: 4096, 1: 8192, 3: 6000}[size]
        left, right = tensor(side, side, dtype="float32"), tensor(side, side, dtype="float32")
        while until():
            for _ in range(4):
                left @ right
            library.cuda.synchronize()
        return
    if size == 4:
        model: Any = library.nn.Conv2d(256, 256, 3, padding=1, device="cuda")
        batch = tensor(64, 256, 56, 56, dtype="float32")
    else:
        width = 2048 if size == 2 else 3072
        layers = [library.nn.Linear(width, 4 * width), library.nn.GELU(), library.nn.Linear(4 * width, width)]
        model = library.nn.Sequential(*layers).cuda()
        batch = tensor(8192 if size == 2 else 4096, width, dtype="float32")
    while until():
        model(batch).sum().backward()
        library.cuda.synchronize()


def batch_too_small(size: int, until: Until) -> None:
    """Softmax over a few long rows: one block of threads for each."""
    library = torch()
    scores = tensor((4, 16, 48, 8, 24, 36)[size], (262_144, 180_000)[size >= SIZES // 2], dtype="float32")
    while until():
        for _ in range(200):
            library.softmax(scores, dim=1)
        library.cuda.synchronize()


def compute_bound(size: int, until: Until) -> None:
    side = (4096, 8192, 16384, 5120, 10240, 12288)[size]
    library = torch()
    left, right = tensor(side, side), tensor(side, side)
    while until():
        for _ in range(max(1, 8 >> min(size, 2))):
            left @ right
        library.cuda.synchronize()


def idle(size: int, until: Until) -> None:
    """A notebook whose owner went to lunch."""
    held = torch().empty((1, 10, 60, 4, 30, 100)[size] << 30, dtype=torch().uint8, device="cuda")
    while until():
        time.sleep(0.1)
    del held


# -- waiting for data


def packed(kilobytes: int) -> bytes:
    """Digits: they shrink to a half, and take a core some milliseconds to unpack."""
    return zlib.compress(random.Random(0).randbytes(kilobytes * 512).hex().encode(), 6)


def unpacked(piece: bytes, times: int) -> bytes:
    """One thread's work, some milliseconds for each of `times`."""
    for _ in range(times):
        content = zlib.decompress(piece)
        zlib.crc32(content)
    return content


class Images:
    """A data set that decodes when it is asked."""

    def __init__(self, times: int, latency_s: float = 0.0) -> None:
        self.piece, self.times, self.latency_s = packed(2048), times, latency_s

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Any:
        if self.latency_s:
            time.sleep(self.latency_s)
        library = torch()
        content = unpacked(self.piece, self.times) if self.times else self.piece
        return library.frombuffer(bytearray(content[: 3 * 224 * 224]), dtype=library.uint8)


def trained(batches: Iterator[Any], until: Until) -> None:
    """A step of a few milliseconds for every batch."""
    library = torch()
    weights = tensor(150_528, 1024)
    for batch in batches:
        if not until():
            return
        images = batch.to("cuda", non_blocking=True).to(library.bfloat16)
        for _ in range(30):
            (images @ weights).sum()


def loader(images: Images, batch: int, workers: int) -> Iterator[Any]:
    library = torch()
    return iter(library.utils.data.DataLoader(images, batch_size=batch, num_workers=workers, pin_memory=True))


def one_core(size: int, until: Until) -> None:
    """The main process decodes, and then steps."""
    trained(loader(Images((1, 2, 2, 1, 1, 3)[size]), (8, 8, 16, 4, 24, 8)[size], 0), until)


def few_workers(size: int, until: Until) -> None:
    """Two or three workers that decode while most cores are free; or four that wait for answers of a service."""
    if size in (2, 5):
        trained(loader(Images(0, latency_s=(0.02, 0.05)[size == 5]), 8, (4, 6)[size == 5]), until)
    else:
        times, batch, workers = {0: (1, 16, 2), 1: (2, 16, 3), 3: (1, 8, 2), 4: (1, 32, 5)}[size]
        trained(loader(Images(times), batch, workers), until)


def cpu_saturated(size: int, until: Until) -> None:
    """As many workers as cores, and more work than they can do."""
    cores = len(os.sched_getaffinity(0))
    workers = (cores, cores, cores, cores + 4, cores, 2 * cores)[size]
    trained(loader(Images((2, 4, 8, 2, 3, 2)[size]), (32, 32, 32, 16, 24, 16)[size], workers), until)


def slow_disk(size: int, until: Until) -> None:
    """Random blocks from a large file, past the cache."""
    kilobytes, count = ((4, 300), (64, 200), (1024, 64), (8, 400), (256, 100), (16, 200))[size]
    trained(blocks(kilobytes * 1024, count, until), until)


FILE_BYTES = 1 << 30


def large_file() -> Path:
    path = Path(os.environ.get("BOTTLENECKS_DISK", tempfile.gettempdir())) / "bottlenecks-large-file"
    if not path.exists() or path.stat().st_size < FILE_BYTES:
        with path.open("wb") as stream:
            for _ in range(FILE_BYTES >> 24):
                stream.write(os.urandom(1 << 20) * 16)
            os.fsync(stream.fileno())
    return path


def direct_reader(path: Path, block: int) -> Callable[[int], bytes]:
    """Reads past the cache where the file system allows it, else drops the cache of what it read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        buffer = mmap.mmap(-1, block)
        os.preadv(descriptor, [buffer], 0)
    except OSError:
        descriptor = os.open(path, os.O_RDONLY)

        def dropped(offset: int) -> bytes:
            os.posix_fadvise(descriptor, offset, block, os.POSIX_FADV_DONTNEED)
            return os.pread(descriptor, block, offset)

        return dropped

    def direct(offset: int) -> bytes:
        os.preadv(descriptor, [buffer], offset)
        return buffer[:block]

    return direct


def blocks(block: int, count: int, until: Until) -> Iterator[Any]:
    library = torch()
    read = direct_reader(large_file(), block)
    chance = random.Random(1)
    while until():
        content = b"".join(read(chance.randrange(FILE_BYTES // block) * block) for _ in range(count))
        content = content.ljust(3 * 224 * 224, b"\0")
        batch = library.frombuffer(bytearray(content[: 3 * 224 * 224]), dtype=library.uint8)
        yield batch.reshape(1, -1)


# -- others, and memory


STRANGER = """
import sys, torch
side = int(sys.argv[1])
matrix = torch.randn(side, side, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
open(sys.argv[2], "w").close()
while True:
    matrix @ matrix
    torch.cuda.synchronize()
"""


def noisy_neighbour(size: int, until: Until) -> None:
    """Other processes, which are no children of this one, multiply on the same device."""
    with tempfile.TemporaryDirectory() as folder:
        marks = [Path(folder) / str(number) for number in range((1, 1, 2, 1, 2, 3)[size])]
        strangers = [_stranger((2048, 8192, 4096, 3072, 8192, 2048)[size], mark) for mark in marks]
        try:
            end = time.monotonic() + 30
            while not all(mark.exists() for mark in marks) and time.monotonic() < end:
                time.sleep(0.05)
            compute_bound((0, 1, 1, 3, 4, 3)[size], until)
        finally:
            for pid in strangers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _stranger(side: int, mark: Path) -> int:
    """A process whose parent has ended, so that it is none of ours."""
    command = " ".join(map(shlex.quote, (sys.executable, "-c", STRANGER, str(side), str(mark))))
    started = subprocess.run(["sh", "-c", f"{command} >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True)
    return int(started.stdout)


def memory_full(size: int, until: Until) -> None:
    """Nearly all memory taken; taken and given back; growing."""
    library = torch()
    free, total = library.cuda.mem_get_info()
    left, right = tensor(8192, 8192), tensor(8192, 8192)
    held: list[Any] = []
    way, variant = size % 3, size // 3
    if way == 0:
        held.append(library.empty(int(free - (0.018, 0.012)[variant] * total), dtype=library.uint8, device="cuda"))
    elif way == 2:
        held.append(library.empty(int((0.72, 0.66)[variant] * total), dtype=library.uint8, device="cuda"))
    while until():
        if way == 1:
            held = [library.empty(int((0.88, 0.93)[variant] * total), dtype=library.uint8, device="cuda")]
        elif way == 2 and library.cuda.mem_get_info()[0] > 0.05 * total:
            held.append(library.empty(int((0.004, 0.005)[variant] * total), dtype=library.uint8, device="cuda"))
        for _ in range((200, 260)[variant] if way == 1 else 60):
            left @ right
        library.cuda.synchronize()
        if way == 1:
            held.clear()
            library.cuda.empty_cache()
            for _ in range((200, 260)[variant]):
                left @ right
            library.cuda.synchronize()


PROGRAMS: dict[str, Callable[[int, Until], None]] = {
    "launch-bound": launch_bound,
    "synchronisation": synchronisation,
    "transfer-bound": transfer_bound,
    "memory-bound": memory_bound,
    "tensor-cores-idle": tensor_cores_idle,
    "batch-too-small": batch_too_small,
    "compute-bound": compute_bound,
    "idle": idle,
    "one-core": one_core,
    "few-workers": few_workers,
    "cpu-saturated": cpu_saturated,
    "slow-disk": slow_disk,
    "noisy-neighbour": noisy_neighbour,
    "memory-full": memory_full,
}
