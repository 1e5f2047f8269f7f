"""Workload files to start from: one for every kind, with comments, as data of the package."""

from __future__ import annotations

from pathlib import Path

from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import fold, nearest

FOLDER = Path(__file__).resolve().parents[1] / "data" / "templates"
STDOUT = "-"


def kinds() -> dict[str, str]:
    """What each template is for, by the name that people type."""
    return {path.stem: _purpose(path) for path in sorted(FOLDER.glob("*.yaml"))}


def _purpose(path: Path) -> str:
    """The first sentence of its first comment."""
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").partition(". ")[0].strip()


def text(kind: str) -> str:
    """The template of a kind."""
    known = {fold(name): name for name in kinds()}
    name = known.get(fold(kind))
    if name is None:
        raise UnknownName(
            "kind of workload", kind, nearest(kind, known.values()), remedy=f"Kinds: {', '.join(known.values())}."
        )
    return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def field_called(name: str) -> str:
    """Where a file of some kind has a field of this name: replicas, arrival.concurrency; empty: nowhere."""
    from chipwise.workload.demand import Arrival
    from chipwise.workload.pipeline import KINDS

    if any(name in kind.model_fields for kind in KINDS):
        return name
    return f"arrival.{name}" if name in Arrival.model_fields else ""


def write(kind: str, path: Path, force: bool = False) -> None:
    """Into a file that is not there yet, unless forced."""
    from chipwise.adapters.stores import whole

    content = text(kind).replace("FILE", str(path)) if str(path).isprintable() else text(kind)
    if path.is_dir():
        raise BadInput(f"{path} is a folder.", remedy=f"Name a file: -o {path / 'workload.yaml'}.")
    if not path.parent.is_dir():
        raise BadInput(f"There is no folder {path.parent}.", remedy="Create it first, or name another file with -o.")
    whole.write_named(path, content, force)
