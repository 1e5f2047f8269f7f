"""`queue.yaml` of the config directory: {patience: 1h, policy: backfill, teams: {vision: {gpus: 8, cpus: 64}}}."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput, InvalidFile, Problem
from chipwise.runner.queue import Rules, Share

if TYPE_CHECKING:
    from collections.abc import Callable

    from chipwise.runner.job import Job


def queue_rules(path: Path) -> Rules:
    if not path.is_file():
        return Rules()
    from chipwise.files.source import FileKind, read_text, read_yaml
    from chipwise.units import parse_seconds

    kind = FileKind("queue", "Allowed keys are patience, policy, teams and others.", 100_000)
    text = read_text(path, kind)
    if all(line.lstrip().startswith("#") for line in text.splitlines() if line.strip()):
        return Rules()
    document = read_yaml(text, str(path), kind)
    data, problems = document.data, list(document.problems)
    problems += [
        Problem(str(name), "there is no such key", allowed="patience, policy, teams, others")
        for name in data.keys() - {"patience", "policy", "teams", "others"}
    ]
    teams = data.get("teams") or {}
    if not isinstance(teams, dict):
        problems.append(Problem("teams", "it is not a mapping", allowed="names of teams with gpus, cpus, weight"))
        teams = {}
    shares = {str(name): _share(f"teams.{name}", value, problems) for name, value in teams.items()}
    default_share = _share("others", data.get("others"), problems)
    patience = Rules().patience_s
    if "patience" in data:
        try:
            patience = parse_seconds(str(data["patience"])[:100])
        except BadInput as error:
            problems.append(Problem("patience", error.message, allowed="a time such as 1h"))
        if patience < 0:
            problems.append(Problem("patience", "it is below zero", allowed="a time such as 1h"))
    order, is_strict = _order(data.get("policy"), problems)
    if problems:
        raise InvalidFile(str(path), problems)
    return Rules(teams=shares, default_share=default_share, patience_s=patience, order=order, is_strict=is_strict)


FAIR_SHARE = "fair-share"  # the order of our own queue where no other is named


def _order(name: object, problems: list[Problem]) -> tuple[Callable[[Job, float], float] | None, bool]:
    """Of the queue policy of that name."""
    if name is None or name == FAIR_SHARE:
        return None, False
    from chipwise.runner.queue_order import order
    from chipwise.scale.policy_files import queue_policy

    try:
        return order(queue_policy(str(name)[:100]))
    except BadInput as error:
        problems.append(Problem("policy", error.message, allowed="a queue policy of chipwise policies"))
        return None, False


def _share(field: str, value: object, problems: list[Problem]) -> Share:
    if value is None:
        return Share()
    if not isinstance(value, dict):
        problems.append(Problem(field, "it is not a mapping", allowed="gpus, cpus, weight"))
        return Share()
    problems += [
        Problem(f"{field}.{key}", "there is no such key", allowed="gpus, cpus, weight")
        for key in value.keys() - {"gpus", "cpus", "weight"}
    ]
    for key in ("gpus", "cpus"):
        count = value.get(key)
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            problems.append(
                Problem(f"{field}.{key}", f"{count!r:.60} is not a number of devices", allowed="a whole number, 0 or more")
            )
    weight = value.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e9:
        problems.append(Problem(f"{field}.weight", f"{weight!r:.60} is not a weight", allowed="a number above 0"))
        weight = 1.0
    if any(problem.field.startswith(field) for problem in problems):
        return Share()
    return Share(value.get("gpus"), value.get("cpus"), float(weight))
