"""Which prices may win, what they count with, and what is told of those that a default keeps out."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cache
from statistics import median
from typing import Any

import numpy as np
import pytest
import yaml

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.catalog.names import providers
from chipwise.catalog.offer import Purchase, Verdict
from chipwise.money.price_range import ACCELERATOR, PriceRanges
from chipwise.planner.cost_range import Spread, machine_spread, spread_of
from chipwise.planner.explain.words import headline, sentence
from chipwise.planner.offer_prices import DOUBTFUL, offer_prices
from chipwise.planner.reasons.limits import RetiredService, RuleKind
from chipwise.planner.values.plan import Plan

SERVE: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 5},
    "input_tokens": 500,
    "output_tokens": 200,
}
TRAIN: dict[str, Any] = {"kind": "finetune", "name": "tune", "model": "llama-3.1-8b", "samples": 50000, "method": "lora"}


@cache
def session() -> Session:
    return open_session()


def planned(work: dict[str, Any], **limits: Any) -> Plan:
    return plan(session(), "case.yaml", text=yaml.safe_dump({**work, "limits": {**work.get("limits", {}), **limits}}))


@cache
def ranges() -> PriceRanges:
    catalog = session().catalog
    return PriceRanges(catalog.rows("price_drift"), {one.name: one.kind for one in providers(catalog.data)})


@pytest.mark.parametrize("purchase", [Purchase.ON_DEMAND, Purchase.SPOT, Purchase.RESERVED_1Y])
@pytest.mark.parametrize("provider", ["aws", "gcp", "lambda", "vast", "shadeform", "hyperstack", "nobody"])
def test_a_range_holds_the_price_and_never_shrinks_with_age(provider: str, purchase: Purchase) -> None:
    days = np.array([0.0, 1, 7, 20, 30, 60, 90, 180, 365, 500, 1500])
    low, high = ranges().factors(provider, ACCELERATOR, purchase, days)
    assert (low[0], high[0]) == (1.0, 1.0)
    assert np.all(low <= 1.0)
    assert np.all(high >= 1.0)
    assert np.all(np.diff(low) <= 0)
    assert np.all(np.diff(high) >= 0)


def test_a_range_is_what_was_measured_at_its_horizons() -> None:
    """GCP spot after 90 days: one in ten below 0.8075, one in ten above 1.2001."""
    low, high = ranges().factors("gcp", ACCELERATOR, Purchase.SPOT, np.array([90.0]))
    assert low[0] == pytest.approx(0.8075)
    assert high[0] == pytest.approx(1.2001)


def test_marketplaces_move_more_than_clouds_and_spot_more_than_lists() -> None:
    month = np.array([30.0])
    cloud, market = (ranges().factors(one, ACCELERATOR, Purchase.ON_DEMAND, month) for one in ("aws", "vast"))
    assert market[1][0] > cloud[1][0]
    spot = ranges().factors("aws", ACCELERATOR, Purchase.SPOT, month)
    assert spot[1][0] > cloud[1][0]


def test_doubt_never_makes_a_price_lower_and_counts_by_its_peers() -> None:
    catalog = session().catalog
    prices = offer_prices(catalog, session().today)
    odd = [at for at, one in enumerate(catalog.offers) if one.verdict in DOUBTFUL]
    assert len(odd) > 20
    for at in odd:
        one = catalog.offers[at]
        middle = (one.usd_per_hour + max(one.usd_per_hour_max or 0.0, one.usd_per_hour)) / 2
        assert prices.counted[at] >= middle * (1 - 1e-12)
    at = next(at for at in odd if catalog.offers[at].verdict is Verdict.FLOOR and prices.replaced[at])
    one = catalog.offers[at]
    same = [
        (each.usd_per_hour + max(each.usd_per_hour_max or 0.0, each.usd_per_hour)) / 2
        for each in catalog.offers
        if (each.provider, each.machine, each.purchase) == (one.provider, one.machine, one.purchase)
        and each.verdict is Verdict.FINE
    ]
    if len(same) >= 3:
        assert prices.counted[at] == pytest.approx(median(same))


def test_a_doubtful_spot_price_without_peers_counts_as_the_usual_share_of_the_price_on_demand() -> None:
    """Trainium2 is sold in one region, at the floor of spot: a tenth of on demand."""
    catalog = session().catalog
    prices = offer_prices(catalog, session().today)
    listed = {
        (one.provider, one.machine, one.region): one.usd_per_hour for one in catalog.offers if one.purchase == "on-demand"
    }
    shares = [
        (one.usd_per_hour + max(one.usd_per_hour_max or 0.0, one.usd_per_hour))
        / 2
        / listed[one.provider, one.machine, one.region]
        for place, one in enumerate(catalog.offers)
        if one.purchase is Purchase.SPOT
        and one.provider == "aws"
        and not prices.replaced[place]
        and one.verdict in (Verdict.FINE, Verdict.NO_SAVING)
        and (one.provider, one.machine, one.region) in listed
        and catalog.machines[catalog.machine_index[one.provider, one.machine]].chip is not None
    ]
    at = next(at for at, one in enumerate(catalog.offers) if (one.machine, one.purchase) == ("trn2.48xlarge", Purchase.SPOT))
    usual = median(shares) * listed["aws", "trn2.48xlarge", catalog.offers[at].region]
    assert catalog.offers[at].usd_per_hour < 0.5 * usual
    assert prices.counted[at] == pytest.approx(usual)
    assert prices.replaced[at]


def test_a_doubtful_price_without_any_peer_counts_a_quarter_more_and_says_so() -> None:
    catalog = session().catalog
    prices = offer_prices(catalog, session().today)
    alone = np.flatnonzero(prices.alone)
    listed = np.frombuffer(catalog.offers.price)[alone]
    assert len(alone)
    assert (prices.counted[alone] >= 1.25 * listed * (1 - 1e-9)).all()
    assert (prices.low[alone] <= listed).all()
    assert (prices.high[alone] >= prices.counted[alone]).all()
    assert {catalog.machines[catalog.offers.machine[at]].chip for at in alone.tolist()} >= {"A30"}
    found = planned(SERVE, chips=["A30"])
    assert found.winner is not None
    assert "no peers" in found.winner.cost.lines[0].how


def test_age_counts_from_the_day_that_is_asked_for() -> None:
    catalog = session().catalog
    early, late = (offer_prices(catalog, day) for day in (date(2026, 9, 1), date(2027, 9, 1)))
    assert np.all(late.days >= early.days)
    assert np.all(late.high >= early.high * (1 - 1e-12))
    assert early.durable.sum() > late.durable.sum(), "spot and unseen lists grow too old"


def test_no_marketplace_wins_unasked_and_one_that_saves_a_fifth_is_told() -> None:
    found, free = planned(SERVE), planned(SERVE, market="any")
    assert found.winner is not None
    assert free.winner is not None
    kinds = {one.name: one.kind for one in providers(session().catalog.data)}
    assert all(kinds[one.provider] != "marketplace" for one in found.choices)
    assert kinds[free.winner.provider] == "marketplace"
    (told,) = [one for one in found.alternatives if one.kind is RuleKind.MARKET]
    assert told.saving >= 0.2
    assert told.choice.usd == pytest.approx(free.winner.usd, rel=0.031)
    assert any(one.what == "marketplace" and "--market any" in one.told for one in found.turns)


def test_a_marketplace_that_is_named_takes_part() -> None:
    found = planned(SERVE, clouds=["vast"])
    assert found.winner is not None
    assert found.winner.provider == "vast"


def test_an_old_spot_price_of_a_cloud_that_is_named_wins_only_where_it_is_asked_for() -> None:
    """Azure's were last read in 2024; its machines have prices of this year on demand."""
    found, spot = planned(TRAIN, clouds=["azure"]), planned(TRAIN, clouds=["azure"], purchase="spot")
    assert found.winner is not None
    assert spot.winner is not None
    assert all(one.price_days <= 365 for one in found.choices)
    assert spot.winner.price_days > 365
    (told,) = [one for one in found.turns if one.what == "old price" and "--market any" in one.told]
    assert "years old" in told.told


def test_nothing_is_promised_unasked_and_what_a_promise_saves_is_told_with_what_it_binds() -> None:
    found, bound = planned(SERVE, clouds=["aws", "gcp"]), planned(SERVE, clouds=["aws", "gcp"], commit="any")
    assert found.winner is not None
    assert bound.winner is not None
    assert not any(one.purchase.startswith("reserved") for one in found.choices)
    assert bound.winner.purchase.startswith("reserved")
    (told,) = [one for one in found.alternatives if one.kind is RuleKind.COMMITMENT]
    assert told.term_years in (1.0, 3.0)
    hours = told.term_years * 8760
    assert told.contract_usd == pytest.approx(told.choice.hourly_usd * told.choice.machines * hours, rel=0.001)
    assert told.break_even == pytest.approx(told.choice.usd / found.winner.usd)
    year = planned(SERVE, clouds=["aws", "gcp"], commit="1y")
    assert all(not one.purchase.startswith("reserved-3y") for one in year.choices)


def test_who_asks_for_reserved_machines_asks_for_a_promise() -> None:
    found = planned(SERVE, clouds=["gcp"], purchase="reserved")
    assert found.winner is not None
    assert found.winner.purchase.startswith("reserved")


def test_a_limit_on_the_age_of_prices_is_kept_and_where_nothing_is_left_it_is_named() -> None:
    found = planned(SERVE, max_price_age="100d")
    assert found.winner is not None
    assert all(one.price_days <= 100 for one in found.choices)
    none = planned(SERVE, max_price_age="1d")
    assert none.winner is None
    assert any("max_price_age" in str(one.remedies) for one in none.missing)


def test_a_stale_winner_says_so_in_the_first_line() -> None:
    later = replace(session(), today=date(2027, 6, 1))
    found = plan(later, "case.yaml", text=yaml.safe_dump(SERVE))
    assert found.winner is not None
    assert found.winner.price_days > 180
    assert "months old" in sentence(found)
    assert "months old" not in sentence(planned(SERVE))


def test_a_cost_is_an_interval_that_holds_its_middle_and_its_lines_add_up() -> None:
    for work in (SERVE, TRAIN):
        for one in planned(work).choices:
            assert one.low_usd <= one.usd * (1 + 1e-9)
            assert one.usd <= one.high_usd * (1 + 1e-9)
            assert one.usd == pytest.approx(sum(line.usd for line in one.cost.lines))
    spot = next(one for one in planned(TRAIN).choices if one.purchase == "spot")
    assert spot.high_usd > 1.2 * spot.low_usd


def test_spreads_join_as_independent_errors() -> None:
    joined = Spread(0.8, 1.25) * Spread(0.8, 1.25)
    assert joined.high == pytest.approx(1.25**2**0.5)
    assert joined.low == pytest.approx(0.8**2**0.5)
    assert spread_of(5.0, 4.0, 3.0) == Spread(1.0, 1.0)
    assert machine_spread(load=10, rate=5, replicas=4, machines=1, factor=1.5) == Spread(1.0, 1.0), "room to spare"
    assert machine_spread(load=10, rate=5, replicas=2, machines=2, factor=1.5) == Spread(1.0, 1.5)


def test_a_job_without_a_deadline_is_done_within_a_month_and_by_few_machines() -> None:
    work = {"kind": "train", "name": "big", "model": "llama-3.1-8b", "tokens": 1e12, "limits": {"clouds": ["aws"]}}
    found = planned(work)
    assert found.winner is not None
    assert found.winner.seconds <= 30 * 86400
    assert found.winner.machines <= 64
    small = planned({**work, "limits": {"clouds": ["aws"], "chips": ["a10g"], "chip_count": {"max": 8}}})
    assert small.winner is not None
    assert small.winner.seconds > 30 * 86400
    assert "within 30 d" in sentence(small)


def test_a_deadline_is_kept_with_the_confidence_that_is_asked_for() -> None:
    work = {"kind": "train", "name": "big", "model": "llama-3.1-8b", "tokens": 2e10, "limits": {"clouds": ["aws"]}}
    shares = []
    for confidence in (0.6, 0.9, 0.99):
        found = planned({**work, "goals": {"deadline": "3d", "confidence": confidence}})
        assert found.winner is not None
        assert found.winner.by_s <= 3 * 86400
        assert found.winner.late_share is not None
        assert found.winner.late_share <= 1 - confidence + 1e-6
        shares.append(found.winner.usd)
    assert shares == sorted(shares), "to be surer never costs less"


def test_a_doubtful_or_stale_spot_price_never_stands_for_a_listed_one() -> None:
    """Every choice of a cheap job says what its price is counted as, where that is not what is listed."""
    for one in planned(TRAIN, market="any").choices:
        if one.listed_usd is not None:
            assert one.hourly_usd > one.listed_usd
            assert "listed at" in one.cost.lines[0].how


def test_the_first_line_is_the_best_answer_whatever_kind_it_is() -> None:
    found = planned({**SERVE, "model": "llama-3.1-70b"}, clouds=["aws", "gcp", "azure"])
    assert found.service is not None
    assert headline(found).startswith(f"Use {found.service.title}, paid {found.service.kind}: ")
    assert "The best machines: rent " in headline(found)
    assert found.service.title not in sentence(found), "files are of machines"


def test_a_service_that_has_ended_is_not_offered() -> None:
    found = planned({**SERVE, "model": "llama-3.3-70b"})
    ended = [one for one in found.services if one.provider == "lambda" and one.kind == "per token"]
    assert all(any(isinstance(reason, RetiredService) for reason in one.refused) for one in ended)
    assert found.service is None or found.service.provider != "lambda"


def test_a_service_that_others_stopped_selling_comes_after_those_that_nothing_speaks_against() -> None:
    found = planned({**SERVE, "model": "llama-3.1-70b"})
    usable = [one for one in found.services if not one.refused and one.kind == "per token"]
    doubted = [one for one in usable if any("still sold" in text for text in one.assumed)]
    assert {one.provider for one in doubted} == {"hyperbolic", "nebius"}
    assert usable[-len(doubted) :] == doubted
    assert min(one.usd for one in doubted) < usable[0].usd


def test_a_doubtful_price_counts_as_the_same_machine_elsewhere_though_few_regions_sell_it() -> None:
    catalog = session().catalog
    prices = offer_prices(catalog, date(2026, 11, 16))
    floors = [
        at
        for at, one in enumerate(catalog.offers)
        if (one.machine, one.region, one.purchase) == ("trn1.2xlarge", "us-east-2", Purchase.SPOT)
    ]
    assert floors
    assert all(prices.replaced[at] and prices.counted[at] > 0.3 for at in floors), "listed at $0.134"


def test_a_service_says_how_much_of_the_memory_must_be_there() -> None:
    found = planned({**SERVE, "model": "llama-3.1-8b"})
    assert found.choices
    for one in found.choices:
        assert one.memory_share is not None
        assert 0.0 < one.memory_share <= 1.0


def test_a_service_of_unknown_speed_does_not_lead_where_machines_keep_the_goals() -> None:
    quick = {**SERVE, "model": "llama-3.1-70b", "goals": {"ttft": "1s", "tpot": "60ms"}}
    found = planned(quick)
    assert found.winner is not None
    assert found.service is None or not found.service.unchecked
    beside = found.unsure_service
    assert beside is not None
    assert beside.usd < found.winner.usd
    assert headline(found).startswith("Rent ")
    assert "the goals are not checked" in headline(found)


def test_a_service_of_unknown_speed_comes_second_however_much_it_saves() -> None:
    rare = {**SERVE, "model": "llama-3.1-70b", "arrival": {"rate": 0.02}, "goals": {"ttft": "3s", "tpot": "80ms"}}
    found = planned(rare)
    assert found.winner is not None
    assert found.service is None
    beside = found.unsure_service
    assert beside is not None
    assert beside.usd < found.winner.usd / 3
    assert "(more than 99% less), but its speed is not published" in headline(found)
    without = planned({**rare, "goals": {}})
    assert without.service is not None, "nothing is left unchecked"


def test_a_budget_that_no_machine_keeps_is_kept_by_a_service() -> None:
    found = planned({**SERVE, "model": "llama-3.1-70b", "goals": {"budget": "$2k/month"}})
    assert found.winner is None
    assert found.service is not None
    assert found.service.usd <= 2000
    assert headline(found).startswith(f"Use {found.service.title}")
    nothing = planned({**SERVE, "model": "llama-3.1-70b", "goals": {"budget": "$1/month"}})
    assert nothing.service is None


def test_the_first_line_names_a_doubtful_price() -> None:
    found = planned({**SERVE, "model": "llama-3.1-70b", "limits": {"clouds": ["seeweb"]}})
    assert found.winner is not None
    assert "doubtful (currency not stated" in headline(found)


def test_a_burst_is_spread_over_the_copies_of_a_sample_model() -> None:
    counts = []
    for burstiness in (1, 3):
        pictures = {
            "kind": "serve",
            "name": "pictures",
            "model": "sdxl",
            "goals": {"latency": "10s"},
            "limits": {"chips": ["h100"]},
        }
        found = planned({**pictures, "arrival": {"rate": 2, "burstiness": burstiness}})
        assert found.winner is not None
        counts.append(found.winner.machines * found.winner.chips)
    assert counts[0] < counts[1] <= 2 * counts[0], counts
