"""Whatever a program gives as a workload, as one named text that is read and checked like a file.

A path of a workload file, YAML text, a mapping or an object of a kind is a workload; any other text is a model, and options
say what is done with it, as on the command line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from chipwise.errors import BadInput
from chipwise.files.source import NamedText, read_text, read_yaml
from chipwise.planner.options import Constraints, constrained, flat, text_of, with_measured
from chipwise.planner.overriding import over_workload, replacing_file
from chipwise.public.command_words import GIVEN
from chipwise.public.python_values import as_plain
from chipwise.units import parse_count
from chipwise.workload.common import Common
from chipwise.workload.model.spelled import names_graph

if TYPE_CHECKING:
    from chipwise.public.opened import Opened

Names = str | Sequence[str]


class WorkloadOptions(TypedDict, total=False):
    """What is done with a model that is given by name, as the options of `chipwise plan` say it."""

    serve: bool
    """Serve the model at `rps`, or by day and night from `low` to `peak`."""
    rps: str | float
    """Requests per second."""
    peak: str | float
    """Requests per second in the busiest hour of a day."""
    low: str | float
    """Requests per second in the quietest hour."""
    shape: str | Sequence[float]
    """How the day goes from low to peak: office-hours, evening, or 24 numbers."""
    input: str | int
    """Tokens of a prompt, as 1000 or 1k."""
    output: str | int
    """Tokens of an answer."""
    steps: str | int
    """Denoising steps per image; 30 unless given."""
    ttft: str | float
    """Time to first token that 90% stay below, as 800ms."""
    tpot: str | float
    """Time per token, as 50ms."""
    latency: str | float
    """Whole answer, as 5s."""
    train: bool
    """Train the model on `tokens`."""
    finetune: bool | str
    """Fine-tune it on `tokens`: full, lora or qlora; True means lora."""
    batch: bool
    """Run the model once over `samples` inputs."""
    tokens: str | int
    """Tokens to learn from, as 2B."""
    samples: str | int
    """Samples to learn from or to process, as 50k."""
    seq: str | int
    """Tokens per sequence."""
    precision: str
    """bf16, fp8, ..."""
    deadline: str
    """Longest time, as 72h."""
    confidence: str | float
    """Probability with which latency and deadline goals must be met; 0.9 unless given."""
    users_in: Names
    """Of a service: where its users are, as DE; network latency to them is included."""
    budget: str
    """Most money, as $500 or $2k/month."""
    name: str
    """What to call the workload."""


class LimitOptions(TypedDict, total=False):
    """Limits over those of the workload itself, as the options of `chipwise plan` say them."""

    cloud: Names | None
    """Only these clouds: aws, or several."""
    region: Names | None
    """Only these regions or countries: eu-west-1, DE, EU."""
    country: Names | None
    """Only these countries: DE, Germany, EU."""
    chip: Names | None
    """Only these chips: h100."""
    on_demand: bool | None
    """Only machines paid by the hour, without commitment."""
    spot: bool | None
    """True: only spot machines; False: none."""
    market: str | None
    """durable, or any: also marketplaces and single listings."""
    commit: str | None
    """The longest commitment that may be made: none, 1y, 3y or any."""
    max_price_age: str | None
    """Only prices read within this time: 90d."""
    large: bool | None
    """More than 64 machines, also where no goal asks for them."""
    limits: Mapping[str, Any] | None
    """Any other limit, by the fields of `limits` in a workload file."""


class CompareOptions(WorkloadOptions, LimitOptions, total=False):
    """What is done with a model that is given by name, and limits."""


def constraints(options: LimitOptions) -> Constraints:
    """As the command line would have them; each value of `limits` as JSON, which is YAML."""
    fields: dict[str, Any] = {"interruptible": False} if options.get("spot") is False else {}
    fields |= dict(options.get("limits") or {})
    return Constraints(
        clouds=_as_tuple(options.get("cloud")),
        regions=_as_tuple(options.get("region")),
        countries=_as_tuple(options.get("country")),
        chips=_as_tuple(options.get("chip")),
        on_demand=bool(options.get("on_demand")),
        spot=bool(options.get("spot")),
        market=options.get("market") or "",
        commit=options.get("commit") or "",
        max_price_age=options.get("max_price_age") or "",
        large=bool(options.get("large")),
        limits=tuple(f"{key}={json.dumps(as_plain(value, with_paths=True))}" for key, value in fields.items()),
    )


def _as_tuple(value: Names | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def stated(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given a value."""
    return {name: value for name, value in options.items() if value is not None}


def with_counts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that are texts, such as 1k, as numbers; a word stays a word."""

    def count(value: Any) -> Any:
        if not isinstance(value, str) or not value.strip()[:1].isdigit():
            return value
        try:
            amount = parse_count(value)
        except BadInput:
            return value  # 800ms, 2h: whoever takes it reads it
        return int(amount) if amount.is_integer() else amount

    return {name: count(value) for name, value in options.items()}


Runs = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]


def runs_of(measured: Runs | None) -> tuple[str | Mapping[str, Any], ...]:
    """One run, or several: CHIP=VALUE, or mappings as a workload file has them."""
    if measured is None:
        return ()
    return (measured,) if isinstance(measured, str | Mapping) else tuple(measured)


def measured_in(source: NamedText, measured: Runs | None) -> NamedText:
    """The same workload with these runs in place of its own."""
    runs = runs_of(measured)
    return NamedText(source, with_measured(source.text, source, runs)) if runs else source


def within(session: Opened, source: NamedText, options: LimitOptions) -> NamedText:
    """The same workload within limits; a name that the catalog does not know is refused with the nearest ones."""
    limits = constraints(options)
    return NamedText(source, constrained(session.api.names, source.text, source, limits)) if limits else source


def read_workload(workload: Any, options: Mapping[str, Any] | None = None, noun: str = GIVEN) -> NamedText:
    """The text of a workload and the name that messages call it by."""
    chosen = {key: value for key, value in stated(options or {}).items() if value is not False}
    source = _source(workload, chosen, noun)
    if "name" not in chosen:
        return source
    return NamedText(source, flat({**read_yaml(source.text, source).data, "name": chosen["name"]}))


def _source(workload: Any, options: Mapping[str, Any], noun: str) -> NamedText:
    described = {key: value for key, value in options.items() if key != "name"}
    if isinstance(workload, str) and not isinstance(workload, NamedText) and not is_text(workload) and not is_file(workload):
        return NamedText(noun, text_of(workload, described))
    over = {key: value for key, value in described.items() if key in replacing_file(described)}
    if over and len(over) == len(described):
        whole = _source(workload, {}, noun)
        return NamedText(whole, over_workload(whole.text, whole, over))
    if described:
        raise BadInput(
            f"{', '.join(sorted(described))} goes with the name of a model, and a whole workload is given.",
            remedy="Write it into the workload.",
        )
    match workload:
        case NamedText():
            return workload
        case str() if is_text(workload):
            return NamedText("text" if noun == GIVEN else f"{noun}.yaml", workload)
        case str() | Path():
            return NamedText(str(workload), read_text(workload))
        case Common():
            from chipwise.public.kinds import plain_fields

            return NamedText(noun, flat(plain_fields(workload)))
        case Mapping():
            from chipwise.public.kinds import plain_fields

            return NamedText(noun, flat(plain_fields(workload)))
    source = getattr(workload, "source", None)
    if isinstance(source, NamedText):
        return source
    raise BadInput(
        f"{type(workload).__name__} is not a workload.",
        remedy="Give a file, YAML text, a dictionary, a workload such as Serve(...), a plan, or a model with options.",
    )


def is_text(workload: str) -> bool:
    """YAML rather than a name: of several lines, or one mapping."""
    return "\n" in workload or workload.lstrip().startswith("{")


def is_file(workload: str) -> bool:
    """A file, or what was meant as one: then reading it says that it is not there."""
    if workload.endswith((".yaml", ".yml")):
        return True
    try:
        return Path(workload).is_file() and not names_graph(workload)
    except (OSError, ValueError):  # longer than a path may be
        return False
