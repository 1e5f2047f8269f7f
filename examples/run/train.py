"""A small real training that survives being stopped: a two-layer network learns a curve, with NumPy alone.

    chipwise run -- python examples/run/train.py

Killed at any moment and started again, it goes on from its newest checkpoint and ends with the same numbers, bit for bit.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import chipwise.job as job

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 400
PAUSE_S = 0.01  # so that there is something to interrupt

made = np.random.default_rng(7)
x = made.uniform(-3.0, 3.0, (512, 1))
y = np.sin(x)
state = {
    "w1": made.normal(0.0, 0.5, (1, 32)),
    "b1": np.zeros(32),
    "w2": made.normal(0.0, 0.5, (32, 1)),
    "b2": np.zeros(1),
}


def train(weights: dict[str, np.ndarray]) -> float:
    """One step of gradient descent; the loss before it."""
    hidden = np.tanh(x @ weights["w1"] + weights["b1"])
    error = hidden @ weights["w2"] + weights["b2"] - y
    back = 2.0 * error / len(x)
    inner = back @ weights["w2"].T * (1.0 - hidden**2)
    for name, gradient in (("w2", hidden.T @ back), ("b2", back.sum(0)), ("w1", x.T @ inner), ("b1", inner.sum(0))):
        weights[name] -= 0.05 * gradient
    return float((error**2).mean())


first = True
for step in job.steps(state, total=STEPS, every=20):
    if first:
        print("starts" if step == 0 else f"resumes at step {step}", flush=True)
        first = False
    loss = train(state)
    if step % 100 == 0 or step == STEPS - 1:
        print(f"step {step:4}  loss {loss:.6f}", flush=True)
    time.sleep(PAUSE_S)
