# mypy: ignore-errors
"""A small language model learns random tokens, as fast as the machine can: PyTorch on a GPU where there is one.

    chipwise bench examples/run/decoder.yaml --on local:gpus=1 --steps 200 --repeat 3

The shape is GPT-2's (124 million parameters), as `decoder.yaml` says by its name; so is the batch of each step.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn
from torch.nn import functional

import chipwise.job as job

LAYERS, HIDDEN, HEADS, VOCAB, LENGTH = 12, 768, 12, 50257, 1024
BATCH = int(os.environ.get("BATCH", "16"))
device = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        parts = self.qkv(self.first(x)).view(batch, length, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, HIDDEN))
        return x + self.down(functional.gelu(self.up(self.second(x)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(LENGTH, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.last = nn.LayerNorm(HIDDEN)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.last(x), self.tokens.weight)


torch.manual_seed(1)
model = Decoder().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=device == "cuda")
ids = torch.randint(0, VOCAB, (BATCH, LENGTH + 1), device=device)
for step in job.steps({"model": model, "optimizer": optimizer}, total=1000, every=1000):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if device == "cuda":
        torch.cuda.synchronize()  # a step is told when it is done, not when it was asked for
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f} on {device}", flush=True)
