"""`chipwise plan --why NAME`: the best that a machine, chip, provider, region or own machine could do, and what it lost by."""

from __future__ import annotations

import json
from typing import Any

import pytest

from command import Chipwise

pytestmark = pytest.mark.real_catalog

JOB = ("plan", "llama-3.1-8b", "--finetune", "lora", "--tokens", "1B", "--deadline", "12h", "--limit", "chip_count={max: 8}")
QUICK = (
    "plan",
    "llama-3.1-8b",
    "--serve",
    "--rps",
    "5",
    "--input",
    "1000",
    "--output",
    "200",
    "--ttft",
    "800ms",
    "--tpot",
    "50ms",
)


def flat(text: str) -> str:
    """Without the line breaks of 80 columns."""
    return " ".join(text.split())


def asked(chipwise: Chipwise, *arguments: str) -> dict[str, Any]:
    done = chipwise(*arguments, "--json")
    found: dict[str, Any] = json.loads(done.out)["why"]
    return found


def test_the_winner_is_called_the_answer(chipwise: Chipwise) -> None:
    winner = json.loads(chipwise(*QUICK, "--json").out)["winner"]
    done = chipwise(*QUICK, "--short", "--why", winner["chip"])
    assert done.code == 0
    assert f"chip {winner['chip']}: this is the answer" in flat(done.out)
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("name", ["gcp", "a100", "aws eu-north-1"])
def test_what_keeps_the_goals_lost_by_its_price_and_says_by_how_much(chipwise: Chipwise, name: str) -> None:
    name = name.replace(" ", "/")
    found = asked(chipwise, *QUICK, "--why", name)
    assert (found["outcome"], found["reason"]["kind"]) == ("beaten", "beaten")
    assert found["reason"]["usd"] == pytest.approx(found["choice"]["usd"])
    more = found["reason"]["usd"] - found["reason"]["best_usd"]
    assert more > 0
    assert f"${more:,.0f} more" in found["text"][0] or f"${more:,.2f} more" in found["text"][0]
    assert 1 < found["rank"] <= found["candidates"]


def test_what_misses_the_deadline_says_which_and_by_how_much(chipwise: Chipwise) -> None:
    found = asked(chipwise, *JOB, "--why", "a10g")
    assert (found["outcome"], found["reason"]["kind"]) == ("misses a goal", "misses-deadline")
    assert found["reason"]["seconds"] > found["reason"]["limit_s"]
    assert "misses the deadline of" in found["text"][0]
    assert "Would help: deadline" in found["text"][0]
    assert found["choice"]["chip"] == "A10G"


def test_what_a_limit_refuses_names_the_limit_and_counts_its_offers(chipwise: Chipwise) -> None:
    found = asked(chipwise, *QUICK, "--limit", "clouds=[aws]", "--why", "gcp")
    assert (found["outcome"], found["choice"]) == ("refused by limits", None)
    assert found["refused"][-1]["limit"]["kind"] == "cloud-not-asked-for"
    assert sum(one["offers"] for one in found["refused"]) == found["offers"] > 0
    assert "excluded by --cloud" in found["text"][0]


@pytest.mark.parametrize(
    ("name", "limit", "kind"),
    [
        ("g4dn.xlarge", "clouds=[aws]", "lacks-memory"),
        ("aws p5.48xlarge", "chip_count={max: 4}", "needs-chips"),
        ("aws f2.6xlarge", "clouds=[aws]", "no-engine"),
    ],
)
def test_what_has_no_way_says_what_it_lacks(chipwise: Chipwise, name: str, limit: str, kind: str) -> None:
    found = asked(chipwise, *QUICK, "--limit", limit, "--why", name)
    assert (found["outcome"], found["reason"]["kind"]) == ("unable", kind)
    if kind == "needs-chips":
        assert (found["reason"]["needed"], found["reason"]["allowed"]) == (8, 4)
        assert "limits.chip_count.max of 8 instead of 4" in found["text"][0]


def test_a_machine_that_is_too_small_lacks_memory_or_is_too_slow(chipwise: Chipwise) -> None:
    large = ("plan", "llama-3.1-70b", "--serve", "--rps", "5", "--input", "1000", "--output", "200", "--tpot", "50ms")
    assert asked(chipwise, *large, "--why", "g6.xlarge")["reason"]["kind"] == "lacks-memory"
    slow = asked(chipwise, *large, "--why", "c7a.48xlarge")["reason"]
    assert (slow["kind"], slow["goal"]) == ("too-slow", "tpot p90")
    assert slow["seconds"] > slow["limit_s"] == 0.05


def test_what_nobody_offers_has_no_price(chipwise: Chipwise) -> None:
    found = asked(chipwise, *QUICK, "--why", "mi210")
    assert found["outcome"] == "no offer"


def test_an_unknown_name_is_a_mistake_with_the_nearest_spelling(chipwise: Chipwise) -> None:
    done = chipwise(*QUICK, "--why", "p5.48xlargee")
    assert done.code == 2
    assert "p5.48xlarge" in flat(done.err)


def test_it_is_told_where_nothing_fits_too(chipwise: Chipwise) -> None:
    done = chipwise("plan", "llama-3.1-70b", "--serve", "--rps", "5", "--input", "1000", "--output", "200", "--limit",
                    "chip_count={max: 1}", "--limit", "chips=[l4]", "--why", "l4")  # fmt: skip
    assert done.code == 1
    assert "chip L4: none of its offers can do it: needs" in flat(done.out)


@pytest.mark.parametrize("word", ["own", "onprem", "mine", "on-premise"])
def test_who_has_no_machines_is_told_how_to_add_them(chipwise: Chipwise, word: str) -> None:
    for option in ("--why", "--cloud"):
        done = chipwise(*QUICK, option, word)
        assert done.code == 2
        assert "You have no machines of your own in the catalog. `chipwise catalog import servers.csv` adds them" in flat(
            done.err
        )


def test_own_machines_and_their_site_are_answered_like_any_other(chipwise: Chipwise) -> None:
    own = "machines:\n  - {name: dgx-h100, chip: h100-sxm, chips: 8, region: berlin, memory: 2TiB, price_per_hour: $90}\n"
    (chipwise.config_dir / "catalog" / "own.yaml").write_text(own + "regions:\n  - {name: berlin, country: DEU}\n")
    machine = asked(chipwise, *QUICK, "--why", "dgx-h100")
    assert machine["outcome"] == "beaten"
    assert machine["subject"] == "machine onprem dgx-h100"
    assert machine["choice"]["purchase"] == "owned"
    site = asked(chipwise, *QUICK, "--why", "berlin")
    assert (site["subject"], site["choice"]["machine"]) == ("region onprem berlin", "dgx-h100")
    rented = asked(chipwise, *QUICK, "--limit", "where=[cloud]", "--why", "onprem")
    assert rented["outcome"] == "refused by limits"
    assert rented["refused"][-1]["limit"]["kind"] == "owned"


def test_a_provider_of_tokens_is_told_with_its_price(chipwise: Chipwise) -> None:
    done = chipwise(*QUICK, "--short", "--why", "deepinfra")
    assert done.code == 0
    assert "Paid per token, deepinfra costs $" in flat(done.out)


def test_what_is_cheaper_after_porting_says_what_porting_must_save(chipwise: Chipwise) -> None:
    found = asked(chipwise, *QUICK, "--cloud", "aws,gcp", "--why", "tpu-v6e")
    reason = found["reason"]
    assert reason["kind"] == "beaten"
    assert reason["porting"]
    assert reason["usd"] < reason["best_usd"]
    share = 1 - reason["usd"] / reason["best_usd"]
    assert f"but porting must save at least 20% (here {share:.1%})" in found["text"][0]


def test_several_names_are_answered_each(chipwise: Chipwise) -> None:
    done = chipwise(*QUICK, "--why", "gcp,a10g", "--why", "aws", "--json")
    found = json.loads(done.out)
    assert [one["subject"] for one in found["whys"]] == ["provider gcp", "chip A10G", "provider aws"]
    assert found["why"] == found["whys"][0]
    words = chipwise(*QUICK, "--short", "--why", "gcp,a10g").out
    assert "provider gcp: " in words
    assert "chip A10G: " in words
    assert chipwise(*QUICK, "--why", "gcp,nosuchthing").code != 0
