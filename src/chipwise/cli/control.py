"""`chipwise control`: the controller of this machine's jobs. Started by `run` and by supervisors; people need not."""

from __future__ import annotations

import click

from chipwise.cli.options import Duration


@click.command(hidden=True)
@click.option("--idle", type=Duration(), default=None, help="How long to stay without any job.")
def control(idle: float | None) -> None:
    """Carry out the jobs of this machine until none is left."""
    from chipwise.api.running import controlling
    from chipwise.api.wiring import open_session

    controlling.control(open_session(), controlling.IDLE_S if idle is None else idle)
