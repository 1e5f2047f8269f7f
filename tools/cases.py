"""Writes docs/cases.md: what was expected of well-known cases before the planner met them, and what it says.

`python tools/cases.py` plans every workload of tests/cases (the words of an expectation are in its README) and explains each
disagreement from tests/cases/disagreements.csv; one that nobody has explained is shown as open.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.api.catalog.check import check
from chipwise.api.quick import with_limits
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan_any
from chipwise.api.views.pipeline import pipeline_view
from chipwise.api.views.plan import plan_view
from chipwise.errors import ChipwiseError
from chipwise.planner.values.plan import Plan
from chipwise.predictor.fits import fits as fits_verb

ROOT = Path(__file__).resolve().parent.parent
CASES = Path("tests/cases")  # from the root, so that messages name no folder of whoever ran it
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
_TOKEN = re.compile(r"\s*(>=|<=|[=(){},:]|[^\s=<>(){},:]+)")


@dataclass(slots=True)
class Asked:
    """One workload file, planned when first asked."""

    session: Session
    path: Path
    found: dict[str, Any] = field(default_factory=dict)
    given: str = ""  # software that must run

    def view(self, *limits: str) -> Mapping[str, Any] | str:
        """The plan as JSON has it, or the sentence that it ended with."""
        limits = (*limits, f"requires=[{self.given}]") if self.given else limits
        key = "|".join(limits)
        if key not in self.found:
            try:
                text = with_limits(self.path.read_text(encoding="utf-8"), str(self.path), limits)
                found = plan_any(self.session, str(self.path), text=text)
                self.found[key] = plan_view(found) if isinstance(found, Plan) else pipeline_view(found)
            except ChipwiseError as error:
                self.found[key] = str(error)
        view: Mapping[str, Any] | str = self.found[key]
        return view


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
        stage, dot, of_stage = name.partition(".")
        if dot:
            name, winner = of_stage, next(one["choice"] for one in view["stages"] if one["name"] == stage)
            return winner is not None and _matches(asked.session, winner, name, sign, values) != turned
        winner = view["winner"]
        if name == "help":
            remedies = " ".join(one["remedy"] for one in view["missing"])
            return any(word in remedies for value in values for word in HELP[value].split()) != turned
        if name == "family" and view["service_is_cheaper"]:
            return ("serverless" in values) != turned
        if winner is None:
            return False
        return _matches(asked.session, winner, name, sign, values) != turned


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


def _matches(session: Session, winner: Mapping[str, Any], name: str, sign: str, values: Sequence[str]) -> bool:
    numbers: dict[str, Callable[[], float]] = {
        "chips": lambda: winner["machines"] * winner["chips_per_machine"],
        "machines": lambda: winner["machines"],
        "replicas": lambda: winner["replicas"] or 1,
        "usd": lambda: winner["usd"],
        "watts": lambda: winner["watts"]["machine"],
        "grid": lambda: _region(session, winner).grid_g_per_kwh or 1e9,
    }
    if name in numbers:
        found = float(numbers[name]())
        wanted = [float(value) for value in values]
        return {">=": found >= wanted[0], "<=": found <= wanted[0]}.get(sign, found in wanted)
    if name == "chip":
        return winner["chip"] in {chip.name for value in values for chip in session.names.chips_or_none(value) or ()}
    if name == "family" and winner.get("quantum"):  # of a hybrid workload the quantum part
        return winner["quantum"]["kind"] in values
    if name == "family":
        part = session.parts.find(winner["chip"].partition(" (")[0])
        return (part.kind if part else winner["family"].split()[0].lower()) in values
    return str(winner.get(name, "")).split("-1y")[0] in values or str(winner.get(name)) in values


def _region(session: Session, winner: Mapping[str, Any]) -> Any:
    return session.catalog.regions[session.catalog.region_index[winner["provider"], winner["region"]]]


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


@cache
def explained() -> Mapping[str, str]:
    path = CASES / "disagreements.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["case"]: row["explanation"] for row in csv.DictReader(file)}


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    session = open_session()
    planned: dict[str, Asked] = {}
    with (CASES / "expected.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            asked = planned.setdefault(row["workload"], Asked(session, CASES / row["workload"]))
            expected = Expression(row["expectation"])
            found = expected.holds(asked)
            verdict = "agrees" if found is True else "differs" if found is False else "not planned yet"
            why = "" if found is True else explained().get(row["case"], "open" if found is False else str(found))
            told = said(replace(asked, given=expected.given.replace("=", ">=")).view())
            yield row["case"], row["expectation"], told, verdict, why
            print(f"{row['case']}: {verdict} | {told}", file=sys.stderr, flush=True)


def main() -> None:
    os.chdir(ROOT)
    found = list(rows())
    agree = sum(row[3] == "agrees" for row in found)
    lines = [
        "# Well-known cases",
        "",
        "Written by `python tools/cases.py`. The expectations (`tests/cases`, with reasons) were committed before the planner",
        f"was run on any of them. {agree} of {len(found)} agree.",
        "",
        "| Case | Expected | The planner says | | Why they differ |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in found),
    ]
    (ROOT / "docs" / "cases.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
