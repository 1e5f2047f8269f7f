"""Limits of a pipeline and of a stage in it: both hold."""

from __future__ import annotations

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.errors import BadInput
from chipwise.planner.pipeline.limits import joined_limits
from chipwise.workload.limits import Limits


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


def test_lists_of_both_are_intersected_by_what_names_mean(session: Session) -> None:
    whole = Limits(clouds=("aws", "gcp"), residency=("EU",), chips=("h100", "a100"), precision=("bf16", "fp8"))
    own = Limits(clouds=("amazon",), residency=("Germany", "USA"), chips=("H100-SXM",), precision=("fp8",))
    found = joined_limits(session.known, whole, own, "s")
    assert found.clouds == ("aws",)
    assert found.residency == ("DEU",)
    assert found.chips == ("H100-SXM",)
    assert found.precision == ("fp8",)


def test_regions_are_intersected_with_their_cloud(session: Session) -> None:
    found = joined_limits(session.known, Limits(regions=("eu-west-1", "eu-north-1")), Limits(regions=("aws:eu-north-1",)), "s")
    assert found.regions == ("aws:eu-north-1",)


def test_the_stricter_of_both_holds(session: Session) -> None:
    whole = Limits(power_watts=500, interruptible=True, chip_count={"min": 2, "max": 64}, quotas={"h100": 8, "a100": 4})
    own = Limits(power_watts=300, interruptible=False, chip_count={"min": 4}, quotas={"h100": 16}, compliance=("hipaa",))
    found = joined_limits(session.known, whole, own, "s")
    assert found.power_watts == 300
    assert found.interruptible is False
    assert (found.chip_count.min, found.chip_count.max) == (4, 64)
    assert dict(found.quotas) == {"h100": 8, "a100": 4}
    assert found.compliance == ("hipaa",)
    both = joined_limits(session.known, Limits(avoid={"clouds": "ovh"}), Limits(avoid={"clouds": "gcp", "chips": "t4"}), "s")
    assert both.avoid.clouds == ("ovh", "gcp")
    assert both.avoid.chips == ("t4",)


SET = {
    "clouds": "aws",
    "regions": "aws:eu-west-1",
    "countries": "DEU",
    "residency": "DEU",
    "compliance": "hipaa",
    "chips": "H100-SXM",
    "chip_count": {"min": 2, "max": 3},
    "precision": "fp8",
    "interruptible": True,
    "purchase": "spot",
    "market": "any",
    "commit": "1y",
    "max_price_age": "90d",
    "large": True,
    "where": "cloud",
    "power_watts": 300,
    "quotas": {"h100": 8},
    "compliance_unknown": "warn",
    "default_quotas": True,
    "round_trip": "80ms",
    "requires": "cuda>=12.4",
    "avoid": {"chips": "t4"},
}


@pytest.mark.parametrize("name", sorted(Limits.model_fields))
def test_every_limit_of_either_holds(session: Session, name: str) -> None:
    one, none = Limits.model_validate({name: SET[name]}), Limits()
    for found in (joined_limits(session.known, one, none, "s"), joined_limits(session.known, none, one, "s")):
        assert getattr(found, name) == getattr(one, name)
    assert joined_limits(session.known, none, none, "s") == none


def test_limits_that_exclude_each_other_are_told_with_stage_and_field(session: Session) -> None:
    with pytest.raises(BadInput, match=r"limits.clouds of stage s allows gcp, and that of the pipeline aws"):
        joined_limits(session.known, Limits(clouds=("aws",)), Limits(clouds=("gcp",)), "s")
    with pytest.raises(BadInput, match=r"limits\.chip_count of stage s"):
        joined_limits(session.known, Limits(chip_count={"max": 2}), Limits(chip_count={"min": 4}), "s")
