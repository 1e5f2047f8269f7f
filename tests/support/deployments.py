"""Deployments of the examples, planned once and kept: what tests of rendering start from."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from unittest.mock import patch

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.api.session.wiring import Session, open_session
from chipwise.errors import NoResult
from chipwise.files.source import read_text
from chipwise.planner.options import with_limits
from chipwise.renderer.deployment import Deployment
from once_in_run import once_in_run
from pinned_day import TODAY
from small_catalog import few_offers, real_session

_BUDGET = re.compile(r"^  budget: .*\n", re.MULTILINE)
EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = tuple(sorted(path.parent.name for path in EXAMPLES.glob("*/workload.yaml")))
AWS_NAMES = tuple(name for name in NAMES if name != "measured")  # nothing there ends within its four days as surely as asked


@cache
def session() -> Session:
    with patch.dict(os.environ, CHIPWISE_TODAY=TODAY):
        return real_session()


@cache
def few_session() -> Session:
    """On the small catalog, for what holds for any deployment."""
    with few_offers(), patch.dict(os.environ, CHIPWISE_TODAY=TODAY):
        return open_session()


@cache
def deployment(example: str, *limits: str, stage: str | None = None, environment: str | None = None) -> Deployment:
    """`limits` as the command line has them: "clouds=[aws]". Then without the budget, for it is about files."""
    return once_in_run(
        ("deployment", example, limits, stage, environment), lambda: _planned(session(), example, limits, stage, environment)
    )


@cache
def on_few_offers(example: str, *limits: str, stage: str | None = None, environment: str | None = None) -> Deployment:
    """The same, planned on the small catalog; on the whole one where few offers are none that will do."""

    def make() -> Deployment:
        try:
            return _planned(few_session(), example, limits, stage, environment)
        except NoResult:
            return deployment(example, *limits, stage=stage, environment=environment)

    return once_in_run(("on few offers", example, limits, stage, environment), make)


def _planned(session: Session, example: str, limits: tuple[str, ...], stage: str | None, environment: str | None) -> Deployment:
    path = str(EXAMPLES / example / "workload.yaml")
    text = with_limits(_BUDGET.sub("", read_text(path)), path, limits) if limits else None
    return deployment_of(session, path, RenderRequest(environment=environment, text=text, stage=stage))
