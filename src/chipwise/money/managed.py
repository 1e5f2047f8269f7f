"""Managed services that sell a model by the token, found for a model of the registry, and their break-even.

Providers spell one model in many ways: `meta.llama3-1-70b-instruct-v1:0`, `accounts/fireworks/models/llama-v3p1-70b-instruct`
and `meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo` are all llama-3.1-70b. `release` undoes what providers add, step by step,
and the registry says which model the rest is. A name that is left with anything unknown in it matches nothing: an offer
for the wrong model is worse than a missing one.

The registry holds shapes, and several trainings share one: DeepSeek-R1 runs like DeepSeek-V3 and answers otherwise. A
service for another training of the same shape is kept and marked `same_weights=False`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, log

from chipwise.catalog.fact import Fact
from chipwise.catalog.price_tables import TokenPrice
from chipwise.errors import InvalidSettings, Problem
from chipwise.money.break_even import BreakEven, ReplicaSet, by_the_request
from chipwise.money.cost import Cost, Line
from chipwise.text import price
from chipwise.workload.model.registry import Registry
from chipwise.workload.model.spelled import key

_MILLION = 1e6

# What providers put before and after a model's name, undone in this order.
_UNDONE = (
    (re.compile(r"^.*/"), ""),  # the owner, or accounts/fireworks/models
    (re.compile(r"^(?:fw|databricks|open)-"), ""),
    (re.compile(r"^(?:meta|mistral|qwen|google|openai|nvidia|zai|moonshot|moonshotai|minimax)\."), ""),
    (re.compile(r"^deepseek\.(?=[rv]\d)"), "deepseek-"),  # Bedrock leaves the family to the vendor's part
    (re.compile(r"-v0:(\d)$"), r"-v0.\1"),  # Bedrock: the model's own version
    (re.compile(r"-(?:v\d+|\d):\d$"), ""),  # Bedrock: the version of the interface
    (re.compile(r"@"), "-"),  # Vertex: a release
    (re.compile(r"(-\d{4})-001$"), r"\1"),
    (re.compile(r"(?<=\d)p(?=\d)"), "."),  # Fireworks: v3p1
    (re.compile(r"(?<=\d)_(?=\d)"), "."),  # Llama-3_1
    (re.compile(r"^meta-llama"), "llama"),
    (re.compile(r"^llama-v(?=\d)"), "llama-"),
    (re.compile(r"^(llama-?\d)-(\d)(?=-\d+b)"), r"\1.\2"),  # llama3-1-70b, llama-3-3-70b; llama3-70b stays
    (re.compile(r"^(llama-?4-(?:maverick-17b)-128e|llama-?4-(?:scout-17b)-16e)"), lambda m: m[1].rpartition("-")[0]),
    (re.compile(r"^deepseek-llama-?3\.3-70b"), "deepseek-r1-distill-llama-70b"),  # Lambda's name
)
# How fast, where and in which number format it is served, and the tuning that a plain name leaves open.
_SERVED = re.compile(r"-(turbo|ultra|fast|basic|maas|us|fp8|fp4|nvfp4|dynamic|instruct|chat|it|hf|latest)$")
_TUNING = frozenset({"instruct", "chat", "it", "hf", "latest", "maas"})  # these say nothing of speed or quality
# Further trainings of a published shape: the name without its marks is the shape. (Terminus and K2 Thinking: published
# descriptions give the counts of V3.1 and K2; the others carry the name of what they were tuned from.)
_TUNED = (
    (re.compile(r"^hermes-3-llama"), "llama"),
    (re.compile(r"^(llama-?3\.1)-nemotron-70b"), r"\1-70b"),
    (re.compile(r"^(deepseek-v3\.1)-terminus"), r"\1"),
    (re.compile(r"^(kimi-k2)-thinking"), r"\1"),
    (re.compile(r"^(phi-4(?:-mini)?)-reasoning"), r"\1"),
    (re.compile(r"^(qwen3-235b-a22b)(?:-thinking|-instruct)?-2507"), r"\1"),
)
# Words that tell one training of a shape from another.
_TRAINING = re.compile(
    r"(?<![a-z\d])(?:r1|zero|distill|qwen|llama|coder|code|math|qwq|thinking|reasoning|terminus|hermes|nemotron|v3\.1|\d{4})(?![a-z\d])"
)
_FAMILY = re.compile(r"^(?:qwen|llama)-?\d?")  # a model's own family; as a later word it tells what was distilled into
# The release that a plain name of the registry means, where services name the date.
_PLAIN = {"mistral-nemo": "2407", "mistral-nemo-12b": "2407", "mistral-small-24b": "2501", "mistral-large-2": "2407"}


@dataclass(frozen=True, slots=True)
class TokenService:
    """One provider's price for one model. Prices are USD per token."""

    provider: str
    spelled: str  # as the provider calls it: what a request names
    model: str  # of the registry
    same_weights: bool
    variant: str  # turbo, fp8, us: how it is served where the name tells
    usd_per_input: float
    usd_per_output: float
    usd_per_cached: float | None  # None: nothing is stated, and cached input is paid in full
    context: float | None
    retires: str | None  # ISO date
    gone: bool  # retired when the row was written
    fact: Fact
    regions: tuple[str, ...] = ()  # that the price is of; none: not stated
    doubt: str = ""  # why it may no longer be sold


@dataclass(frozen=True, slots=True)
class Request:
    input_tokens: float
    output_tokens: float
    cached_tokens: float = 0.0  # of the input: what the service has read before

    def __post_init__(self) -> None:
        problems = [
            Problem(name, f"{value:g} is not a number of tokens", allowed="a finite number from 0 on")
            for name in ("input_tokens", "output_tokens", "cached_tokens")
            if not (isfinite(value := getattr(self, name)) and value >= 0)
        ]
        if not problems and self.cached_tokens > self.input_tokens:
            excess = f"{self.cached_tokens:g} are cached of {self.input_tokens:g} input tokens"
            problems.append(Problem("cached_tokens", excess, allowed="at most input_tokens"))
        if problems:
            raise InvalidSettings(*problems)

    @property
    def tokens(self) -> float:
        return self.input_tokens + self.output_tokens


@lru_cache(maxsize=2048)  # every plan asks for all spellings of the price lists
def release(spelled: str) -> tuple[str, str]:
    """(name, variant) of a provider's spelling: ("llama-3.3-70b", "turbo") of meta-llama/Llama-3.3-70B-Instruct-Turbo."""
    name = spelled.strip().casefold()
    for pattern, instead in _UNDONE:
        name = pattern.sub(instead, name)
    variant: list[str] = []
    while (mark := _SERVED.search(name)) is not None:
        if mark[1] not in _TUNING:
            variant.insert(0, mark[1])
        name = name[: mark.start()]
    return name, " ".join(variant)


@lru_cache(maxsize=2048)
def model_of(spelled: str, registry: Registry) -> str | None:
    """The registry's name of the model, or None where the registry has no such shape."""
    known = _index(registry)
    name, _ = release(spelled)
    for candidate in (spelled, name, *(tuned for p, instead in _TUNED if (tuned := p.sub(instead, name)) != name)):
        if (model := known.get(key(candidate))) is not None:
            return model
    return None


@lru_cache(maxsize=4)
def _index(registry: Registry) -> dict[str, str]:
    """Every name and alias of the registry as it is and as `release` leaves it. What is written out wins."""
    models = list(registry)
    index: dict[str, str] = {}
    for plain in (True, False):
        for spelled, name in ((spelled, model.name) for model in models for spelled in (model.name, *model.aliases)):
            index.setdefault(key(spelled if plain else release(spelled)[0]), name)
    return index


def same_weights(one: str, other: str) -> bool:
    """Whether two spellings that mean one shape mean one training of it. Tuned and base versions count as one."""
    return _training(one) == _training(other)


def _training(spelled: str) -> frozenset[str]:
    name, _ = release(spelled)
    words = set(_TRAINING.findall(_FAMILY.sub("", name)))
    return frozenset(words | ({_PLAIN[name]} if name in _PLAIN else set()))


def services(rows: Iterable[TokenPrice], model: str, registry: Registry) -> tuple[TokenService, ...]:
    """All services for what `model` means, same weights first, then as the table has them; UnknownName for no model."""
    wanted = model_of(model, registry) or registry.find(model).name
    offered = [service for row in rows if (service := _service(row, model, wanted, registry)) is not None]
    return tuple(sorted(offered, key=lambda service: not service.same_weights))


def nearest_sold(rows: Sequence[TokenPrice], model: str, registry: Registry) -> TokenService | None:
    """Of a model that nobody sells: the cheapest service of the one that is nearest to it in parameters at work on a token."""
    own = registry.find(model).shape.active_parameters
    sold = {
        name: registry.find(name).shape.active_parameters
        for row in rows
        if row.open_weights and (name := model_of(row.model, registry)) is not None
    }
    for name in sorted(sold, key=lambda one: abs(log(sold[one] / own))):
        offered = [one for one in services(rows, name, registry) if one.same_weights and not one.gone and not one.doubt]
        if offered:
            return min(offered, key=lambda one: one.usd_per_input + one.usd_per_output)
    return None


def _service(row: TokenPrice, model: str, wanted: str, registry: Registry) -> TokenService | None:
    if not row.open_weights or row.input_usd_per_mtok is None or row.output_usd_per_mtok is None:
        return None
    if model_of(row.model, registry) != wanted:
        return None
    cached = row.cached_input_usd_per_mtok
    return TokenService(
        provider=row.provider,
        spelled=row.model,
        model=wanted,
        same_weights=same_weights(model, row.model),
        variant=release(row.model)[1],
        usd_per_input=row.input_usd_per_mtok / _MILLION,
        usd_per_output=row.output_usd_per_mtok / _MILLION,
        usd_per_cached=None if cached is None else cached / _MILLION,
        context=row.context,
        retires=row.retires,
        gone=row.retires is not None and row.retires <= row.fact.as_of,
        fact=row.fact,
        regions=tuple(filter(None, row.regions.split("|"))),
        doubt=row.doubt,
    )


def cost(service: TokenService, request: Request, requests: float = 1.0) -> Cost:
    """Of `requests` alike; the lines are input, cached input and output."""
    if not (isfinite(requests) and requests >= 0):
        raise InvalidSettings(Problem("requests", f"{requests:g} is not a number of requests", allowed="0 or more"))
    cached_price = service.usd_per_input if service.usd_per_cached is None else service.usd_per_cached
    full = "" if service.usd_per_cached is not None else ", for no lower price is stated"
    fresh = request.input_tokens - request.cached_tokens
    parts = (
        ("input tokens", fresh, service.usd_per_input, ""),
        ("cached input tokens", request.cached_tokens, cached_price, full),
        ("output tokens", request.output_tokens, service.usd_per_output, ""),
    )
    return Cost.of(
        Line(name, requests * tokens * usd, f"{requests * tokens / _MILLION:,.4g} M x {price(usd * _MILLION)}/M{note}")
        for name, tokens, usd, note in parts
    )


def break_even(service: TokenService, request: Request, fleet: ReplicaSet) -> BreakEven:
    """The rate from which serving the model on one's own replicas costs less than the service."""
    return by_the_request(cost(service, request).usd, fleet)


def fits(service: TokenService, request: Request) -> bool:
    """Whether a request of this length may be asked of it; an unstated context is taken as long enough."""
    return service.context is None or request.tokens <= service.context


def cheapest(candidates: Iterable[TokenService], request: Request) -> TokenService | None:
    """The lowest price for this request among services of the same weights that are still sold and long enough."""
    usable = [service for service in candidates if service.same_weights and not service.gone and fits(service, request)]
    return min(usable, key=lambda service: cost(service, request).usd, default=None)
