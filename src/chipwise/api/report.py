"""A plan as one HTML file, written whole or not at all."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.workload.kinds import Common

TOP = 1000  # choices a report asks for: the ranking can be filtered, and the matrix of providers shall miss none


def check(path: Path, workload: str, force: bool = False) -> None:
    """Raises what `write` would raise for reasons that are known beforehand."""
    from chipwise.adapters.stores import whole
    from chipwise.report.page import plotly_script

    if path.is_dir() or not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written.", remedy="Give the name of a file in a directory that is there.")
    if path.exists() and Path(workload).exists() and path.samefile(workload):
        raise BadInput(f"{path} is the workload's own file.", remedy="Give the report another name.")
    whole.check_named(path, force)
    plotly_script()


def write_pipeline(plan: PipelinePlan, path: Path, today: date, force: bool = False) -> None:
    from chipwise.adapters.stores import whole
    from chipwise.report.pipeline_page import pipeline_page

    whole.write_named(path, pipeline_page(plan, today), force)


def write(session: Session, work: Common, plan: Plan, path: Path, force: bool = False) -> None:
    """With the winner's roofline, where it has one."""
    from chipwise.adapters.stores import whole
    from chipwise.planner.explain.roofline import roofline_of
    from chipwise.report.page import page

    whole.write_named(path, page(plan, session.today, roofline_of(session.known, work, plan)), force)
