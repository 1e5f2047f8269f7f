"""What every target keeps to, whichever it is: files or a reason, the same each time, and no text of a user that breaks out."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml

from chipwise.auditor.auditing import audit, kind_of
from chipwise.renderer.deployment import Deployment, Volume
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.named_targets import files, target, target_names
from deployments import NAMES, on_few_offers
from effort import LONG
from fixed_deployments import CASES
from golden_files import cases_of, is_audited

HOSTILE = [
    'a"b',
    "a'b",
    "line\nbreak",
    "${HOME}",
    "$(touch owned)",
    "`id`",
    "{{ .Values.x }}",
    "%{ if true }",
    "$${x}",
    "a: b # c",
    "--flag",
    "- x",
    "\\",
    "\\n",
    "\t",
    "é😀\u2028",
    "</script>",
    "x" * 10_000,
    "*",
    "!!python/object",
    "EOF",
    "'''",
    '"""',
    "#{x}",
    "${{ secrets.X }}",
]
# libyaml is ten times as fast as the parser in Python, which reads the first case with every hostile text.
SLOW = yaml.loader.SafeLoader
FAST = getattr(yaml, "CSafeLoader", SLOW)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


known = cache(target)  # which looks into its folder each time


def rendered(name: str, what: Deployment) -> list[File] | None:
    try:
        return files(name, known(name), what)
    except CannotRender as error:
        if not error.remedy:
            pytest.fail(f"a refusal says what can be done instead: {error}")
        return None


@pytest.mark.parametrize("name", target_names())
def test_a_target_says_what_it_fits(name: str) -> None:
    assert 10 <= len(target(name).FITS) <= 120


@pytest.mark.chance
@pytest.mark.parametrize("example", NAMES if LONG else NAMES[::3])
def test_every_target_renders_an_example_or_refuses_it_with_a_reason(example: str) -> None:
    what = on_few_offers(example)
    for name in target_names():
        made = rendered(name, what)
        assert made == rendered(name, what), f"{name}: the same each time"
        for file in made or ():
            _sound(file, FAST)


@pytest.mark.parametrize("name", target_names())
def test_a_target_fits_something(name: str) -> None:
    assert all(rendered(name, CASES[case]) for case in cases_of(name))


@pytest.mark.parametrize("name", target_names())
def test_no_text_of_a_user_breaks_out(name: str) -> None:
    """Every file still parses as what it is, and holds the text, where it holds it, as text.

    Every case has all texts as words, settings and labels; where there is room for one only, cases take turns.
    """
    cases = cases_of(name)
    for case in cases:
        for file in rendered(name, _hostile(CASES[case], HOSTILE[0], HOSTILE)) or ():
            _sound(file, SLOW if case == cases[0] else FAST)
    for at, text in enumerate(HOSTILE):
        for file in rendered(name, _hostile(CASES[cases[at % len(cases)]], text, [text])) or ():
            _sound(file, FAST)


@pytest.mark.parametrize("name", [name for name in target_names() if is_audited(name)])
def test_what_is_rendered_passes_our_own_audit(name: str) -> None:
    for case in cases_of(name):
        found = audit((file.path, file.text) for file in rendered(name, CASES[case]) or () if kind_of(file.path)).findings
        assert [one for one in found if one.weight != "low"] == [], case


def _hostile(what: Deployment, text: str, texts: list[str]) -> Deployment:
    software = replace(
        what.software,
        command=(*what.software.command, *texts),
        env=(*what.software.env, *((f"SETTING_{at}", one) for at, one in enumerate(texts))),
        is_custom=True,
    )
    labels = dict(what.labels) | {"owner": text, "team": text} | {f"note-{at}": one for at, one in enumerate(texts)}
    stages = tuple(_hostile(stage, text, texts) for stage in what.stages)
    volumes = tuple(
        replace(one, url=None if one.url is None else f"s3://bucket/{text}") if isinstance(one, Volume) else one
        for one in what.volumes
    )
    return replace(
        what, title=text, description=text, labels=labels, software=software, stages=stages, volumes=volumes, notes=tuple(texts)
    )


@cache
def _sound(file: File, loader: Any) -> None:
    """It is what its name says, ends in a newline, stays in its directory and hides nothing.

    Targets share files, and many hold no text of a user: what was found sound is not read again.
    """
    assert file.text.endswith("\n")
    assert not file.text.endswith("\n\n\n")
    assert not file.path.startswith("/")
    assert ".." not in file.path.split("/")
    assert not _CONTROL.search(file.text), "no control characters"
    match file.path.rpartition(".")[2]:
        case "yaml" | "yml":
            documents = list(yaml.load_all(file.text, loader))
            assert documents
            assert all(one is not None for one in documents)
        case "json":
            json.loads(file.text)
        case "py":
            ast.parse(file.text)
        case "sh" | "sbatch":
            header = "# What launch.sh reads." if file.path.endswith("settings.sh") else "#!"  # read, not run
            assert file.text.startswith(header)
            read = subprocess.run(["bash", "-n"], input=file.text, capture_output=True, text=True, timeout=30)
            assert read.returncode == 0, read.stderr
