"""Every command that takes a workload file, every file that is here, every engine and every way to buy: what must never crash.

An answer is an exit code of those that are documented, without a traceback; which one is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from chipwise.api import templates
from chipwise.workload.goals import Buying
from chipwise.workload.program import Engine
from command import ROOT, Chipwise, Done

DOCUMENTED = (0, 1, 2, 3)
ENGINES: tuple[str, ...] = tuple(map(str, Engine))
PURCHASES: tuple[str, ...] = tuple(map(str, Buying))
# What stands for the workload file and for a folder that is the command's own.
FILE, FOLDER = "FILE", "FOLDER"
# Those that answer in a few hundredths of a second, and those that plan. Commands without a workload file are not here.
QUICK = (("check", FILE), ("predict", FILE, "--on", "h100"), ("predict", FILE, "--on", "jetson-orin-nano"), ("pack", FILE))
PLANNING = (
    ("plan", FILE, "--full", "--why", "h100", "--html", f"{FOLDER}/page.html"),
    ("plan", FILE, "--json", "--all", "--mix"),
    ("compare", FILE, "--by", "provider"),
    ("compare", FILE, "--by", "region"),
    ("compare", FILE, "--by", "generation"),
    ("rate", FILE, "--why"),
    ("render", FILE, "--list"),
    ("render", FILE, "--to", "kubernetes", "--out", f"{FOLDER}/kubernetes"),
    ("run", FILE, "--simulate"),
)
COMMANDS = (*QUICK, *PLANNING)
CASES = 4  # one in so many of those that are planned elsewhere


@cache
def workload_files() -> Mapping[str, str]:
    """The texts by name: examples, some of the cases, and what `chipwise init` writes."""
    paths = [*sorted(ROOT.glob("examples/*/*.yaml")), *sorted(ROOT.glob("tests/cases/*.yaml"))[::CASES]]
    stored = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    return stored | {f"init {kind}": templates.text(kind) for kind in templates.kinds()}


@cache
def all_cases() -> Mapping[str, str]:
    """The texts of the cases that are not among `workload_files`."""
    paths = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.glob("tests/cases/*.yaml"))}
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if name not in workload_files()}


def with_engine(text: str, engine: str) -> str:
    """The same workload, or each stage of it, with this engine."""
    work: dict[str, Any] = yaml.safe_load(text)
    for part in work.get("stages", [work]):
        part["program"] = {**(part.get("program") or {}), "engine": engine}
    return yaml.safe_dump(work, sort_keys=False)


def with_purchase(text: str, purchase: str) -> str:
    """The same workload, bought in this way."""
    work: dict[str, Any] = yaml.safe_load(text)
    return yaml.safe_dump({**work, "limits": {**(work.get("limits") or {}), "purchase": [purchase]}}, sort_keys=False)


@dataclass(frozen=True)
class Cell:
    """One command on one file."""

    command: tuple[str, ...]
    file: str
    engine: str | None = None
    purchase: str | None = None

    def __str__(self) -> str:
        options = [f"engine {self.engine}" if self.engine else "", f"purchase {self.purchase}" if self.purchase else ""]
        return ", ".join(filter(None, (" ".join(self.command), self.file, *options)))

    def run(self, chipwise: Chipwise, folder: Path) -> Done:
        text = {**workload_files(), **all_cases()}[self.file]
        text = with_engine(text, self.engine) if self.engine else text
        by_option = self.command in PLANNING
        path = folder / "workload.yaml"
        path.write_text(with_purchase(text, self.purchase) if self.purchase and not by_option else text, encoding="utf-8")
        words = [word.replace(FILE, str(path)).replace(FOLDER, str(folder)) for word in self.command]
        bought = ("--limit", f"purchase={self.purchase}") if self.purchase and by_option else ()
        return chipwise(*words, *bought)


def fault(cell: Cell, done: Done) -> str | None:
    """What is wrong with an answer."""
    if done.code not in DOCUMENTED or "Traceback" in done.err or (done.code and not (done.err or done.out).strip()):
        return f"{cell}: exit code {done.code}: {done.err.strip()[-400:]}"
    return None


def triples(command: tuple[str, ...]) -> Iterator[Cell]:
    """One command with every engine and every purchase option, on all files and cases in turn."""
    files = [*workload_files(), *all_cases()]
    pairs = [(engine, purchase) for engine in ENGINES for purchase in PURCHASES]
    start = COMMANDS.index(command) * len(pairs)
    for index, (engine, purchase) in enumerate(pairs, start):
        yield Cell(command, files[index % len(files)], engine, purchase)


def diagonal() -> Iterator[Cell]:
    """Each command, file, engine and purchase option at least once: the slow commands on one file each, the quick ones on all
    others in turn."""
    files = list(workload_files())
    step = len(files) // len(PLANNING)
    slow = {files[index * step]: command for index, command in enumerate(PLANNING)}
    for index, file in enumerate(files):
        command = slow.get(file) or QUICK[index % len(QUICK)]
        turn = list(slow).index(file) if file in slow else index
        yield Cell(command, file, ENGINES[turn % len(ENGINES)], PURCHASES[turn % len(PURCHASES)])
