"""The same workload on the same facts has the same plan: a test process makes each plan once.

Planning is pure (a contract of `pyproject.toml`), and a plan is a value, so a plan that another test asked for is the plan that
would be made again. That holds for the packaged catalogs, models and speeds only: whoever brings files of their own, or
replaces a part of the program (`monkeypatch`), gets a plan made for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from unittest.mock import patch

from chipwise.perf import model as speed
from chipwise.planner import plan as planning
from chipwise.planner.pipeline import plan as planning_pipelines
from chipwise.planner.single import plan_work
from chipwise.planner.values.plan import Plan
from chipwise.predictor.known import Known
from chipwise.workload.common import Common
from chipwise.workload.model import registry
from small_catalog import _packaged, small_catalog

_Question = tuple[object, ...]
_made: dict[_Question, list[tuple[Common, Plan]]] = {}
_known: dict[tuple[int, date], Known] = {}
_anew = False  # for the test that runs now


def each_plan_anew(wanted: bool) -> None:
    global _anew
    _anew = wanted


@contextmanager
def plans_made_once() -> Iterator[None]:
    with patch.object(planning, "plan_work", _plan_once), patch.object(planning_pipelines, "plan_work", _plan_once):
        yield


def _plan_once(known: Known, path: str, work: Common, objective: str | None, top: int, per_use: bool = True) -> Plan:
    if _anew or not _is_packaged(known) or _may_name_a_file(work.model_dump(), Path(path).parent):
        return plan_work(known, path, work, objective, top, per_use)
    known = _known.setdefault((id(known.catalog), known.today), known)  # with what it remembers of other questions
    stated = work.model_dump_json(exclude_unset=True)
    catalog = id(known.catalog)  # which lives as long as the process
    plans = _made.setdefault((stated, objective, top, per_use, known.today, catalog), [])
    for other, plan in plans:
        if other == work:
            return plan
    plans.append((work, plan_work(known, path, work, objective, top, per_use)))
    return plans[-1][1]


def _is_packaged(known: Known) -> bool:
    """Whether nothing of a user is in it."""
    if known.catalog is not _packaged(True) and known.catalog is not small_catalog(True):
        return False
    return known.models.registry is registry.load() and known.model is speed.packaged()


def _may_name_a_file(value: object, folder: Path) -> bool:
    """Whether the plan may hang on what a file holds, or a hub: a recording, the shape of a model, a folder of data."""
    if isinstance(value, dict):
        return any(_may_name_a_file(one, folder) for one in value.values())
    if isinstance(value, list | tuple):
        return any(_may_name_a_file(one, folder) for one in value)
    if not isinstance(value, str) or "://" in value:
        return False
    return ("/" in value and " " not in value) or os.path.exists(value) or os.path.exists(folder / value)
