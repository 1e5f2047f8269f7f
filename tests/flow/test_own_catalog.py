"""A user's own chips, machines, regions, prices and discounts join the catalog everywhere."""

from __future__ import annotations

import pytest

from command import Chipwise

pytestmark = pytest.mark.real_catalog

BERLIN = """
chips:
  - {name: H100-capped, like: h100, power: 500 W}
machines:
  - {name: dgx-h100, chip: H100-capped, chips: 8, region: berlin, memory: 2TiB, purchase_price: $280k, lifetime: 4y,
     power: 10.2 kW, usd_per_kwh: 0.19}
  - {name: old-box, chip: T4, chips: 2, region: berlin, price_per_hour: $0.30}
regions:
  - {name: berlin, country: DEU, grid_g_per_kwh: 344, pue: 1.4}
offers:
  - {provider: aws, machine: p5.48xlarge, region: us-east-1, price_per_hour: 39.50, as_of: 2026-11-01}
discounts:
  - {provider: gcp, machine: a3, off: 20%, until: 2027-06-30}
  - {provider: azure, off: 50%, until: 2020-01-01}
"""


def write(chipwise: Chipwise, text: str, name: str = "berlin.yaml") -> None:
    (chipwise.config_dir / "catalog" / name).write_text(text)


def test_own_machines_are_offered_at_their_stated_or_derived_cost(chipwise: Chipwise) -> None:
    write(chipwise, BERLIN)
    rows = {row["machine"]: row for row in chipwise("offers", "--provider", "onprem", "--json").json}
    assert rows["old-box"]["usd_per_hour"] == 0.30
    derived = 280_000 / (4 * 8760) + 10.2 * 1.4 * 0.19  # the PUE of its region
    assert rows["dgx-h100"]["usd_per_hour"] == pytest.approx(derived)
    assert "derived" in rows["dgx-h100"]["notes"]
    assert rows["dgx-h100"]["country"] == "DEU"
    assert rows["dgx-h100"]["purchase"] == "owned"


PAID = """
machines:
  - {name: dgx-h100, chip: h100, chips: 8, region: berlin, memory: 2TiB, purchase_price: $280k, lifetime: 4y,
     power: 10.2 kW, usd_per_kwh: 0.19, hosting_per_month: 1200, paid: %s}
regions:
  - {name: berlin, country: DEU, grid_g_per_kwh: 344, pue: 1.4}
"""
ELECTRICITY = 10.2 * 1.4 * 0.19  # USD an hour
IN_FULL = 280_000 / (4 * 8760) + 1200 / 730 + ELECTRICITY


@pytest.mark.parametrize("paid", [False, True])
def test_a_plan_shows_electricity_alone_beside_the_full_cost_and_ranks_by_one_of_them(chipwise: Chipwise, paid: bool) -> None:
    write(chipwise, PAID % str(paid).lower())
    asked = ("plan", "llama-3.1-8b", "--finetune", "lora", "--samples", "50k", "--chip", "h100", "--top", "50", "--json")
    plan = chipwise(*asked).json
    choice = next(one for one in plan["choices"] if one["purchase"] == "owned")
    counted = ELECTRICITY if paid else IN_FULL
    assert choice["usd_per_machine_hour"] == pytest.approx(counted)
    hours = sum(line["usd"] for line in choice["lines"] if line["name"] in ("compute", "restarts")) / counted
    rest = choice["usd"] - hours * counted
    assert choice["own"]["paid"] is paid
    assert choice["own"]["sunk_usd"] == pytest.approx(rest + hours * ELECTRICITY)
    assert choice["own"]["full_usd"] == pytest.approx(rest + hours * IN_FULL)
    assert choice["usd"] == pytest.approx(choice["own"]["sunk_usd" if paid else "full_usd"])
    assert (plan["choices"][0]["purchase"] == "owned") is paid
    assert any("state `paid: true`" in turn["text"] for turn in plan["turns"]) is not paid


def test_what_is_bought_without_electricity_cannot_be_paid_for_nothing(chipwise: Chipwise) -> None:
    write(chipwise, "machines:\n  - {name: box, chip: T4, price_per_hour: 1, paid: true}\n")
    done = chipwise("offers", "--provider", "onprem")
    assert done.code != 0
    assert "give power: 10 kW, usd_per_kwh: 0.12" in done.err
    write(chipwise, "machines:\n  - {name: box, chip: T4, price_per_hour: 1, paid: perhaps}\n")
    assert "paid" in chipwise("offers").err
    write(chipwise, "machines:\n  - {name: box, chip: T4, purchase_price: 1k, lifetime: 4y, hosting_per_month: -5}\n")
    assert "hosting_per_month" in chipwise("offers").err


def test_an_own_chip_takes_over_what_it_does_not_state(chipwise: Chipwise) -> None:
    write(chipwise, BERLIN)
    capped = chipwise("chips", "H100-capped", "--json").json[0]
    assert capped["power_w"] == 500
    assert capped["bf16_flop_per_s"] == 989.4e12


def test_an_own_price_replaces_the_packaged_one(chipwise: Chipwise) -> None:
    write(chipwise, BERLIN)
    rows = chipwise("offers", "p5.48xlarge", "--region", "us-east-1", "--purchase", "on-demand", "--json").json
    assert [row["usd_per_hour"] for row in rows] == [39.50]


def test_a_discount_lowers_list_prices_but_not_spot_and_ends_on_its_day(chipwise: Chipwise) -> None:
    def price(purchase: str, machine: str = "a3-highgpu-8g") -> float:
        rows = chipwise("offers", machine, "--purchase", purchase, "--json").json
        return float(min(row["usd_per_hour"] for row in rows))

    azure = "Standard_NC40ads_H100_v5"
    before = price("on-demand"), price("spot"), price("on-demand", azure)
    write(chipwise, BERLIN)
    after = price("on-demand"), price("spot"), price("on-demand", azure)
    assert after[0] == pytest.approx(before[0] * 0.8)
    assert after[1:] == before[1:]


def test_own_models_are_known_by_name(chipwise: Chipwise) -> None:
    folder = chipwise.config_dir / "models"
    folder.mkdir()
    shape = "{layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 64000}"
    (folder / "ours.yaml").write_text(f"- name: our-7b\n  context: 16384\n  shape: {shape}\n")
    done = chipwise("models", "our-7b", "--json")
    assert done.code == 0, done.err
    assert done.json[0]["parameters"] > 6e9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("machines:\n  - {name: x, chp: h100}\n", ["bad.yaml:2", "chp", "Did you mean chip"]),
        ("machines:\n  - {name: x, chip: h10}\n", ["bad.yaml:2", "h10", "H100"]),
        (
            "machines:\n  - {name: x, memory: 12 elephants}\n  - {chips: -3}\n",
            ["elephants", "machines[1].name", "machines[1].chips"],
        ),
        ("discounts: [{provider: awz, off: 10%}]", ["awz", "aws"]),
        ("discounts: [{provider: aws, off: 130%}]", ["between 0% and 100%"]),
        ("offers: [{provider: aws, machine: p55, region: x, price_per_hour: 3}]", ["p55"]),
        ("chips: [{name: mine}]", ["kind"]),
        ("just text", ["mapping"]),
        ("a: &a [*a]", ["bad.yaml"]),
        ("\x00\x01", ["not a text file"]),
        ("", ["empty"]),
    ],
)
def test_a_bad_file_is_refused_with_all_its_problems(chipwise: Chipwise, text: str, said: list[str]) -> None:
    write(chipwise, text, "bad.yaml")
    done = chipwise("offers", "--chip", "h100")
    assert done.code == 2
    assert "Traceback" not in done.err
    for words in said:
        assert words in done.err


@pytest.mark.parametrize(
    "row",
    [
        "chips: [{name: q, kind: gpu, compute_capability: nan}]",
        "machines: [{name: q, chip: h100, chips: inf, price_per_hour: 1}]",
        "machines: [{name: q, vcpus: inf}]",
        "machines: [{name: q, purchase_price: 1e308, lifetime: 4y}]",
        "machines: [{name: q, purchase_price: 1, lifetime: 5e-324}]",
        "machines: [{name: q, chip: h100, chips: 1e308, price_per_hour: 1}]",
        "machines: [{name: q, power: " + "9" * 400 + "W}]",
        "machines: [{name: q, price_per_hour: 1e6}]",
        "offers: [{provider: aws, machine: p5.48xlarge, region: us-east-1, price_per_hour: 1, as_of: 0001-01-01}]",
        "discounts: [{provider: aws, off: nan}]",
        'machines: [{name: "\\u202ex", price_per_hour: 1}]',
    ],
)
def test_a_number_that_cannot_be_is_refused_with_its_line(chipwise: Chipwise, row: str) -> None:
    write(chipwise, row, "bad.yaml")
    done = chipwise("offers", "--json")
    assert done.code == 2, done.err
    assert "bad.yaml:1" in done.err
    assert done.out == ""


def test_all_problems_of_a_file_are_told_at_once_unknown_names_too(chipwise: Chipwise) -> None:
    text = "machines:\n  - {name: a, chip: h1000}\n  - {name: b, chip: A10GG}\noffers:\n"
    write(chipwise, text + "  - {provider: aws, machine: p55, region: x, price_per_hour: 3}\n", "bad.yaml")
    done = chipwise("chips")
    assert done.code == 2
    assert all(words in done.err for words in ("bad.yaml:2", "bad.yaml:3", "bad.yaml:5", "h1000", "A10G", "p55"))


def test_a_chip_like_another_is_found_by_its_family(chipwise: Chipwise) -> None:
    write(chipwise, BERLIN)
    rows = chipwise("offers", "--chip", "h100", "--region", "Germany", "--json").json
    assert "dgx-h100" in {row["machine"] for row in rows}
