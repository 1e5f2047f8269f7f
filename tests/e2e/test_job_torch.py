"""PyTorch states: bit-equal after an interruption, on the GPU where there is one. Skips where torch is not installed.

Needs no more than torch, NumPy and pytest: PYTHONPATH=src python -m pytest --noconftest tests/e2e/test_job_torch.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import chipwise.job as job
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import CannotRestore

torch: Any = pytest.importorskip("torch", reason="torch: not installed")
pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("default")]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SOURCE = Path(__file__).resolve().parents[2] / "src"


def parts(width: int = 16) -> dict[str, Any]:
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Dropout(0.3), torch.nn.Linear(width, 1)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return {
        "model": model,
        "optimizer": optimizer,
        "scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50),
    }


def train(model: Any, optimizer: Any, scheduler: Any) -> None:
    rows = torch.randn(32, 8, device=DEVICE)
    loss = (model(rows).squeeze(-1) - rows.sum(-1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()


def weights(model: Any) -> bytes:
    return b"".join(one.detach().cpu().numpy().tobytes() for one in model.state_dict().values())


def test_a_model_with_dropout_and_its_generators_is_bit_equal_after_interruptions(tmp_path: Path) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    whole = parts()
    for _ in range(40):
        train(**whole)
    for stop in (7, 23, 99):
        made = parts()
        for step in job.steps(job.torch.State(**made), total=40, every=5, directory=tmp_path):
            train(**made)
            if step == stop:
                break
    assert weights(made["model"]) == weights(whole["model"])
    assert made["scheduler"].last_epoch == whole["scheduler"].last_epoch


def test_a_plain_state_with_a_model_and_without_generators_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for state in (parts(), {"model": parts()["model"], "chance": job.torch.State()}, job.torch.State(**parts())):
        for _ in job.steps(state, total=0, directory=tmp_path / str(id(state))):
            pass
    assert sum("without the random generators" in one for one in caplog.messages) == 1


def test_torch_objects_and_tensors_stand_in_a_plain_state(tmp_path: Path) -> None:
    state = {**parts(), "tensor": torch.arange(4, device=DEVICE).to(torch.bfloat16), "losses": [1.0]}
    for _ in range(3):
        train(state["model"], state["optimizer"], state["scheduler"])
    with Checkpoints(tmp_path) as kept:
        kept.save(3, state, wait=True)
    again = {**parts(), "tensor": torch.zeros(4, device=DEVICE, dtype=torch.bfloat16), "losses": []}
    same = again["tensor"]
    found = Checkpoints(tmp_path).load(into=again)
    assert found is not None
    assert weights(again["model"]) == weights(state["model"])
    assert again["tensor"] is same
    assert same.device.type == DEVICE
    assert same.tolist() == [0, 1, 2, 3]
    assert again["losses"] == [1.0]
    assert again["optimizer"].state_dict()["state"][0]["step"] == 3
    one, other = torch.get_rng_state(), None
    train(state["model"], state["optimizer"], state["scheduler"])
    other = weights(state["model"])
    torch.set_rng_state(one)
    if DEVICE == "cpu":
        train(again["model"], again["optimizer"], again["scheduler"])
        assert weights(again["model"]) == other


def test_the_snapshot_does_not_follow_the_weights(tmp_path: Path) -> None:
    made = parts()
    before = weights(made["model"])
    with Checkpoints(tmp_path) as kept:
        kept.save(1, {"model": made["model"]})
        for _ in range(5):
            train(**made)
    again = parts(16)
    Checkpoints(tmp_path).load(into={"model": again["model"]})
    assert weights(again["model"]) == before


def test_a_changed_layer_is_named_and_the_model_untouched(tmp_path: Path) -> None:
    with Checkpoints(tmp_path) as kept:
        kept.save(1, {"model": parts(16)["model"]}, wait=True)
    wider = parts(24)["model"]
    before = weights(wider)
    with pytest.raises(CannotRestore, match=r"state\.model\.0\.weight has \(24, 8\) values, and \(16, 8\)"):
        Checkpoints(tmp_path).load(into={"model": wider})
    assert weights(wider) == before


def test_a_checkpoint_cannot_run_code(tmp_path: Path) -> None:
    class Holder:
        def state_dict(self) -> dict[str, Any]:
            return {"tensor": torch.zeros(1), "code": Path("/")}  # anything that only a full unpickler would make

        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise AssertionError("it was unpickled")

    with Checkpoints(tmp_path) as kept:
        kept.save(1, {"h": Holder()}, wait=True)
    with pytest.raises(CannotRestore, match="more than tensors and plain values"):
        Checkpoints(tmp_path).load(into={"h": Holder()})


TOGETHER = """
import os, sys
import torch, torch.distributed as dist
import chipwise.job as job

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
if sys.argv[2] == "shards":
    w = torch.zeros(4)
    state = {"w": w, "rank": rank}
    for step in job.steps(state, total=60, every="auto", directory=sys.argv[1], agree=job.torch.agree):
        total = torch.ones(4); dist.all_reduce(total); w += total
        if step == 20 and rank == 1 and sys.argv[3] == "leave":
            os.kill(os.getpid(), 15)
    print(rank, step, w[0].item(), flush=True)
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (world,))
    big = distribute_tensor(torch.arange(12.0) if sys.argv[3] == "save" else torch.zeros(12), mesh, [Shard(0)])
    kept = job.Checkpoints(sys.argv[1])
    if sys.argv[3] == "save":
        for step in (1, 2, 3):
            job.torch.save_sharded(kept, step, {"big": big * step})
    else:
        state = {"big": big}
        step = job.torch.load_sharded(kept, state)
        print(rank, step, state["big"].full_tensor().tolist(), flush=True)
    kept.close()
dist.destroy_process_group()
"""


def together(world: int, *arguments: str) -> list[subprocess.CompletedProcess[str]]:
    """One process for each rank, as torchrun would start them."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    running = []
    for rank in range(world):
        told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = {**os.environ, **{key: str(value) for key, value in told.items()}, "PYTHONPATH": path}
        command = [sys.executable, "-c", TOGETHER, *arguments]
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    done = []
    for process in running:
        try:
            out, err = process.communicate(timeout=150)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        done.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    return done


def test_ranks_leave_together_when_one_is_told_and_go_on_together(tmp_path: Path) -> None:
    left = together(2, str(tmp_path), "shards", "leave")
    assert [one.returncode for one in left] == [job.LEFT, job.LEFT], "".join(one.stderr for one in left)
    ended = together(2, str(tmp_path), "shards", "stay")
    assert [one.stdout.split() for one in ended] == [["0", "59", "120.0"], ["1", "59", "120.0"]], ended[0].stderr


def test_sharded_tensors_come_back_on_another_number_of_ranks_and_a_damaged_folder_is_not_believed(tmp_path: Path) -> None:
    saved = together(2, str(tmp_path), "dcp", "save")
    assert [one.returncode for one in saved] == [0, 0], "".join(one.stderr for one in saved)
    assert len(list(tmp_path.glob("*.folder"))) == 2
    path = next(path for path in sorted(tmp_path.glob("step-000000000003*.folder/*")) if path.suffix == ".distcp")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    found = together(1, str(tmp_path), "dcp", "load")
    assert found[0].returncode == 0, found[0].stderr
    assert found[0].stdout.split(maxsplit=2)[:2] == ["0", "2"]
    assert str([2.0 * number for number in range(12)]) in found[0].stdout


def test_tensors_that_are_split_over_ranks_fit_any_number_of_them(tmp_path: Path) -> None:
    whole = torch.arange(22.0, device=DEVICE).reshape(11, 2)

    def state(rank: int, world: int) -> dict[str, Any]:
        torch.manual_seed(5)
        model = torch.nn.Linear(2, 3).to(DEVICE)
        return {"model": model, "momentum": whole[job.part(11, rank, world)].clone(), "scale": torch.tensor(float("nan"))}

    with ThreadPoolExecutor(4) as pool:
        places = [Checkpoints(tmp_path, rank=rank, world=4, patience_s=30, split={"momentum": 0}) for rank in range(4)]
        states = [state(rank, 4) for rank in range(4)]  # one after another: the seed is everybody's
        list(pool.map(lambda place, held: place.save(3, held, wait=True), places, states))
    for place in places:
        place.close()
    for world in (1, 3, 4):
        for rank in range(world):
            live = state(rank, world)
            wanted, kept = live["momentum"].clone(), weights(live["model"])
            live["momentum"].zero_()
            with torch.no_grad():
                live["model"].weight.zero_()
            found = Checkpoints(tmp_path, rank=rank, world=world, attempt=1, split={"momentum": 0}).load(into=live)
            assert found is not None
            assert torch.equal(live["momentum"], wanted)
            assert weights(live["model"]) == kept


def test_tensors_inside_an_object_can_be_split_and_those_that_differ_are_named(tmp_path: Path) -> None:
    models = [torch.nn.Linear(2, 3).to(DEVICE) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        places = [Checkpoints(tmp_path, rank=rank, world=2, patience_s=30) for rank in range(2)]
        list(pool.map(lambda place: place.save(1, {"model": models[place.writer.rank]}, wait=True), places))
    for place in places:
        place.close()
    joined = torch.nn.Linear(2, 6).to(DEVICE)
    split = {"model.weight": 0, "model.bias": 0}
    Checkpoints(tmp_path, rank=0, world=1, attempt=1, split=split).load(into={"model": joined})
    assert torch.equal(joined.weight, torch.cat([one.weight for one in models]))
    with pytest.raises(CannotRestore, match=r"state\.model\.weight is not the same on all ranks"):
        Checkpoints(tmp_path, rank=0, world=1, attempt=1, split={"model.bias": 0}).load(into={"model": joined})
