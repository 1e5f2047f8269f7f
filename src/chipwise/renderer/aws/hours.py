"""Hours in which a job may run, for services of AWS that cannot pause one: a crontab starts it and ends it, and what it saved
carries it over. AWS's own scheduler calls one operation at a time; to start or end a job here takes several."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.launch.starting import saves
from chipwise.renderer.quoting import one_line
from chipwise.renderer.windows import without_pause


def by_crontab(deployment: Deployment) -> Deployment:
    """Without the note that somebody must pause it, where the lines of `crontab` say how."""
    return without_pause(deployment) if deployment.hours is not None and saves(deployment) else deployment


def crontab(deployment: Deployment, script: str) -> tuple[str, ...]:
    """Lines for the head of a script; none where it may always run, or would begin from nothing at each opening."""
    hours = deployment.hours
    if hours is None or not saves(deployment):
        return ()
    return (
        "To keep the plan's hours, in the crontab of a machine that stays on, until the job is done; your options after --up:",
        f"CRON_TZ={one_line(deployment.time_zone)}",
        f"{hours.opens.cron} python {script} --up",
        f"{hours.closes.cron} python {script} --down",
    )


def clock_lines(deployment: Deployment, script: str) -> tuple[str, ...]:
    """The same for a service with hours, or for a job that a clock starts anew; the launcher itself keeps none."""
    if not deployment.starts:
        return ()
    ends = (f"{one_line(deployment.stops)} python {script} --down",) if deployment.stops else ()
    return (
        "To keep the plan's hours, in the crontab of a machine that stays on; your options after --up:",
        f"CRON_TZ={one_line(deployment.time_zone)}",
        f"{one_line(deployment.starts)} python {script} --up",
        *(ends if deployment.form is Form.SERVICE else ()),
    )
