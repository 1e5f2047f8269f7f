"""What is special to JAX: arrays cannot be changed in place, and states are pytrees.

    state = job.jax.State(params=params, optimizer=optimizer.init(params), key=key)
    for step in job.steps(state, total=1000):
        state.params, state.optimizer = update(state.params, state.optimizer, batch(step))

Leaves go through NumPy and come back with the dtype, the sharding and the device of the living leaf. Arrays of which this
process has only a part are left to Orbax (`save_orbax`, `load_orbax`), with our checksums and commit around it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from chipwise.errors import MissingExtra
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import CannotKeep


def _jax() -> Any:
    try:
        return import_module("jax")
    except ImportError as error:
        raise MissingExtra("chipwise.job.jax", "jax") from error


class State:
    """Named pytrees as attributes."""

    def __init__(self, **trees: Any) -> None:
        self.__dict__["_trees"] = dict(trees)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_trees"][name]
        except KeyError:
            raise AttributeError(f"this State has no tree {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["_trees"][name] = value

    def state_dict(self) -> dict[str, Any]:
        jax = _jax()
        trees = {}
        for name, tree in self._trees.items():
            leaves, shape = jax.tree_util.tree_flatten(tree)
            trees[name] = {
                "tree": str(shape),
                "leaves": [_storable(jax, leaf, f"{name}[{at}]") for at, leaf in enumerate(leaves)],
            }
        return trees

    def check_state_dict(self, state: dict[str, Any], field: str) -> str | None:
        """What does not fit, before anything is changed."""
        jax = _jax()
        if set(state) != set(self._trees):
            return f"{field} has {', '.join(sorted(self._trees))}, and {', '.join(sorted(state))} in the checkpoint"
        for name, saved in state.items():
            leaves, shape = jax.tree_util.tree_flatten(self._trees[name])
            if str(shape) != saved["tree"]:
                return f"{field}.{name} is the tree {shape!s:.200}, and {saved['tree']:.200} in the checkpoint"
            for (path, _), leaf, saved_leaf in zip(
                jax.tree_util.tree_flatten_with_path(self._trees[name])[0], leaves, saved["leaves"], strict=True
            ):
                live_shape, saved_shape = getattr(_storable(jax, leaf, name), "shape", ()), getattr(saved_leaf, "shape", ())
                if live_shape != saved_shape:
                    leaf_name = f"{field}.{name}{jax.tree_util.keystr(path)}"
                    return f"{leaf_name} has {live_shape} values, and {saved_shape} in the checkpoint"
        return None

    def load_state_dict(self, state: dict[str, Any]) -> None:
        jax = _jax()
        for name, saved in state.items():
            leaves, shape = jax.tree_util.tree_flatten(self._trees[name])
            new = [_like(jax, leaf, other) for leaf, other in zip(leaves, saved["leaves"], strict=True)]
            self._trees[name] = jax.tree_util.tree_unflatten(shape, new)


def _is_key(jax: Any, leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _storable(jax: Any, leaf: Any, field: str) -> Any:
    if not isinstance(leaf, jax.Array):
        return leaf
    if not leaf.is_fully_addressable:
        raise CannotKeep(field, "is an array of which this process has only a part", "Use job.jax.save_orbax and load_orbax.")
    import numpy

    return numpy.array(jax.random.key_data(leaf) if _is_key(jax, leaf) else leaf)


def _like(jax: Any, leaf: Any, saved: Any) -> Any:
    if not isinstance(leaf, jax.Array):
        return saved
    if _is_key(jax, leaf):
        return jax.random.wrap_key_data(saved, impl=jax.random.key_impl(leaf))
    import numpy

    return jax.device_put(numpy.array(saved, dtype=leaf.dtype), leaf.sharding)


def _orbax() -> Any:
    try:
        return import_module("orbax.checkpoint")
    except ImportError as error:
        raise MissingExtra("Orbax", "orbax") from error


def save_orbax(checkpoints: Checkpoints, step: int, tree: Any) -> None:
    """Every process calls it with the same tree. Returns when it is committed."""
    orbax, jax = _orbax(), _jax()
    distributed = jax.process_count() > 1

    def fill(path: Any) -> None:
        with orbax.PyTreeCheckpointer() as writer:
            writer.save(path / "tree", tree)

    def together() -> None:
        import_module("jax.experimental.multihost_utils").sync_global_devices(f"chipwise-step-{step}")

    # All processes must name the folder alike, and there is nothing random that all of them know.
    checkpoints.save_folder(step, fill, mark=f"{step:x}" if distributed else None, together=together if distributed else None)


def load_orbax(checkpoints: Checkpoints, like: Any) -> tuple[int, Any] | None:
    """(step, tree) of the newest whole one, with the structure, dtypes and shardings of `like`; None where there is none."""
    folder = checkpoints.load_folder()
    if folder is None:
        return None
    orbax = _orbax()
    wanted = orbax.checkpoint_utils.construct_restore_args(like)
    with orbax.PyTreeCheckpointer() as reader:
        return folder.step, reader.restore(folder.path / "tree", item=like, restore_args=wanted)
