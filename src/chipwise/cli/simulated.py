"""What the commands below `simulate` share: names of policies as they are typed, and the table of answers."""

from __future__ import annotations

from collections.abc import Sequence


def policy_names(policies: str) -> tuple[str, ...]:
    """Each once, in the order in which they are typed."""
    return tuple(dict.fromkeys(filter(None, (name.strip() for name in policies.split(",")))))


def show_answers(figures: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A row for each policy: its name, and these figures."""
    from chipwise.cli import text

    text.show_table([text.Column("policy"), *(text.Column(name, right=True) for name in figures)], rows)
