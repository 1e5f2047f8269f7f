"""`engines.yaml` of the config directory, as it was written, and as which system user it lets jobs of this machine run:

    local: {run_as: jobs}                       # all of them
    local: {run_as: {mia: mia, ada: ada}}       # by owner, as the record names them; jobs of others do not start

Without it jobs run as the user of the controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import InvalidFile, Problem

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.files.source import Document

REMEDY = "Each engine is a name with its fields; see docs/running/engines.md."


def read(path: Path) -> Document:
    from chipwise.files.source import (
        FileKind,
        read_text,
        read_yaml,
    )  # most machines have no such file, and lists need no YAML

    kind = FileKind("engines", REMEDY, 100_000)
    return read_yaml(read_text(path, kind), str(path), kind)


FIELD = "run_as"
_FORM = "the name of a system user, or such a name for each owner"


def run_as(session: Session, engine: str) -> dict[str, str]:
    """By owner; an empty owner stands for all that are not named."""
    path = session.config.engines
    if not path.is_file() or FIELD not in path.read_text(errors="replace"):  # most have none, and lists need not wait for YAML
        return {}
    fields = read(path).data.get(engine)
    problems = field_problems(engine, fields)
    if problems:
        raise InvalidFile(str(path), problems, remedy=REMEDY)
    if not isinstance(fields, Mapping) or fields.get(FIELD) is None:
        return {}
    users = fields[FIELD]
    return {str(owner): user for owner, user in users.items()} if isinstance(users, Mapping) else {"": users}


def field_problems(engine: str, fields: object) -> list[Problem]:
    """What is wrong with the fields of an engine of this machine."""
    if fields is None:
        return []
    if not isinstance(fields, Mapping):
        return [Problem(engine, "is not a mapping of fields", allowed=f"such as {{{FIELD}: NAME}}")]
    problems = [Problem(f"{engine}.{name}", f"is not a field of {engine}", allowed=FIELD) for name in fields.keys() - {FIELD}]
    users = fields.get(FIELD)
    named = list(users.values()) if isinstance(users, Mapping) else [] if users is None else [users]
    unnamed = isinstance(users, Mapping) and (not users or "" in users)
    if unnamed or not all(isinstance(name, str) and name for name in named):
        problems.append(Problem(f"{engine}.{FIELD}", f"{users!r:.60} is not valid", allowed=_FORM))
    return problems
