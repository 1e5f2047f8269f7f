"""Whatever a program gives as a workload, as one named text that is read and checked like a file.

A path of a workload file, YAML text, a mapping or an object of a kind is a workload; any other text is a model, and options
say what is done with it, as on the command line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from chipwise.api.quick import flat, text_of, with_limits
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import nearest
from chipwise.workload.kinds import Common
from chipwise.workload.source import NamedText, read_text, read_yaml

Names = str | Sequence[str]


class WorkloadOptions(TypedDict, total=False):
    """What is done with a model that is given by name, as the options of `chipwise plan` say it."""

    serve: bool
    """Serve the model at `rps`."""
    rps: float
    """Requests per second."""
    input: int
    """Tokens of a prompt."""
    output: int
    """Tokens of an answer."""
    ttft: str
    """Time to first token that 90% stay below, as 800ms."""
    tpot: str
    """Time per token, as 50ms."""
    latency: str
    """Whole answer, as 5s."""
    train: bool
    """Train the model on `tokens`."""
    finetune: str
    """Fine-tune it on `tokens`: full, lora or qlora."""
    tokens: str | int
    """Tokens to learn from, as 2B."""
    seq: int
    """Tokens per sequence."""
    precision: str
    """bf16, fp8, ..."""
    deadline: str
    """Longest time, as 72h."""
    budget: str
    """Most money, as $500 or $2k/month."""
    name: str
    """What to call the workload."""


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Limits over those of the workload itself."""

    cloud: Names | None = None
    region: Names | None = None
    country: Names | None = None
    chip: Names | None = None
    spot: bool | None = None
    fields: Mapping[str, Any] | None = None  # fields of `limits` in a workload file

    def pairs(self) -> list[str]:
        """As `key=value`, each value as JSON, which is YAML."""
        names = {"clouds": self.cloud, "regions": self.region, "countries": self.country, "chips": self.chip}
        limits: dict[str, Any] = {key: _as_list(value) for key, value in names.items() if value is not None}
        if self.spot is not None:
            limits["interruptible"] = self.spot
        limits |= dict(self.fields or {})
        return [f"{key}={json.dumps(value)}" for key, value in limits.items()]


def _as_list(value: Names) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def checked_options(options: Mapping[str, Any], known: type) -> dict[str, Any]:
    """Those that were given; one that there is not is refused with the nearest names, for it would say nothing."""
    names = list(known.__annotations__)
    for name in options:
        if name not in names:
            raise UnknownName("option", name, nearest(name, names), remedy=f"There are: {', '.join(names)}.")
    return {name: value for name, value in options.items() if value is not None}


def read_workload(
    workload: Any, options: Mapping[str, Any] | None = None, limits: LimitOptions | None = None, noun: str = "workload"
) -> NamedText:
    """The text of a workload and the name that messages call it by."""
    chosen = {key: value for key, value in checked_options(options or {}, WorkloadOptions).items() if value is not False}
    source = _source(workload, chosen, noun)
    text = source.text
    if pairs := (limits or LimitOptions()).pairs():
        text = with_limits(text, source, pairs)
    if "name" in chosen:
        text = flat({**read_yaml(text, source).data, "name": chosen["name"]})
    return NamedText(source, text)


def _source(workload: Any, options: Mapping[str, Any], noun: str) -> NamedText:
    described = {key: value for key, value in options.items() if key != "name"}
    if isinstance(workload, str) and not isinstance(workload, NamedText) and not is_text(workload) and not is_file(workload):
        try:
            return NamedText(f"{noun}.yaml", text_of(workload, described))
        except BadInput as error:
            raise BadInput(_as_keywords(error.message), remedy=_as_keywords(error.remedy or "") or None) from error
    if described:
        raise BadInput(
            f"{', '.join(sorted(described))} goes with the name of a model, and a whole workload is given.",
            remedy="Write it into the workload.",
        )
    match workload:
        case NamedText():
            return workload
        case str() if is_text(workload):
            return NamedText(f"{noun}.yaml", workload)
        case str() | Path():
            return NamedText(str(workload), read_text(workload))
        case Common():
            from chipwise.public.kinds import plain_fields

            return NamedText(f"{workload.name}.yaml", flat(plain_fields(workload)))
        case Mapping():
            from chipwise.public.kinds import plain_fields

            return NamedText(f"{noun}.yaml", flat(plain_fields(workload)))
    source = getattr(workload, "source", None)
    if isinstance(source, NamedText):
        return source
    raise BadInput(
        f"{type(workload).__name__} is not a workload.",
        remedy="Give a file, YAML text, a dictionary, a workload such as Serve(...), a plan, or a model with options.",
    )


def _as_keywords(text: str) -> str:
    """Options by the names that they have in Python: --rps is rps."""
    return re.sub(r"--([a-z][a-z-]*)", lambda option: option[1].replace("-", "_"), text)


def is_text(workload: str) -> bool:
    """YAML rather than a name: of several lines, or one mapping."""
    return "\n" in workload or workload.lstrip().startswith("{")


def is_file(workload: str) -> bool:
    """A file, or what was meant as one: then reading it says that it is not there."""
    if workload.endswith((".yaml", ".yml")):
        return True
    try:
        return Path(workload).is_file()
    except (OSError, ValueError):  # longer than a path may be
        return False
