"""`chipwise plan` as a user has it: an answer within 80 columns, JSON with stable keys, and exit code 1 where nothing fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import Chipwise

pytestmark = pytest.mark.real_catalog

ROOT = Path(__file__).resolve().parents[2]
PLANNED = ("train", "finetune", "serve", "batch")
QUICK = ("llama-3.1-70b", "--serve", "--rps", "10", "--input", "1000", "--output", "300", "--ttft", "800ms", "--tpot", "50ms")
KEYS = {
    "schema",
    "confidence",
    "risks",
    "near_tie",
    "larger",
    "porting",
    "alternatives",
    "workload",
    "kind",
    "objective",
    "per",
    "fits",
    "headline",
    "winner",
    "choices",
    "front",
    "knee",
    "losses",
    "refused",
    "missing",
    "answers",
    "turns",
    "services",
    "service",
    "service_is_cheaper",
    "data",
    "considered",
    "pruned",
    "estimated",
    "notes",
    "emitted",
    "load",
    "placement",
}


CASES = sorted(Path(ROOT, "tests", "cases").glob("*.yaml"))


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_fits_one_screen(chipwise: Chipwise, name: str) -> None:
    done = chipwise("plan", f"{ROOT}/examples/{name}/workload.yaml")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert "What would change the answer:" in lines or len(lines) > 25  # it gives way to longer answers
    assert "--full" in lines[-1]


def test_where_nothing_fits_the_reasons_fit_one_screen_and_their_examples_are_in_the_full_answer(chipwise: Chipwise) -> None:
    brief, full = (chipwise("plan", f"{ROOT}/tests/cases/new-account.yaml", *more) for more in ([], ["--full"]))
    assert (brief.code, full.code) == (1, 1)
    lines = brief.out.splitlines()
    assert len(lines) <= 30 < len(full.out.splitlines())
    assert max(map(len, lines)) <= 80
    assert any("offers: not for sale at that price" in line for line in lines)
    assert "an increase to 576 vCPU" in brief.out.replace("\n" + 9 * " ", " ")
    assert "such as" not in brief.out
    assert "such as aws " in full.out


@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_the_answer_to_a_case_fits_one_screen(chipwise: Chipwise, case: Path) -> None:
    lines = chipwise("plan", str(case)).out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines), default=0) <= 80


@pytest.mark.parametrize("name", PLANNED)
def test_a_full_plan_is_shown_within_80_columns(chipwise: Chipwise, name: str) -> None:
    done = chipwise("plan", f"{ROOT}/examples/{name}/workload.yaml", "--full")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    for part in ("Where the money goes", "How to run it", "why it lost"):
        assert part in done.out


def test_the_quick_form_needs_no_file(chipwise: Chipwise) -> None:
    done = chipwise("plan", *QUICK, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert set(found) == KEYS
    winner = found["winner"]
    assert winner["requests_per_s"] >= 10
    assert winner["purchase"] != "spot"  # people wait: machines that vanish must be asked for
    assert sum(line["usd"] for line in winner["lines"]) == pytest.approx(winner["usd"])
    assert found["considered"] == found["pruned"] + found["estimated"]


def test_objectives_are_kept(chipwise: Chipwise) -> None:
    file = f"{ROOT}/examples/train/workload.yaml"
    best = {}
    for objective in ("cost", "time", "carbon"):
        done = chipwise("plan", file, "--objective", objective, "--json", "--top", "1")
        winner = json.loads(done.out)["winner"]
        best[objective] = (winner["usd"], winner["seconds"]["value"], winner["co2e_kg"])
    assert best["cost"][0] <= min(best["time"][0], best["carbon"][0]) * 1.01
    assert best["time"][1] <= min(best["cost"][1], best["carbon"][1]) * 1.01
    assert best["carbon"][2] <= min(best["cost"][2], best["time"][2]) * 1.01


def test_nothing_fits_is_an_answer(chipwise: Chipwise) -> None:
    done = chipwise("plan", f"{ROOT}/examples/train/workload.yaml", "--limit", "chips=t4")
    assert done.code == 1
    assert "Nothing fits" in done.out
    assert "precision" in done.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "chipwise init"),
        (("nosuch.yaml",), "There is no file"),
        (("nosuch-model",), "--serve"),
        (("llama-3.1-8b", "--train", "--serve"), "cannot be combined"),
        (("llama-3.1-8b", "--serve"), "--rps"),
        (("gpt-4", "--serve", "--rps", "1"), "No model is called 'gpt-4'"),
        (("nosuch.yaml", "--objective", "speed"), "Did you mean time?"),
        (("llama-3.1-8b", "--train", "--tokens", "many"), "tokens"),
        ((f"{ROOT}/examples/train/workload.yaml", "--limit", "clouds"), "key=value"),
        ((f"{ROOT}/examples/train/workload.yaml", "--limit", "clouds=[aws"), "clouds=aws,gcp"),
        ((f"{ROOT}/examples/train/workload.yaml", "--limit", "clouds=nosuch"), "nosuch"),
        ((f"{ROOT}/examples/train/workload.yaml", "--rps", "3"), "is for a service"),
        ((f"{ROOT}/examples/train/workload.yaml", "--cloud", "asw"), "Did you mean aws"),
        ((f"{ROOT}/examples/train/workload.yaml", "--chip", "h10"), "H100"),
        ((f"{ROOT}/examples/train/workload.yaml", "--region", "eu-wst-1"), "eu-west-1"),
        ((f"{ROOT}/examples/train/workload.yaml", "--spot", "--on-demand"), "cannot be combined"),
        (("llama-3.1-8b", "--train", "--tokens", "2B", "--samples", "5k"), "cannot be combined"),
        ((f"{ROOT}/examples/train/workload.yaml", "--top", "0"), "--top"),
    ],
)
def test_bad_input_ends_in_a_sentence(chipwise: Chipwise, arguments: tuple[str, ...], told: str) -> None:
    done = chipwise("plan", *arguments)
    assert done.code not in (0, 1)
    assert told in done.err
    assert "Traceback" not in done.err


def test_all_shows_each_machine_type_and_way_to_buy_once(chipwise: Chipwise) -> None:
    file = f"{ROOT}/examples/serve/workload.yaml"
    done = chipwise("plan", file, "--all", "--json")
    found = json.loads(done.out)["choices"]
    assert len(found) > 20
    keys = [(one["provider"], one["machine"], one["purchase"]) for one in found]
    assert len(set(keys)) == len(keys)
    shown = chipwise("plan", file, "--all").out.splitlines()
    assert sum(line.split()[:1] == [str(at)] for at in range(1, len(found) + 1) for line in shown) >= len(found)


def test_an_archive_of_video_has_a_column_of_times(chipwise: Chipwise, tmp_path: Path) -> None:
    file = tmp_path / "archive.yaml"
    file.write_text(
        "kind: transcode\nname: archive\nduration: 100h\nsource: {codec: h264, resolution: 1080p, fps: 30}\n"
        "outputs: [{codec: hevc, resolution: 1080p, fps: 30}]\nlimits: {clouds: [aws]}\n"
    )
    done = chipwise("plan", str(file), "--short")
    assert done.code == 0, done.err
    title = next(line for line in done.out.splitlines() if line.startswith("# "))
    assert "time" in title.split()
    assert "streams" not in title


@pytest.mark.parametrize("ask", [("plan",), ("compare", "--by", "generation")])
def test_notebooks_have_a_column_of_people_who_are_there(chipwise: Chipwise, tmp_path: Path, ask: tuple[str, ...]) -> None:
    file = tmp_path / "notebooks.yaml"
    file.write_text("kind: interactive\nname: notebooks\npeople: 12\nmemory: 16GB\nlimits: {clouds: [aws]}\n")
    done = chipwise(*ask, str(file))
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    head = next(at for at, line in enumerate(lines) if "people" in line and "USD/month" in line)
    end = lines[head].index("people") + len("people")
    assert lines[head + 2][:end].split()[-1] == "12"
