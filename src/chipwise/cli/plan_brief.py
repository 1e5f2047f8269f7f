"""The answer of `chipwise plan` on one screen: at most 30 lines of 80 columns; `--full` shows the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.cli import text

if TYPE_CHECKING:
    from chipwise.planner.values.plan import Plan

LINE_LIMIT = 30  # lines
ROWS = 3  # of the ranking, where there is room
_NOTES = 3  # lines of notes, where there are any
HINT = "--full shows costs, carbon, how to run it, and why other hardware lost."


def show_brief(plan: Plan, table: list[list[str]], row_count: int | None) -> None:
    """`table`: the lines of the ranking with one row, two rows and so on; `row_count`: rows that must be shown."""
    from chipwise.views.words import headline, objective_words, risk_line

    head = text.title_lines(f"{plan.workload}: {plan.kind}, {objective_words(plan.objective)}, per {plan.per}")
    opening = headline(plan)
    head += text.sentence_lines(
        opening, *filter(None, [risk_line(plan)]), "", *(f"{one.question} {one.told}" for one in plan.answers), ""
    )
    turns = [(one.what, one.told) for one in plan.turns if one.told not in opening]
    hint = text.sentence_lines(HINT)
    room = LINE_LIMIT - len(head) - len(table[0]) - len(hint)
    tail = [*_notes(plan.notes, min(max(room, 0), _NOTES)), *hint]
    ranking, changes = _fitting(len(head) + len(tail), table, turns, row_count)
    text.show_laid([*head, *ranking, *changes, *tail])


def show_nothing(plan: Plan, title: str = "", lead: str = "", full: bool = False) -> None:
    """No machine does it: what is missing, what would help, and which offers were left out. `lead`: what does it instead;
    `full`: with an example of every reason, however long that is."""
    from chipwise.views.words import example_words, missing_words, nothing_words, remedy_words, rule_words

    head = text.title_lines(title or f"{plan.workload}: {plan.kind}, per {plan.per}")
    reason = f"{nothing_words(plan.missing)}."
    head += text.sentence_lines(*((lead, "", f"No machine: {reason}") if lead else (reason,)), "")
    head += text.pair_lines([(one.what, f"{missing_words(one)}. Would help: {remedy_words(one)}.") for one in plan.missing])
    reasons = [f"{one.offers:,} offers: {rule_words(one.rule)}" for one in plan.refused]
    examples = [f"{rule}, such as {example_words(one)}" for rule, one in zip(reasons, plan.refused, strict=True)]
    lines = text.sentence_lines("", *examples)
    if not full and len(head) + len(lines) > LINE_LIMIT:
        lines = _first_of(text.sentence_lines("", *reasons), LINE_LIMIT - len(head))
    text.show_laid([*head, *lines])


def _first_of(lines: list[str], count: int) -> list[str]:
    """As many as there is room for, with where the others are."""
    if len(lines) <= count:
        return lines
    return [*lines[: max(count - 1, 1)], *text.sentence_lines("--full lists all reasons, each with an example.")]


def _notes(notes: Sequence[str], line_limit: int) -> list[str]:
    """The first of them, whole, in at most so many lines."""
    lines: list[str] = []
    for note in notes:
        if len(note_lines := text.sentence_lines(note)) <= line_limit - len(lines):
            lines += note_lines
    return lines


def _fitting(
    used: int, tables: list[list[str]], turns: Sequence[tuple[str, str]], row_count: int | None
) -> tuple[list[str], list[str]]:
    """The ranking and what would change the answer, about as many of both as there is room for."""
    candidates = tables[:ROWS] if row_count is None else tables[-1:]
    for rows, ranking in reversed(list(enumerate(candidates, start=1))):
        room = LINE_LIMIT - used - len(ranking)
        count = next((n for n in range(len(turns), 0, -1) if len(_changes(turns[:n])) <= room), 0)
        if count >= min(rows, len(turns)):
            return ranking, _changes(turns[:count])
    return candidates[0], _changes(turns[:count])


def _changes(turns: Sequence[tuple[str, str]]) -> list[str]:
    return ["", "What would change the answer:", *text.pair_lines(turns)] if turns else []
