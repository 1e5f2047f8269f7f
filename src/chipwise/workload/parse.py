"""The door: a workload file becomes a `Workload`, or one error that lists everything wrong with it.

    load("workload.yaml", environment="prod") -> Workload
    parse_with_lines(text, path) -> Parsed          also knows the line of every field

Every environment of the file is checked, whichever is asked for, so that a mistake in dev is not found on the day dev is
needed. Names of models, chips, clouds and regions are not looked up here: a caller who can hands in `look`, which is given
every environment as it is laid out, valid or not, and whose problems stand among all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import InvalidFile, Problem, UnknownName
from chipwise.files.source import Document, FieldPath, read_text, read_yaml
from chipwise.spelling import nearest
from chipwise.workload.overlay import KEY, Spot, layer
from chipwise.workload.part import show_value
from chipwise.workload.pipeline import Workload
from chipwise.workload.problems import MAX_PROBLEMS, check, spot_of

MAX_ENVIRONMENTS = 20  # each is checked in full


@dataclass(frozen=True, slots=True)
class EnvironmentData:
    """One environment of a file as plain data, before it was checked."""

    path: str
    environment: str | None
    data: Mapping[str, object]
    lines: Mapping[FieldPath, Spot]

    def problem(self, field_path: FieldPath, message: str, allowed: str | None = None, near: tuple[str, ...] = ()) -> Problem:
        """A problem at the place of a `Reference` or of any field, with the file's own field name and line."""
        _, spot = spot_of(field_path, self.lines)
        return Problem(field=spot.field, message=message, line=spot.line, allowed=allowed, nearest=near)


Look = Callable[[EnvironmentData], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A workload and the file it came from."""

    workload: Workload
    source: EnvironmentData
    environments: tuple[str, ...]

    @property
    def path(self) -> str:
        return self.source.path


def load(path: str | Path, environment: str | None = None) -> Workload:
    """The workload in a file, with one of its environments laid over it."""
    return load_with_lines(path, environment).workload


def load_with_lines(path: str | Path, environment: str | None = None, look: Look | None = None) -> Parsed:
    """As `load`, with the place of every field; relative names in the file start where the file is."""
    return parse_with_lines(read_text(path), str(path), environment, look)


def parse(text: str, path: str = "<string>", environment: str | None = None) -> Workload:
    """As `load`, from a text; `path` is what errors call it."""
    return parse_with_lines(text, path, environment).workload


def parse_with_lines(text: str, path: str = "<string>", environment: str | None = None, look: Look | None = None) -> Parsed:
    document = read_yaml(text, path)
    problems = list(document.problems)
    names = _environments(document, problems)
    if environment is not None and environment not in names:
        remedy = f"{path} has {', '.join(names)}." if names else f"{path} has no environments."
        raise UnknownName("environment", environment, nearest(environment, names), remedy=remedy)
    data_of = {}
    problems_of: dict[str | None, list[Problem]] = {}
    workloads: dict[str | None, Workload] = {}
    for name in dict.fromkeys([environment, *names]):
        layered = layer(document, name)
        data_of[name] = EnvironmentData(path, name, layered.data, layered.spots)
        result = check(layered)
        problems_of[name] = result if isinstance(result, list) else []
        if not isinstance(result, list):
            workloads[name] = result
        if look is not None:
            # A field that is wrong in itself is told once; what its name means does not matter then.
            wrong = {problem.field for problem in problems_of[name]}
            problems_of[name] += [problem for problem in look(data_of[name]) if problem.field not in wrong]
    problems += _together({name: result for name, result in problems_of.items() if result}, len(data_of))
    workload = workloads.get(environment)
    if problems or workload is None:
        ordered = sorted(problems, key=lambda problem: problem.line if problem.line is not None else 10**9)
        if len(ordered) > MAX_PROBLEMS:
            rest = len(ordered) - MAX_PROBLEMS
            ordered = [*ordered[:MAX_PROBLEMS], Problem("", f"and {rest} more problems; fix these first")]
        raise InvalidFile(path, ordered)
    return Parsed(workload, data_of[environment], names)


def _environments(document: Document, problems: list[Problem]) -> tuple[str, ...]:
    """The names of environments; what is not a mapping is a problem."""
    environments = document.data.get(KEY)
    line = document.lines.get((KEY,))
    if environments is None:
        return ()
    if not isinstance(environments, Mapping):
        problems.append(
            Problem(
                KEY, f"{show_value(environments)} stands where a mapping belongs", line, "environments by name, as dev: {...}"
            )
        )
        return ()
    if len(environments) > MAX_ENVIRONMENTS:
        problems.append(Problem(KEY, f"{len(environments)} environments are too many", line, f"at most {MAX_ENVIRONMENTS}"))
        return ()
    for name, overlay in environments.items():
        if overlay is not None and not isinstance(overlay, Mapping):
            overlay_line = document.lines.get((KEY, name))
            problems.append(
                Problem(
                    f"{KEY}.{name}",
                    f"{show_value(overlay)} stands where a mapping of fields belongs",
                    overlay_line,
                    "fields of a workload",
                )
            )
    return tuple(environments)


def _together(by_environment: Mapping[str | None, list[Problem]], checked: int) -> list[Problem]:
    """Each problem once, with the environments it concerns unless it concerns all or stands in its own section."""
    concerned: dict[Problem, list[str]] = {}
    for name, environment_problems in by_environment.items():
        for problem in environment_problems:
            concerned.setdefault(problem, []).append(name or "")
    merged: list[Problem] = []
    for problem, names in concerned.items():
        if len(names) < checked and "" not in names and not problem.field.startswith(f"{KEY}."):
            message = f"{problem.message} (in environment {', '.join(names)})"
            problem = Problem(
                field=problem.field, message=message, line=problem.line, allowed=problem.allowed, nearest=problem.nearest
            )
        merged.append(problem)
    return merged
