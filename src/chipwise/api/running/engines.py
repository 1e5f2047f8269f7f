"""Engines by name: what `--engine` may say, how each is reached, and what of that a place remembers.

`engines.yaml` of the config directory names them, each by the fields of its kind:

    cluster: {kind: kubernetes, context: prod, namespace: train}
    ec2: {region: eu-west-1, keep: s3://my-bucket/chipwise, instance_profile: chipwise-job, regions: [eu-north-1]}

A job holds its place, such as `kubernetes:10.0.0.1:6443/train`. How to get there is written down beside the record of this
machine when the first job goes there, so that a controller that is started later, by whomever, needs no option for it.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from chipwise.errors import InvalidFile, NotFound, Problem, UnknownName
from chipwise.spelling import nearest
from chipwise.workload.source import FileKind, read_text, read_yaml

if TYPE_CHECKING:
    from chipwise.adapters.engines.ec2 import Config, Ec2
    from chipwise.adapters.engines.kubernetes import Kubernetes
    from chipwise.api.session.wiring import Session

LOCAL = "local"
FILE = FileKind("engines", "Each engine is a name with its fields; see docs/running/engines.md.", 100_000)
PAGES = {"kubernetes": "docs/running/engines.md", "ec2": "docs/tutorial/run-on-ec2.md"}


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class OnKubernetes(_Fields):
    kubeconfig: str = ""  # none: as kubectl finds it
    context: str = ""  # none: the current one
    namespace: str = ""  # none: the context's
    queue: str = ""  # of Kueue, in that namespace; none: the work waits in no queue
    image: str = ""  # in which plain commands run
    clouds: tuple[str, ...] | list[str] = ()  # whose machines it has or may get; none: any
    regions: tuple[str, ...] | list[str] = ()


class There(_Fields):
    """Another region of the same account, with what is its own there."""

    subnets: tuple[str, ...] | list[str] = ()
    security_groups: tuple[str, ...] | list[str] = ()
    public_address: bool | None = None
    image: str = ""
    queue_url: str = ""


class OnEc2(_Fields):
    region: str
    keep: str
    profile: str = ""
    endpoint_url: str = ""
    subnets: tuple[str, ...] | list[str] = ()
    security_groups: tuple[str, ...] | list[str] = ()
    public_address: bool = False
    instance_profile: str = ""
    image: str = ""
    image_parameter: str = ""
    container: str = ""
    root_gib: int = 100
    queue_url: str = ""
    heeds_rebalance: bool = True
    idle_minutes: float | int | None = 30.0
    start_minutes: float | int = 30.0
    orphan_minutes: float | int | None = 1440.0
    regions: dict[str, There] = {}  # where jobs may go on beside the first

    @model_validator(mode="before")
    @classmethod
    def _first(cls, told: object) -> object:
        """Without a region of its own the first of several is it; one that is named among the others as well is meant once."""
        if not isinstance(told, dict) or not isinstance(named := told.get("regions"), list | dict):
            return told
        names = [one for one in named if isinstance(one, str)]
        region = told.get("region") or next(iter(names), None)
        if region is None or (isinstance(named, dict) and named.get(region)):  # what is its own stands beside `region`
            return told
        others = {key: named[key] for key in named if key != region} if isinstance(named, dict) else [*named]
        if isinstance(others, list) and region in others:
            others.remove(region)
        return {**told, "region": region, "regions": others}

    @field_validator("regions", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        """Names alone will do, as a list or with nothing behind them."""
        if value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            value = dict.fromkeys(value or ())
        if not isinstance(value, dict):
            raise PydanticCustomError("regions", "names of regions belong here, such as [eu-north-1]")
        return {key: {} if each is None else each for key, each in value.items()}

    @field_validator("region", "regions")
    @classmethod
    def _speakable(cls, value: str | dict[str, There]) -> str | dict[str, There]:
        """One that cannot be a region would fail at every look, and hide what runs in the others."""
        for name in [value] if isinstance(value, str) else value:
            if (name != value and not name) or not re.fullmatch(r"[a-z0-9-]{0,63}", name, re.ASCII):
                raise PydanticCustomError("region", "a region is written like eu-west-1")
        return value


KINDS: Mapping[str, type[_Fields]] = {"kubernetes": OnKubernetes, "ec2": OnEc2}


@dataclass(frozen=True, slots=True)
class Reach:
    """An engine by its kind, with what it takes to get there. No secret is among it."""

    kind: str
    fields: _Fields = field(default_factory=_Fields)

    @property
    def local(self) -> bool:
        return self.kind == LOCAL

    def setting(self, name: str) -> str:
        return str(getattr(self.fields, name, "") or "")


def reach(session: Session, name: str | None, over: Mapping[str, str] | None = None) -> Reach:
    """What a name means here; `over`: options of the command line, over what the file says."""
    named = _named(session)
    name = name or LOCAL
    given = {key: value for key, value in (over or {}).items() if value}
    if name == LOCAL:
        return Reach(LOCAL)
    if name not in named and name not in KINDS:
        known = (LOCAL, *KINDS, *(one for one in named if one not in KINDS))
        raise UnknownName("engine", name, nearest(name, known), remedy=f"There are: {', '.join(known)}.")
    kind, fields = named.get(name, (name, {}))
    return Reach(kind, _checked(kind, {**fields, **given}, str(session.config.engines), name))


def connect(session: Session, reach: Reach) -> Kubernetes | Ec2:
    """Nothing outside is asked yet."""
    match reach.fields:
        case OnKubernetes() as fields:
            return _kubernetes(session, fields)
        case OnEc2() as fields:
            return _ec2(session, fields)
    raise AssertionError(reach.kind)


def remember(session: Session, place: str, reach: Reach) -> None:
    """For controllers and whoever asks later; the newest way to a place counts."""
    from chipwise.adapters.supervising import folder

    home = home_of(session, place)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    told = {"place": place, "kind": reach.kind, "fields": reach.fields.model_dump(mode="json")}
    if folder.read(home, "reach.json") != told:
        folder.write(home, "reach.json", told)


def of_place(session: Session, place: str) -> Kubernetes | Ec2:
    from chipwise.adapters.supervising import folder

    kept = folder.read(home_of(session, place), "reach.json")
    kind, fields = (kept.get("kind"), kept.get("fields") or {}) if kept is not None else (None, {})
    if kept is not None and kept.get("place") == place and isinstance(kind, str) and kind in KINDS and isinstance(fields, dict):
        return connect(session, Reach(kind, _checked(kind, fields, "reach.json", place)))
    for name in _named(session):
        found = connect(session, reach(session, name))
        if found.place == place:
            return found
    kind = place.partition(":")[0]
    raise NotFound(
        f"How to reach {place} is not known on this machine.",
        remedy=f"Name it in {session.config.engines}: {{{kind}: {{...}}}}.",
    )


def places(session: Session) -> list[str]:
    """Those that jobs of this machine's record went to."""
    from chipwise.adapters.supervising import folder

    homes = sorted((session.config.run_dir / "places").glob("*/reach.json"))
    told = [folder.read(one.parent, one.name) or {} for one in homes]
    return [
        place for one in told if isinstance(place := one.get("place"), str) and place
    ]  # one that was cut off is passed over


def home_of(session: Session, place: str) -> Path:
    """Of a controller: its lock and what it prints."""
    return session.config.run_dir / "places" / sha256(place.encode()).hexdigest()[:16]


def record_id(session: Session) -> str:
    """Names this record among others that use the same cluster or account: what is left over is only sought among its own."""
    from chipwise.adapters.stores.record.address import File, read_address
    from chipwise.api.running.place import record_url

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
    told = path.read_bytes().strip().decode(errors="replace")
    return told if re.fullmatch(r"[0-9a-f]{10}", told) else sha256(str(path).encode()).hexdigest()[:10]


def _kubernetes(session: Session, fields: OnKubernetes) -> Kubernetes:
    from chipwise.adapters.engines import kubernetes

    return kubernetes.connect(
        kubernetes.Config(
            kubeconfig=Path(fields.kubeconfig).expanduser() if fields.kubeconfig else None,
            context=fields.context,
            namespace=fields.namespace,
            record=record_id(session),
            logs=session.config.run_dir / "kubernetes-logs",
        )
    )


def _ec2(session: Session, fields: OnEc2) -> Ec2:
    from chipwise.adapters.engines import ec2

    config = ec2_config(fields)
    # Two records that shared a prefix would each take the other's machines for left over.
    return ec2.connect(replace(config, keep=f"{config.keep.rstrip('/')}/{record_id(session)}"))


def ec2_config(fields: OnEc2) -> Config:
    """Without the record's own part of the prefix, which `prepare` does not know: rights are given for all of it."""
    from chipwise.adapters.engines import ec2

    told = fields.model_dump(exclude={"regions"})
    told |= {"profile": fields.profile or None, "endpoint_url": fields.endpoint_url or None}
    told |= {"subnets": tuple(fields.subnets), "security_groups": tuple(fields.security_groups)}
    others = tuple(
        ec2.There(name, tuple(one.subnets), tuple(one.security_groups), one.public_address, one.image, one.queue_url)
        for name, one in fields.regions.items()
    )
    return ec2.Config(**told, others=others)


def _named(session: Session) -> dict[str, tuple[str, dict[str, Any]]]:
    """By name: the kind, and its fields as they were written."""
    path = session.config.engines
    if not path.is_file():
        return {}
    document = read_yaml(read_text(path, FILE), str(path), FILE)
    problems = list(document.problems)
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, value in document.data.items():
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            problems.append(
                Problem(str(name), "stands where fields belong", allowed="such as {kind: kubernetes, context: prod}")
            )
            continue
        fields = {str(key): each for key, each in value.items()}
        kind = str(fields.pop("kind", name))
        if name == LOCAL or kind not in KINDS:
            allowed = ", ".join(KINDS)
            problems.append(Problem(f"{name}.kind", f"{kind[:40]!r} is no kind of engine to be named here", allowed=allowed))
            continue
        found[str(name)] = (kind, fields)
    if problems:
        raise InvalidFile(str(path), problems, remedy=FILE.remedy)
    return found


def _checked(kind: str, fields: Mapping[str, Any], path: str, name: str) -> _Fields:
    try:
        return KINDS[kind].model_validate(dict(fields))
    except ValidationError as error:
        problems: list[Problem] = []
        known = tuple(KINDS[kind].model_fields)
        for one in error.errors(include_url=False):
            where = ".".join(map(str, one["loc"][:3] if one["loc"][0] == "regions" else one["loc"][:1]))
            match one["type"]:
                case "extra_forbidden":
                    of, allowed = ("a region", tuple(There.model_fields)) if len(one["loc"]) > 1 else (kind, known)
                    said = f"is not a field of {of}; allowed: {', '.join(allowed)}"
                    near = nearest(str(one["loc"][-1]), allowed)
                case "missing":
                    said, near = "is required", ()
                case _:
                    said, near = f"{str(one['input'])[:60]!r} will not do: {one['msg'][0].lower()}{one['msg'][1:]}", ()
            if all(each.field != f"{name}.{where}" for each in problems):
                problems.append(Problem(f"{name}.{where}", said, None, None, near))
        raise InvalidFile(path, problems, remedy=f"{PAGES[kind]} lists its fields.") from None
