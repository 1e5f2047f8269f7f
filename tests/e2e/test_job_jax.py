"""JAX states through NumPy, and Orbax folders with our commit. Skips where they are not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chipwise.job as job
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import CannotRestore

jax: Any = pytest.importorskip("jax", reason="jax: not installed")
pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("default")]


def fresh(size: int = 4) -> Any:
    params = {"w": jax.numpy.zeros(size, dtype=jax.numpy.bfloat16), "b": [jax.numpy.ones(()), 3]}
    return job.jax.State(params=params, key=jax.random.key(5))


def train(state: Any) -> None:
    state.key, used = jax.random.split(state.key)
    noise = jax.random.normal(used, state.params["w"].shape, dtype=jax.numpy.bfloat16)
    state.params = jax.tree_util.tree_map(
        lambda x: x * 2 if x.ndim == 0 else x + noise, {**state.params, "b": [state.params["b"][0], jax.numpy.asarray(3)]}
    )
    state.params["b"][1] = 3


def test_a_pytree_with_bfloat16_and_a_key_is_bit_equal_after_an_interruption(tmp_path: Path) -> None:
    whole = fresh()
    for _ in range(10):
        train(whole)
    for stop in (6, 99):
        state = fresh()
        for step in job.steps(state, total=10, every=2, directory=tmp_path):
            train(state)
            if step == stop:
                break
    assert np.asarray(state.params["w"]).tobytes() == np.asarray(whole.params["w"]).tobytes()
    assert state.params["w"].dtype == jax.numpy.bfloat16
    assert jax.random.key_data(state.key).tolist() == jax.random.key_data(whole.key).tolist()


def test_a_tree_of_another_shape_is_refused_by_name(tmp_path: Path) -> None:
    with Checkpoints(tmp_path) as kept:
        kept.save(1, fresh(), wait=True)
    with pytest.raises(CannotRestore, match=r"state\.params\['w'\] has \(5,\) values, and \(4,\)"):
        Checkpoints(tmp_path).load(into=fresh(5))


def test_orbax_folders_are_committed_verified_and_kept(tmp_path: Path) -> None:
    pytest.importorskip("orbax.checkpoint", reason="orbax: not installed")
    tree = {"w": jax.numpy.arange(6.0)}
    with Checkpoints(tmp_path, keep=2) as kept:
        for step in (1, 2, 3):
            job.jax.save_orbax(kept, step, {"w": tree["w"] + step})
        assert len(list(tmp_path.glob("*.folder"))) == 2
        damaged = next(
            path for path in sorted(tmp_path.glob("step-000000000003*.folder/**/*")) if path.is_file() and path.stat().st_size
        )
        damaged.write_bytes(b"")
        found = job.jax.load_orbax(kept, tree)
    assert found is not None
    assert found[0] == 2
    assert found[1]["w"].tolist() == [2, 3, 4, 5, 6, 7]
