"""`chipwise audit`: what a careful engineer would object to in manifests and Terraform."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

SKIPPED_SHOWN = 20


@click.command()
@click.argument("path", metavar="DIR|FILE|-", required=False)
@click.option("--rules", "listed", is_flag=True, help="List the rules.")
@click.option("--json", "as_json", is_flag=True, help="JSON, everything.")
@click.pass_context
def audit(ctx: click.Context, /, path: str | None, listed: bool, as_json: bool) -> None:
    """Check manifests, charts, Terraform, Dockerfiles and Compose files: each finding with its line and a fix.

    Charts and overlays are built by helm and kustomize (or kubectl) where these are installed. Read too: tasks of SkyPilot and
    Slurm, eksctl, CloudFormation, ECS task definitions.

    Exits with 1 if a finding has high or medium weight. Terraform files need the extra: pip install 'chipwise[audit]'.

    \b
    Examples:
      chipwise audit deploy/
      chipwise render workload.yaml --to kubernetes | chipwise audit -
    """
    from chipwise.api.audit import audit as ask
    from chipwise.api.audit import every_rule
    from chipwise.cli import text
    from chipwise.errors import BadInput

    if listed:
        text.show_pairs([(name, rule.ABOUT) for name, rule in every_rule().items()])
        return
    if path is None:
        raise BadInput("Nothing to audit.", remedy="Give a directory or a file, or - for standard input.")
    result = ask(path, sys.stdin)
    if not result.audited and not result.findings:
        note = f" Skipped: {'; '.join(result.skipped[:3])}." if result.skipped else ""
        raise BadInput(
            f"{path} contains no file of a known type.{note}", remedy="YAML, Terraform, Dockerfiles and Compose files are read."
        )
    grave = [one for one in result.findings if one.weight != "low"]
    if as_json:
        header = {"files": list(result.audited), "passed_over": list(result.skipped)}
        text.show_json({"schema": 1, **header, "findings": [asdict(one) | {"page": one.page} for one in result.findings]})
    else:
        for finding in result.findings:
            text.show_lines(
                f"{finding.path}:{finding.line}: {finding.weight}: {finding.what} [{finding.rule}]", f"    {finding.fix}"
            )
            places = [f"{path}:{line}" for path, line in finding.also if (path, line) != (finding.path, finding.line)]
            if places:
                text.show_lines(f"    See also {', '.join(dict.fromkeys(places))}.")
        text.show_lines(*(f"skipped: {one}" for one in result.skipped[:SKIPPED_SHOWN]))
        if len(result.skipped) > SKIPPED_SHOWN:
            text.show_lines(f"skipped: {len(result.skipped) - SKIPPED_SHOWN} other files (--json lists them)")
        count = len(result.findings)
        summary = "no problems found" if not count else text.plural(count, "problem")
        if count:
            text.show_lines(f"Rules: {result.findings[0].page.partition('#')[0]}")
        text.show_lines(f"{len(result.audited)} {'file' if len(result.audited) == 1 else 'files'}: {summary}.")
    ctx.exit(1 if grave else 0)
