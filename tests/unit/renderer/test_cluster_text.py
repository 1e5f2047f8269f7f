"""Whatever a user writes as name, label, setting or command stays text in the files for clusters."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.renderer.deployment import Deployment
from deployments import on_few_offers as deployment
from effort import cases

NASTY = [
    "'",
    '"',
    "a: b",
    "- x",
    "# c",
    "${X}",
    "$(id)",
    "{{ .Values }}",
    "a\nb: c",
    "---",
    "\n---\nkind: Pod\n",
    "\x00",
    "é😀",
    "x" * 10_000,
    "",
    " ",
    "null",
    "*a",
    "&a",
    "!!python/object",
    "%{if}",
    "\u2028",
    "\ud7ff",
]
TEXT = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
CASES = {
    "kubernetes": ("train", "clouds=[aws]"),
    "kueue": ("train", "clouds=[aws]"),
    "karpenter": ("train", "clouds=[aws]"),
    "eksctl": ("train", "clouds=[aws]"),
    "keda": ("batch", "clouds=[aws]"),
}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the plain one takes seconds
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def kinds(target: str, planned: Deployment) -> list[str]:
    files = import_module(f"chipwise.renderer.targets.{target}").render(planned)
    found: list[dict[str, Any]] = [one for file in files for one in yaml.load_all(file.text, LOADER)]
    for one in found:
        for value in one.get("metadata", {}).get("labels", {}).values():
            assert LABEL.fullmatch(value), value
    return [one["kind"] for one in found]


@pytest.mark.parametrize("target", CASES)
@given(texts=st.lists(TEXT, min_size=4, max_size=4))
@settings(max_examples=cases(12), deadline=None)
def test_hostile_text_makes_no_object_and_breaks_no_file(target: str, texts: list[str]) -> None:
    planned = deployment(*CASES[target])
    title, label, setting, word = texts
    software = replace(planned.software, command=("run", word), is_custom=True, env=(("A", setting),))
    hostile = replace(planned, title=title, software=software, labels={"team": label, title: label}, description=word)
    given = replace(planned, software=replace(planned.software, is_custom=True))
    assert kinds(target, hostile) == kinds(target, given)
