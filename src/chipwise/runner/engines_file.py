"""`engines.yaml` of the config directory, as it was written, and as which system user it lets jobs of this machine run:

    local: {run_as: jobs}                       # all of them
    local: {run_as: {mia: mia, ada: ada}}       # by owner, as the record names them; jobs of others do not start

Without it jobs run as the user of the controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import InvalidFile, Problem
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from pydantic import BaseModel

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


def run_as(path: Path, engine: str) -> dict[str, str]:
    """By owner; an empty owner stands for all that are not named."""
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


def checked_fields(model: type[BaseModel], kind: str, fields: Mapping[str, Any], path: str, name: str, page: str) -> BaseModel:
    """The settings of an engine of that kind, or every problem at once. `page`: of the docs."""
    from pydantic import ValidationError  # loaded when an engine with settings is named: lists go without

    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        problems: list[Problem] = []
        parts: Mapping[str, tuple[str, type[BaseModel]]] = getattr(model, "PARTS", {})
        for detail in error.errors(include_url=False):
            field = ".".join(map(str, detail["loc"][:3] if detail["loc"][0] in parts else detail["loc"][:1]))
            match detail["type"]:
                case "extra_forbidden":
                    owner, inner = parts[str(detail["loc"][0])] if len(detail["loc"]) > 1 else (kind, model)
                    allowed = tuple(inner.model_fields)
                    message = f"is not a field of {owner}; allowed: {', '.join(allowed)}"
                    near = nearest(str(detail["loc"][-1]), allowed)
                case "missing":
                    message, near = "is required", ()
                case _:
                    message, near = (
                        f"{str(detail['input'])[:60]!r} is not valid: {detail['msg'][0].lower()}{detail['msg'][1:]}",
                        (),
                    )
            if all(each.field != f"{name}.{field}" for each in problems):
                problems.append(Problem(field=f"{name}.{field}", message=message, line=None, allowed=None, nearest=near))
        raise InvalidFile(path, problems, remedy=f"{page} lists its fields.") from None
