"""`chipwise audit`: what a careful engineer would object to in manifests and Terraform."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click


@click.command()
@click.argument("path", metavar="DIR|FILE|-", required=False)
@click.option("--rules", "listed", is_flag=True, help="List the rules.")
@click.option("--json", "as_json", is_flag=True, help="JSON, everything.")
@click.pass_context
def audit(ctx: click.Context, /, path: str | None, listed: bool, as_json: bool) -> None:
    """Check manifests, Terraform, Dockerfiles and Compose files: each finding with its line and a fix.

    Exits with 1 when there is one of high or medium weight. Terraform files need the extra: pip install 'chipwise[audit]'.

    \b
    Examples:
      chipwise audit deploy/
      chipwise render examples/serve/workload.yaml --to kubernetes | chipwise audit -
    """
    from chipwise.api.audit import audit as ask
    from chipwise.auditor.auditing import every_rule
    from chipwise.cli import text
    from chipwise.errors import BadInput

    if listed:
        text.show_pairs([(name, rule.ABOUT) for name, rule in every_rule().items()])
        return
    if path is None:
        raise BadInput("Nothing to audit.", remedy="Give a directory or a file, or - for standard input.")
    found = ask(path, sys.stdin)
    if not found.audited and not found.findings:
        told = f" Skipped: {'; '.join(found.skipped[:3])}." if found.skipped else ""
        raise BadInput(
            f"{path} holds nothing that we know.{told}", remedy="YAML, Terraform, Dockerfiles and Compose files are read."
        )
    grave = [one for one in found.findings if one.weight != "low"]
    if as_json:
        shown = {"files": list(found.audited), "passed_over": list(found.skipped)}
        text.show_json({"schema": 1, **shown, "findings": [asdict(one) for one in found.findings]})
    else:
        for one in found.findings:
            text.show_lines(f"{one.path}:{one.line}: {one.weight}: {one.what} [{one.rule}]", f"    {one.fix}")
        text.show_lines(*(f"skipped: {one}" for one in found.skipped))
        many = len(found.findings)
        told = "no objection" if not many else f"{many} {'objection' if many == 1 else 'objections'}"
        text.show_lines(f"{len(found.audited)} {'file' if len(found.audited) == 1 else 'files'}: {told}.")
    ctx.exit(1 if grave else 0)
