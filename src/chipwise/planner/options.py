"""A workload from options instead of a file, and options over a file: as the text of a workload, checked as any other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from chipwise.countries import country_of, spellings
from chipwise.errors import BadInput, InvalidFile, UnknownName
from chipwise.files.source import read_text, read_yaml
from chipwise.spelling import nearest
from chipwise.workload.common import usual_name
from chipwise.workload.goals import USUAL_PERCENTILE
from chipwise.workload.measured import read_line

if TYPE_CHECKING:
    from chipwise.catalog.names import Names
    from chipwise.workload.model.registry import Registry

GOALS = ("ttft", "tpot", "latency")
DAY = ("peak", "low", "shape")
DEFAULT_METHOD = "lora"  # of fine-tuning, where the command line or the call names none
KINDS = ("serve", "train", "finetune", "batch")
_LEARNING = ("tokens", "samples", "seq", "precision", "deadline", "confidence", "budget")
_OF_KIND: Mapping[str, tuple[str, ...]] = {  # options that say something of each kind
    "serve": ("rps", *DAY, "input", "output", "steps", *GOALS, "users_in", "confidence", "precision", "budget"),
    "train": _LEARNING,
    "finetune": _LEARNING,
    "batch": ("samples", "input", "output", "steps", "precision", "deadline", "confidence", "budget"),
}
_OPTIONS = tuple(dict.fromkeys(option for options in _OF_KIND.values() for option in options))
OPTION_FIELDS: Mapping[str, tuple[str, ...]] = {  # by option: fields that it sets
    "rps": ("arrival.rate",),
    "peak": ("arrival.peak",),
    "low": ("arrival.low",),
    "shape": ("arrival.shape",),
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "steps": ("steps",),
    "tokens": ("tokens",),
    "samples": ("samples", "items"),
    "seq": ("sequence_length",),
    "finetune": ("method",),
    "precision": ("precision", "limits.precision"),
    "ttft": ("goals.ttft",),
    "tpot": ("goals.tpot",),
    "latency": ("goals.latency",),
    "deadline": ("goals.deadline",),
    "confidence": ("goals.confidence",),
    "users_in": ("traffic",),
    "budget": ("goals.budget",),
}
LISTS = ("clouds", "regions", "countries", "residency", "compliance", "chips", "precision", "purchase", "where", "requires")
_EXAMPLES = {"--rps": "10", "--input": "1000", "--output": "300", "--samples": "50k"}
_EXAMPLE = "clouds=aws,gcp or interruptible=false"


@dataclass(frozen=True, slots=True)
class Constraints:
    """Options that narrow what may be used, over what a file says. Each value may hold several, with commas between them."""

    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()  # names of regions, countries, EU or EEA
    countries: tuple[str, ...] = ()  # countries, EU or EEA
    chips: tuple[str, ...] = ()
    on_demand: bool = False
    spot: bool = False
    market: str = ""  # durable | any
    commit: str = ""  # none | 1y | 3y | any
    max_price_age: str = ""
    large: bool = False
    limits: tuple[str, ...] = ()  # KEY=VALUE, of any limit that a file may state

    def __bool__(self) -> bool:
        names = (self.clouds, self.regions, self.countries, self.chips)
        words = (self.market, self.commit, self.max_price_age)
        return bool(any(names) or self.on_demand or self.spot or any(words) or self.large or self.limits)


def constrained(names: Names, text: str, path: str, wanted: Constraints) -> str:
    """The same workload within these constraints. A name that the catalog does not know is refused with the nearest ones."""
    if wanted.on_demand and wanted.spot:
        raise BadInput(
            "--on-demand and --spot cannot be combined.",
            remedy="Give one of them, or --limit purchase=on-demand,spot to allow both.",
        )
    clouds, regions, countries, chips = (
        items(values) for values in (wanted.clouds, wanted.regions, wanted.countries, wanted.chips)
    )
    for name in clouds:
        names.provider(name)
    for name in regions:
        names.regions(name.replace(":", "/"))
    for name in countries:
        known_country(name)
    for name in chips:
        names.chips_of(name) or names.chips(name)
    bought = ["on-demand"] if wanted.on_demand else ["spot"] if wanted.spot else []
    flags = {"clouds": clouds, "regions": regions, "countries": countries, "chips": chips, "purchase": bought}
    changes: dict[str, Any] = {key: values for key, values in flags.items() if values}
    single = {"market": wanted.market, "commit": wanted.commit, "max_price_age": wanted.max_price_age}
    changes |= {key: value for key, value in single.items() if value} | ({"large": True} if wanted.large else {})
    if regions or countries:  # a file's own are replaced by those that are asked for
        changes |= {"regions": regions, "countries": countries}
    limits = _parsed(wanted.limits)
    _refuse_two_answers(changes, limits)
    return with_changes(text, path, changes | limits)


_OPTION_OF = {"clouds": "--cloud", "regions": "--region", "countries": "--country", "chips": "--chip"}


def _refuse_two_answers(flags: Mapping[str, Any], limits: Mapping[str, Any]) -> None:
    """A limit that an option and --limit state differently."""
    for key, value in limits.items():
        own = flags.get(key)
        if not own or _as_set(own) == _as_set(value):
            continue
        flag = f"--{own[0]}" if key == "purchase" else _OPTION_OF.get(key, f"--{key.replace('_', '-')}")
        listed = ",".join(map(str, _as_list(value))) if isinstance(value, str | list | tuple) else str(value)
        raise BadInput(f"{flag} and --limit {key}={listed} cannot be combined.", remedy="Give one of them.")


def _as_set(value: Any) -> set[str]:
    listed = value if isinstance(value, list | tuple) else [value]
    return {str(item).casefold() for item in listed}


def known_country(text: str) -> str:
    """Its code; one that there is not is refused with the nearest."""
    if (code := country_of(text)) is None:
        near = dict.fromkeys(spellings()[name] for name in nearest(text, spellings()))
        raise UnknownName(
            "country or group of countries", text, tuple(near), remedy="Codes such as DE or DEU, names, EU, EEA, Europe."
        )
    return code


def over_file(names: Names, path: str, wanted: Constraints) -> str | None:
    """What is planned in place of the file; None: the file as it is."""
    return constrained(names, read_text(path), path, wanted) if wanted else None


def text_of(model: str, options: Mapping[str, Any], models: Registry | None = None) -> str:
    """The workload that `chipwise plan MODEL --serve ...` asks for. Options that were not given are absent; `models`: in which
    the model is looked up, the packaged ones unless given."""
    kinds = [kind for kind in KINDS if options.get(kind)]
    if not kinds and _is_known(model, models):
        raise BadInput(f"What is to be done with {model} is not stated.", remedy="Add --serve, --train, --finetune or --batch.")
    if len(kinds) != 1:
        raise BadInput(
            f"{model} is not a workload file." if not kinds else f"--{' and --'.join(kinds)} cannot be combined.",
            remedy="Give a file (`chipwise init serve` writes one), or a model with --serve, --train, --finetune or --batch.",
        )
    kind = kinds[0]
    _refuse_foreign(kind, options)
    work: dict[str, Any] = {"kind": kind, "name": usual_name(model, kind), "model": model}
    if kind == "serve":
        day = {name: options[name] for name in DAY if options.get(name) is not None}
        lengths = {} if _has_no_tokens(model, models) else {"input": "--input", "output": "--output"}
        wanted = {**({} if day else {"rps": "--rps"}), **lengths}
        if models is not None and any(not options.get(name) for name in wanted):
            _refuse_unknown(model, models)  # before more is asked about it
        needed = _needed(options, wanted)
        work["arrival"] = _day(day, options) if day else {"rate": needed["rps"]}
        work |= {f"{side}_tokens": options[side] for side in ("input", "output") if options.get(side)}
        if countries := [known_country(name) for name in items(_as_list(options.get("users_in")))]:
            work["traffic"] = {code: 1 / len(countries) for code in countries}
    elif kind == "batch":
        work["items"] = _needed(options, {"samples": "--samples"})["samples"]
        work |= {f"{side}_tokens": options[side] for side in ("input", "output") if options.get(side)}
    else:
        work |= _amount(options)
        if options.get("seq"):
            work["sequence_length"] = options["seq"]
        if kind == "finetune":
            work["method"] = DEFAULT_METHOD if options["finetune"] is True else options["finetune"]
    if options.get("steps"):
        work["steps"] = options["steps"]
    goals = goals_of(options)
    if goals:
        work["goals"] = goals
    if str(options.get("precision") or "").lower() == "any":
        work["limits"] = {"precision": "any"}
    elif options.get("precision"):
        work["precision"] = options["precision"]
    return yaml.safe_dump(work, sort_keys=False)


def _as_list(value: str | Sequence[str] | None) -> Sequence[str]:
    return (value,) if isinstance(value, str) else value or ()


def _is_known(model: str, models: Registry | None) -> bool:
    from chipwise.workload.model.registry import find

    try:
        (find if models is None else models.find)(model)
    except UnknownName:
        return False
    return True


def _refuse_unknown(model: str, models: Registry) -> None:
    """A model that nobody knows by this name; one in a file is looked at where it is read."""
    from chipwise.workload.model.spelled import names_file

    if not names_file(model) and "/" not in model:
        models.find(model)


def _has_no_tokens(model: str, models: Registry | None) -> bool:
    """Known to be asked about by samples: pictures, embeddings; what nobody knows is taken for a language model."""
    from chipwise.predictor.kinds.ask import by_samples
    from chipwise.workload.model.registry import find
    from chipwise.workload.model.spelled import names_graph

    if names_graph(model):
        return True
    try:
        return by_samples((find(model) if models is None else models.find(model)).shape, "serve")
    except BadInput:
        return False


def _day(stated: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """How requests arrive by day and night."""
    remedy = "By day and night: --peak 9 --low 0.5 --shape office-hours."
    if options.get("rps"):
        raise BadInput(f"--rps and {' and '.join(f'--{name}' for name in stated)} cannot be combined.", remedy=remedy)
    shape = stated.get("shape")
    if isinstance(shape, str) and "," in shape:
        shape = [_number_or_text(item.strip()) for item in shape.split(",")]
    wanted = ("peak", "shape") if isinstance(shape, list | tuple) else DAY
    if lacking := [f"--{name}" for name in wanted if name not in stated]:
        verb = "is" if len(lacking) == 1 else "are"
        raise BadInput(f"{' and '.join(lacking)} {verb} needed with --{next(iter(stated))}.", remedy=remedy)
    return {**stated, "shape": list(shape) if isinstance(shape, tuple) else shape}


def _number_or_text(item: str) -> float | str:
    try:
        return float(item)
    except ValueError:
        return item


def _refuse_foreign(kind: str, options: Mapping[str, Any]) -> None:
    """Options that say nothing of this kind of work: whoever gives them means another kind."""
    foreign = [option for option in _OPTIONS if options.get(option) and option not in _OF_KIND[kind]]
    if not foreign:
        return
    listed, own = (", ".join(f"--{one.replace('_', '-')}" for one in some) for some in (foreign, _OF_KIND[kind]))
    remedy = f"Leave {'it' if len(foreign) == 1 else 'them'} out; --{kind} goes with {own}."
    if kind == "batch" and foreign == ["tokens"]:
        remedy = "Give the number of inputs: --samples 50k."
    raise BadInput(f"{listed} {'does' if len(foreign) == 1 else 'do'} not go with --{kind}.", remedy=remedy)


def _amount(options: Mapping[str, Any]) -> dict[str, Any]:
    """How much there is to learn from."""
    amounts = {name: options[name] for name in ("tokens", "samples") if options.get(name)}
    if len(amounts) != 1:
        raise BadInput(
            "--tokens and --samples cannot be combined." if amounts else "--tokens or --samples is needed.",
            remedy="Say how much there is to learn from: --tokens 2B, or --samples 50k.",
        )
    return amounts


def goals_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The goals that options state."""
    goals: dict[str, Any] = {name: {USUAL_PERCENTILE: options[name]} for name in GOALS if options.get(name)}
    return goals | {name: options[name] for name in ("deadline", "confidence", "budget") if options.get(name)}


def with_measured(text: str, path: str, lines: Sequence[str | Mapping[str, Any]]) -> str:
    """The same workload with these runs, CHIP=VALUE or as a file has them, in place of the file's own."""
    if not lines:
        return text
    data = dict(read_yaml(text, path).data)
    data["measured"] = [read_line(line) if isinstance(line, str) else dict(line) for line in lines]
    if isinstance(environments := data.get("environments"), Mapping):
        data["environments"] = {name: without_field(over, ("measured",)) for name, over in environments.items()}
    return flat(data)


def _needed(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    if nothing := next((flag for name, flag in names.items() if _is_zero(options.get(name))), None):
        raise BadInput(f"{nothing} must be above zero.", remedy=f"Give {nothing} a number above zero.")
    lacking = [flag for name, flag in names.items() if not options.get(name)]
    if lacking:
        verb, noun = ("is", "it") if len(lacking) == 1 else ("are", "them")
        example = " ".join(f"{flag} {_EXAMPLES[flag]}" for flag in lacking)
        raise BadInput(f"{', '.join(lacking)} {verb} needed.", remedy=f"Add {noun}, for example: {example}")
    return {name: options[name] for name in names}


def _is_zero(value: Any) -> bool:
    return not isinstance(value, bool) and value in (0, "0")


def with_limits(text: str, path: str, limits: Sequence[str]) -> str:
    """The same workload with `key=value` set under `limits`; a value is YAML, or several with commas between them."""
    return with_changes(text, path, _parsed(limits)) if limits else text


def with_changes(text: str, path: str, changes: Mapping[str, Any], part: str = "limits") -> str:
    """Over the file and each of its environments, as JSON, which is YAML. `a.b` is the field b of the mapping a; no part: the
    whole file."""
    if not changes:
        return text
    data = dict(read_yaml(text, path).data)
    for key, value in changes.items():
        steps = tuple(filter(None, (part, *key.split("."))))
        data = _set(data, steps, value)
        if isinstance(environments := data.get("environments"), Mapping):
            data["environments"] = {name: without_field(over, steps) for name, over in environments.items()}
    return flat(data)


def _set(data: Mapping[str, Any], steps: Sequence[str], value: Any) -> dict[str, Any]:
    first, *rest = steps
    if not rest:
        return {**data, first: value}
    below = data.get(first)
    return {**data, first: _set(below if isinstance(below, Mapping) else {}, rest, value)}


def without_field(environment: Any, steps: Sequence[str]) -> Any:
    """An environment without what the command line says in its place; a value that stands for a mapping goes as a whole."""
    first, *rest = steps
    if not isinstance(environment, Mapping) or first not in environment:
        return environment
    below = environment[first]
    if rest and (isinstance(below, Mapping) or below is None):
        return {**environment, first: without_field(below, rest)}
    return {key: value for key, value in environment.items() if key != first}


def items(values: Iterable[str]) -> list[str]:
    """a,b and [a, b] are two each, and an option may be given again."""
    parts = (part.strip() for value in values for part in value.strip().removeprefix("[").removesuffix("]").split(","))
    return list(dict.fromkeys(part for part in parts if part))


def _parsed(limits: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for limit in limits:
        key, equals, value = limit.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"--limit {limit} has no value.", remedy=f"Write key=value, such as {_EXAMPLE}.")
        try:
            read = read_yaml(f"value: {value}", "--limit").data
        except InvalidFile as error:
            raise _unreadable(limit) from error
        if len(read) > 1:  # a line break, and another field behind it
            raise _unreadable(limit)
        stated = read["value"]
        listed = key.strip().rpartition(".")[2] in LISTS
        values[key.strip()] = items([stated]) if listed and isinstance(stated, str) and "," in stated else stated
    return values


def flat(data: Mapping[str, Any]) -> str:
    """As JSON that is YAML as well: JSON escapes a sign such as an emoji in two halves, which YAML does not take for one."""
    return re.sub(r"[^ -~]", lambda sign: f"\\U{ord(sign[0]):08x}", json.dumps(data, ensure_ascii=False))


def _unreadable(limit: str) -> BadInput:
    shown = limit if len(limit) <= 60 else f"{limit[:57]}..."
    return BadInput(f"--limit {shown} cannot be read.", remedy=f"Write key=value, such as {_EXAMPLE}.")
