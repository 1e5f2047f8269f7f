"""The hook inside a program: NumPy itself, and a stand-in for PyTorch, which is not installed where the tests run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.characterising.injected.chipwise_hook.repeats import period
from chipwise.adapters.characterising.running import INJECTED

STAND_IN = Path(__file__).parents[3] / "support" / "standin_torch"
NUMPY = """
import numpy as np
a = np.random.default_rng(0).random((40, 40))
for _ in range(8):
    b = a @ a
    a[1:-1] = 0.5 * (b[:-2] + b[2:])
"""
TORCH = """
import torch
from torch.utils.data.dataloader import _BaseDataLoaderIter
class Net(torch.nn.Module):
    weights = (torch.Tensor(16, 4),)
    def forward(self, value):
        return torch.relu(torch.mm(value, self.weights[0]))
net = Net()
optimizer = torch.optim.SGD(net.parameters())
torch.GRADIENTS[0] = {learns}
for batch in _BaseDataLoaderIter(12):
    net(batch)
    if {learns}:
        torch.mm(torch.Tensor(16, 8), torch.Tensor(8, 4))
        optimizer.step()
"""


def counted(program: str, folder: Path, mode: str = "count", *paths: Path) -> tuple[dict[str, Any], list[str]]:
    environment = {
        **os.environ,
        "CHIPWISE_HOOK": json.dumps({"folder": str(folder), "mode": mode}),
        "CHIPWISE_HOOK_DEBUG": "1",
        "PYTHONPATH": os.pathsep.join(map(str, (INJECTED, *paths))),
        "OPENBLAS_NUM_THREADS": "1",
    }
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    (path,) = folder.glob("counts-*.json")
    return json.loads(path.read_text()), sorted(path.name.split("-")[1] for path in folder.glob("steps-*"))


def test_every_operation_of_numpy_is_counted(tmp_path: Path) -> None:
    counts, _ = counted(NUMPY, tmp_path)
    assert counts["step"] == "repeat"
    assert counts["period"] == 4
    assert counts["step_flop"] == [2 * 40**3 + 2 * 38 * 40]
    assert counts["step_bytes"] == [8 * (2 * 1600 + (3 + 2 + 2) * 38 * 40)]
    assert counts["formats"].keys() == {"fp64"}


def test_a_gather_is_read_and_written_and_a_slice_is_neither(tmp_path: Path) -> None:
    program = """
import numpy as np
a, rows = np.ones((40, 40)), np.arange(40)[::-1]
for _ in range(8):
    b = a[rows]
    c = a[:, [0, 1]]
    d = b[b > 2.0]
    a[1:3]; a[0, 0]
"""
    counts, _ = counted(program, tmp_path)
    gathers = 2 * 8 * 1600 + 8 * 40, 2 * 8 * 80, 1600
    assert counts["step_bytes"] == [sum(gathers) + 8 * 1600 + 1600]  # and the comparison


def test_nothing_of_numpy_is_touched_while_time_is_taken(tmp_path: Path) -> None:
    counts, _ = counted("import numpy as np; assert type(np.zeros(3)) is np.ndarray", tmp_path, "time")
    assert "total_flop" not in counts


def test_steps_of_an_optimizer_are_counted_with_the_stand_in(tmp_path: Path) -> None:
    counts, kinds = counted(TORCH.format(learns=True), tmp_path, "count", STAND_IN)
    assert (counts["version"], counts["step"], counts["optimizer"]) == ("stand-in", "optimizer", "SGD")
    assert kinds == ["loader", "optimizer"]
    forward, backward = 2 * 8 * 16 * 4, 2 * 16 * 8 * 4
    assert counts["step_flop"] == [forward + 8 * 4 + backward] * 3
    assert counts["forward_flop"] == forward
    assert (counts["samples"], counts["parameters"], counts["batches_per_epoch"]) == (8, 64, 12)
    assert counts["done"] is True


def test_calls_of_the_outermost_module_are_steps_of_inference_with_the_stand_in(tmp_path: Path) -> None:
    counts, kinds = counted(TORCH.format(learns=False), tmp_path, "count", STAND_IN)
    assert counts["step"] == "forward"
    assert "forward" in kinds


def test_the_stand_in_is_as_fast_as_ever_while_time_is_taken(tmp_path: Path) -> None:
    counts, kinds = counted(TORCH.format(learns=True) + "\nassert not torch.MODES", tmp_path, "time", STAND_IN)
    assert kinds == ["loader", "optimizer"]
    assert "step_flop" not in counts


def test_a_sitecustomize_of_the_user_is_imported_too(tmp_path: Path) -> None:
    place = tmp_path / "own"
    place.mkdir()
    (place / "sitecustomize.py").write_text("import sys; sys.mine = 1")
    counted("import sys; assert sys.mine == 1", tmp_path, "time", place)


@pytest.mark.parametrize(
    ("sequence", "length"),
    [([1, 2, 1, 2, 1, 2], 2), ([5, 7, 7, 7], 1), ([1, 2, 3, 4], None), ([], None), ([9, 1, 2, 2, 1, 2, 2, 1, 2, 2], 3)],
)
def test_the_shortest_repetition_is_found(sequence: list[int], length: int | None) -> None:
    assert period(sequence) == length
