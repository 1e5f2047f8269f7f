"""Limits of a pipeline and of a stage in it, as one: both must hold. Names are compared by what they mean, not by spelling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from chipwise.countries import members
from chipwise.errors import BadInput
from chipwise.planner.rules import purchases_of
from chipwise.workload.goals import Buying, Commit, MarketScope, Unproven
from chipwise.workload.limits import Avoid, Limits, Range

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


Scope = TypeVar("Scope", bound=StrEnum)


def joined_limits(known: Known, pipeline: Limits, own: Limits, stage: str) -> Limits:
    """What both allow. A stage that asks for what the pipeline forbids is a mistake in the file, not a plan that fails."""
    names = known.names

    def regions(text: str) -> Iterable[str]:
        return (":".join(one.key) for one in names.regions(text.replace(":", "/")))

    meanings: Mapping[str, Callable[[str], Iterable[str]]] = {
        "clouds": lambda text: (names.provider(text),),
        "regions": regions,
        "countries": members,
        "residency": members,
        "chips": lambda text: (chip.name for chip in names.chips_of(text) or names.chips(text)),
        "precision": lambda text: (text,),
        "where": lambda text: (text,),
        "purchase": lambda text: map(str, purchases_of([Buying(text)])),
    }
    return pipeline.model_copy(
        update={
            **{
                name: _intersection(name, getattr(pipeline, name), getattr(own, name), means, stage)
                for name, means in meanings.items()
            },
            **{
                name: tuple(dict.fromkeys((*getattr(pipeline, name), *getattr(own, name))))
                for name in ("compliance", "requires")
            },
            "compliance_unknown": _unproven(pipeline.compliance_unknown, own.compliance_unknown),
            "default_quotas": pipeline.default_quotas or own.default_quotas,
            "large": pipeline.large or own.large,
            "market": _stricter(MarketScope, pipeline.market, own.market),
            "commit": _stricter(Commit, pipeline.commit, own.commit),
            "max_price_age": _minimum(pipeline.max_price_age, own.max_price_age),
            "chip_count": _narrower(pipeline.chip_count, own.chip_count, stage),
            "interruptible": _interruptible(pipeline.interruptible, own.interruptible),
            "power_watts": _minimum(pipeline.power_watts, own.power_watts),
            "round_trip": _minimum(pipeline.round_trip, own.round_trip),
            "quotas": {
                key: min(one[key] for one in (pipeline.quotas, own.quotas) if key in one)
                for key in {**pipeline.quotas, **own.quotas}
            },
            "avoid": _either(pipeline.avoid, own.avoid),
        }
    )


def _intersection(
    name: str, pipeline: Sequence[str], own: Sequence[str], means: Callable[[str], Iterable[str]], stage: str
) -> tuple[str, ...]:
    """An empty list limits nothing, so that two lists without a common member cannot be told as one."""
    if not pipeline or not own:
        return tuple(pipeline or own)
    allowed = {meaning for text in own for meaning in means(text)}
    common = tuple(dict.fromkeys(meaning for text in pipeline for meaning in means(text) if meaning in allowed))
    if not common:
        raise BadInput(
            f"limits.{name} of stage {stage} allows {', '.join(map(str, own))}, and that of the pipeline "
            f"{', '.join(map(str, pipeline))}: nothing is in both.",
            remedy="The pipeline's limits hold for every stage: widen one of the two lists.",
        )
    if isinstance(pipeline[0], str) and type(pipeline[0]) is not str:  # members of an enum stay members
        kinds = type(pipeline[0])
        return tuple(kinds(one) for one in common)
    return common


def _narrower(pipeline: Range, own: Range, stage: str) -> Range:
    fewest = max((one.min for one in (pipeline, own) if one.min is not None), default=None)
    largest = _minimum(pipeline.max, own.max)
    if fewest is not None and largest is not None and fewest > largest:
        raise BadInput(
            f"limits.chip_count of stage {stage} and of the pipeline ask for at least {fewest} and at most {largest:g} chips.",
            remedy="The pipeline's limits hold for every stage: lower min or raise max.",
        )
    return pipeline.model_copy(update={"min": fewest, "max": None if largest is None else int(largest)})


def _stricter(order: type[Scope], pipeline: Scope | None, own: Scope | None) -> Scope | None:
    """Members of an enum stand from strict to loose."""
    stated = [one for one in (pipeline, own) if one is not None]
    return min(stated, key=list(order).index, default=None)


def _minimum(*values: float | None) -> float | None:
    return min((one for one in values if one is not None), default=None)


def _interruptible(pipeline: bool | None, own: bool | None) -> bool | None:
    if False in (pipeline, own):
        return False
    return True if True in (pipeline, own) else None


def _unproven(pipeline: Unproven | None, own: Unproven | None) -> Unproven | None:
    return Unproven.REFUSE if Unproven.REFUSE in (pipeline, own) else own or pipeline


def _either(pipeline: Avoid, own: Avoid) -> Avoid:
    return pipeline.model_copy(
        update={name: tuple(dict.fromkeys((*getattr(pipeline, name), *getattr(own, name)))) for name in Avoid.model_fields}
    )
