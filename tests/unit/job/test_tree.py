"""A state is the same after it was written and read, and what cannot be kept is named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from chipwise.job import tree
from chipwise.job.errors import CannotKeep
from chipwise.job.manifest import Damaged
from effort import cases

DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="?"),
    npst.unsigned_integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?"),
    npst.complex_number_dtypes(endianness="?"),
    npst.datetime64_dtypes(),
    npst.unicode_string_dtypes(max_len=5),
)
ARRAYS = DTYPES.flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.binary(max_size=40),
    st.binary(max_size=9).map(bytearray),
    ARRAYS,
    npst.from_dtype(np.dtype("float32")),
)
KEYS = st.one_of(st.text(max_size=5), st.integers())
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=12,
)


def written(state: Any) -> bytearray:
    return bytearray(b"".join(bytes(part) for part in tree.parts(tree.snapshot(state))))


def read(data: bytearray) -> Any:
    return tree.plain(tree.content(data).state)


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one.hex() == other.hex() or (math.isnan(one) and math.isnan(other))
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    return bool(one == other)


@given(TREES)
@settings(max_examples=cases(150))
def test_any_state_is_the_same_after_it_was_written_and_read(state: Any) -> None:
    assert same(read(written(state)), state)


@given(TREES, st.data())
@settings(max_examples=cases(60))
def test_a_cut_file_is_never_read_as_a_state(state: Any, data: st.DataObject) -> None:
    whole = written({"state": state, "last": np.arange(100)})
    cut = data.draw(st.integers(0, len(whole) - 64))
    with pytest.raises(Damaged):
        read(whole[:cut])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(4, 6)[::2, ::-1],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(3.5),
        np.zeros((0, 3), dtype=">i4"),
        np.arange(5, dtype=">f8"),
        np.broadcast_to(np.float32(2.0), (3, 2)),
    ],
    ids=["strided", "fortran", "zero-dimensional", "empty", "big-endian", "broadcast"],
)
def test_arrays_of_every_layout_keep_values_shape_and_type(array: Any) -> None:
    again = read(written(array))
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    np.testing.assert_array_equal(again, array)
    again.setflags(write=True)  # a loaded array can be trained


def test_bfloat16_is_kept_bit_by_bit() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes: not installed")
    array = np.arange(7).astype(ml_dtypes.bfloat16)
    again = read(written({"w": array}))["w"]
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


def test_a_random_generator_goes_on_where_it_was() -> None:
    rng = np.random.default_rng(3)
    rng.normal(size=5)
    again = read(written(rng))
    assert again.integers(1 << 60) == rng.integers(1 << 60)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"a": {"b": np.zeros(2, dtype=[("x", "f4")])}}, "state.a.b: is a structured array"),
        ({"a": [1, np.array([object()])]}, "state.a[1]: is an array of object"),
        ({"model": object()}, "state.model: is a object"),
        ({"w": np.ma.masked_array([1.0])}, "state.w: is a MaskedArray"),
        ({(1, 2): 3}, "state: has the key (1, 2)"),
        ({"a key": {3: {1, 2}}}, "state['a key'][3]: is a set"),
    ],
)
def test_what_cannot_be_kept_is_named_with_its_place(state: Any, told: str) -> None:
    with pytest.raises(CannotKeep) as caught:
        tree.snapshot(state)
    assert str(caught.value).startswith(told)
    assert caught.value.remedy


def test_a_state_that_holds_itself_is_refused() -> None:
    state: dict[str, Any] = {}
    state["self"] = state
    with pytest.raises(CannotKeep, match="Does it hold itself"):
        tree.snapshot(state)


def test_a_snapshot_does_not_change_with_the_arrays_it_was_taken_from() -> None:
    array = np.zeros(1000)
    shot = tree.snapshot({"w": array})
    array[:] = 1
    again = read(bytearray(b"".join(bytes(part) for part in tree.parts(shot))))
    assert not again["w"].any()


def test_no_byte_of_the_format_is_pickled() -> None:
    data = written({"w": np.arange(3), "n": 1})
    assert data.startswith(tree.MAGIC)
    assert b"numpy" not in data
