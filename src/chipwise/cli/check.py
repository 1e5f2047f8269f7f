"""`chipwise check`: all the problems of a workload file at once, or what it says when there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from chipwise.api.workloads import Checked


@click.command()
@click.argument("path", type=click.Path(dir_okay=True), metavar="WORKLOAD.yaml")
@click.option("--environment", "-e", help="Show the workload with this environment laid over it; all are checked.")
@click.option("--online", is_flag=True, help="Ask the hub about models that are not in the registry.")
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda c, p, v: _schema(c, v),
    help="Print the JSON Schema.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: the workload, or its problems.")
def check(path: str, environment: str | None, online: bool, as_json: bool) -> None:
    """Check a workload file: every problem with its line, what is allowed, and the nearest valid name.

    \b
    Examples:
      chipwise check examples/serve/workload.yaml
      chipwise check workload.yaml --environment prod --json
      chipwise check --schema > workload.schema.json
    """
    from chipwise.api.wiring import open_session
    from chipwise.api.workloads import check as find
    from chipwise.cli import text
    from chipwise.errors import InvalidFile

    try:
        checked = find(open_session(), path, environment, online)
    except InvalidFile as error:
        if not as_json:
            count = len(error.problems)
            raise InvalidFile(
                error.path, error.problems, remedy=f"{count} problem{'s' if count > 1 else ''}. {error.remedy or ''}".rstrip()
            ) from None
        problems = [
            {
                "file": error.path,
                "line": p.line,
                "field": p.field,
                "message": p.message,
                "allowed": p.allowed,
                "nearest": list(p.nearest),
            }
            for p in error.problems
        ]
        text.show_json({"path": error.path, "valid": False, "problems": problems})
        raise click.exceptions.Exit(2) from None
    if as_json:
        view = {"path": path, "valid": True, "environment": environment, "environments": list(checked.parsed.environments)}
        workload: dict[str, Any] = checked.workload.model_dump(mode="json", by_alias=True)
        text.show_json({**view, "models": checked.parameters, "notes": list(checked.notes), "workload": workload})
    else:
        _show(checked)


def _schema(context: click.Context, wanted: bool) -> None:
    if wanted:
        from chipwise.workload.schema import schema_text

        click.echo(schema_text(), nl=False)
        context.exit()


def _show(checked: Checked) -> None:
    from chipwise.cli import text

    workload = checked.workload
    said = checked.parsed.laid.data  # in the file's own words: 72h, not 259200
    text.show_title(f"{checked.parsed.path}: fine - {workload.kind} workload {workload.name!r}")
    pairs = (
        [("models", ", ".join(f"{name} ({count:,} parameters)" for name, count in checked.parameters.items()))]
        if checked.parameters
        else []
    )
    for key, value in said.items():
        if key not in ("kind", "name", "description", "environments"):
            pairs += [(key.replace("_", " ") if i == 0 else "", line) for i, line in enumerate(_lines(value))]
    if checked.parsed.environments:
        pairs.append(("environments", ", ".join(checked.parsed.environments)))
    text.show_pairs(pairs + [("note", note) for note in checked.notes])


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [", ".join(f"{key} {_short(inner)}" for key, inner in value.items())]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [line for inner in value for line in _lines(inner)]
    return [_short(value)]


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} {_short(inner)}" for key, inner in value.items()) + ")"
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    return f"{value:,.10g}" if isinstance(value, float) else str(value)
