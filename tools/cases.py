"""Writes docs/cases.md: what was expected of well-known cases before the planner met them, and what it says.

`python tools/cases.py` plans every workload of tests/cases (its README has the words of an expectation, `case_figures` what
they compare) and explains each disagreement from tests/cases/disagreements.csv; one that nobody has explained is shown as open.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from case_figures import Subject, says
from chipwise.api.catalog.check import check
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan_any
from chipwise.errors import ChipwiseError
from chipwise.planner.options import with_limits
from chipwise.planner.values.plan import Plan
from chipwise.predictor.fits import fits as fits_verb
from chipwise.views.pipeline import pipeline_view
from chipwise.views.plan import plan_view

ROOT = Path(__file__).resolve().parent.parent
CASES = Path("tests/cases")  # from the root, so that messages name no folder of whoever ran it
TODAY = date(2026, 11, 15)  # so that prices are as old whenever it is run
OWN = "own-"  # workloads of those who have machines of their own begin so
HELP = {
    "precision": "precision fp8 int8 int4",
    "method": "lora adapters",
    "chips": "more chips",
    "chip": "larger chip",
    "budget": "budget",
    "deadline": "deadline later",
    "goal": "looser",
    "device": "device",
}
AGREES = "agrees"
_TOKEN = re.compile(r"\s*(>=|<=|[=(){},:]|[^\s=<>(){},:]+)")


@dataclass(slots=True)
class Asked:
    """One workload file, planned when first asked."""

    session: Session
    path: Path
    found: dict[str, Any] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    given: str = ""  # software that must run

    def view(self, *limits: str) -> Mapping[str, Any] | str:
        """The plan as JSON has it, or the sentence that it ended with."""
        limits = (*limits, f"requires=[{self.given}]") if self.given else limits
        key = "|".join(limits)  # of `plan`, too
        if key not in self.found:
            try:
                text = with_limits(self.path.read_text(encoding="utf-8"), str(self.path), limits)
                found = plan_any(self.session, str(self.path), text=text)
                self.found[key] = plan_view(found) if isinstance(found, Plan) else pipeline_view(found)
                if isinstance(found, Plan):
                    self.plans[key] = found
            except ChipwiseError as error:
                self.found[key] = str(error)
        view: Mapping[str, Any] | str = self.found[key]
        return view

    @property
    def plan(self) -> Plan | None:
        return self.plans.get(f"requires=[{self.given}]" if self.given else "")


class Expression:
    """Recursive descent over the README's grammar; every node is a function of the asked workload."""

    def __init__(self, text: str) -> None:
        given, colon, rest = text.partition(":")
        self.given = given.removeprefix("given ").strip() if text.startswith("given ") and colon else ""
        self.tokens = _TOKEN.findall(rest if self.given else text)
        self.at = 0

    def holds(self, asked: Asked) -> bool | str:
        """Or why it cannot be said."""
        self.at = 0
        asked = replace(asked, given=self.given.replace("=", ">="))
        view = asked.view()
        if isinstance(view, str):
            return view
        return self._any(asked, view)

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        self.at += 1
        return str(self.tokens[self.at - 1]) if self.at <= len(self.tokens) else ""

    def _any(self, asked: Asked, view: Mapping[str, Any]) -> bool:
        found = self._all(asked, view)
        while self._peek() == "or":
            self._next()
            found = self._all(asked, view) or found
        return found

    def _all(self, asked: Asked, view: Mapping[str, Any]) -> bool:
        found = self._one(asked, view)
        while self._peek() == "and":
            self._next()
            found = self._one(asked, view) and found
        return found

    def _one(self, asked: Asked, view: Mapping[str, Any]) -> bool:
        turned = self._peek() == "not"
        if turned:
            self._next()
        if self._peek() == "(":
            self._next()
            found = self._any(asked, view)
            self._next()
            return found != turned
        word = self._next()
        if word == "plan":
            return bool(view["fits"]) != turned
        if word == "no":
            self._next()
            return self._no_plan(view) != turned
        if word == "rejected":
            chip, _, reason = self._next(), self._next(), self._next()
            return _rejected(asked, chip, reason) != turned
        if word == "fits":
            return self._fits(asked) != turned
        if word == "says":
            return says(view, asked.plan, self._next()) != turned
        return self._compared(asked, view, word, turned)

    def _no_plan(self, view: Mapping[str, Any]) -> bool:
        if self._peek() != ":":
            return not view["fits"]
        self._next()
        return not view["fits"] and _among(self._next(), view)

    def _fits(self, asked: Asked) -> bool:
        words = []
        while self._peek() and self._peek() not in ("and", "or", ")"):
            words.append(self._next())
        return _fits(asked, words)

    def _compared(self, asked: Asked, view: Mapping[str, Any], name: str, turned: bool) -> bool:
        sign = self._next()
        values = [self._next()]
        if sign == "in":
            values = []
            while (token := self._next()) and token != "}":
                if token != ",":
                    values.append(token)
        path = str(asked.path)
        stage, dot, of_stage = name.partition(".")
        if dot:
            name, winner = of_stage, next(one["choice"] for one in view["stages"] if one["name"] == stage)
            return winner is not None and Subject(asked.session, path, winner, view, None).matches(name, sign, values) != turned
        winner = view["winner"]
        if name == "help":
            remedies = " ".join(one["remedy"] for one in view["missing"])
            return any(word in remedies for value in values for word in HELP[value].split()) != turned
        if winner is None and name in ("first", "family") and asked.plan is not None and asked.plan.service is not None:
            return any(value in values for value in ("service", "serverless")) != turned
        if winner is None:
            return False
        return Subject(asked.session, path, winner, view, asked.plan).matches(name, sign, values) != turned


def _among(reason: str, view: Mapping[str, Any]) -> bool:
    told = " ".join(f"{one['what']} {one['how_much']}" for one in view["missing"])
    return reason in told


def _rejected(asked: Asked, chip: str, reason: str) -> bool:
    view = asked.view(f"chips=[{chip}]")
    return not isinstance(view, str) and not view["fits"] and _among(reason, view)


def _fits(asked: Asked, words: Sequence[str]) -> bool:
    work = check(asked.session, str(asked.path)).workload
    chip, *rest = words
    many = next((int(word[1:]) for word in rest if re.fullmatch(r"x\d+", word)), 1)
    method = next((word for word in rest if word in ("full", "lora", "qlora")), None)
    precision = next(word for word in rest if word not in (method, f"x{many}"))
    settings: dict[str, Any] = {"tp": many, "chips": many}
    if method:
        settings |= {"train": True, "method": method, "precision": "bf16", "context": getattr(work, "sequence_length", None)}
        settings |= {"optimizer": str(getattr(work, "optimizer", "adamw"))}
        if getattr(work, "recompute", None) is not None:
            settings["recompute"] = str(work.recompute)  # type: ignore[union-attr]
    else:
        settings |= {"precision": precision}
        length = getattr(work, "context", None) or getattr(getattr(work, "input_tokens", None), "max", None)
        settings |= {"context": length} if length else {}
    try:
        found = fits_verb(
            asked.session.known, str(getattr(work, "model", "")), chip, {k: v for k, v in settings.items() if v is not None}
        )
    except ChipwiseError:
        return False
    return found.fit.fits


def said(view: Mapping[str, Any] | str) -> str:
    if isinstance(view, str):
        return view
    if "stages" in view:
        return "; ".join(f"{one['name']}: {_told(one['choice'], one['per'])}" for one in view["stages"] if one["choice"])
    one = view["winner"]
    if one is None:
        return "nothing fits: " + "; ".join(f"{m['what']}: {m['how_much']}" for m in view["missing"])
    return _told(one, view["per"])


def _told(one: Mapping[str, Any], per: str) -> str:
    chips = one["machines"] * one["chips_per_machine"]
    part = one.get("quantum")
    beside = f" with circuits on {part['kind']} {part['device']}" if part and part["managed"] else ""
    beside = f" with circuits {part['device']}" if part and not part["managed"] else beside
    return (
        f"{chips:g} {one['chip']} {one['precision']}{beside}, {one['purchase']}, {one['provider']}: ${one['usd']:,.0f} a {per}"
    )


@dataclass(frozen=True, slots=True)
class Disagreement:
    mistaken: str  # expectation | product | neither
    explanation: str


@cache
def explained() -> Mapping[str, Disagreement]:
    with (ROOT / CASES / "disagreements.csv").open(encoding="utf-8", newline="") as file:
        return {row["case"]: Disagreement(row["mistaken"], row["explanation"]) for row in csv.DictReader(file)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case after its run."""

    case: str
    expectation: str
    answer: str
    verdict: str  # agrees | differs | not planned yet

    @property
    def disagreement(self) -> Disagreement | None:
        if self.verdict == AGREES:
            return None
        return explained().get(self.case, Disagreement("product", "Nobody has explained this yet."))

    @property
    def line(self) -> str:
        why = self.disagreement.explanation if self.disagreement else ""
        cells = (self.case, self.expectation, self.answer, self.verdict, why)
        return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"


def outcomes() -> Iterator[Outcome]:
    nowhere = ROOT / "tests" / "cases" / "no-such-folder"  # neither prices nor machines of whoever runs it
    plain = Session(Config(nowhere, nowhere), TODAY, [])
    own = Session(Config(ROOT / CASES / "own", nowhere), TODAY, [])
    planned: dict[str, Asked] = {}
    with (CASES / "expected.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            session = own if row["workload"].startswith(OWN) else plain
            asked = planned.setdefault(row["workload"], Asked(session, CASES / row["workload"]))
            expected = Expression(row["expectation"])
            found = expected.holds(asked)
            verdict = AGREES if found is True else "differs" if found is False else "not planned yet"
            answer = said(replace(asked, given=expected.given.replace("=", ">=")).view())
            yield Outcome(row["case"], row["expectation"], answer, verdict)
            print(f"{row['case']}: {verdict} | {answer}", file=sys.stderr, flush=True)


def page(found: Sequence[Outcome]) -> str:
    open_ones = [(one.case, other) for one in found if (other := one.disagreement) and other.mistaken == "product"]
    lines = [
        "# Well-known cases",
        "",
        "Written by `python tools/cases.py`. The expectations (`tests/cases`, with reasons) were committed before the planner",
        f"was run on any of them. {sum(one.verdict == AGREES for one in found)} of {len(found)} agree.",
        "",
        "## Open disagreements",
        "",
        "Here the expectation stands and the product is wrong, or cannot do it yet.",
        "",
        *(f"- `{case}`: {other.explanation}" for case, other in open_ones),
        "",
        "## All cases",
        "",
        "| Case | Expected | The planner says | | Why they differ |",
        "| --- | --- | --- | --- | --- |",
        *(one.line for one in found),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    os.chdir(ROOT)
    (ROOT / "docs" / "cases.md").write_text(page(list(outcomes())), encoding="utf-8")


if __name__ == "__main__":
    main()
