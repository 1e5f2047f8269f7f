"""`chipwise policies`: the rules that spend money while something runs."""

from __future__ import annotations

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def policies(as_json: bool) -> None:
    """List policies: what each decides, and what it needs to know.

    Compare them with chipwise simulate. A policy of your own is a Python file that defines decide(state) for spot machines,
    decide(signals) for scaling, or rank(job) for a queue.

    \b
    Examples:
      chipwise policies
      chipwise policies --json
    """
    from dataclasses import asdict

    from chipwise.api import policies as listed
    from chipwise.cli import text

    entries = listed()
    if as_json:
        text.show_json([asdict(entry) for entry in entries])
        return
    columns = [
        text.Column("policy"),
        text.Column("for"),
        text.Column("what it does", flexible=True, fold=True),
        text.Column("needs", flexible=True, fold=True),
    ]
    text.show_table(columns, [[entry.name, entry.kind, entry.summary, entry.needs] for entry in entries])
