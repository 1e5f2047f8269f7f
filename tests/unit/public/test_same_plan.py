"""A plan made in Python, on the command line and from YAML is the same plan."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import chipwise as cw
from chipwise.files.source import read_yaml
from chipwise.workload.parse import load, parse
from command import called, plain

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(ROOT.glob("examples/*/workload.yaml"))
KINDS = {
    "train": cw.Train,
    "finetune": cw.Finetune,
    "serve": cw.Serve,
    "batch": cw.Batch,
    "hpc": cw.Hpc,
    "render": cw.Render,
    "transcode": cw.Transcode,
    "stream": cw.Stream,
    "hybrid": cw.Hybrid,
    "interactive": cw.Interactive,
    "pipeline": cw.Pipeline,
}


PIPELINE = """
kind: pipeline
name: small
limits: {clouds: [aws], regions: [us-east-1], chips: [L4, A10G]}
stages:
- {kind: finetune, name: tune, model: llama-3.1-8b, method: lora, tokens: 5M}
- {kind: batch, name: label, model: llama-3.1-8b, items: 100k, input_tokens: 200, output_tokens: 20}
"""


def printed(home: Path, *words: str) -> Any:
    return called(*words, "--json", environment=plain(home)).json


def test_options_mean_the_same_as_on_the_command_line(home: Path) -> None:
    flags = "llama-3.1-8b --serve --rps 5 --input 1000 --output 300 --ttft 800ms --tpot 50ms --limit clouds=[aws,gcp]"
    plan = cw.plan("llama-3.1-8b", serve=True, rps=5, input=1000, output=300, ttft="800ms", tpot="50ms", cloud=["aws", "gcp"])
    assert plan.to_dict() == printed(home, "plan", *flags.split())


def test_without_a_name_every_way_of_writing_gives_one_plan() -> None:
    fields = {"model": "llama-3.1-8b", "arrival": {"rate": 5}, "input_tokens": 1000, "output_tokens": 300}
    text = json.dumps({"kind": "serve", **fields}, indent=1)
    options = cw.plan("llama-3.1-8b", serve=True, rps=5, input=1000, output=300)
    plans = [cw.plan(workload) for workload in (text, {"kind": "serve", **fields}, cw.Serve(**fields))]
    assert all(plan == options for plan in plans)
    assert options.best.cost.terms["compute"] == pytest.approx(options.best.usd, rel=0.2)


def test_a_file_its_text_its_fields_and_its_kind_give_one_plan(home: Path) -> None:
    path = ROOT / "examples" / "serve" / "workload.yaml"
    text = path.read_text(encoding="utf-8")
    fields = {key: value for key, value in read_yaml(text, "x").data.items() if key not in ("kind", "environments")}
    wanted = printed(home, "plan", str(path))
    plans = [cw.plan(workload) for workload in (str(path), path, text, {"kind": "serve", **fields}, cw.Serve(**fields))]
    assert all(plan.to_dict() == wanted for plan in plans)
    assert all(plan == plans[0] for plan in plans)


SMALL = (
    "{kind: serve, name: llama-3-1-8b-serve, model: llama-3.1-8b, arrival: 5, input_tokens: 1000, output_tokens: 300, "
    "limits: {clouds: aws}"
)


def test_a_plan_equals_another_that_is_written_otherwise_and_no_plan_of_other_work(home: Path) -> None:
    plan = cw.plan(SMALL + "}")
    assert plan == cw.plan("llama-3.1-8b", serve=True, rps=5, input=1000, output=300, cloud="aws")
    assert plan == cw.plan("llama-3.1-8b", serve=True, rps="5/s", input="1k", output=300, cloud=["aws"], objective="cost")
    assert plan != cw.plan("llama-3.1-8b", serve=True, rps=5, input=1000, output=300, cloud="aws", top=3)
    other_image = cw.plan(SMALL + ", program: {image: example.org/server, command: [serve]}}")
    assert other_image.to_dict() == plan.to_dict()
    assert other_image != plan  # it would be deployed otherwise


def test_values_are_plain_and_rounded_as_the_command_prints_them(home: Path) -> None:
    nothing = cw.plan("llama-3.1-70b", serve=True, rps=5, input=1000, output=300, chip="m60")
    assert isinstance(nothing, cw.NoPlan)
    assert type(nothing.missing[0].what) is str
    assert nothing.to_dict() == json.loads(json.dumps(nothing.to_dict()))
    assert nothing == pickle.loads(pickle.dumps(nothing))


def test_a_pipeline_is_planned_like_any_other_workload(home: Path) -> None:
    path = home / "workload.yaml"
    path.write_text(PIPELINE)
    plan = cw.plan(PIPELINE)
    assert plan.to_dict() == printed(home, "plan", str(path))
    assert [stage.name for stage in plan.stages] == ["tune", "label"]
    assert plan.cost.usd == pytest.approx(plan.to_dict()["totals"]["usd_with_one_month"])
    assert len(repr(plan).splitlines()) <= 20
    with pytest.raises(cw.BadInput, match=r"plan\.stages"):
        _ = plan.best


def test_a_prediction_is_what_the_command_prints(home: Path) -> None:
    estimate = cw.predict("llama-3.1-8b", train=True, on="h100", chips=8, seq=4096)
    flags = "llama-3.1-8b --train --on h100 --chips 8 --seq 4096"
    assert estimate.to_dict() == printed(home, "predict", *flags.split())
    path = str(ROOT / "examples" / "batch" / "workload.yaml")
    assert cw.predict(path, on="l40s").to_dict() == printed(home, "predict", path, "--on", "l40s")


def test_lists_are_what_the_commands_print(home: Path) -> None:
    assert cw.offers(chip="h100", region="EU").to_dicts() == printed(home, "offers", "--chip", "h100", "--region", "EU")
    assert cw.machines("p5").to_dicts() == printed(home, "machines", "p5")
    assert cw.fits("llama-3.1-70b", on="l40s").to_dict() == printed(home, "fits", "llama-3.1-70b", "--on", "l40s")
    assert cw.explain("p4de.24xlarge").to_dicts() == printed(home, "explain", "p4de.24xlarge")["meanings"]
    words = "h100 --machines 4 --years 3 --utilisation 60% --country DEU --against p5.48xlarge"
    own = cw.tco("h100", machines=4, years=3, utilisation="60%", country="DEU", against="p5.48xlarge")
    assert own.to_dict() == printed(home, "tco", *words.split())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_a_kind_takes_the_fields_of_a_file(path: Path) -> None:
    fields = {key: value for key, value in read_yaml(path.read_text(), "x").data.items() if key != "environments"}
    kind = fields.pop("kind")
    made = KINDS[str(kind)](**fields)
    assert made.model_dump() == load(path).model_dump()


def test_a_pipeline_takes_workloads_as_stages() -> None:
    tune = cw.Finetune(model="llama-3.1-8b", method="lora", tokens="10M")
    serve = cw.Serve(model="llama-3.1-8b", arrival="1 req/s", input_tokens=500, output_tokens=100)
    made = cw.Pipeline(stages=[tune, serve])
    assert [stage.name for stage in made.stages] == ["llama-3-1-8b-finetune", "llama-3-1-8b-serve"]
    text = "kind: pipeline\nstages:\n- {kind: finetune, model: llama-3.1-8b, method: lora, tokens: 10M}\n"
    assert made.stages[0].model_dump() == parse(text).model_dump()["stages"][0]


FIRST_DAY = """
kind: batch
name: first-day
model: llama-3.1-8b
items: 100k
input_tokens: 200
output_tokens: 20
limits: {clouds: [aws]}
program: {command: [python3, -c, "print('ran')"]}
"""


def test_the_first_day_with_the_package_goes_as_it_is_described(
    home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    plan: Any = cw.plan(
        "llama-3.1-70b", serve=True, rps=10, input=1000, output=300, ttft="800ms", tpot="50ms", cloud=["aws", "gcp"]
    )
    assert plan.best.speed.low < plan.best.speed.value
    assert sum(plan.best.speed.terms.values()) > plan.best.latency_s["ttft p90"]
    plan = cw.plan(cw.Serve(model="llama-3.1-70b", arrival={"rate": "10 req/s"}, input_tokens=1000, output_tokens=300))
    assert plan.best.cost.usd == plan.cost.usd
    Path("workload.yaml").write_text(FIRST_DAY)
    plan = cw.plan("workload.yaml")
    assert (type(plan.best.machine), type(plan.best.cost.usd)) == (str, float)
    assert "<table" in plan._repr_html_()
    assert len(repr(plan).splitlines()) <= 20
    assert plan.to_dict()["workload"] == "first-day"
    assert cw.predict("llama-3.1-8b", train=True, on="h100", chips=8, seq=4096).terms
    assert all(path.is_file() for path in plan.render("kubernetes").write("deploy"))
    job = cw.run(plan)
    assert job.wait() == "done"
    assert job.logs() == "ran\n"
    assert cw.offers(chip="h100", region="EU")
    assert cw.chips()
    assert cw.models()
    assert not cw.fits("llama-3.1-70b", on="l40s")
    assert cw.compare(plan)
    assert cw.tco("h100")
    assert cw.audit("deploy")
    assert capfd.readouterr() == ("", "")
