"""Auditing takes time in proportion to what it reads: twice as long a list, twice the work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from chipwise.auditor.auditing import audit
from chipwise.auditor.rules import open_secrets
from chipwise.auditor.source import Sources

FEW, MANY = 40, 160  # entries of a list
BUDGET = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: service-%(at)d}
spec:
  replicas: 2
  template:
    metadata: {labels: {team: media, app: service-%(at)d}}
    spec: {containers: [{name: main, image: "team/main:1"}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: service-%(at)d}
spec: {selector: {matchLabels: {team: media, app: service-%(at)d}}}
"""


def budgets(many: int) -> str:
    return "".join(BUDGET % {"at": at} for at in range(many))


def pod(many: int) -> str:
    resources = "resources: {limits: {nvidia.com/gpu: 2}}"
    mounts = "volumeMounts: [{name: shm, mountPath: /dev/shm}]"
    return "\n".join(
        [
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: many}",
            "spec:\n  template:\n    spec:\n      initContainers:",
            *(f"      - {{name: first-{at}, image: 'team/first:1'}}" for at in range(many)),
            "      containers:",
            *(f"      - {{name: main-{at}, image: 'team/main:1', ports: [{at}], {resources}, {mounts}}}" for at in range(many)),
            "      volumes:",
            *(f"      - {{name: volume-{at}, emptyDir: {{}}}}" for at in range(many)),
        ]
    )


def calls(work: Callable[[], object]) -> int:
    """Calls of functions, ours and built in ones: the same number on every machine."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    earlier = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(earlier)
    return count


@pytest.mark.parametrize("written", [budgets, pod])
def test_four_times_the_list_takes_four_times_the_work(written: Callable[[int], str]) -> None:
    audit([("many.yaml", written(1))])  # rules are imported once
    few, many = (calls(partial(audit, [("many.yaml", written(size))])) for size in (FEW, MANY))
    assert many < 1.3 * few * MANY / FEW


def test_lines_before_a_secret_are_counted_once() -> None:
    scanned = 0

    class Text(str):
        def count(self, part: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
            nonlocal scanned
            scanned += (len(self) if end is None else end) - start
            return str(self).count(part, start, len(self) if end is None else end)

    text = Text("".join(f"key: AKIA{at:016d}\n" for at in range(1, MANY + 1)))
    lines = [finding.line for finding in open_secrets.check(Sources(texts=(("keys.yaml", text),)))]
    assert lines == list(range(1, MANY + 1))
    assert scanned <= len(text)


@pytest.mark.parametrize("name", ["{a: b}", "[a]", "null", "7"])
def test_names_that_are_no_names_are_no_crash(name: str) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: main\n    image: team/main:1\n"
        "    resources: {limits: {nvidia.com/gpu: 2}}\n"
        f"    volumeMounts: [{{name: {name}, mountPath: /dev/shm}}]\n  volumes: [{{name: {name}, emptyDir: {{}}}}]\n"
    )
    assert "shared-memory" not in {finding.rule for finding in audit([("pod.yaml", text)]).findings}
