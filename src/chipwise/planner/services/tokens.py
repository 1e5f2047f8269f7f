"""Services that sell a model by the token, for a service's requests or for a job's items.

Nobody states their speed: latency goals and deadlines cannot be held against them (`ServiceOffer.unchecked`). A job without
a deadline takes them where it would end in time even at the slowest pace that people put up with, one request after the other.
Weights are taken in the format in which they are published, or in those that were asked for: a narrower one that is stated is
refused, and one that is not stated is doubted where a format was asked for, or where the service's name sets it apart from the
plain model (turbo, fast).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.money import managed
from chipwise.money.break_even import BreakEven, ReplicaSet
from chipwise.money.managed import Request, TokenService
from chipwise.planner.defaults import HORIZON_S, READING_S, WAITING_S
from chipwise.planner.limits import Rules
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import OtherFormat
from chipwise.planner.reasons.limits import OtherWeights, RetiredService
from chipwise.planner.reasons.sizes import ShortContext
from chipwise.planner.rules import rules_of
from chipwise.planner.services.limits import barred, region_of, scope
from chipwise.planner.services.offer import PER_TOKEN, ServiceOffer
from chipwise.planner.services.ways import Demand
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.predictor.kinds.goals import time_limits
from chipwise.predictor.settings import SERVING_PRECISIONS
from chipwise.text import price
from chipwise.units import HOUR
from chipwise.workload.kinds import Batch, Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

UNTIMED = "its speed is not published"
_NARROW = ("fp8", "fp4", "nvfp4")  # that a service's name may tell
_PLAIN = {"", "us"}  # of a service's name: what says nothing of how it is served


@dataclass(frozen=True, slots=True)
class TokenDemand:
    """The work as services that are paid by the token meet it."""

    requests: float  # of a month, or of the job
    request: Request
    context: float
    rules: Rules
    formats: tuple[str, ...]  # of the weights: as asked, or that they are published in and wider ones
    is_stated: bool  # the workload names them
    unchecked: tuple[str, ...]  # goals that nobody can hold against them, and why
    remarks: tuple[str, ...] = ()
    fleets: tuple[ReplicaSet, ...] = ()  # machines to compare with


def tokens_of_service(known: Known, demand: Demand, model: str) -> list[ServiceOffer]:
    need = demand.need
    work = TokenDemand(
        requests=demand.rate * demand.hours * HOUR,
        request=Request(need.input_tokens, need.output_tokens, min(need.prefix_tokens, need.input_tokens)),
        context=need.context,
        rules=demand.rules,
        formats=need.precisions,
        is_stated=need.asked,
        unchecked=tuple(f"{metric} p{share * 100:g}: {UNTIMED}" for metric, share, _ in demand.goals),
        remarks=demand.network,
        fleets=demand.fleets,
    )
    return [_offer(known, work, one) for one in _sold(known, model)]


def tokens_of_job(known: Known, work: Batch, path: str) -> tuple[ServiceOffer, ...]:
    """Those that may be used first, sure prices before doubtful ones, the cheapest first."""
    if not isinstance(work.model, str) or work.input_tokens is None or work.output_tokens is None:
        return ()
    known, name, _ = known_model(Ask(known, path, "", {}), work)
    sold = _sold(known, name)
    if not sold:
        return ()
    read, written = float(work.input_tokens.mean), float(work.output_tokens.mean)
    stated = [str(one) for one in ((work.precision,) if work.precision is not None else work.limits.precision)]
    demand = TokenDemand(
        requests=work.items,
        request=Request(read, written, min(float(work.shared_prefix_tokens or 0.0), read)),
        context=float(work.input_tokens.max or read) + float(work.output_tokens.max or written),
        rules=rules_of(known, work.limits),
        formats=tuple(stated) or SERVING_PRECISIONS[known.find_model(name).published_precision],
        is_stated=bool(stated),
        unchecked=_untimed(known, work, written),
        remarks=(UNTIMED,),
    )
    offers = [_offer(known, demand, one) for one in sold]
    return tuple(sorted(offers, key=lambda one: (not one.allowed, not one.certain, one.usd or inf)))


def _untimed(known: Known, work: Batch, written: float) -> tuple[str, ...]:
    if limits := tuple(time_limits(Ask(known, "", "", {}), work)):
        return tuple(f"{goal}: {UNTIMED}" for goal, _ in limits)
    longest = work.items * (WAITING_S + READING_S * written)
    return (f"time: {UNTIMED}",) if longest > HORIZON_S else ()


def unsold_note(known: Known, work: Serve | Batch) -> tuple[str, ...]:
    """Where nobody sells the model by the token: that, and the nearest that is sold."""
    if work.output_tokens is None or not isinstance(work.model, str) or _sold(known, work.model):
        return ()
    try:
        near = managed.nearest_sold(known.catalog.rows("tokens"), work.model, known.models.registry)
    except BadInput:
        return ()
    if near is None:
        return ()
    prices = f"{price(near.usd_per_input * 1e6)} and {price(near.usd_per_output * 1e6)} per million tokens in and out"
    nearest = f"the nearest in size that is sold: {near.model}, {near.provider}, {prices}"
    return (f"Nobody whose prices are known sells {work.model} per token; {nearest}.",)


def _sold(known: Known, name: str) -> tuple[TokenService, ...]:
    key = ("services", f"tokens {name}")
    if key not in known.memo:
        try:
            known.memo[key] = managed.services(known.catalog.rows("tokens"), name, known.models.registry)
        except BadInput:  # a model that the registry does not hold is sold by nobody we know of
            known.memo[key] = ()
    services: tuple[TokenService, ...] = known.memo[key]
    return services


def _offer(known: Known, demand: TokenDemand, service: TokenService) -> ServiceOffer:
    names = known.names
    provider = names.provider_or_none(service.provider) or names.provider_or_none(service.provider.partition(" ")[0])
    days = service.fact.age_days(known.today)
    format_ = next((word for word in service.variant.split() if word in _NARROW), None)
    assumed = [] if format_ else ["the number format is not stated"]
    if service.retires and not service.gone:
        assumed.append(f"is to be retired {service.retires}")
    if service.doubt:
        assumed.append("others stopped selling it on: ask whether it is still sold")
    if demand.request.cached_tokens:
        assumed.append("the shared prefix is read from the service's cache")
    assumed += [*demand.remarks, *scope(demand.rules, provider or service.provider, service.provider)]
    month = managed.cost(service, demand.request, demand.requests)
    millions = demand.requests * demand.request.tokens / 1e6
    return ServiceOffer(
        kind=PER_TOKEN,
        provider=provider or service.provider,
        service=service.provider,
        hardware=service.variant,
        chips=(),
        model=service.spelled,
        precision=format_,
        cost=month,
        usd_per_million_tokens=month.usd / millions if millions else None,
        goals=(),
        unchecked=demand.unchecked,
        refused=(
            *barred(known, demand.rules, provider or service.provider, None, service.regions, days),
            *_refusals(known, demand, service, format_),
        ),
        assumed=tuple(assumed),
        certain=not any("usd" in name for name in service.fact.inferred) and not service.doubt,
        retires=(service.retires or "") if not service.gone else "",
        price_of=service.fact.as_of,
        price_days=days,
        break_even=earliest(managed.break_even(service, demand.request, fleet) for fleet in demand.fleets),
        region=region_of(service.regions),
        format_doubted=format_ is None and _is_doubted(demand, service.variant),
    )


def _refusals(known: Known, demand: TokenDemand, service: TokenService, format_: str | None) -> Iterable[Reason]:
    if not service.same_weights:
        yield OtherWeights(service.model)
    if service.gone or (service.retires is not None and service.retires <= known.today.isoformat()):
        yield RetiredService(service.retires or "")
    if service.context is not None and demand.context > service.context:
        yield ShortContext(service.context, demand.context)
    if format_ is not None and format_.removeprefix("nv") not in demand.formats:
        yield OtherFormat(format_, tuple(sorted(demand.formats)), demand.is_stated)


def _is_doubted(demand: TokenDemand, variant: str) -> bool:
    """Of a service whose number format is not stated. Where all are allowed, it does not matter."""
    return not {"fp8", "fp4"}.issubset(demand.formats) and (demand.is_stated or not _PLAIN.issuperset(variant.split()))


def earliest(crossings: Iterable[BreakEven]) -> BreakEven | None:
    """Of several machines the one that is cheaper first."""
    return min(crossings, key=lambda one: inf if one.first is None else one.first, default=None)
