"""The options of a command and the keywords of its function are the same, and what is wrong is said in the words of Python."""

from __future__ import annotations

import pydoc
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import chipwise as cw
from chipwise.cli.main import COMMANDS
from chipwise.public.calling import in_python, keywords
from chipwise.public.workloads import WorkloadOptions
from chipwise.spelling import OTHER_NAMES

# How results are shown and where they are written: a program has them as values.
SHOWN = {"json", "csv", "full", "short", "sources", "once", "every", "detach", "follow", "list", "rules", "schema"}
WRITTEN = {"html", "out", "force", "render"}
RENAMED = {
    "limit": "limits",  # KEY=VALUE, one by one; in Python a dictionary
    "label": "labels",
    "secret": "secrets",
    "stage_engine": "stage_engines",
    "option": "options",
    "with": "components",  # a word of Python itself
    "as": "kind",
    "all": "everything",
    "no_own": "own",
    "for": "duration",  # a word of Python itself
    "from": "source",
}
ONLY_COMMAND = {
    ("plan", "all"): "top=None",
    ("plan", "why"): "plan.why(name)",
    ("plan", "as_of"): "cw.open(as_of=...)",
    ("compare", "top"): "how many rows are shown",
    ("rate", "why"): "the numbers are in the rows",
    ("catalog_show", "limit"): "a table is sliced",
    ("prepare", "policy"): "a text for an account's owner",
    ("run", "simulate"): "cw.simulate",
    ("run", "seed"): "cw.simulate",
    ("watch", "serve"): "a command that runs on",
}
ONLY_PYTHON = {
    ("plan", "name"): "a file has its name, and a command is called once",
    ("compare", "*"): "a model with options; the command takes a file",
    ("watch", "every"): "a program cannot see them pass",
}
GIVEN_BY_NAME = set(WorkloadOptions.__annotations__)


def commands() -> dict[str, click.Command]:
    """By the name of their function."""
    by_function: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = getattr(import_module(f"chipwise.cli.{name}"), name)
        if isinstance(command, click.Group):
            by_function |= {f"{name}_{inner}": sub for inner, sub in command.commands.items()}
        if not isinstance(command, click.Group) or command.invoke_without_command:
            by_function[name] = command
    return by_function


def options(command: click.Command) -> set[str]:
    """By the names that keywords would have."""
    return {
        option[2:].replace("-", "_")
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--")
    }


@pytest.mark.parametrize("name", sorted(commands()))
def test_a_command_and_its_function_take_the_same_options(name: str) -> None:
    command, known = commands()[name], set(keywords(getattr(cw, name)))
    arguments = {parameter.name for parameter in command.params if isinstance(parameter, click.Argument)}
    asked = {option for option in options(command) if (name, option) not in ONLY_COMMAND} - SHOWN
    missing = {option for option in asked - WRITTEN if option not in known and RENAMED.get(option) not in known}
    assert missing == set(), "options without a keyword"
    answered = asked | {RENAMED.get(option, option) for option in asked} | arguments
    more = {keyword for keyword in known - answered if (name, keyword) not in ONLY_PYTHON}
    positional = {"work", "workload", "machines", "words", "jobs", "targets", "folder"}
    allowed = GIVEN_BY_NAME if (name, "*") in ONLY_PYTHON else set()
    assert more - positional - allowed == set(), "keywords without an option"


def test_a_keyword_that_there_is_not_is_one_error_everywhere(session: cw.Session) -> None:
    wrong: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
        (session.plan, ("llama-3.1-8b",), {"gpu": "h100"}, "Did you mean chip"),
        (session.plan, ("llama-3.1-8b",), {"lora": True}, "finetune='lora'"),
        (session.machines, (), {"limits": 3}, "limit"),
        (session.chips, (), {"venodr": "amd"}, "vendor"),
        (session.tco, ("h100",), {"year": 2}, "years"),
        (session.ps, (), {"phases": "running"}, "phase"),
        (cw.open, (), {"data": "x"}, "data_dir"),
    ]
    for ask, args, given, told in wrong:
        with pytest.raises(cw.UnknownOption, match=told) as caught:
            ask(*args, **given)
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, cw.UnknownName)


def test_the_other_name_of_the_same_thing_is_taken(session: cw.Session) -> None:
    other: dict[str, Any] = {"cloud": "aws"}  # a checker of types knows one name for each
    assert session.regions(**other, limit=3) == session.regions(provider="aws", limit=3)
    assert session.offers(**other, chip="h100", limit=2) == session.offers(provider="aws", chip="h100", limit=2)
    assert {OTHER_NAMES[OTHER_NAMES[name]] for name in OTHER_NAMES} == set(OTHER_NAMES)
    served: dict[str, Any] = {"rps": 2, "input": "1k", "output": 300}
    assert session.predict("llama-3.1-8b", serve=True, on="h100", **served) == session.predict(
        "llama-3.1-8b", serve=True, on="h100", rate=2, input=1000, output=300
    )


def test_a_name_of_a_cloud_is_refused_as_such(session: cw.Session) -> None:
    with pytest.raises(cw.UnknownName, match="Did you mean aws") as caught:
        session.plan("llama-3.1-8b", serve=True, rps=5, input=1000, output=300, cloud="awz")
    assert "yaml" not in str(caught.value)


def test_problems_of_fields_have_no_line_of_a_file_and_those_of_text_have_one(session: cw.Session) -> None:
    fields = {"kind": "train", "name": "x", "model": "llama-3.1-8b", "tokens": "1B", "limits": {"clouds": ["awz"]}}
    with pytest.raises(cw.InvalidSettings, match=r"^limits\.clouds") as caught:
        session.plan(fields)
    assert caught.value.remedy
    with pytest.raises(cw.InvalidFile, match=r"^text:4: tokns") as in_text:
        session.plan("kind: train\nname: x\nmodel: llama-3.1-8b\ntokns: 1B\ntokens: 1B\n")
    assert in_text.value.remedy
    with pytest.raises(cw.InvalidSettings) as of_kind:
        cw.Train(model="llama-3.1-8b", tokns="1B")  # type: ignore[call-arg]
    assert of_kind.value.remedy


def test_lists_of_names_take_commas_as_on_the_command_line(session: cw.Session) -> None:
    work = {"kind": "batch", "name": "x", "model": "llama-3.1-8b", "items": "1k", "input_tokens": 10, "output_tokens": 10}
    assert session.plan(work, cloud="aws,gcp", chip="l4") == session.plan(work, cloud=["aws", "gcp"], chip=["l4"])


def test_a_batch_of_samples_is_planned_by_name(session: cw.Session) -> None:
    plan = session.plan("llama-3.1-8b", batch=True, samples="50k", input="1k", output=100, cloud="aws", on_demand=True)
    assert plan.kind == "batch"
    assert {choice.purchase for choice in plan.choices} == {"on-demand"}
    with pytest.raises(cw.BadInput, match="on_demand and spot cannot be combined") as caught:
        session.plan("llama-3.1-8b", batch=True, samples=5, on_demand=True, spot=True)
    assert caught.value.remedy == 'Give one of them, or limits={"purchase": ["on-demand", "spot"]} to allow both.'


def test_remedies_speak_of_keywords(session: cw.Session) -> None:
    with pytest.raises(cw.BadInput, match="Neither train nor serve"):
        session.predict("llama-3.1-8b", on="h100")
    with pytest.raises(cw.CannotRender, match=r'to="') as caught:
        session.render("examples/pipeline/workload.yaml", to="serverless")
    assert "--" not in str(caught.value)


def test_what_would_change_a_plan_is_said_as_keywords(session: cw.Session) -> None:
    plan = session.plan("llama-3.1-70b", serve=True, rps=1, input=100, output=100)
    assert isinstance(plan, cw.Plan)
    said = f"{plan.turns!r} {plan.answers!r} {plan.headline} {plan.risks} {plan.notes}"
    assert "--" not in said
    assert 'market="any"' in said
    nothing = session.plan("llama-3.1-70b", serve=True, rps=1, input=100, output=100, budget="1/month")
    assert isinstance(nothing, cw.NoPlan)
    assert "--" not in str(nothing)
    assert "--" not in f"{nothing.missing!r}"


@pytest.mark.parametrize(
    ("option", "keyword"),
    [
        ("Gone within a month: --market any", 'Gone within a month: market="any"'),
        ("Use --to argo or kubernetes.", 'Use to="argo" or kubernetes.'),
        ("--chips 8 is not --tp x --pp.", "chips=8 is not tp x pp."),
        ("Write --on CHIP,STAGE=CHIP.", 'Write on="CHIP,STAGE=CHIP".'),
        ("Say it: --tokens 2B, or --samples 50k.", 'Say it: tokens="2B", or samples="50k".'),
        ("Plan with --cloud aws,gcp, or so.", 'Plan with cloud="aws,gcp", or so.'),
        ("Plan with --chip T4,A100-80, or so.", 'Plan with chip="T4,A100-80", or so.'),
        ("Plan with --limit clouds=[aws], or so.", 'Plan with limits={"clouds": ["aws"]}, or so.'),
        ("See `chipwise render x.yaml --to ray`.", 'See `cw.render("x.yaml", to="ray")`.'),
        ("With --large, it is sooner.", "With large=True, it is sooner."),
        ("No flag --unknown of ours.", "No flag --unknown of ours."),
    ],
)
def test_options_become_keywords(option: str, keyword: str) -> None:
    known = ("to", "chips", "tp", "pp", "on", "tokens", "samples", "limits", "market", "large")
    assert in_python(cw.BadInput(option), known).message == keyword


def test_files_that_are_there_are_written_over_with_force(session: cw.Session, tmp_path: Path) -> None:
    files = cw.Files((cw.RenderedFile("compose", "a.yaml", "a: 1\n"),))
    files.write(tmp_path)
    with pytest.raises(cw.BadInput, match=r"write\(folder, force=True\)"):
        files.write(tmp_path)
    files.write(tmp_path, force=True)


def test_a_goal_without_a_unit_that_means_milliseconds_is_refused(session: cw.Session) -> None:
    asked: dict[str, Any] = {"serve": True, "rps": 5, "input": 1000, "output": 300}
    with pytest.raises(cw.InvalidSettings, match="800ms or 800s"):
        session.plan("llama-3.1-8b", ttft=800, **asked)
    with pytest.raises(cw.BadInput, match="50ms or 50s"):
        session.predict("llama-3.1-8b", on="h100", serve=True, tpot=50)
    work = cw.Serve(model="llama-3.1-8b", arrival=1, input_tokens=1, output_tokens=1, goals={"ttft": "100s", "tpot": 2})
    assert session.check(work).workload.goals.ttft.p90 == 100
    with pytest.raises(cw.InvalidSettings, match=r"goals\.ttft: 800 has no unit"):
        cw.Serve(model="llama-3.1-8b", arrival=1, input_tokens=1, output_tokens=1, goals={"ttft": {"p99": 800}})


def test_a_cost_in_python_keeps_its_interval(session: cw.Session) -> None:
    plan = session.plan("llama-3.1-8b", batch=True, samples="50k", input="1k", output=100, cloud="aws", large=True)
    cost = plan.best.usd_interval
    assert cost.low <= plan.best.usd <= cost.high
    assert cost.unit == "USD"


@pytest.mark.parametrize("kind", [cw.Serve, cw.Train, cw.Pipeline])
def test_help_of_a_workload_is_its_fields(kind: type[Any]) -> None:
    lines = pydoc.plain(pydoc.render_doc(kind)).splitlines()
    assert len(lines) <= 60
    listed = {line.split()[1] for line in lines if line.startswith(" |    ") and len(line.split()) > 1}
    assert set(kind.model_fields) - {"kind"} <= listed
    assert not any("pydantic_" in line for line in lines)
