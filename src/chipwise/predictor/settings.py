"""What of the settings of a prediction is possible: numbers, lengths, formats, frameworks."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.hardware import Hardware
from chipwise.perf.part import Part
from chipwise.perf.published_training import stacks
from chipwise.perf.setup import ServingSetup, Values
from chipwise.perf.setup_rules import all_true, is_whole
from chipwise.spelling import nearest

# By the format that weights are published in: that one, or a wider one where a chip has no other.
SERVING_PRECISIONS = {"": ("bf16", "fp16"), "fp8": ("fp8", "bf16", "fp16"), "fp4": ("fp4", "fp8", "bf16", "fp16")}
_FORMATS = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32")


def counts(name: str, values: Values) -> Array:
    """Whole numbers from 1 on, as a column."""
    numbers = numbers_of(name, values)
    good = is_whole(numbers)
    if not all_true(good):
        index = int(np.argmin(good))
        row = f" in row {index}" if len(numbers) > 1 else ""
        raise InvalidSettings(Problem(name, f"{numbers[index]:g}{row} is not possible", None, "whole numbers from 1 on"))
    return numbers


def numbers_of(name: str, values: Values) -> Array:
    try:
        numbers = column(values)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidSettings(Problem(name, f"{values!r:.60} is not a number", None, "numbers")) from error
    if numbers.ndim > 1 or not len(numbers):
        raise InvalidSettings(Problem(name, "is empty or a table", None, "one number, or a list of them"))
    return numbers


def check_lengths(**columns: Sized) -> None:
    lengths = {name: len(one) for name, one in columns.items()}
    if len({*lengths.values(), 1}) > 2:
        counts = ", ".join(f"{name} {length}" for name, length in lengths.items() if length > 1)
        raise BadInput(f"Columns differ in length: {counts}.", remedy="Give each one row, or as many as the others.")


def check_graphs(hardware: Hardware, setup: ServingSetup) -> None:
    if all_true(setup.cuda_graphs == 1):
        return
    kinds = sorted({hardware.parts[name].kind for name in hardware.part.names} - {"gpu"})
    if kinds:
        raise InvalidSettings(Problem("cuda_graphs", f"a {kinds[0]} has none to do without", None, "GPUs"))


def usual_format(part: Part, published: str = "") -> str:
    """Of weights that are `published` in a format; empty: in 16 bits."""
    able = (name for name in SERVING_PRECISIONS.get(published, SERVING_PRECISIONS[""]) if reads(part, name, published))
    return next(able, "fp32")


def reads(part: Part, name: str, published: str) -> bool:
    """Whether a chip serves weights in a format: GPUs without fp4 read those that are published so, and compute in 16 bits."""
    return part.has(name) or (name == published == "fp4" and part.kind == "gpu")


def format_notes(served: str, published: str) -> tuple[str, ...]:
    """Of weights whose format nobody stated, where they are not published in 16 bits."""
    if not published:
        return ()
    if served == published:
        return (f"The weights are in {published}, as published.",)
    return (f"The weights are published in {published}, which this chip does not have: {served} is used.",)


def framework_of(name: str | None) -> Coded | None:
    if name is None:
        return None
    known = sorted({row["stack"] for row in stacks().values()})
    if name not in known:
        raise InvalidSettings(
            Problem(
                field="framework",
                message=f"{name!r} was never measured",
                line=None,
                allowed=", ".join(known),
                nearest=nearest(str(name), known),
            )
        )
    return Coded.of(name)


def check_precision(hardware: Hardware, precision: Coded) -> None:
    for key in hardware.part.names:
        part = hardware.parts[key]
        for name in precision.names:
            wanted = {"mxfp8": "fp8"}.get(name, name)
            if wanted in ("fp8", "fp4", "bf16", "fp16", "tf32") and not part.has(wanted):
                allowed = ", ".join(one for one in _FORMATS if part.has(one))
                raise InvalidSettings(Problem("precision", f"{key} has no {name} arithmetic", None, allowed))
