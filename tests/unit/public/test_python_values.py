"""Numbers of numpy, decimals, sets, tuples and paths are taken wherever Python's own are."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chipwise as cw
from chipwise.public.python_values import as_plain

API: Any = cw  # calls that a type checker would not let pass
WHERE: dict[str, Any] = {"cloud": "aws", "chip": "l40s"}
SERVE: dict[str, Any] = {"serve": True, "rps": 5, "input": 1000, "output": 300, "budget": 9000}
NUMPY: dict[str, Any] = {
    "serve": np.bool_(True),
    "rps": np.float64(5),
    "input": np.int64(1000),
    "output": np.int32(300),
    "budget": np.float64(9000),
}


def test_a_plan_with_numbers_of_numpy_is_the_same_plan(session: cw.Session) -> None:
    asked: Any = session.plan
    limited = {"chip_count": {"max": 4}, "clouds": ["aws", "gcp"]}
    plan = asked("llama-3.1-8b", **SERVE, chip="l40s", limits=limited)
    limits = {"chip_count": {"max": np.int64(4)}, "clouds": {"gcp", "aws"}}
    assert asked("llama-3.1-8b", **NUMPY, chip={"l40s"}, limits=limits) == plan
    assert asked("llama-3.1-8b", **{**SERVE, "rps": Decimal(5)}, chip=np.array(["l40s"]), limits=limits) == plan


def test_fields_of_a_workload_take_them_too(session: cw.Session) -> None:
    fields: dict[str, Any] = {"model": "llama-3.1-8b", "output_tokens": 300}
    work = API.Serve(**fields, arrival={"rate": np.float32(5)}, input_tokens=np.int64(1000), limits={"clouds": {"aws"}})
    assert work == API.Serve(**fields, arrival={"rate": 5}, input_tokens=1000, limits={"clouds": ["aws"]})
    as_mapping = {"kind": "serve", "name": "x", **fields, "arrival": np.float64(5), "input_tokens": np.int64(1000)}
    assert session.check(as_mapping).workload.input_tokens.mean == 1000


def test_other_functions_take_them(session: cw.Session) -> None:
    asked: Any = session
    assert asked.offers(limit=np.int64(2)) == session.offers(limit=2)
    assert asked.tco("h100", machines=np.int64(4), years=np.float64(3)) == session.tco("h100", machines=4, years=3)
    assert asked.fits("llama-3.1-8b", on="h100", batch=np.int64(3)) == session.fits("llama-3.1-8b", on="h100", batch=3)
    assert asked.explain(Path("h100")) == session.explain("h100")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (np.arange(3), [0, 1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        ((np.int64(1), {"a": np.float64(0.5)}), (1, {"a": 0.5})),
        (Decimal("0.5"), 0.5),
        (None, None),
        (np.str_("aws"), "aws"),
    ],
)
def test_a_value_becomes_one_of_python(value: Any, wanted: Any) -> None:
    plain = as_plain(value)
    assert plain == wanted
    assert type(plain) is type(wanted)
