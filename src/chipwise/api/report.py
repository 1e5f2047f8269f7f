"""A plan as one HTML file, written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.money.tco_values import Tco
from chipwise.planner.explain.compare import Comparison
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.workload.common import Common

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.scale.simulator.compared import MixedAnswer, ReplicaTimeline, ServeAnswer
    from chipwise.scale.simulator.queue_compared import QueueComparison
    from chipwise.scale.simulator.spot_compared import SpotComparison
    from chipwise.serving.load_values import LoadResult

TOP = 1000  # choices a report asks for: the ranking can be filtered, and the matrix of providers shall miss none


def check(path: Path, workload: str | None, force: bool = False) -> None:
    """Raises what `write` would raise for reasons that are known beforehand. `workload`: the file that is read, if any."""
    from chipwise.adapters.stores import whole

    if path.is_dir() or not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written.", remedy="Give the name of a file in an existing directory.")
    if workload is not None and path.exists() and Path(workload).exists() and path.samefile(workload):
        raise BadInput(f"{path} is the workload's own file.", remedy="Give the report another name.")
    whole.check_named(path, force)


def write_pipeline(plan: PipelinePlan, path: Path, today: date, force: bool = False) -> None:
    from chipwise.adapters.stores import whole
    from chipwise.report.pipeline_page import pipeline_page

    whole.write_named(path, pipeline_page(plan, today), force)


def write(session: Session, work: Common, plan: Plan, path: Path, force: bool = False) -> None:
    """With the winner's roofline, where it has one."""
    from chipwise.adapters.stores import whole
    from chipwise.planner.explain.roofline import roofline_of
    from chipwise.report.page import page

    limits, history = roofline_of(session.known, work, plan), session.catalog.rows("price_history")
    whole.write_named(path, page(plan, session.today, limits, history), force)


def write_tco(result: Tco, path: Path, today: date, force: bool = False) -> None:
    from chipwise.adapters.stores import whole
    from chipwise.report.tco_page import tco_page

    whole.write_named(path, tco_page(result, today), force)


def write_comparison(comparison: Comparison, path: Path, today: date, force: bool = False) -> None:
    from chipwise.adapters.stores import whole
    from chipwise.report.compare_page import compare_page

    whole.write_named(path, compare_page(comparison, today), force)


def write_scaling(
    answers: Sequence[ServeAnswer], timelines: Sequence[ReplicaTimeline], path: Path, share: float, *, force: bool = False
) -> None:
    from chipwise.adapters.clock import today
    from chipwise.adapters.stores import whole
    from chipwise.report.scaling_page import scaling_page

    whole.write_named(path, scaling_page(answers, timelines, share, today()), force)


def write_load(result: LoadResult, path: Path, *, force: bool = False) -> None:
    from chipwise.adapters.clock import today
    from chipwise.adapters.stores import whole
    from chipwise.report.load_page import load_page

    whole.write_named(path, load_page(result, today()), force)


def write_spot(comparison: SpotComparison, path: Path, *, force: bool = False) -> None:
    from chipwise.adapters.clock import today
    from chipwise.adapters.stores import whole
    from chipwise.report.spot_page import spot_page

    whole.write_named(path, spot_page(comparison, today()), force)


def write_queue(comparison: QueueComparison, path: Path, *, force: bool = False) -> None:
    from chipwise.adapters.clock import today
    from chipwise.adapters.stores import whole
    from chipwise.report.queue_page import queue_page

    whole.write_named(path, queue_page(comparison, today()), force)


def write_mixed(
    answers: Sequence[MixedAnswer], timelines: Sequence[ReplicaTimeline], path: Path, share: float, *, force: bool = False
) -> None:
    from chipwise.adapters.clock import today
    from chipwise.adapters.stores import whole
    from chipwise.report.scaling_page import mixed_page

    whole.write_named(path, mixed_page(answers, timelines, share, today()), force)
