"""Options by the names that people guess: taken where they mean the same, else answered with the one that is meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.cli.main import main
from chipwise.countries import CONTINENTS, GROUPS, spellings

SERVE = ("plan", "llama-3.1-8b", "--serve", "--rps", "5", "--input", "500", "--output", "200")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"CHIPWISE_{name}_DIR", str(tmp_path / name))


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    assert main(list(words)) == code
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "word", "meant"),
    [
        ("plan", "--gpu", "--chip"),
        ("plan", "--lora", "--finetune lora"),
        ("plan", "--reserved", "--limit purchase=reserved"),
        ("plan", "--preemptible", "--spot"),
        ("plan", "--qps", "--rps"),
        ("plan", "--obejctive", "--objective"),
        ("offers", "--reserved", "--purchase reserved"),
        ("offers", "--gpu", "--chip"),
        ("predict", "--gpu", "--on"),
        ("predict", "--lora", "--method lora"),
        ("render", "--target", "--to"),
        ("plan", "--gpus", "--limit chip_count.max=8 or --chip"),
        ("plan", "--chips", "--limit chip_count.max=8 or --chip"),
        ("plan", "--max-gpus", "--limit chip_count.max=8 or --chip"),
        ("plan", "--no-spot", "--on-demand?"),
        ("plan", "--spot-only", "--spot?"),
        ("plan", "--exclude", "--limit avoid.clouds=aws?"),
        ("plan", "--vendor", "--chip"),
        ("plan", "--family", "--chip"),
        ("plan", "--fp8", "--precision fp8?"),
        ("plan", "--p99", "--latency or --ttft?"),
        ("plan", "--hours", "--deadline?"),
        ("plan", "--inference", "--serve?"),
        ("plan", "--requests-per-day", "--rps 100k/day?"),
        ("plan", "--carbon", "--objective carbon?"),
        ("plan", "--fastest", "--objective time?"),
        ("plan", "--format", "--json"),
        ("plan", "-o", "--json or --out?"),
        ("plan", "--input-tokens", "--input?"),
        ("plan", "--max-cost", "--budget?"),
        ("plan", "--zone", "--region or --country?"),
        ("plan", "--on_demand", "--on-demand?"),
        ("plan", "--dataset", "--samples or --tokens?"),
        ("plan", "--quantization", "--precision?"),
        ("predict", "--gpus", "--chips?"),
    ],
)
def test_a_guessed_option_is_answered_with_the_one_that_is_meant(
    command: str, word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, command, "llama-3.1-8b", word)
    assert told.startswith(f"chipwise: No such option: {word}. Did you mean {meant}")
    assert f"chipwise {command} --help" in told


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("--model", "It goes without a flag: chipwise plan WORKLOAD.yaml|MODEL"),
        ("--workload", "It goes without a flag: chipwise plan WORKLOAD.yaml|MODEL"),
        ("--replicas", "A workload file has the field replicas; `chipwise init` writes one."),
        ("--concurrency", "A workload file has the field arrival.concurrency; `chipwise init` writes one."),
        ("--schedule", "A workload file has the field schedule; `chipwise init` writes one."),
    ],
)
def test_what_goes_without_an_option_is_answered_with_its_place(
    word: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"No such option: {word}. {remedy}" in refused(capsys, "plan", "llama-3.1-8b", word).replace("\n", " ")


def test_a_model_alone_is_asked_what_to_do_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "plan", "llama-3.1-8b", "--rps", "5").replace("\n", " ")
    assert "What is to be done with llama-3.1-8b is not stated. Add --serve, --train, --finetune or --batch" in told
    assert "llamma is not a workload file" in refused(capsys, "plan", "llamma")


def test_an_architecture_stands_for_its_chips(capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads(answered(capsys, *SERVE, "--chip", "hopper", "--all", "--json"))
    chips = {choice["chip"].partition(" ")[0] for choice in plan["choices"]}
    assert {"H100-SXM", "H200"} <= chips
    assert {choice["family"] for choice in plan["choices"]} == {"NVIDIA Hopper"}
    assert json.loads(answered(capsys, *SERVE, "--chip", "nvidia hopper", "--all", "--json")) == plan


def test_a_city_and_the_beginning_of_a_name_are_places(capsys: pytest.CaptureFixture[str]) -> None:
    frankfurt = json.loads(answered(capsys, "regions", "frankfurt", "--json"))
    assert {("aws", "eu-central-1"), ("gcp", "europe-west3")} <= {(one["provider"], one["name"]) for one in frankfurt}
    west = json.loads(answered(capsys, "regions", "eu-west", "--json"))
    assert {"eu-west-1", "eu-west-2", "eu-west-3"} <= {one["name"] for one in west}
    assert "Did you mean" in refused(capsys, "regions", "frankfurd")
    plan = json.loads(answered(capsys, *SERVE, "--region", "frankfurt", "--json"))
    assert {choice["country"] for choice in plan["choices"]} == {"DEU"}


def test_a_cloud_is_a_provider_and_a_rate_is_requests_per_second(capsys: pytest.CaptureFixture[str]) -> None:
    offers = answered(capsys, "offers", "--chip", "h100", "--provider", "aws", "--json")
    assert answered(capsys, "offers", "--chip", "h100", "--cloud=aws", "--json") == offers
    plan = answered(capsys, *SERVE, "--cloud", "aws", "--json")
    assert answered(capsys, *[word.replace("rps", "rate") for word in SERVE], "--provider", "aws", "--json") == plan
    asked = ("predict", "llama-3.1-8b", "--serve", "--on", "h100", "--json")
    assert answered(capsys, *asked, "--rps", "2") == answered(capsys, *asked, "--rate", "2")


def test_words_behind_two_dashes_are_those_of_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    played = ("run", "--simulate", "--expected", "1h", "--json", "--", "train", "--provider", "x")
    assert "--provider" in answered(capsys, *played)


def test_numbers_are_taken_as_people_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("plan", "llama-3.1-8b", "--serve", "--output", "200", "--cloud", "aws", "--json")
    written = answered(capsys, *asked, "--rps", "0.01k", "--input", "1k")
    assert written == answered(capsys, *asked, "--rps", "10", "--input", "1,000")
    assert "1.5 is not possible" in refused(capsys, "plan", "llama-3.1-8b", "--serve", "--input", "1.5")


@pytest.mark.parametrize("command", [SERVE, ("predict", "llama-3.1-8b", "--serve", "--on", "h100")])
def test_a_goal_that_means_milliseconds_needs_its_unit(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert "800ms or 800s" in refused(capsys, *command, "--ttft", "800")
    assert "50ms or 50s" in refused(capsys, *command, "--tpot", "50")
    answered(capsys, *command, "--ttft", "90s", "--json")
    answered(capsys, *command, "--ttft", "2", "--tpot", "0.1", "--json")


def test_a_continent_and_a_country_are_places(capsys: pytest.CaptureFixture[str]) -> None:
    inside = json.loads(answered(capsys, "regions", "europe", "--json"))
    assert {"DEU", "GBR"} <= {region["country"] for region in inside} <= GROUPS["EUROPE"]
    plan = json.loads(answered(capsys, *SERVE, "--country", "DE", "--json"))
    assert {choice["country"] for choice in plan["choices"]} == {"DEU"}
    assert "Did you mean DEU" in refused(capsys, *SERVE, "--country", "Germny")


def test_a_country_without_a_region_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "regions", "Liechtenstein")
    assert "No region of the catalog is in Liechtenstein. In Europe there are regions in " in told
    assert "Did you mean" not in told


def test_every_country_is_on_one_continent() -> None:
    countries = set(spellings().values()) - set(GROUPS)
    assert countries - {"ATA", "BVT", "ATF"} == {code for name in CONTINENTS for code in GROUPS[name]}
    assert sum(len(GROUPS[name]) for name in CONTINENTS) == len(countries) - 3
    assert GROUPS["EEA"] <= GROUPS["EUROPE"]


def test_a_part_of_a_name_lists_the_models_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    names = [model["name"] for model in json.loads(answered(capsys, "models", "llama", "--json"))]
    assert len(names) > 5
    assert [model["name"] for model in json.loads(answered(capsys, "models", "llama-3.1-8b", "--json"))] == ["llama-3.1-8b"]
    assert "No model is called" in refused(capsys, "models", "nothing-of-the-kind", "--offline")


def test_a_machine_stands_for_all_of_its_chips(capsys: pytest.CaptureFixture[str]) -> None:
    def asked(*options: str) -> dict[str, Any]:
        view: dict[str, Any] = json.loads(answered(capsys, "predict", "llama-3.1-8b", "--serve", "--json", "--on", *options))
        return view

    of_machine, of_chips = asked("p5.48xlarge"), asked("h100-sxm", "--chips", "8")
    assert of_machine["output_tokens_per_s"] == of_chips["output_tokens_per_s"]
    assert of_machine["notes"][0] == "p5.48xlarge is taken as its chip, H100-SXM; it has 8, and all of them are used."
    assert asked("p5.48xlarge", "--tp", "2")["chips"] == 2
    assert json.loads(answered(capsys, "fits", "llama-3.1-70b", "--on", "p5.48xlarge", "--json"))["fit"]["fits"]


def test_a_name_that_nothing_has_is_answered_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Name a chip (h100)" in refused(capsys, *SERVE, "--why", "xyzzyq")


@pytest.mark.parametrize(
    "arguments",
    [
        ["offers", "--chip", "h100,a100", "--region", "eu-west-1, DE", "--cloud", "aws,gcp", "--purchase", "spot,on-demand"],
        ["machines", "--chip", "h100,a100"],
        ["regions", "--country", "DEU,FRA"],
        ["chips", "--can", "fp8,mig"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_list_with_commas_is_what_the_option_given_twice_is(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    twice = [arguments[0]]
    for option, value in zip(arguments[1::2], arguments[2::2], strict=True):
        for part in value.split(","):
            twice += [option, part.strip()]
    assert answered(capsys, *arguments, "--json") == answered(capsys, *twice, "--json")


@pytest.mark.parametrize("words", [["--cloud", "aws", "gcp"], ["--region", "EU", "US", "DE"], ["--cloud", "aws,", "gcp"]])
def test_a_list_with_blanks_is_answered_with_one_with_commas(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    listed = ",".join(word.strip(",") for word in words[1:])
    told = refused(capsys, *SERVE, *words).replace("\n", " ")
    assert f"Lists take commas, without blanks: {words[0]} {listed}" in told


def test_a_name_that_is_missing_between_commas_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offers", "--chip", "h100,"]) == 2
    assert "between commas" in capsys.readouterr().err
