"""What a run that is over tells of its speed, or why it tells none."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.runner.comparing import number
from chipwise.runner.job import Job, Phase, Work


def speed_of(measured: Mapping[str, object], work: Work, step_limit: int | None) -> float | None:
    """`step_limit`: so many steps and no more. Where nobody tells any, it may have done those, or all of its work."""
    if step_limit is not None and "steps" not in measured:
        return None
    throughput, rate = number(measured.get("throughput")), number(measured.get("steps_per_s"))
    if throughput is not None:
        return throughput
    if rate is None or (work.unit and not work.per_step):
        return None
    return rate * (work.per_step or 1.0)


def why_unmeasured(
    job: Job, measured: Mapping[str, object], work: Work, step_limit: int | None, *, names_logs: bool = True
) -> str:
    if job.phase is Phase.FAILED or not measured:
        return f"{job.phase}: {job.reason or 'it never ran'}{f' (chipwise logs {job.id})' if names_logs else ''}"
    if "steps" not in measured and step_limit is not None and job.phase is Phase.DONE:
        return f"it reports no steps (chipwise.job.steps does): it is not known whether it did {step_limit} or all of them"
    if "steps" not in measured:
        return "it reports no steps (chipwise.job.steps does) and was not run to its end"
    if "steps_per_s" not in measured:
        return f"{measured['steps']} steps were over before it was warm, or none was left to do: let it run for longer"
    return f"its file does not say how many {work.unit} a step is: let it run to its end"
