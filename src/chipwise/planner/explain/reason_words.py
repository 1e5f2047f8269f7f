"""Reasons in words: the one place where a reason becomes a sentence; what would help against it is in `remedy_words`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from chipwise.planner.defaults import PORTING_SAVES, PORTING_USD
from chipwise.planner.explain.advantages import lost_by
from chipwise.planner.fleet import MOST_CHIPS
from chipwise.planner.limits import Refused
from chipwise.planner.reasons import Beaten, Reason, abilities, goals, limits, quantum, sizes
from chipwise.planner.values.plan import Loss, Missing, Obstacle
from chipwise.text import duration, durations_apart, gib, mass, number, round_trip, usd
from chipwise.units import DAY, GIB


def words(reason: Reason) -> str:
    """Without a capital letter or a full stop: it stands behind a name and a colon."""
    if isinstance(reason, Beaten):
        porting = porting_rule(reason) if reason.porting else ""
        cause = lost_by(reason)
        return _with_circuits(reason) if reason.device else f"{cause and f'{cause}; '}{_beaten(reason)}{porting}"
    if isinstance(reason, limits.Limit):
        return _limit(reason)
    if isinstance(reason, abilities.Ability):
        return _ability(reason)
    if isinstance(reason, sizes.Size):
        return _size(reason)
    return _goal(reason) if isinstance(reason, goals.Goal) else _quantum(reason)


def rule_words(rule: limits.Rule) -> str:
    """A limit as what it says of the offers that it refuses."""
    match rule.kind:
        case limits.RuleKind.PROGRAMME:
            return f"not known to take part in {rule.name}"
        case limits.RuleKind.POWER:
            return f"draws more than {rule.limit:g} W"
        case limits.RuleKind.REQUIRED:
            return rule.name
        case limits.RuleKind.QUOTA | limits.RuleKind.QUOTA_MORE:
            suffix = " with more machines" if rule.kind is limits.RuleKind.QUOTA_MORE else ""
            return f"above {_quota_owner(rule.own)} of {rule.limit:,g} {rule.name}{suffix}"
        case limits.RuleKind.PURCHASE:
            return f"not bought as {rule.name}"
        case limits.RuleKind.PRICE_AGE:
            return f"price older than {duration((rule.limit or 0) * DAY)}"
        case limits.RuleKind.REPLICAS:
            return f"needs more than {rule.limit:g} replicas"
        case _:
            return _RULES[rule.kind]


MOVING = 0.1  # of the time: from here on moving the data is told
_RULES = {
    limits.RuleKind.UNREAL: "not for sale at that price (auction floors, placeholders, stale entries)",
    limits.RuleKind.RETIRED: "retired",
    limits.RuleKind.UNKNOWN_SPEED: "no speed known",
    limits.RuleKind.CLOUD: "excluded by --cloud (limits.clouds)",
    limits.RuleKind.AVOIDED_CLOUD: "cloud avoided",
    limits.RuleKind.CHIP: "excluded by --chip (limits.chips)",
    limits.RuleKind.AVOIDED_CHIP: "chip avoided",
    limits.RuleKind.REGION: "excluded by --region (limits.regions)",
    limits.RuleKind.AVOIDED_REGION: "region avoided",
    limits.RuleKind.UNKNOWN_COUNTRY: "its country is not known",
    limits.RuleKind.COUNTRY: "country not allowed",
    limits.RuleKind.AVOIDED_COUNTRY: "country avoided",
    limits.RuleKind.INTERRUPTIBLE: "may be interrupted",
    limits.RuleKind.MARKET: "not durable: a marketplace or a single listing (--market any)",
    limits.RuleKind.COMMITMENT: "only with a commitment (--commit 1y, 3y or any)",
    limits.RuleKind.OWNED: "owned",
    limits.RuleKind.RENTED: "rented",
}


def example_words(refused: Refused) -> str:
    """One of the offers that a rule refused, and why where the rule alone does not say it."""
    return refused.example if refused.reason is None else f"{refused.example}: {words(refused.reason)}"


def missing_words(missing: Missing) -> str:
    """How much was missing, and of what."""
    text = words(missing.reason)
    return f"the nearest is {missing.nearest}: {text}" if missing.nearest else text


def nothing_words(missing: Sequence[Missing]) -> str:
    """The first line where there is no choice: missing data is not the same as nothing that fits."""
    if any(one.what is Obstacle.COMPLIANCE for one in missing):
        return "Stopped: data on compliance is missing"
    return "Nothing fits"


def listed_few(names: Sequence[str], most: int = 4) -> str:
    """The first of them, and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{rest}"


def lost(loss: Loss) -> str:
    """Why a family lost, with the remark on its chip."""
    return "; ".join(filter(None, (words(loss.why), loss.remark)))


def _limit(reason: limits.Limit) -> str:
    match reason:
        case limits.NotOffered():
            return "no offer within the limits"
        case limits.NoOfferLeft(rule, offers):
            if rule is None:
                return "no offer is left: the catalog has none"
            last = "the last one was" if offers == 1 else f"the last {offers:,} were"
            return f"no offer is left: {last} refused as {rule_words(rule)!r}"
        case limits.NoComplianceData(programmes, providers, taking_part):
            silent = f"no data says whether {listed_few(providers)} {'takes' if len(providers) == 1 else 'take'} part in"
            known = f"; known to: {', '.join(taking_part)}" if taking_part else ""
            return f"{silent} {' and '.join(programmes)}{known}"
        case limits.DoesNotRun(finding):
            return finding
        case limits.StagesOverQuota(stages, quota):
            amounts = ", ".join(f"{name} {need:,g}" for name, need in stages)
            names = " and ".join(name for name, _ in stages)
            return f"{names} can run at the same time, which {words(quota)} ({amounts})"
        case limits.NoPrice(name):
            return f"the price of {name} is not published"
        case limits.NotAtTheEdge():
            return "is not at the edge; limits.where asks for the edge"
        case limits.OverPower(name, watts, limit_w):
            return f"{name} and its board draw {watts:g} W; {limit_w:g} W are allowed"
        case limits.OverQuota(name, unit, needed, limit, own):
            resource = name if own else f"{unit} of {name}"
            return f"needs {number(needed, 4)} {resource}, {_quota_owner(own)} is {limit:,g}"
        case limits.Barred():
            return _barred(reason)
        case limits.Misplaced():
            return _misplaced(reason)
        case limits.OtherWeights(model):
            return f"is another training of the shape of {model}"
        case limits.RetiredService(day):
            return f"was retired {day}"
    assert_never(reason)


def _barred(reason: limits.Barred) -> str:
    """A limit, as what it says of a service that is paid per use."""
    provider, asked = reason.provider, ", ".join(reason.asked)
    match reason.rule:
        case limits.RuleKind.RENTED:
            return "is rented, and only own machines are asked for"
        case limits.RuleKind.PURCHASE:
            return f"is paid per use, and machines bought as {' or '.join(reason.asked)} are asked for"
        case limits.RuleKind.CLOUD:
            return f"{provider} is not in --cloud ({asked})"
        case limits.RuleKind.AVOIDED_CLOUD:
            return f"{provider} is to be avoided"
        case limits.RuleKind.PROGRAMME:
            return f"{provider} is not known to take part in {asked}"
        case limits.RuleKind.CHIP:
            hardware = f"runs on {' or '.join(reason.chips)}" if reason.chips else "which chip it runs on is not stated"
            return f"{hardware}; asked for {', '.join(reason.asked[:4])}"
        case limits.RuleKind.PRICE_AGE:
            return f"its price is older than {asked}"
        case limits.RuleKind.AVOIDED_CHIP:
            return f"may run on {' or '.join(reason.chips)}, which is to be avoided"
        case _:
            return rule_words(limits.Rule(reason.rule, asked))


def _misplaced(reason: limits.Misplaced) -> str:
    place, listing = reason.provider, ", ".join(reason.countries[:4])
    if reason.region:
        place += f" {reason.region}"
    elif listing:
        place += f", whose regions are in {listing}"
    match reason.rule:
        case limits.RuleKind.COUNTRY:
            wanted = ", ".join(reason.asked[:4]) + (", ..." if len(reason.asked) > 4 else "")
            where = f"runs in {place}" if reason.certain else f"its region is not stated ({place})"
            return f"{where}; asked for {wanted}"
        case limits.RuleKind.REGION:
            return f"its region is not stated or not asked for ({place})"
        case limits.RuleKind.AVOIDED_COUNTRY:
            return f"may run in a country to be avoided ({place})"
        case _:
            return f"may run in a region to be avoided ({place})"


def _quota_owner(own: bool) -> str:
    return "your quota" if own else "the default quota"


def _ability(reason: abilities.Ability) -> str:
    match reason:
        case abilities.NoEngine():
            return "no engine for language models runs on it"
        case abilities.ServesOnly():
            return "its software serves models and does not train them"
        case abilities.GpusOnly(method):
            return f"{method} needs 4-bit kernels, which are written for GPUs only"
        case abilities.WrongKind(kind, able):
            return f"{kind} chips cannot do this work; {', '.join(able)} can"
        case abilities.NoPrecision(wanted, known, chip, instead):
            has = f"; {', '.join(known)} are" if known else f"; pass --precision {instead}" if instead else ""
            formats = f"{', '.join(wanted[:-1])} or {wanted[-1]}" if len(wanted) > 1 else wanted[0]
            return f"no {formats} arithmetic is stated for {chip or 'it'}{has}"
        case abilities.OtherFormat(precision, able, asked):
            if asked:
                return f"is served in {precision}; asked for {', '.join(able)}"
            return f"is served in {precision}; the weights are published in {able[0]}: --precision {precision}"
        case abilities.NoSpeed(chips):
            return f"no speed is stated of {' or '.join(chips)}" if chips else "no speed is known of its processor"
        case abilities.NoCodec(chip, formats, known):
            return f"{chip} has no engines for {formats} ({known})"
        case abilities.NoFabric(able):
            return f"holds no chain of circuits; FPGAs do: {', '.join(able)}"
        case abilities.LacksFabric(chip, resource, share):
            return f"the design needs {share:.0%} of the {resource} that the shell and routing leave of {chip}"
        case abilities.NotMeasured(operations, others, cores):
            unknown = f"{', '.join(operations)} {'was' if len(operations) == 1 else 'were'} not measured on a processor"
            alone = f"{', '.join(others)} alone {'takes' if len(others) == 1 else 'take'} {number(cores, 2)} cores"
            return f"{unknown}; {alone}" if others else unknown
        case abilities.SharedSlice(chip):
            return f"{chip} is a slice, and sharing is not allowed"
        case abilities.Unpredicted(message):
            return message.rstrip(".")
    assert_never(reason)


def _size(reason: sizes.Size) -> str:
    match reason:
        case sizes.LacksMemory(short):
            return f"lacks {gib(short)} of memory a chip at best"
        case sizes.HoldsTooLittle(holder, has, needed, needed_by):
            purpose = f" for {needed_by}" if needed_by else ""
            return f"{holder} can hold {_gib(has)} of the {_gib(needed)} GiB needed{purpose}"
        case sizes.DoesNotFit(model, holder, precision, short):
            shape = f"{model} in {precision}" if precision else model
            lacking = f": {gib(short)} a chip are missing" if short is not None else ""
            return f"{shape} does not fit {holder}{lacking}"
        case sizes.ShortContext(tokens, needed):
            return f"takes {tokens:,.0f} tokens; {needed:,.0f} must be accepted"
        case sizes.NoSplit(low, high):
            return f"no split of {low:,} to {high:,} chips suits the model's heads, layers and batch"
        case sizes.NoCount(chips, low, high):
            return f"no number of machines with {chips} chips each gives {low:,} to {high:,} chips (limits.chip_count)"
        case sizes.NeedsChips(needed, allowed):
            if allowed == MOST_CHIPS:
                return f"needs {needed:,} chips; more than {allowed:,} are tried only where limits.chip_count.max states it"
            return f"needs {needed:,} chips, {allowed:,} are allowed"
        case sizes.NeedsReplicas(needed, allowed):
            return f"needs {needed:,} replicas, {allowed:,} are allowed"
        case sizes.NeedsReplicasAndChips():
            allowed_ = f"{reason.allowed_replicas:,} and {reason.allowed_chips:,} are allowed"
            return f"needs {reason.replicas:,} replicas on {reason.chips:,} chips, {allowed_}"
        case sizes.NeedsNetwork(machines):
            amount = f"{machines:,} machines at least" if machines else "several machines at once"
            return f"needs {amount}, and the network between them is not stated or too slow"
    assert_never(reason)


def _goal(reason: goals.Goal) -> str:
    match reason:
        case goals.TooSlow(goal, seconds, limit_s):
            if not goal:
                return "meets no latency goal at any rate"
            if seconds <= limit_s:
                return (
                    f"{goal} is {duration(seconds)} for one request alone, and above {duration(limit_s)} as soon as others come"
                )
            at_best, limit = durations_apart(seconds, limit_s)
            return f"{goal} is {at_best} at best, above {limit}"
        case goals.NoNetworkPort(goal, seconds, limit_s):
            path = "a rented FPGA has no network port, and through the network card of its host and PCIe"
            return f"{path} {goal} is {duration(seconds)} at best, above {duration(limit_s)}"
        case goals.TooFar(users, seconds, limit_s):
            if seconds is None:
                return f"how far it is from {users} is not known"
            return f"network to {users} {round_trip(seconds)}, above the {round_trip(limit_s)} allowed"
        case goals.MissesLatency(goal, seconds, limit_s, share, start):
            takes, limit = durations_apart(seconds, limit_s)
            text = f"{goal} is {takes}, the goal {limit}"
            if start is None:
                return text
            low, middle, high = map(duration, start)
            return f"{share:.0%} of the requests meet a cold start of {middle} ({low} to {high}): {text}"
        case goals.MissesDeadline(seconds, limit_s, confidence):
            surely = "" if confidence is None else f" at {confidence:.3g} confidence"
            moving = reason.moving_s
            moved = f", of which moving the data takes {duration(moving)}" if moving >= MOVING * seconds else ""
            takes, limit = durations_apart(seconds, limit_s)
            return f"misses the deadline of {limit}: {takes}{surely}{moved}"
        case goals.UnsureLatency(chance, confidence):
            likely = math.floor(100 * chance)  # never as much as is asked for
            return (
                f"a single request meets the latency goals with a probability of {likely}%; {100 * confidence:g}% is asked for"
            )
        case goals.OwnsFewer(machines, owned):
            return f"needs {machines} of them, and you own {owned} (`count` in its file)"
        case goals.MissesThroughput(rate, limit, item):
            return f"misses the throughput of {number(limit, 4)} {item}s/s: {number(rate, 4)}"
        case goals.OverBudget():
            detail = " with machines that follow the load" if reason.layered else " with storage" if reason.stored else ""
            surely = "" if reason.confidence is None else f" at {reason.confidence:.3g} confidence"
            return f"exceeds the budget of {usd(reason.limit_usd)}{reason.period}: {usd(reason.usd)}{surely}{detail}"
        case goals.StageOverBudget():
            return "the storage of its data takes every candidate above the stage's own budget"
        case goals.DeadlineAndBudget():
            return "each can be met, not both at once"
        case goals.OneAtATime(single):
            return f"meets {', '.join(f'{goal} {duration(limit)}' for goal, limit in single)} for one request at a time only"
        case goals.NoRate():
            return "no machine can serve any request"
        case goals.MissesGoals():
            return "misses the goals"
    assert_never(reason)


def _quantum(reason: quantum.Quantum) -> str:
    match reason:
        case quantum.Analogue():
            return "analogue only: it runs no circuits of gates"
        case quantum.FewQubits(qubits, needed, simulator):
            if not qubits:
                return "how many qubits it has is not known"
            return f"{'is a simulator of' if simulator else 'has'} {qubits:g} qubits, {needed} needed"
        case quantum.SellerLeftOut(provider):
            return f"sold by {provider}, which the limits leave out"
        case quantum.CountryLeftOut(country):
            return f"is in {country or 'an unknown country'}, which the limits leave out"
        case quantum.NoQuantumPrice():
            return "no price by task, shot or minute is known"
        case quantum.TimeNotModelled(device):
            return f"how long it takes is not modelled ({device})"
        case quantum.StateTooLarge(qubits, state, largest):
            problem = f"the state needs {_gib(state)} GiB, and the largest machine holds {_gib(largest)}"
            return f"the simulator cannot hold {qubits} qubits: {problem}"
        case quantum.NoDevice():
            return "no quantum device is left, and the circuits cannot be simulated on it"
    assert_never(reason)


def _beaten(lost: Beaten) -> str:
    """Against the winner, by what was asked for first."""
    slower = lost.seconds / max(lost.best_s, 1e-9) - 1
    costs = _difference(lost.usd / max(lost.best_usd, 1e-9) - 1, "more expensive", "cheaper", "")
    takes = _difference(slower, "slower", "faster", "as fast")
    emits = _difference(lost.kg / max(lost.best_kg, 1e-9) - 1, "more CO2e", "less CO2e", "as much CO2e")
    amounts = f"{usd(lost.usd)} a {lost.per}" if usd(lost.usd) == usd(lost.best_usd) else None
    cost = f"{costs or 'ties on cost'} ({amounts or f'{usd(lost.usd)} a {lost.per} against {usd(lost.best_usd)}'})"
    time = f"{takes} ({duration(lost.seconds)} against {duration(lost.best_s)})"
    carbon = f"{emits} ({mass(lost.kg)} against {mass(lost.best_kg)})"
    if lost.objective == "balanced":  # all three decide: what it is worse in stands first
        worse = {cost: lost.usd / max(lost.best_usd, 1e-9), time: 1 + slower, carbon: lost.kg / max(lost.best_kg, 1e-9)}
        parts = [part for part in worse if part != time or lost.per != "month"]
        return ", ".join(sorted(parts, key=lambda part: worse[part] <= 1.005))
    first, *rest = {"time": (time, cost), "carbon": (carbon, cost)}.get(lost.objective, (cost, time))
    if lost.per == "month":  # all rows last the month
        rest = [text for text in rest if text is not time]
        first = cost if first is time else first
    return f"{first}, {rest[0]}" if rest and (abs(slower) > 0.05 or lost.per == "month") and rest[0] != first else first


def porting_rule(lost: Beaten) -> str:
    """What porting must save, where it saves something and not enough; else that it is needed."""
    saved = lost.best_usd - lost.usd
    share, bills, period = (
        saved / max(lost.best_usd, 1e-9),
        1 if lost.per == "job" else 12,
        "" if lost.per == "job" else " a year",
    )
    if saved <= 0:
        return " after porting"
    if share < PORTING_SAVES:
        return f", but porting must save at least {PORTING_SAVES:.0%} (here {share:.1%})"
    if saved * bills < PORTING_USD:
        return f", but porting must save at least {usd(PORTING_USD)}{period} (here {usd(saved * bills)})"
    return " after porting"


def _difference(share: float, above: str, below: str, equal: str) -> str:
    if abs(share) < 0.005:
        return equal
    if share > 1.5:
        return f"{share + 1:.1f}x as expensive" if above == "more expensive" else f"{share + 1:.1f}x {above}"
    return f"{abs(share):.0%} {above if share > 0 else below}"


def _with_circuits(lost: Beaten) -> str:
    times = lost.usd / max(lost.best_usd, 1e-9)
    factor = f"{times:,.0f} times as much" if times >= 10 else f"{times:.2g} times as much"
    return (
        f"{lost.device}: {usd(lost.usd)} a job against {usd(lost.best_usd)}, {factor} ({usd(lost.circuits_usd)} for circuits), "
        f"and {duration(lost.seconds)} against {duration(lost.best_s)}"
    )


def _gib(value: float) -> str:
    gib = value / GIB
    return f"{gib:,.0f}" if 10 <= gib < 1e12 else f"{gib:.3g}"
