"""`chipwise check`: all the problems of a workload file at once, or what it says when there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from chipwise.api.catalog.check import Checked
    from chipwise.errors import Problem


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="WORKLOAD.yaml...")
@click.option("--environment", "-e", help="Show the workload of this environment; all environments are checked.")
@click.option("--online", is_flag=True, help="Ask the hub about models that are not in the registry.")
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda c, p, v: _schema(c, v),
    help="Print the JSON Schema.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON: the workload, or its problems; a list for several files.")
def check(paths: tuple[str, ...], environment: str | None, online: bool, as_json: bool) -> None:
    """Check workload files: every problem with its line, what is allowed, and the nearest valid name.

    A dash reads standard input.

    \b
    Examples:
      chipwise check examples/serve/workload.yaml
      chipwise check workload.yaml --environment prod --json
      chipwise check --schema > workload.schema.json
    """
    from chipwise.api.catalog.check import check as find
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import BadInput, InvalidFile

    session = open_session()
    views: list[dict[str, Any]] = []
    for path in paths:
        try:
            checked = find(session, path, environment, online, _standard_input() if path == "-" else None)
        except InvalidFile as error:
            views.append({"path": path, "valid": False, "problems": [_problem(path, problem) for problem in error.problems]})
            if not as_json:
                count = text.plural(len(error.problems), "problem")
                text.say(*f"{error.message}\n{count}. {error.remedy or ''}".rstrip().splitlines())
        except BadInput as error:
            if len(paths) == 1 and not as_json:
                raise
            views.append({"path": path, "valid": False, "problems": [{"file": path, "message": str(error)}]})
            if not as_json:
                text.say(f"chipwise: {error}")
        else:
            views.append(_view(path, environment, checked))
            if not as_json:
                _show(checked)
    if as_json:
        text.show_json(views if len(views) > 1 else views[0])
    if not all(view["valid"] for view in views):
        raise click.exceptions.Exit(2)


def _standard_input() -> str:
    import sys

    from chipwise.api.catalog.check import MAX_BYTES
    from chipwise.errors import BadInput

    try:
        return sys.stdin.buffer.read(MAX_BYTES + 1).decode("utf-8-sig")
    except (UnicodeDecodeError, AttributeError) as error:
        raise BadInput("Standard input is not text in UTF-8.", remedy="Pipe a YAML file into it.") from error


def _problem(path: str, problem: Problem) -> dict[str, Any]:
    return {
        "file": path,
        "line": problem.line,
        "field": problem.field,
        "message": problem.message,
        "allowed": problem.allowed,
        "nearest": list(problem.nearest),
    }


def _view(path: str, environment: str | None, checked: Checked) -> dict[str, Any]:
    workload: dict[str, Any] = checked.workload.model_dump(mode="json", by_alias=True)
    return {
        "path": path,
        "valid": True,
        "environment": environment,
        "environments": list(checked.parsed.environments),
        "models": checked.parameters,
        "notes": list(checked.notes),
        "workload": workload,
    }


def _schema(context: click.Context, wanted: bool) -> None:
    if wanted:
        from chipwise.api import schema_text

        click.echo(schema_text(), nl=False)
        context.exit()


def _show(checked: Checked) -> None:
    from chipwise.cli import text

    workload = checked.workload
    data = checked.parsed.source.data  # in the file's own words: 72h, not 259200
    text.show_title(f"{checked.parsed.path}: fine - {workload.kind} workload {workload.name!r}")
    pairs = (
        [("models", ", ".join(f"{name} ({count:,} parameters)" for name, count in checked.parameters.items()))]
        if checked.parameters
        else []
    )
    for key, value in data.items():
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
