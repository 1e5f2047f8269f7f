"""A workload's limits in the catalog's own names: what the planner may use.

`limits.requires` is judged chip by chip. Features (fp8, nvenc, mig, nvlink) are facts of the catalog, and what nobody states
is not there: as with countries and compliance, a hard limit is kept by what is known. Software goes by the rules behind
`chipwise explain CHIP --with NAME=VERSION`: a range holds where any version in it runs, beside the versions that other
requirements fix. Chips of NVIDIA and AMD that the rules do not name pass with a doubt; chips with a stack of their own
(Neuron, TPU, Gaudi) pass only where nothing speaks against it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.catalog import ability, compatibility
from chipwise.catalog.chip import Chip, ChipKind, Precision
from chipwise.catalog.compatibility import Compatibility, CompatibilityAnswer
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Purchase
from chipwise.countries import country_of, members
from chipwise.errors import BadInput, UnknownName
from chipwise.planner.limits import Granted, Required, Rules
from chipwise.spelling import fold, nearest
from chipwise.units import DAY
from chipwise.workload.goals import Buying, Commit, MarketScope, Programme, Unproven, Where
from chipwise.workload.limits import Limits, Need, need_of

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

_IN_TABLE = ("hipaa", "fedramp", "iso27001", "pci")
_ABILITIES = ("bf16", "tf32", "fp8", "fp4", "mig", "tensor-cores", "ray-tracing")  # told by `catalog.ability`
_SPELLED = {
    "flashattention2": "flash-attention 2",
    "flashattention3": "flash-attention 3",
    "nvlinkswitch": "nvlink",
    "raytracing": "ray-tracing",
    "rtcores": "ray-tracing",
    "infiniband": "rdma",
    "efa": "rdma",
}
OLDER_CUDA = ("12.8", "12.4", "11.8")  # builds that projects offer beside the default one
_RDMA = re.compile(r"efa|infiniband|roce|cluster network", re.IGNORECASE)


def rules_of(known: Known, limits: Limits) -> Rules:
    """Names as the catalog has them. The file was checked, so every one is known."""
    names = known.names

    def countries(places: Sequence[str]) -> frozenset[str]:
        return frozenset().union(*map(members, places)) if places else frozenset()

    def chips(texts: Sequence[str]) -> frozenset[str]:
        return frozenset(chip.name for text in texts for chip in names.chips_of(text) or names.chips(text))

    lands = _countries_among(limits.regions)
    only_lands = len(lands) == len(limits.regions)  # then what is sold in several countries may be ordered in one of them
    asked = (limits.countries, limits.residency, lands if only_lands else ())
    inside = [countries(places) for places in asked if places]
    if Programme.GDPR in limits.compliance:
        inside.append(countries(("EEA", "CHE", "GBR")))
    sites = set(limits.where)
    compliant, unproven = _programmes(known, limits)
    return Rules(
        providers=frozenset(map(names.provider, limits.clouds)) if limits.clouds else None,
        avoided_providers=frozenset(map(names.provider, limits.avoid.clouds)),
        regions=frozenset(one.key for text in limits.regions for one in names.regions(text.replace(":", "/")))
        if limits.regions and not only_lands
        else None,
        avoided_regions=frozenset(one.key for text in limits.avoid.regions for one in names.regions(text.replace(":", "/"))),
        countries=frozenset.intersection(*inside) if inside else None,
        avoided_countries=countries((*limits.avoid.countries, *_countries_among(limits.avoid.regions))),
        compliant=compliant or None,
        unproven=unproven,
        chips=chips(limits.chips) if limits.chips else None,
        avoided_chips=chips(limits.avoid.chips),
        interruptible=True if limits.interruptible is None and Buying.SPOT in limits.purchase else limits.interruptible,
        purchases=purchases_of(limits.purchase) if limits.purchase else None,
        owned=not sites or Where.OWNED in sites,
        rented=not sites or Where.CLOUD in sites,
        power_w=limits.power_watts,
        requires=_required_once(known, limits.requires),
        quotas=tuple(_granted(known, key, most) for key, most in limits.quotas.items()),
        default_quotas=limits.default_quotas,
        durable=limits.market is not MarketScope.ANY,
        committed_years=_committed_years(limits),
        price_days=None if limits.max_price_age is None else limits.max_price_age / DAY,
    )


def _committed_years(limits: Limits) -> float:
    """Nothing is promised unasked; who asks for reserved machines asks for it."""
    if limits.commit is None:
        return math.inf if any(one.startswith(Buying.RESERVED) for one in limits.purchase) else 0.0
    return {Commit.NONE: 0.0, Commit.ONE_YEAR: 1.0, Commit.THREE_YEARS: 3.0, Commit.ANY: math.inf}[limits.commit]


def _countries_among(places: Sequence[str]) -> tuple[str, ...]:
    """Countries that are named as regions."""
    return tuple(country for place in places if (country := country_of(place)) is not None)


def purchases_of(options: Sequence[Buying]) -> frozenset[Purchase]:
    """As the catalog names them; `reserved` is every term."""
    names = {str(one) for one in options}
    return frozenset(
        one for one in Purchase if str(one) in names or (Buying.RESERVED in options and one.startswith(f"{Buying.RESERVED}-"))
    )


def _programmes(known: Known, limits: Limits) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """By programme the providers that state it: of those that are limits, and of those that only warn. Silence is not a no, yet
    who must comply does not rent from the silent where others speak; of a programme that no table has, all are silent."""
    rows = known.catalog.rows("compliance")
    stated = {
        str(programme): frozenset(
            row.provider for row in rows if programme in _IN_TABLE and str(getattr(row, programme, "")).startswith("yes")
        )
        for programme in limits.compliance
        if programme is not Programme.GDPR
    }
    unknown = limits.compliance_unknown
    strict = {name for name, providers in stated.items() if unknown is Unproven.REFUSE or (unknown is None and providers)}
    return (
        {name: providers for name, providers in stated.items() if name in strict},
        {name: providers for name, providers in stated.items() if name not in strict},
    )


def _granted(known: Known, key: str, limit: int) -> Granted:
    """`chip`, `cloud:chip` or `cloud:region:chip`."""
    *place, chip = (part.strip() for part in key.split(":"))
    names = known.names
    provider = names.provider(place[0]) if place else None
    regions = frozenset(one.key for one in names.regions(f"{provider}/{place[1]}")) if len(place) > 1 else None
    site = " ".join(filter(None, (provider, place[1] if len(place) > 1 else "")))
    label = f"{chip} at {site}" if site else chip
    return Granted(
        title=label,
        chips=frozenset(one.name for one in names.chips_of(chip) or names.chips(chip)),
        maximum=limit,
        provider=provider,
        regions=regions,
    )


def _required_once(known: Known, texts: tuple[str, ...]) -> tuple[Required, ...]:
    key = ("limits.requires", "\n".join(texts))
    if texts and key not in known.memo:
        known.memo[key] = required(known, texts)
    result: tuple[Required, ...] = known.memo[key] if texts else ()
    return result


def required(known: Known, texts: Sequence[str]) -> tuple[Required, ...]:
    """What must run or be there. A name that nobody knows is refused with the nearest spelling."""
    data, catalog = known.catalog.data, known.catalog
    chips = list(catalog.chips.values())
    features: dict[str, None] = {}
    software: dict[str, list[Need]] = {}
    for text in dict.fromkeys(texts):
        need = need_of(_SPELLED.get(fold(text), text))
        if need is None:  # the file was checked; a caller of ours may not have
            raise BadInput(f"limits.requires: {text[:60]!r} does not name what must run.", remedy="Write fp8 or cuda>=12.4.")
        feature = next((one for one in FEATURES if fold(one) == fold(need.name)), None)
        if feature is not None and need.version:
            raise BadInput(f"limits.requires: {feature} has no versions.", remedy=f"Write {feature} alone.")
        if feature is not None:
            features[feature] = None
        else:
            software.setdefault(_component(need.name, chips[0], data), []).append(need)
    fixed = {name: one.version for name, needs in software.items() for one in needs if one.sign == "=="}
    return (
        *(_feature(name, chips, catalog.machines, data) for name in features),
        *(_software(name, needs, fixed, chips, data) for name, needs in software.items()),
    )


def _component(name: str, chip: Chip, data: Path) -> str:
    """As the rules call it; which chip it is asked of does not matter."""
    try:
        return compatibility.check(chip, {name: ""}, data)[0].component
    except UnknownName:
        known = tuple(dict.fromkeys((*FEATURES, *compatibility.components(data))))
        raise UnknownName("feature or component in limits.requires", name, nearest(name, known), known=known) from None


# -- features: facts of chips and machines


def _lack_of_ability(name: str) -> Callable[[Chip, Path], str | None]:
    def lack(chip: Chip, data: Path) -> str | None:
        found = next(one for one in ability.abilities(chip, data) if one.name == name)
        return None if found.has else found.reason

    return lack


def _engines(chip: Chip) -> tuple[str, str, int, int]:
    """(encoding engine, decoding engine, encoders, decoders): the sheet's counts, else those of its generation."""
    from chipwise.perf.kernels import transcode

    encode, decode, encoders, decoders = transcode.engines_of(chip)
    stated = chip.silicon
    return (
        encode,
        decode,
        encoders if stated.encoders is None else stated.encoders,
        decoders if stated.decoders is None else stated.decoders,
    )


def _lack_of_nvenc(chip: Chip, data: Path) -> str | None:
    has = chip.vendor == "NVIDIA" and _engines(chip)[2] > 0
    return None if has else f"{chip.name} has no NVENC engine"


def _lack_of_nvdec(chip: Chip, data: Path) -> str | None:
    has = chip.vendor == "NVIDIA" and _engines(chip)[3] > 0
    return None if has else f"{chip.name} has no NVDEC engine"


def _lack_of_licence(chip: Chip, data: Path) -> str | None:
    """NVIDIA's driver licence does not allow GeForce cards in data centres; its RTX A, Ada and PRO boards are not GeForce."""
    geforce = re.fullmatch(r"(?:RTX|GTX)-\d{4}(?:-?Ti|-?Super)*", chip.name) is not None and chip.vendor == "NVIDIA"
    return f"{chip.name} is a GeForce card: its driver's licence excludes data centres" if geforce else None


def _lack_of_av1(chip: Chip, data: Path) -> str | None:
    from chipwise.perf.kernels import transcode

    encode, _, encoders, _ = _engines(chip)
    has = chip.kind is not ChipKind.CPU and encoders > 0 and (encode, "encode", "av1") in transcode.rates()
    return None if has else f"{chip.name} has no engine that encodes AV1"


def _lack_of_fp64(chip: Chip, data: Path) -> str | None:
    has = any(chip.rate(one) for one in (Precision.FP64, Precision.FP64_TENSOR))
    return None if has else f"no fp64 rate is stated for {chip.name}"


_OF_CHIPS: Mapping[str, Callable[[Chip, Path], str | None]] = {
    **{name: _lack_of_ability(name) for name in _ABILITIES},
    "fp64": _lack_of_fp64,
    "nvenc": _lack_of_nvenc,
    "nvdec": _lack_of_nvdec,
    "av1": _lack_of_av1,
    "data-center-licence": _lack_of_licence,
}


def _lack_of_nvlink(machine: Machine, chips: Mapping[str, Chip]) -> str | None:
    """Between the chips of one machine. Bridges are sold apart: they count where the machine's sheet names them."""
    if (machine.chips or 0) < 2:
        return "it has one chip, or none, and nothing to link"
    chip = chips.get(machine.chip or "")
    own = (chip.interconnect if chip is not None else None) or ""
    has = "nvlink" in (machine.link or "").lower() or (own.startswith("NVLink") and "bridge" not in own)
    return None if has else "no NVLink between its chips is stated"


def _lack_of_rdma(machine: Machine, chips: Mapping[str, Chip]) -> str | None:
    fabric = machine.fabric or ""
    return None if _RDMA.search(fabric) else f"its network is {fabric or 'not stated to be EFA, InfiniBand or RoCE'}"


_OF_MACHINES = {"nvlink": _lack_of_nvlink, "rdma": _lack_of_rdma}
FEATURES = (*_OF_CHIPS, *_OF_MACHINES)


def _feature(name: str, chips: Sequence[Chip], machines: Sequence[Machine], data: Path) -> Required:
    rule = f"{name} is not there, or not known to be"
    if name in _OF_CHIPS:
        lacks = {chip.name: _OF_CHIPS[name](chip, data) for chip in chips}
        return Required(rule, {chip: why for chip, why in lacks.items() if why is not None})
    by_name = {chip.name: chip for chip in chips}
    lacking = {one.key: _OF_MACHINES[name](one, by_name) for one in machines}
    return Required(rule, {}, {key: why for key, why in lacking.items() if why is not None})


# -- software: rules of compatibility


def _software(name: str, needs: Sequence[Need], fixed: Mapping[str, str], chips: Sequence[Chip], data: Path) -> Required:
    text = " and ".join(f"{name}{' ' if one.sign == '==' else one.sign}{one.version}" for one in needs)
    versions = list(_versions(name, needs, data))
    if not versions:
        raise BadInput(f"limits.requires: no version of {name} is all of {text}.", remedy="Give a range that is not empty.")
    companions = {other: version for other, version in fixed.items() if other != name}
    refused, doubts = {}, {}
    for chip in chips:
        answer, reason = _judged(name, versions, companions, chip, data)
        if answer is CompatibilityAnswer.REFUSED:
            refused[chip.name] = reason
        elif answer is CompatibilityAnswer.UNSTATED:
            doubts[chip.name] = reason
    return Required(f"{text} does not run there", refused, doubts=doubts)


def _judged(
    name: str, versions: Sequence[str], companions: Mapping[str, str], chip: Chip, data: Path
) -> tuple[CompatibilityAnswer, str]:
    """The best that any version gets on a chip; the reason is that of the version asked for."""
    verdicts = []
    for version in versions:
        answer, reason = _checked(name, version, companions, chip, data)
        if answer is CompatibilityAnswer.FINE:
            return answer, reason
        verdicts.append((answer, reason))
    return next((one for one in verdicts if one[0] is CompatibilityAnswer.UNSTATED), verdicts[0])


def _checked(name: str, version: str, companions: Mapping[str, str], chip: Chip, data: Path) -> tuple[CompatibilityAnswer, str]:
    """What usually comes along (the CUDA of the default build) refuses nobody whom another build would serve."""
    finding = _findings(name, version, companions, chip, data)[0]
    answer, reason = _weighed(finding, chip), finding.reason.replace(f"{name} 0 on ", f"{name} on ", 1)
    brings = any(rule.component == name and rule.needs == "default_cuda" for rule in compatibility.rules(data))
    if answer is CompatibilityAnswer.REFUSED and brings and chip.vendor == "NVIDIA" and "cuda" not in companions:
        for cuda in OLDER_CUDA:
            findings = _findings(name, version, {**companions, "cuda": cuda}, chip, data)
            if all(each.answer is not CompatibilityAnswer.REFUSED for each in findings):
                return CompatibilityAnswer.UNSTATED, reason
    return answer, reason


def _findings(name: str, version: str, companions: Mapping[str, str], chip: Chip, data: Path) -> tuple[Compatibility, ...]:
    """Of the component itself first, then of what stands beside it."""
    findings = compatibility.check(chip, {**companions, name: version}, data)
    return tuple(sorted(findings, key=lambda one: one.component != name))


def _weighed(finding: Compatibility, chip: Chip) -> CompatibilityAnswer:
    """A rule that does not name a chip with a stack of its own refuses it; silence (no source) refuses nobody."""
    named_elsewhere = (
        finding.answer is CompatibilityAnswer.UNSTATED and finding.sources and chip.vendor not in ("NVIDIA", "AMD")
    )
    return CompatibilityAnswer.REFUSED if named_elsewhere else finding.answer


def _versions(name: str, needs: Sequence[Need], data: Path) -> Iterator[str]:
    """Versions that stand for all others within the needs: those asked for, and those at which a rule begins or ends."""
    own = [rule for rule in compatibility.rules(data) if rule.component == name]
    usual = next((rule.low for rule in own if rule.needs == "default_version"), None)
    wanted = [one for one in needs if one.version] or ([Need(name, ">=", usual)] if usual else [])
    edges = {edge for rule in own for edge in (rule.version_low, rule.version_high) if edge}
    stated = dict.fromkeys(one.version for one in wanted)
    rest = sorted(edges - set(stated), key=_numbers, reverse=True)
    for version in (*stated, *rest, "0"):
        if all(_keeps(version, one) for one in wanted):
            yield version


def _numbers(version: str) -> tuple[int, ...]:
    """13 is 13.0."""
    parts = [int(part) for part in version.split(".")]
    return (*parts, 0, 0, 0, 0)[:4]


def _keeps(version: str, need: Need) -> bool:
    have, bound = _numbers(version), _numbers(need.version)
    match need.sign:
        case ">=":
            return have >= bound
        case "<=":
            return have <= bound
        case "<":
            return have < bound
        case _:
            return have == bound
