"""`chipwise control`: the controller of the jobs of one place. Started by `run` and by supervisors; people need not."""

from __future__ import annotations

import sys

import click

from chipwise.cli.parameter_types import Duration


@click.command(hidden=True)
@click.option("--idle", type=Duration(), default=None, help="Exit after this time without a job: 1h.")
@click.option("--place", default="", help="Control another place: a cluster, or an account.")
def control(idle: float | None, place: str) -> None:
    """Run the controller of this machine, or of another place, until no job is left."""
    from chipwise.api.running import controlling, leading
    from chipwise.api.session.wiring import open_session

    if sys.argv[1:2] == ["control"]:  # a process of its own, which jobs of others may run beside
        controlling.hide_environment()
    leading.control(open_session(), leading.IDLE_S if idle is None else idle, place)
