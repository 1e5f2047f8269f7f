"""Errors and sentences of the Python API name calls and keywords, never commands and options of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import chipwise as cw
from chipwise.public.calling import as_keywords

SERVE: dict[str, Any] = {"serve": True, "rps": 5, "input": 1000, "output": 300, "cloud": "aws", "chip": "l40s"}
PIPELINE = "examples/pipeline/workload.yaml"
TRAIN = {"kind": "train", "name": "big", "model": "llama-3.1-8b", "tokens": "1B"}
OF_COMMANDS = re.compile(r"\bchipwise [a-z]+|(?<![\w-])--[a-z]|standard input|arguments (?:is|plans)|arguments-")


def wrong_calls(api: Any, folder: Path) -> dict[str, Callable[[], object]]:
    """Every function that can be called wrongly without doing anything."""
    nowhere = str(folder / "nowhere")
    named = ("describe", "logs", "stop", "resume", "retry", "find_job", "forget", "doctor")
    calls: dict[str, Callable[[], object]] = {name: partial(getattr(api, name), "nowhere") for name in named}
    return calls | {
        "accuracy": lambda: api.accuracy(since="yesterday"),
        "audit": lambda: api.audit(nowhere),
        "bench": lambda: api.bench(nowhere, on=["local:cpus=1"], steps=2),
        "calibrate": lambda: api.calibrate(nowhere),
        "catalog_forget": lambda: api.catalog_forget("nowhere"),
        "catalog_import": lambda: api.catalog_import(nowhere),
        "catalog_refresh": lambda: api.catalog_refresh("nowhere"),
        "catalog_show": lambda: api.catalog_show("nowhere"),
        "characterize": lambda: api.characterize([]),
        "chips": lambda: api.chips("h1000"),
        "compare": lambda: api.compare("llama-3.1-8b"),
        "compare pipeline": lambda: api.compare(Path(PIPELINE).read_text()),
        "explain": lambda: api.explain("zzzz"),
        "fits": lambda: api.fits("llama-3.1-8b", on="zzz"),
        "health": lambda: api.health(nowhere),
        "init": lambda: api.init("zzz"),
        "load": lambda: api.load(TRAIN, url="http://127.0.0.1:9"),
        "machines": lambda: api.machines("zzz"),
        "models": lambda: api.models("zzz", offline=True),
        "offers": lambda: api.offers(chip="zzz"),
        "open": lambda: cw.open(config_dir=nowhere),
        "pack": lambda: api.pack([TRAIN, TRAIN]),
        "places_allow": lambda: api.places_allow("nowhere", team="x"),
        "members": lambda: api.members(),
        "plan": lambda: api.plan("llama-3.1-8b"),
        "plan unknown": lambda: api.plan("zzz", **SERVE),
        "plan cloud": lambda: api.plan("llama-3.1-8b", **{**SERVE, "cloud": "zzz"}),
        "plan batch": lambda: api.plan("llama-3.1-8b", batch=True, tokens=5),
        "plan finetune": lambda: api.plan("llama-3.1-8b", finetune=True),
        "plan day": lambda: api.plan("llama-3.1-8b", serve=True, peak=5, input=1, output=1),
        "predict": lambda: api.predict("llama-3.1-8b", on="h100"),
        "predict on": lambda: api.predict("llama-3.1-8b", on="zzz", train=True),
        "rate": lambda: api.rate(PIPELINE),
        "regions": lambda: api.regions("zzz"),
        "render": lambda: api.render(TRAIN, "zzz"),
        "render nothing": lambda: api.render(TRAIN),
        "run": lambda: api.run([]),
        "run engine": lambda: api.run(["true"], engine="zzz"),
        "score": lambda: api.score(nowhere),
        "serve": lambda: api.serve(TRAIN),
        "serve_status": lambda: api.serve_status("zzz"),
        "serve_stop": lambda: api.serve_stop("zzz"),
        "serve_scale": lambda: api.serve_scale("zzz", 2),
        "simulate_spot": lambda: api.simulate_spot(synthetic="zzz=1", job_hours=1, deadline_hours=2, restart_hours=0.1),
        "simulate_queue": lambda: api.simulate_queue(synthetic="zzz=1", gpus=2),
        "simulate_serve": lambda: api.simulate_serve(synthetic="zzz=1", policy="zzz"),
        "tco": lambda: api.tco("zzz"),
        "watch": lambda: api.watch("zzz"),
    }


def test_no_error_speaks_of_the_command_line(session: cw.Session, tmp_path: Path) -> None:
    wrong = []
    for name, call in wrong_calls(session, tmp_path).items():
        try:
            call()
            wrong.append(f"{name}: no error")
        except cw.ChipwiseError as error:
            if OF_COMMANDS.search(str(error)):
                wrong.append(f"{name}: {error}")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert wrong == []


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("`chipwise init serve` writes one", '`cw.init("serve")` writes one'),
        ("`chipwise ps --all` lists all.", "`cw.ps(everything=True)` lists all."),
        ("See `chipwise render --list`.", "See `cw.targets()`."),
        (
            "Write chipwise run -- COMMAND or chipwise run WORKLOAD.yaml.",
            'Write cw.run(["COMMAND"]) or cw.run("WORKLOAD.yaml").',
        ),
        ("`chipwise serve status` lists them.", "`cw.serve_status()` lists them."),
        ("chipwise plan arguments-1 plans it.", "cw.plan(...) plans it."),
        ("chipwise members lists the roles.", "cw.members() lists the roles."),
        ("`chipwise explain h100 --with cuda=11.6`", '`cw.explain("h100", components={"cuda": "11.6"})`'),
        ("use --cloud aws and --commit 1y, or --cloud and so on", 'use cloud="aws" and commit="1y", or cloud and so on'),
        ("arguments is a pipeline.", "The workload is a pipeline."),
        ("For example: chipwise serve -- ./server 80.", 'For example: cw.serve(["./server", 80]).'),
        ("a bug in chipwise is one", "a bug in chipwise is one"),
    ],
)
def test_a_command_becomes_a_call(command: str, call: str) -> None:
    assert as_keywords(command) == call


def test_why_a_name_lost_is_said_in_python(session: cw.Session) -> None:
    plan = session.plan("llama-3.1-8b", **SERVE)
    assert not OF_COMMANDS.search(repr(plan.why("h100")) + repr(plan.why("gcp")))
