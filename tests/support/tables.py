"""A law over a table of cases is one test for a worker: what pytest does around a test takes longer than most cases do.

Every case is tried, whatever the others do, and one that fails is named. Without workers (`pytest FILE`, and whoever runs a
failed test again) each case is a test of its own.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

Law = Callable[..., None]
Case = tuple[str | None, dict[str, Any]]  # its id, where it has one
_APART = frozenset({"record", "request", "seed", "url"})  # what a mark of its own hangs on, or asks which case it is


def as_one_test(collector: pytest.Module, name: str, law: Law) -> pytest.Function | None:
    """None where a case is more than a call: it has a mark, or something that is made for each test."""
    marks = list(getattr(law, "pytestmark", ()))
    tables = [mark for mark in marks if mark.name == "parametrize"]
    if not tables or hasattr(law, "hypothesis") or any(mark.name == "xfail" for mark in marks):
        return None
    if next(collector.iter_markers("parametrize"), None) is not None:
        return None
    columns = [_cases(table) for table in tables]
    if not all(columns):
        return None
    rows = [_joined(combination) for combination in itertools.product(*(column or () for column in columns))]
    others = [one for one in inspect.signature(law).parameters.values() if one.name not in rows[0][1]]
    if _APART & {*rows[0][1], *(one.name for one in others)}:
        return None
    test = _over(rows, law)
    test.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]
    test.pytestmark = [mark for mark in marks if mark not in tables]  # type: ignore[attr-defined]
    item: pytest.Function = pytest.Function.from_parent(collector, name=name, callobj=test)
    made = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
    return None if any(one.scope == "function" or one.params for one in made) else item


def _over(rows: Sequence[Case], law: Law) -> Law:
    @functools.wraps(law)
    def test(**shared: object) -> None:
        failed: list[BaseException] = []
        skipped: list[BaseException] = []
        for given, row in rows:
            try:
                law(**row, **shared)
            except pytest.skip.Exception as reason:
                skipped.append(reason)
            except (Exception, pytest.fail.Exception) as why:
                why.add_note(f"case: {given or ', '.join(f'{name}={value!r}' for name, value in row.items())}")
                failed.append(why)
        if len(failed) > 1:
            raise BaseExceptionGroup(f"{len(failed)} of {len(rows)} cases", failed)
        for one in failed or skipped:
            raise one

    return test


def _cases(table: pytest.Mark) -> list[Case] | None:
    """None where pytest must make them."""
    names, values, *rest = table.args if len(table.args) > 1 else (*table.args, table.kwargs.get("argvalues"))
    ids = table.kwargs.get("ids")
    if rest or {*table.kwargs} - {"ids", "argvalues"} or values is None or isinstance(values, Iterator | str):
        return None
    columns = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
    found: list[Case] = []
    for index, value in enumerate(values):
        one = value if isinstance(value, type(pytest.param())) else None
        if one is not None and one.marks:
            return None
        row = dict(zip(columns, one.values if one else [value] if len(columns) == 1 else value, strict=True))
        chosen = one.id if one else None
        if chosen is None and ids is not None and not callable(ids):
            chosen = list(ids)[index]
        found.append((None if chosen is None else str(chosen), row))
    return found


def _joined(parts: Sequence[Case]) -> Case:
    ids = [given for given, _ in parts if given is not None]
    return ", ".join(ids) if len(ids) == len(parts) else None, {name: row[name] for _, row in parts for name in row}
