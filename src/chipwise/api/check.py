"""A workload file held against everything we know: its own rules, the models, the chips, the clouds, the regions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from chipwise.api.wiring import Session
from chipwise.catalog.names import find_retired
from chipwise.errors import BadInput, InvalidFile, OutsideFailed, Problem, UnknownName
from chipwise.spelling import fold, nearest
from chipwise.workload.kinds import Common
from chipwise.workload.parse import Parsed, load_with_lines
from chipwise.workload.pipeline import Pipeline, Workload
from chipwise.workload.references import Reference, ReferenceKind, references
from chipwise.workload.source import Where


@dataclass(frozen=True, slots=True)
class Checked:
    """A workload without a problem. `notes` are not mistakes, yet worth knowing."""

    parsed: Parsed
    workload: Workload
    parameters: dict[str, int]  # of every model that was resolved, by the name in the file
    notes: tuple[str, ...]


def check(session: Session, path: str, environment: str | None = None, online: bool = False) -> Checked:
    """The workload, or InvalidFile with every problem of every environment at once."""
    first = load_with_lines(path, environment)
    problems: dict[Problem, None] = {}
    notes: dict[str, None] = {}
    parameters: dict[str, int] = {}
    for name in dict.fromkeys((environment, *first.environments)):
        parsed = first if name == environment else load_with_lines(path, name)
        for finding in _find(session, parsed, parameters, online):
            if isinstance(finding, Problem):
                problems.setdefault(finding)
            else:
                notes.setdefault(finding)
    if problems:
        raise InvalidFile(path, sorted(problems, key=lambda problem: problem.line or 0))
    return Checked(first, first.workload, parameters, tuple(notes))


def _find(session: Session, parsed: Parsed, parameters: dict[str, int], online: bool) -> Iterator[Problem | str]:
    for reference in references(parsed.workload):
        yield from _resolve(session, parsed, reference, parameters, online)
    for where, part in _parts(parsed.workload):
        model = getattr(part, "model", None)
        if model is not None and not isinstance(model, str):
            yield from _inline(parsed, (*where, "model"), dict(model), parameters)
        trace = getattr(getattr(part, "arrival", None), "trace", None)
        if trace is not None and not trace.beside(parsed.path).is_file():
            message = f"there is no file {str(trace.beside(parsed.path))!r}"
            yield parsed.problem(
                (*where, "arrival", "trace"), message, "a CSV file; a relative path starts at the workload file"
            )


def _parts(workload: Workload) -> Iterator[tuple[Where, Common]]:
    yield (), workload
    if isinstance(workload, Pipeline):
        yield from ((("stages", index), stage) for index, stage in enumerate(workload.stages))


def _resolve(
    session: Session, parsed: Parsed, reference: Reference, parameters: dict[str, int], online: bool
) -> Iterator[Problem | str]:
    text, names = reference.text, session.names

    def unknown(what: str, near: tuple[str, ...], allowed: str | None = None) -> Problem:
        return parsed.problem(reference.where, f"no {what} is called {text!r}", allowed, near)

    match reference.kind:
        case ReferenceKind.MODEL:
            yield from _model(session, parsed, reference, parameters, online)
        case ReferenceKind.CHIP:
            if names.chips_or_none(text) is None:
                yield unknown("chip", names.nearest_chips(text))
            elif (gone := find_retired(text, session.catalog.data)) is not None:
                yield f"{gone.name} is old: {gone.reason}. Use {gone.successor}."
        case ReferenceKind.PROVIDER:
            if names.provider_or_none(text) is None:
                yield unknown("cloud", nearest(text, session.catalog.providers), ", ".join(session.catalog.providers))
        case ReferenceKind.REGION:
            found = names.regions_or_none(text if reference.provider is None else f"{reference.provider}/{text}")
            if found is None and (reference.provider is None or names.provider_or_none(reference.provider) is not None):
                provider = reference.provider and names.provider_or_none(reference.provider)
                known = [r.name for r in session.catalog.regions if provider in (None, r.provider)]
                yield unknown(f"region of {provider}" if provider else "region", nearest(text, known))
        case ReferenceKind.QPU:
            devices = [row.device for row in session.catalog.rows("quantum")]
            if not any(fold(text) in fold(device) for device in devices):
                yield unknown("quantum device", nearest(text, devices), ", ".join(devices))


def _model(
    session: Session, parsed: Parsed, reference: Reference, parameters: dict[str, int], online: bool
) -> Iterator[Problem | str]:
    text = reference.text
    beside = Path(parsed.path).parent / text
    name = str(beside) if text.endswith(".json") or text.startswith(".") or (beside.exists() and "/" in text) else text
    try:
        parameters[text] = session.find_model(name, online).shape.parameters
    except UnknownName as error:
        if text.count("/") == 1 and name == text:
            yield f"{text} is not in the registry; with --online its shape is read from the hub."
        else:
            yield parsed.problem(
                reference.where, error.message.rstrip("."), "a registry name, a hub id, a config.json or a shape", error.nearest
            )
    except OutsideFailed as error:
        yield f"{text} could not be looked up: {error}"
    except InvalidFile as error:
        yield from (parsed.problem(reference.where, f"{name}: {problem}") for problem in error.problems)
    except BadInput as error:
        yield parsed.problem(reference.where, str(error))


def _inline(parsed: Parsed, where: Where, shape: dict[str, object], parameters: dict[str, int]) -> Iterator[Problem]:
    from chipwise.workload.inline import shape_from_mapping

    try:
        parameters["(shape in the file)"] = shape_from_mapping(shape, parsed.path).parameters
    except InvalidFile as error:
        for problem in error.problems:
            here = parsed.problem((*where, problem.field), problem.message, problem.allowed, problem.nearest)
            yield replace(here, field=f"{'.'.join(map(str, where))}.{problem.field}")
    except BadInput as error:
        yield parsed.problem(where, str(error))
