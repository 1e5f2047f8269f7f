"""Ten healthy programs: the doctor may note something about them, and must not warn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bottlenecks.gpu_programs import Images, Until, loader, tensor, torch


def matrix_products(until: Until) -> None:
    library = torch()
    left, right = tensor(8192, 8192), tensor(8192, 8192)
    while until():
        for _ in range(4):
            left @ right
        library.cuda.synchronize()


def _transformer(width: int, layers: int) -> Any:
    library = torch()
    layer = library.nn.TransformerEncoderLayer(width, width // 128, 4 * width, batch_first=True, dropout=0.0, device="cuda")
    return library.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda().to(library.bfloat16)


def transformer_training(until: Until) -> None:
    """With the loss read every fifty steps."""
    library = torch()
    model, batch = _transformer(2048, 6), tensor(16, 1024, 2048)
    optimizer = library.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    step = 0
    while until():
        optimizer.zero_grad(set_to_none=True)
        loss = model(batch).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            loss.item()
        if step % 4 == 0:
            library.cuda.synchronize()


def transformer_inference(until: Until) -> None:
    library = torch()
    model, batch = _transformer(4096, 4).eval(), tensor(8, 2048, 4096)
    with library.no_grad():
        while until():
            model(batch)
            library.cuda.synchronize()


def attention(until: Until) -> None:
    library = torch()
    heads = [tensor(4, 32, 8192, 128) for _ in range(3)]
    while until():
        library.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        library.cuda.synchronize()


def double_precision(until: Until) -> None:
    library = torch()
    left, right = tensor(8192, 8192, dtype="float64"), tensor(8192, 8192, dtype="float64")
    while until():
        left @ right
        library.cuda.synchronize()


def overlapped_transfer(until: Until) -> None:
    """The next batch is copied on a second stream while this one is computed."""
    library = torch()
    host = library.empty(64 << 20, dtype=library.uint8, pin_memory=True)
    device = library.empty(64 << 20, dtype=library.uint8, device="cuda")
    stream = library.cuda.Stream()
    left, right = tensor(8192, 8192), tensor(8192, 8192)
    while until():
        for _ in range(4):
            with library.cuda.stream(stream):
                device.copy_(host, non_blocking=True)
            for _ in range(4):
                left @ right
        library.cuda.synchronize()


def fed_by_workers(until: Until) -> None:
    """Four workers decode faster than the device computes."""
    library = torch()
    weights, left, right = tensor(150_528, 256), tensor(8192, 8192), tensor(8192, 8192)
    for batch in loader(Images(1), 16, 4):
        if not until():
            return
        (batch.to("cuda", non_blocking=True).to(library.bfloat16) @ weights).sum()
        for _ in range(80):
            left @ right


def convolutions(until: Until) -> None:
    library = torch()
    layer = library.nn.Conv2d(512, 512, 3, padding=1, device="cuda", dtype=library.bfloat16)
    layer = layer.to(memory_format=library.channels_last)
    images = tensor(128, 512, 56, 56).to(memory_format=library.channels_last)
    while until():
        for _ in range(4):
            layer(images).sum().backward()
        library.cuda.synchronize()


def perceptron_training(until: Until) -> None:
    library = torch()
    layers = [library.nn.Linear(4096, 16384), library.nn.GELU(), library.nn.Linear(16384, 4096)]
    model = library.nn.Sequential(*layers).cuda().to(library.bfloat16)
    batch = tensor(16384, 4096)
    optimizer = library.optim.SGD(model.parameters(), lr=1e-4, foreach=True)
    while until():
        for _ in range(4):
            optimizer.zero_grad()
            model(batch).float().pow(2).mean().backward()
            optimizer.step()
        library.cuda.synchronize()


def low_rank(until: Until) -> None:
    """Adapters beside large frozen weights."""
    library = torch()
    weights, batch = tensor(8192, 8192), tensor(16384, 8192)
    down, up = tensor(8192, 256).requires_grad_(), tensor(256, 8192).requires_grad_()
    while until():
        for _ in range(2):
            (batch @ weights + batch @ down @ up).sum().backward()
        library.cuda.synchronize()


PROGRAMS: dict[str, Callable[[Until], None]] = {
    "matrix-products": matrix_products,
    "transformer-training": transformer_training,
    "transformer-inference": transformer_inference,
    "attention": attention,
    "double-precision": double_precision,
    "overlapped-transfer": overlapped_transfer,
    "fed-by-workers": fed_by_workers,
    "convolutions": convolutions,
    "perceptron-training": perceptron_training,
    "low-rank": low_rank,
}
