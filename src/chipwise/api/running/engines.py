"""Engines by name: what `--engine` may say, how each is reached, and what of that a place remembers.

`engines.yaml` of the config directory names them, each by the fields of its kind:

    cluster: {kind: kubernetes, context: prod, namespace: train}
    ec2: {region: eu-west-1, keep: s3://my-bucket/chipwise, instance_profile: chipwise-job, regions: [eu-north-1]}

What it says of an engine of this machine is in `engines_file.py`.

A job holds its place, such as `kubernetes:10.0.0.1:6443/train`. How to get there is written down beside the record of this
machine when the first job goes there, so that a controller that is started later, by whomever, needs no option for it.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from chipwise import plugins
from chipwise.api.running.installed import DEFAULT, choices, configurable, names, package, runs_here, traits
from chipwise.api.running.place import PLACES, engine_here, home_of, is_ours, record_url
from chipwise.errors import BadInput, InvalidFile, NotFound, Problem, UnknownName
from chipwise.runner import engines_file
from chipwise.runner.abilities import Configurable, Home
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.runner.engine import Engine


class _None(BaseModel):
    """Of an engine that takes no settings."""


@dataclass(frozen=True, slots=True)
class Reach:
    """An engine by its kind, with what it takes to get there. No secret is among it."""

    kind: str
    settings: BaseModel = field(default_factory=_None)

    @property
    def is_local(self) -> bool:
        """On this machine, where nothing needs to be reached."""
        return runs_here(self.kind)

    def setting(self, name: str) -> str:
        return str(getattr(self.settings, name, "") or "")


def kind_of(session: Session, name: str) -> str:
    """Of an engine that is installed, or named in engines.yaml."""
    kind = plugins.typed(name)
    if runs_here(kind):  # whatever the file says
        return kind
    configured = _configured(session)
    if name in configured:
        return configured[name][0]
    if kind not in choices():
        if kind in names():
            raise BadInput(f"Jobs cannot run on {kind}.", remedy=f"Use --simulate, or one of {', '.join(choices())}.")
        known = (*choices(), *(one for one in configured if one not in choices()))
        raise UnknownName("engine", name, nearest(name, known), remedy=f"There are: {', '.join(known)}.")
    return kind


def reach(session: Session, name: str | None, options: Mapping[str, str] | None = None) -> Reach:
    """What a name means here; `options`: those of the command line, over what the file says."""
    kind = kind_of(session, name or DEFAULT)
    if runs_here(kind):
        return Reach(kind)
    overrides = {key: value for key, value in (options or {}).items() if value}
    _, fields = _configured(session).get(name or DEFAULT, (kind, {}))
    return Reach(kind, _checked(kind, {**fields, **overrides}, str(session.config.engines), name or DEFAULT))


def connect(session: Session, reach: Reach) -> Engine:
    """Nothing outside is asked yet."""
    kind = package(reach.kind)
    if isinstance(kind, Configurable):
        return kind.connect(kind.configured(reach.settings, Home(session.config.run_dir, record_id(session))))
    return engine_here(session, reach.kind)


def remember(session: Session, place: str, reach: Reach) -> None:
    """For controllers and whoever asks later; the newest way to a place counts."""
    from chipwise.adapters import state_files

    home = home_of(session, place)
    if not is_ours(session):
        return  # its controller knows the way, or nobody does
    state_files.make_folder(home)
    document = {"place": place, "kind": reach.kind, "fields": reach.settings.model_dump(mode="json")}
    if state_files.read(home, "reach.json") != document:
        state_files.write(home, "reach.json", document)


def of_place(session: Session, place: str) -> Engine:
    return connect(session, reach_of(session, place))


def reach_of(session: Session, place: str) -> Reach:
    """How jobs of a place got there."""
    from chipwise.adapters import state_files

    stored = state_files.read(home_of(session, place), "reach.json")
    kind, fields = (stored.get("kind"), stored.get("fields") or {}) if stored is not None else (None, {})
    if (
        stored is not None
        and stored.get("place") == place
        and isinstance(kind, str)
        and kind in choices()
        and isinstance(fields, dict)
    ):
        return Reach(kind) if runs_here(kind) else Reach(kind, _checked(kind, fields, "reach.json", place))
    for name in _configured(session):
        if connect(session, way := reach(session, name)).place == place:
            return way
    kind = place.partition(":")[0]
    raise NotFound(
        f"This machine has no settings for {place}.",
        remedy=f"Name it in {session.config.engines}: {{{kind}: {{...}}}}.",
    )


def places(session: Session) -> list[str]:
    """Those that jobs of this machine's record went to."""
    from chipwise.adapters import state_files

    homes = sorted((session.config.run_dir / PLACES).glob("*/reach.json"))
    documents = [state_files.read(one.parent, one.name) or {} for one in homes]
    return [
        place for one in documents if isinstance(place := one.get("place"), str) and place
    ]  # one that was cut off is passed over


def record_id(session: Session) -> str:
    """Names this record among others that use the same cluster or account: what is left over is only sought among its own."""
    from chipwise.adapters.stores.record.address import File, read_address

    address = read_address(record_url(session))
    if not isinstance(address, File):
        return sha256(str(address).partition("@")[2].encode() or str(address).encode()).hexdigest()[:10]
    path = Path(f"{address.path}.id")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        own = path.with_name(f"{path.name}.{secrets.token_hex(5)}")
        own.write_text(secrets.token_hex(5))
        with suppress(FileExistsError):  # whole or not there: two that read at once must not go by different names
            os.link(own, path)
        own.unlink()
    identifier = path.read_bytes().strip().decode(errors="replace")
    return identifier if re.fullmatch(r"[0-9a-f]{10}", identifier) else sha256(str(path).encode()).hexdigest()[:10]


def _configured(session: Session) -> dict[str, tuple[str, dict[str, Any]]]:
    """By name: the kind, and its fields as they were written."""
    path = session.config.engines
    if not path.is_file():
        return {}
    document = engines_file.read(path)
    problems = list(document.problems)
    engines: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, value in document.data.items():
        if runs_here(str(name)):  # of this machine, which is not reached by any of this
            problems += engines_file.field_problems(str(name), value)
            continue
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            problems.append(
                Problem(str(name), "is not a mapping of fields", allowed="such as {kind: kubernetes, context: prod}")
            )
            continue
        fields = {str(key): each for key, each in value.items()}
        kind = plugins.typed(str(fields.pop("kind", name)))
        if kind not in configurable():
            allowed = ", ".join(configurable())
            problems.append(Problem(f"{name}.kind", f"{kind[:40]!r} is not a kind of engine", allowed=allowed))
            continue
        engines[str(name)] = (kind, fields)
    if problems:
        raise InvalidFile(str(path), problems, remedy=engines_file.REMEDY)
    return engines


def _checked(kind: str, fields: Mapping[str, Any], path: str, name: str) -> BaseModel:
    engine_package = package(kind)
    assert isinstance(engine_package, Configurable)
    return engines_file.checked_fields(engine_package.settings_model(), kind, fields, path, name, traits(kind).page)
