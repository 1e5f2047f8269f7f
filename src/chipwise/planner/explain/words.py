"""Why a candidate lost, in one sentence with the number that decided."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chipwise.money.layering import Layer
from chipwise.planner.defaults import HORIZON_S, MACHINE_CHIPS, MOST_MACHINES, NEARLY
from chipwise.planner.explain.advantages import advantage_words
from chipwise.planner.explain.data_words import data_words, dominant
from chipwise.planner.explain.reason_words import words
from chipwise.planner.offer_prices import OLD_DAYS
from chipwise.planner.preference import OLD, Advantage
from chipwise.planner.values.choice import Choice, QuantumPart
from chipwise.planner.values.load import LoadPlan
from chipwise.planner.values.plan import Plan, Service
from chipwise.planner.values.split import GenerationSplit, width
from chipwise.text import amount, duration, long_age, mass, usd, usd_interval
from chipwise.units import DAY, HOUR
from chipwise.workload.kinds import Serve

EDGE = "edge"  # the provider of small devices, as `devices` names it
SELDOM = 0.01  # a second: below this a rate is told as the time between two
FEW = 0.1  # a second: below this a rate is told by the hour


# What it takes to bring PyTorch code written for NVIDIA there, by the last or first word of a family.
OWN_HARDWARE = "own hardware"  # of a turn: machines that stand there and lose with what they cost in full
PORTING = {
    "TPU": "JAX or PyTorch/XLA: a supported model runs in days, own CUDA kernels must be rewritten",
    "Trainium": "Neuron SDK: supported models compile (up to an hour each), others need porting for weeks",
    "Inferentia": "Neuron SDK: supported models compile (up to an hour each), others need porting for weeks",
    "Gaudi": "Optimum Habana or vLLM for Gaudi: supported models in days, others in weeks",
    "AMD": "ROCm: most PyTorch runs unchanged, own CUDA kernels need HIP, quantised formats fewer",
    "FPGA": "the design is a project of months",
}
_SOFTWARE = {"TPU": "JAX or PyTorch/XLA", "Gaudi": "Optimum Habana", "FPGA": "an FPGA design"}  # else the Neuron SDK
_OLD_ROCM = "an old ROCm (the present one does not support it)"
WORTH_PORTING = 0.01  # of the cost: what porting saves less of is not told
LONGER = 1.25  # times as long: from here on a cheaper rival's time is told with its price
WAITING = 0.25  # of the time: from here on waiting for spot machines is told with it
ALIKE = 0.0005  # of the cost: what differs by less costs the same
UNKNOWN_SPEED = {"month": "the goals are not checked", "job": "how long it takes is not known"}


def software_of(family: str) -> str:
    """That a program for GPUs must be moved to, and one for processors where it is to run on a GPU."""
    vendor, _, architecture = family.partition(" ")
    if vendor in ("NVIDIA", "AMD"):
        return _OLD_ROCM if architecture in OLD else "ROCm" if vendor == "AMD" else "CUDA"
    return _SOFTWARE.get(family.split()[-1], "the Neuron SDK")


PROVENANCE = {  # of an estimate
    "measured": "measured here",
    "carried": "from your run",
    "interpolated": "close to measurements",
    "between": "interpolated between measurements",
    "other software": "measured with other software",
    "formula": "calculated, not measured",
}
OBJECTIVES = {"balanced": "balanced objective"}  # behind the name of a plan; the others read well as "by cost"
RATES = {"serve": "requests a second", "transcode": "streams", "stream": "messages a second"}


def objective_words(objective: str) -> str:
    return OBJECTIVES.get(objective, f"by {objective}")


def rate_words(rate: float, kind: str) -> str:
    """Of what a service of that kind takes: 12 requests a second, or 110 requests an hour where they are few."""
    unit = RATES[kind]
    counted = unit.removesuffix(" a second")
    if rate >= FEW or counted == unit:
        return f"{amount(rate)} {unit}"
    hourly = rate * HOUR
    period, count = ("an hour", hourly) if hourly >= 1 else ("a day", rate * DAY)
    return f"{amount(count)} {counted} {period}"


def no_service(plan: Plan) -> str:
    """Where none may be used: the cheapest of the clouds asked for, against the machines, and what refuses it."""
    first = plan.services[0]
    against = f" against {usd(plan.winner.usd)}" if plan.winner is not None else ""
    cost = f"{usd(first.usd)} a {plan.per}{against}"
    return f"none may be used; {first.title}, {first.kind}, would cost {cost}: {words(first.refused[0])}"


def headline(plan: Plan) -> str:
    """The best answer first, whatever kind it is: what is paid per use where that costs less, then the best machines."""
    machines, service = best_machines(plan) if plan.winner is not None else "", plan.service
    if machines and plan.data is not None and dominant(plan):
        machines = f"{machines} {data_words(plan.data)}"
    if service is None:
        return machines + _unsure(plan)
    break_even = f"; {service.break_even}" if service.break_even else ""
    paid = f"{service_words(service, plan.per)}{break_even}."
    return f"{paid} The best machines: {machines[0].lower()}{machines[1:]}" if plan.winner is not None else paid


def service_words(service: Service, per: str) -> str:
    known = [_dated(service)] if service.price_of else []
    known += [] if service.format_known else ["number format not stated"]
    known += [UNKNOWN_SPEED[per]] if service.unchecked else []
    told = f" ({', '.join(known)})" if known else ""
    interval = usd_interval(service.low_usd, service.high_usd, service.usd)
    cost = f"{usd(service.usd)} a {per}{f' ({interval})' if interval else ''}"
    hardware = f" on {service.hardware}" if service.chips and service.hardware else ""
    return f"Use {service.title}{hardware}{_variant(service)}, paid {service.kind}: {cost}{told}"


def _variant(service: Service) -> str:
    """Of what is sold by the token: a provider sells one model under several names."""
    return f" ({service.hardware})" if service.kind == "per token" and service.hardware else ""


def _dated(service: Service) -> str:
    """With its age where it is old: the first line says so of whatever leads."""
    old = f", {long_age(service.price_days)} old: ask for today's" if service.price_days > OLD_DAYS else ""
    return f"price of {service.price_of}{old}"


def _unsure(plan: Plan) -> str:
    """Beside machines that keep the goals."""
    if (service := plan.unsure_service) is None:
        return ""
    lacking = [f"its speed is not published: {UNKNOWN_SPEED[plan.per]}"] if service.unchecked else []
    lacking += ["its number format is not stated"] if service.format_doubted else []
    lacking += [] if service.certain else ["ask whether it is still sold at this price"]
    saved = 1.0 - service.usd / max(plan.machines_usd, 1e-9)
    share = "more than 99%" if saved > 0.99 else f"{saved:.0%}"
    less = f" ({share} less)" if saved >= NEARLY else ""
    old = f", {_dated(service)}" if service.price_days > OLD_DAYS else ""
    cost = f"{usd(service.usd)} a {plan.per}{less}{old}"
    return f" Paid {service.kind}, {service.title}{_variant(service)} costs {cost}, but {', and '.join(lacking)}."


def leading_layers(plan: Plan) -> LoadPlan | None:
    """Layers over time that cost less than the best machines bought in one way; None where that is not so."""
    load, winner = plan.load, plan.winner
    if load is None or winner is None or plan.objective != "cost" or load.usd >= (1 - NEARLY) * winner.usd:
        return None
    return (
        load if len(load.layers) > 1 or len(load.steps) > 1 or any(one.committed or one.owned for one in load.layers) else None
    )


def layer_words(load: LoadPlan) -> str:
    return _layers(load.layers)


def _layers(layers: Sequence[Layer]) -> str:
    return " and ".join(f"{one.machines} {one.name}" for one in layers)


def best_machines(plan: Plan) -> str:
    """What carries the load for the least money: layers of several purchases where they cost less than the best single one."""
    load = leading_layers(plan)
    if load is None:
        return sentence(plan)
    usual = sentence(plan)
    interval = usd_interval(load.low_usd, load.high_usd, load.usd)
    between = f" ({interval})" if interval else ""
    cost = f"{usd(load.usd)} a month{between}, planned for {amount(load.peak)} {load.unit}"
    if owned := " and ".join(f"{one.machines} x {one.owned}" for one in load.layers if one.owned):
        rented = _layers([one for one in load.layers if not one.owned])
        first = f"Use {owned}, your own, and rent {load.title} above, {rented}" if rented else f"Use {owned}, your own"
        return f"{first}: {cost}{_bound(load)}. Without them: {usual[0].lower()}{usual[1:]}"
    mixed = f"Rent {load.title}, {layer_words(load)}: {cost}{_bound(load)}"
    return f"{mixed}. With a single purchase option: {usual[0].lower()}{usual[1:]}"


def _bound(load: LoadPlan) -> str:
    """What the promises among the layers come to over their terms."""
    contract_usd = sum(layer.usd * 12 * layer.term_years for layer in load.layers)
    return f", with a commitment of {usd(contract_usd)} in all" if contract_usd else ""


def sentence(plan: Plan) -> str:
    """The best machines that are bought in one way, with their decisive numbers."""
    winner = plan.winner
    assert winner is not None
    precision = f", {winner.precision}" if winner.precision else ""
    counted = f"{winner.chips} {winner.chip} each" if follows(winner) else f"{winner.chips * winner.machines} {winner.chip}"
    chips = f"{counted}{precision}"
    hardware = f"{many_words(winner)}{winner.provider} {winner.machine} ({chips}) {winner.placed}"
    if winner.quantum is not None:
        hardware += _circuits(winner.quantum)
    beats = _next_best(plan, winner)
    if plan.per == "month":
        able = f" for up to {rate_words(winner.rate, plan.kind)}" if winner.rate and plan.kind in RATES else ""
        verb = "Buy" if winner.provider == EDGE else "Use" if winner.purchase == "owned" else "Rent"
        cost = f"{cost_words(winner, ' a month')}{able}{_always(winner)}{beats}"
        goes = f", as the load goes{_off(winner)}" if follows(winner) else ""
        remarks = f"{_missed(winner)}{_spared(winner)}{_owned(plan, winner)}{_stale(winner)}{porting_words(plan)}{_terms(plan)}"
        bought = "paid off over 3 years" if winner.provider == EDGE else winner.purchase
        return f"{verb} {hardware}, {bought}{goes}: {cost}.{remarks}"
    cost = f"{duration(winner.seconds)}{_waiting(winner)} for {cost_words(winner)}, {mass(winner.kg)} CO2e"
    remarks = f"{_owned(plan, winner)}{_stale(winner)}{_long(winner, plan.larger)}{porting_words(plan)}{_terms(plan)}"
    return f"Run on {hardware}, {winner.purchase}: {cost}{beats}.{remarks}"


def _waiting(winner: Choice) -> str:
    """Of the time that for which spot machines are waited, where it is a large part; nothing is paid for it."""
    waited = winner.first_wait_s + winner.later_wait_s
    return f" ({duration(waited)} of it waiting for spot)" if waited >= WAITING * winner.seconds else ""


def _terms(plan: Plan) -> str:
    if not plan.without_terms:
        return ""
    return f" No price for a commitment is known of {plan.without_terms}, so none was compared there: ask for a quote."


def _missed(winner: Choice) -> str:
    """Where a goal is more likely missed than kept, and nothing that was found is surer."""
    return (
        " By the estimate it misses the latency goals." if winner.goals_chance is not None and winner.goals_chance < 0.5 else ""
    )


def _spared(winner: Choice) -> str:
    """Where a hair of the usual headroom is missing, because all of it costs much more."""
    if winner.headroom is None:
        return ""
    span = max(math.ceil(width(winner.split) / max(winner.chips, 1)), 1)
    further = f"{span} more machines" if span > 1 else "one more machine"
    usual = f"{Serve.model_fields['headroom'].default:.0%}"
    return f" Its headroom is {winner.headroom:.1%}, not {usual}: {further} would cost {span / winner.machines:.0%} more."


def _next_best(plan: Plan, winner: Choice) -> str:
    """What the second costs; where something costs a little less, why it was not taken."""
    if plan.near_tie is not None:
        cheaper = plan.near_tie.choice
        share = 1.0 - cheaper.usd / max(winner.usd, 1e-9)
        if share < ALIKE:
            return ""
        name = f"{many_words(cheaper)}{cheaper.provider} {cheaper.machine}, {cheaper.purchase}"
        if Advantage.SURER in plan.near_tie.advantages:
            doubt = f" ({cheaper.doubt})" if cheaper.doubt else ""
            return f"; chosen over {name}, which is {share:.1%} cheaper but whose price is uncertain{doubt}"
        better = ", ".join(advantage_words(winner, cheaper, plan.near_tie.advantages))
        return f"; chosen over {name} for {usd(cheaper.usd)} ({share:.1%} less): {better}"
    dearer = [choice for choice in plan.choices[1:] if choice.usd >= winner.usd and not has_idle_chips(choice)]
    if not dearer:
        return ""
    if usd(dearer[0].usd) == usd(winner.usd):
        return f"; ties with {many_words(dearer[0])}{dearer[0].provider} {dearer[0].machine}, {dearer[0].purchase}"
    return f"; next best {usd(dearer[0].usd)}"


def has_idle_chips(choice: Choice) -> bool:
    """Of a service: more chips are rented than its copies of the model use."""
    return isinstance(choice.split, GenerationSplit) and bool(
        choice.replicas and choice.replicas * width(choice.split) < choice.chips * choice.machines
    )


def porting_words(plan: Plan) -> str:
    """What porting would save, or what the answer saves by it; empty where neither matters."""
    winner, rival = plan.winner, plan.porting
    if winner is None or rival is None:
        return ""
    name = f"{rival.chips * rival.machines} {rival.chip} ({rival.provider} {rival.machine}, {rival.purchase})"
    if winner.needs_porting:
        increase = rival.usd / max(winner.usd, 1e-9) - 1.0
        return f" Without porting, {name} would cost {usd(rival.usd)}, {increase:.0%} more."
    saved = 1.0 - rival.usd / max(winner.usd, 1e-9)
    if saved < WORTH_PORTING:
        return ""
    longer = plan.per == "job" and rival.seconds > LONGER * winner.seconds
    time = f", but take {duration(rival.seconds)}, not {duration(winner.seconds)}" if longer else ""
    ported = f"after porting to {software_of(rival.family)}{time}"
    return f" {name} would cost {usd(rival.usd)}, {saved:.0%} less, {ported}."


def own_words(choice: Choice) -> str:
    """Both costs of machines of one's own, and which of them counts; empty of others."""
    own = choice.own
    if own is None:
        return ""
    sunk = f"{usd(own.sunk_usd)} electricity alone" if own.sunk_usd is not None else "electricity not known"
    full = f"{usd(own.full_usd)} in full" if own.full_usd is not None else "in full not known"
    return f"{sunk} (counted: paid), {full}" if own.paid else f"{sunk}, {full} (counted)"


def _owned(plan: Plan, choice: Choice) -> str:
    """Of the answer, or of machines that stand there already and lose with what they cost in full."""
    if choice.own is not None:
        return f" Your own hardware: {own_words(choice)}."
    return next((f" Your own hardware: {one.told}." for one in plan.turns if one.what == OWN_HARDWARE), "")


def _long(choice: Choice, larger: Choice | None) -> str:
    """A job that takes longer than anybody would wait unasked, and how long more machines than are taken unasked would take."""
    if choice.late_share is not None or choice.seconds <= HORIZON_S:
        return ""
    if larger is None:
        return f" Nothing that was found does it within {duration(HORIZON_S)}: give a deadline, or more chips."
    limit = f"{MOST_MACHINES * MACHINE_CHIPS} chips ({MOST_MACHINES} machines of {MACHINE_CHIPS})"
    name = f"{many_words(larger)}{larger.provider} {larger.machine}, {larger.purchase}"
    needs = f"{duration(larger.seconds)} for {usd(larger.usd)}"
    return (
        f" Nothing of up to {limit} does it within {duration(HORIZON_S)}. With --large,"
        f" {larger.chips * larger.machines} {larger.chip} ({name}) would take {needs}."
    )


def cost_words(choice: Choice, per: str = "") -> str:
    """The expected cost, and the interval that holds it eight times of ten."""
    interval = usd_interval(choice.low_usd, choice.high_usd, choice.usd)
    return f"{usd(choice.usd)}{per} ({interval})" if interval else f"{usd(choice.usd)}{per}"


def _stale(choice: Choice) -> str:
    if choice.doubt:
        return f" Its price is doubtful ({choice.doubt}): check it."
    if choice.price_days <= OLD_DAYS:
        return ""
    return f" Its price is {long_age(choice.price_days)} old: ask for today's."


def follows(choice: Choice) -> bool:
    """Its machines are more at some hours than at others."""
    return choice.over_time is not None and choice.over_time.fewest < choice.machines


def count_words(choice: Choice) -> str:
    """Machines: "3", or "1 to 3" where they follow the load."""
    return f"{choice.over_time.fewest} to {choice.machines}" if choice.over_time and follows(choice) else str(choice.machines)


def many_words(choice: Choice) -> str:
    """Before the name of a machine: "3 x ", "1 to 3 x ", or nothing."""
    return f"{count_words(choice)} x " if choice.machines > 1 else ""


def _always(choice: Choice) -> str:
    if choice.over_time is None or not follows(choice):
        return ""
    return f"; {choice.machines} {choice.over_time.always} {usd(choice.over_time.always_cost.usd)}"


def _off(choice: Choice) -> str:
    return ", none outside the schedule" if choice.over_time is not None and choice.over_time.is_scheduled else ""


def _circuits(part: QuantumPart) -> str:
    paid = f" ({usd(part.usd)})" if part.usd else ""
    return f" with circuits on {part.title}{paid}" if part.managed else f" with circuits {part.title}"
