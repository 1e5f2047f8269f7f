"""Every command answers: text that fits 80 columns, JSON that is whole, exit codes that mean something."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

from chipwise.catalog.load import load
from command import Chipwise

pytestmark = pytest.mark.real_catalog  # a process meets no other

ROOT = Path(__file__).resolve().parents[2]
LISTINGS = [
    ("chips",),
    ("chips", "A100", "H100", "T4"),
    ("chips", "--kind", "tpu"),
    ("machines", "p5"),
    ("machines", "--chip", "h100"),
    ("offers", "--chip", "h100"),
    ("offers", "--spot", "--memory", "80GB"),
    ("regions",),
    ("regions", "SWE"),
    ("models",),
    ("models", "llama-3.1-8b"),
    ("models", "--family", "qwen2.5"),
]
PAGES = [
    *LISTINGS,
    ("explain", "p4de.24xlarge"),
    ("explain", "h100"),
    ("explain", "Elastic Inference"),
    ("explain", "mig"),
    ("explain", "us-east-1"),
    ("explain", "aws"),
    ("explain", "mixtral-8x7b"),
    ("catalog", "status"),
    ("catalog", "show"),
    ("catalog", "show", "quotas"),
    ("check", "examples/serve/workload.yaml"),
    ("--help",),
    ("offers", "--help"),
]


@pytest.mark.parametrize("arguments", PAGES, ids=" ".join)
def test_a_page_fits_eighty_columns_and_ends_well(chipwise: Chipwise, arguments: tuple[str, ...]) -> None:
    done = chipwise(*arguments)
    assert done.code == 0, done.err
    assert done.out.strip()
    assert max(map(len, done.out.splitlines())) <= 80
    assert "\x1b" not in done.out  # no colour without a terminal


@pytest.mark.parametrize("arguments", LISTINGS, ids=" ".join)
def test_a_listing_as_json_and_csv_holds_the_same_rows(chipwise: Chipwise, arguments: tuple[str, ...]) -> None:
    as_json, as_csv = chipwise(*arguments, "--json"), chipwise(*arguments, "--csv")
    assert (as_json.code, as_csv.code) == (0, 0)
    assert isinstance(as_json.json, list)
    assert len(list(csv.DictReader(io.StringIO(as_csv.out)))) == len(as_json.json) > 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("offers --chip h100 --json", 0),
        ("check - --json", 0),
        ("plan --help", 0),
        ("plan examples/train/workload.yaml", 0),
        ("catalog show tokens no-such-word", 1),
        ("ofers", 2),
        ("check nowhere", 2),
        ("catalog refresh azure -o endpoint=http://127.0.0.1:9 -o retries=1", 3),
        ("", 0),
    ],
)
def test_a_process_answers_what_a_call_answers(chipwise: Chipwise, arguments: str, code: int) -> None:
    typed = "kind: batch\nname: x\nmodel: llama-3.1-8b\nitems: 5\n"
    called, started = chipwise(*arguments.split(), typed=typed), chipwise.process(*arguments.split(), typed=typed)
    assert started == called
    assert started.code == code


def test_json_is_never_cut_by_a_limit(chipwise: Chipwise) -> None:
    assert len(chipwise("offers", "--json", "--limit", "3").json) == len(load().offers)


def test_the_first_h100_offer_is_a_real_one_and_shows_its_age(chipwise: Chipwise) -> None:
    rows = chipwise("offers", "--chip", "h100", "--json").json
    assert rows[0]["can_win"]
    assert {row["chip"] for row in rows} == {"H100-SXM", "H100-PCIe", "H100-NVL"}
    assert all(isinstance(row["age_days"], int) and row["as_of"] for row in rows)
    assert len({row["provider"] for row in rows}) > 10


def test_side_by_side_says_which_form_a_family_name_was_taken_for(chipwise: Chipwise) -> None:
    done = chipwise("chips", "A100", "H100", "T4")
    assert "H100 is taken as H100-SXM" in done.err
    assert done.out.splitlines()[0].split() == ["A100-80", "H100-SXM", "T4"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("offers", "--chip", "h10"), 2, "Did you mean H100"),
        (("offers", "--provider", "amazn"), 2, "amazn"),
        (("offers", "--region", "us-est-1"), 2, "us-east-1"),
        (("offers", "--purchase", "spott"), 2, "spot"),
        (("offers", "--memory", "80 elephants"), 2, "unit of size"),
        (("offers", "--max-price", "cheap"), 2, "USD"),
        (("offers", "--max-price=-3"), 2, "below zero"),
        (("offers", "--chip", "h100", "--max-price", "0.01"), 1, "No offer fits"),
        (("machines", "p99.huge"), 2, "No machine or chip is called"),
        (("machines", "--min-chips", "many"), 2, "many"),
        (("regions", "atlantis"), 2, "No region"),
        (("models", "llama-3-13b"), 2, "llama-3-8b"),
        (("explain", "flux capacitor"), 2, "flux"),
        (("explain", "h100", "--with", "=3"), 2, "COMPONENT=VERSION"),
        (("explain", "llama-3.1-8b", "--with", "cuda=12"), 2, "neither"),
        (("explain", ""), 2, "empty"),
        (("offers", "--memory", "80"), 2, "80GB"),
        (("offers", "--min-chips", "nan"), 2, "nan"),
        (("machines", "--vcpus", "inf"), 2, "inf"),
        (("explain", "h100", "--with", "cudda=12"), 2, "cuda"),
        (("check", "nowhere.yaml"), 2, "no file"),
        (("check", "examples"), 2, "folder"),
        (("check", "examples/serve/workload.yaml", "--environment", "prd"), 2, "prod"),
        (("catalog", "refresh", "awss"), 2, "aws"),
        (("catalog", "import", "nowhere"), 2, "does not exist"),
        (("catalog", "show", "tokns"), 2, "tokens"),
        (("catalog", "show", "tokens", "no-such-word"), 1, "No row"),
        (("ofers",), 2, "offers"),
        (("offers", "--nope"), 2, "--nope"),
    ],
)
def test_what_goes_wrong_has_its_exit_code_and_a_sentence(
    chipwise: Chipwise, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = chipwise(*arguments)
    assert done.code == code, done.err
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("name", "software", "reason"),
    [("T4", "flash-attention=2", "8.0"), ("h100", "cuda=11.6", "11.8"), ("V100", "pytorch=2.11", "7.5")],
)
def test_software_that_is_refused_ends_with_one_and_says_why_once(
    chipwise: Chipwise, name: str, software: str, reason: str
) -> None:
    done = chipwise("explain", name, "--with", software)
    assert done.code == 1
    assert done.out.count("refused") == 1
    assert reason in done.out


def test_a_chips_name_lists_every_machine_that_carries_it(chipwise: Chipwise) -> None:
    named, filtered = chipwise("offers", "h100", "--json").json, chipwise("offers", "--chip", "h100", "--json").json
    assert len(named) == len(filtered) > 700


def test_offers_by_carbon_put_unknown_grids_last(chipwise: Chipwise) -> None:
    grids = [row["grid_g_per_kwh"] for row in chipwise("offers", "--chip", "L4", "--sort", "carbon", "--real", "--json").json]
    known = [grid for grid in grids if grid is not None]
    assert grids[: len(known)] == sorted(known)


def test_offers_can_be_limited_by_age(chipwise: Chipwise) -> None:
    rows = chipwise("offers", "--chip", "h100", "--max-age", "120d", "--json").json
    assert rows
    assert max(row["age_days"] for row in rows) <= 120


def test_chips_are_found_by_what_they_can_do(chipwise: Chipwise) -> None:
    names = {row["name"] for row in chipwise("chips", "--can", "fp8", "--can", "mig", "--json").json}
    assert "H100-SXM" in names
    assert not names & {"A100-80", "L4", "T4"}


def test_several_workloads_are_checked_at_once(chipwise: Chipwise, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: serv\n")
    done = chipwise("check", "examples/serve/workload.yaml", str(bad), "examples/train/workload.yaml")
    assert done.code == 2
    assert done.out.count("fine") == 2
    assert "bad.yaml" in done.err


def test_an_unreachable_service_ends_with_three(chipwise: Chipwise) -> None:
    done = chipwise("catalog", "refresh", "azure", "-o", "endpoint=http://127.0.0.1:9", "-o", "retries=1")
    assert done.code == 3
    assert "Traceback" not in done.err


def test_a_missing_config_directory_is_bad_input(chipwise: Chipwise) -> None:
    done = chipwise("chips", CHIPWISE_CONFIG_DIR="/no/such/place")
    assert done.code == 2
    assert "CHIPWISE_CONFIG_DIR" in done.err


def test_our_own_mistake_ends_with_seventy_and_asks_for_a_report(tmp_path: Path) -> None:
    code = "import chipwise.api.session.wiring as w, chipwise.cli.main as m, sys\nw.open_session = lambda: 1 / 0\n"
    code += "sys.exit(m.main(['chips']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 70
    assert "a bug in chipwise" in done.stderr
    assert "--debug" in done.stderr


def test_a_reader_that_stops_early_is_no_error(chipwise: Chipwise) -> None:
    command = f"{Path(sys.executable).parent / 'chipwise'} offers --json | head -c 10"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_is_offered(chipwise: Chipwise, shell: str) -> None:
    done = chipwise(_CHIPWISE_COMPLETE=f"{shell}_source")
    assert "chipwise" in done.out


def test_chip_names_are_completed(chipwise: Chipwise) -> None:
    done = chipwise(_CHIPWISE_COMPLETE="bash_complete", COMP_WORDS="chipwise offers --chip h1", COMP_CWORD="3")
    assert "H100-SXM" in done.out


@pytest.mark.parametrize(
    "hostile", ["\x1b[31mred", "a" * 100_000, "../../etc/passwd", "'; drop table", "%s%n", "\u202egpu", "0", "-1", "NaN"]
)
def test_a_hostile_name_is_refused_without_reaching_the_terminal(chipwise: Chipwise, hostile: str) -> None:
    for arguments in (("explain", "--", hostile), ("offers", f"--chip={hostile}"), ("models", "--offline", "--", hostile)):
        done = chipwise(*arguments)
        assert done.code == 2, (arguments, done.err[:200])
        assert "Traceback" not in done.err
        assert "\x1b" not in done.err
        assert "\u202e" not in done.err
        assert len(done.err) < 2_000


def test_a_bad_workload_gets_all_its_errors_at_once(chipwise: Chipwise, tmp_path: Path) -> None:
    text = (ROOT / "examples" / "serve" / "workload.yaml").read_text()
    for right, wrong in (
        ("llama-3.1-8b", "lama-3.1-8b"),
        ("bf16, fp8", "bf61"),
        ("ttft:", "tttft:"),
        ("residency:", "chips: [h10]\n  residency:"),
    ):
        text = text.replace(right, wrong, 1)
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    done = chipwise("check", str(file))
    assert done.code == 2
    for said in (
        "lama-3.1-8b",
        "llama-3.1-8b",
        "bf61",
        "Did you mean bf16",
        "tttft",
        "Did you mean ttft",
        "h10",
        "H100",
        "4 problems",
    ):
        assert said in done.err
    problems = chipwise("check", str(file), "--json").json["problems"]
    assert all(problem["line"] and problem["field"] and problem["file"] == str(file) for problem in problems)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/workload.yaml")), ids=lambda path: path.parent.name)
def test_every_example_is_right(chipwise: Chipwise, path: Path) -> None:
    done = chipwise("check", str(path), "--json")
    assert done.code == 0, done.out
    assert done.json["notes"] == []


@pytest.mark.parametrize("columns", ["0", "-3", "abc", "1e3", "5", "99999999"])
def test_any_width_gives_a_readable_page(chipwise: Chipwise, columns: str) -> None:
    done = chipwise("explain", "mig", COLUMNS=columns)
    assert done.code == 0
    assert "Multi-Instance" in done.out


@pytest.mark.parametrize("arguments", ["regions --json", "models"])
def test_a_terminal_that_speaks_ascii_only_gets_everything(chipwise: Chipwise, arguments: str) -> None:
    done = chipwise(*arguments.split(), PYTHONIOENCODING="ascii")
    assert done.code == 0, done.err
    assert done.out.isascii()
    if "--json" in arguments:
        assert done.json


@pytest.mark.parametrize(("redirect", "code"), [(">&-", 0), ("2>&-", 0), (">/dev/full", 3), ("2>/dev/full", 0)])
def test_streams_that_are_closed_or_full_do_not_crash_it(tmp_path: Path, redirect: str, code: int) -> None:
    if "/dev/full" in redirect and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, which this system does not have")
    command = f"{Path(sys.executable).parent / 'chipwise'} chips h100 {redirect}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code
    assert "mistake" not in done.stderr
    wrong = subprocess.run(["bash", "-c", command.replace("chips h100", "check /nonexist")], capture_output=True, text=True)
    assert wrong.returncode == 2


@pytest.mark.parametrize("variable", ["CHIPWISE_CONFIG_DIR", "CHIPWISE_DATA_DIR", "CHIPWISE_TODAY"])
@pytest.mark.parametrize("value", ["~nosuchuser/x", "x" * 50_000, "\x1b[31m"])
def test_a_strange_environment_is_bad_input_in_one_sentence(chipwise: Chipwise, variable: str, value: str) -> None:
    done = Chipwise(chipwise.home, {variable: value})("chips", "h100")
    assert done.code in (0, 2)
    assert len(done.err) < 1_000
    assert "mistake" not in done.err


@pytest.mark.parametrize("path", ["/dev/zero", "~nosuch/config.json"])
def test_reading_a_model_ends(chipwise: Chipwise, path: str) -> None:
    assert chipwise("models", path).code == 2


def test_a_workload_comes_by_standard_input_and_its_names_start_here(chipwise: Chipwise, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival,input_tokens,output_tokens\n0,10,10\n")
    text = "kind: serve\nname: x\nmodel: llama-3.1-8b\narrival: {trace: t.csv}\n"
    assert chipwise("check", "-", typed=text, cwd=tmp_path).code == 0
    assert "no file" in chipwise("check", "-", typed=text.replace("t.csv", "u.csv"), cwd=tmp_path).err
    assert chipwise("check", "-", typed="").code == 2


def test_only_the_models_of_the_environment_asked_for_are_told(chipwise: Chipwise, tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("kind: batch\nname: x\nmodel: llama-3.1-8b\nitems: 5\nenvironments: {big: {model: llama-3.1-70b}}\n")
    assert list(chipwise("check", str(file), "--json").json["models"]) == ["llama-3.1-8b"]
    assert list(chipwise("check", str(file), "-e", "big", "--json").json["models"]) == ["llama-3.1-70b"]


def test_it_runs_without_assertions(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-O", "-m", "chipwise", "offers", "--chip", "h100", "--json"], capture_output=True, cwd=tmp_path
    )
    assert done.returncode == 0


def test_chips_and_explain_name_the_same_cheapest_price(chipwise: Chipwise) -> None:
    for chip in ("H100-SXM", "L4", "A100-80"):
        shown = next(line for line in chipwise("chips", chip).out.splitlines() if line.startswith("rented from")).split()[-1]
        assert f"on-demand from ${shown}/h per chip" in " ".join(chipwise("explain", chip).out.split())


@pytest.mark.parametrize("order", ["carbon", "price-per-chip", "price-per-memory"])
@pytest.mark.parametrize("direction", [[], ["--descending"]])
def test_what_cannot_be_sorted_by_comes_last_either_way(chipwise: Chipwise, order: str, direction: list[str]) -> None:
    rows = chipwise("offers", "--sort", order, *direction, "--real", "--provider", "vast", "--provider", "gcp", "--json").json
    field = {"carbon": "grid_g_per_kwh", "price-per-chip": "usd_per_chip_hour", "price-per-memory": "chip_memory_bytes"}[order]
    known = [row[field] is not None for row in rows]
    assert known == sorted(known, reverse=True)
