"""`chipwise health`: whether the devices of this machine or of a cluster are well."""

from __future__ import annotations

from pathlib import Path

import click

MOST_SHOWN = 40


@click.command()
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A recording, a kernel log, or nodes as kubectl lists them in JSON.",
)
@click.option("--drain", is_flag=True, help="Give local jobs no GPU that should be drained until it recovers.")
@click.option("--json", "as_json", is_flag=True, help="JSON, everything.")
@click.pass_context
def health(ctx: click.Context, /, source: Path | None, drain: bool, as_json: bool) -> None:
    """Judge each device: fine, watch, drain or replace, with the reason.

    It checks memory errors (ECC), remapped rows, XID codes in the kernel log, NVLink and PCIe errors, temperature, and the
    conditions of Kubernetes nodes. Codes that a program causes itself do not count against the device.

    Exits with 1 if a device should be drained or replaced.

    \b
    Examples:
      chipwise health
      chipwise health --drain
      dmesg > kernel.log; chipwise health --from kernel.log
      kubectl get nodes -o json > nodes.json; chipwise health --from nodes.json
    """
    from chipwise.api.observe import health as api
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import BadInput
    from chipwise.views.health import view

    if drain and source is not None:
        raise BadInput("--drain is for the devices of this machine.", remedy="Leave --from out.")
    session = open_session()
    judged, notes = (api.of_file(source), []) if source is not None else api.here(session)
    drained = api.drain_here(session, judged) if drain else {}
    if as_json:
        text.show_json(view(judged, notes))
    else:
        if not judged:
            text.show_lines("No device reports anything." if source else "No accelerator was found.")
        text.show_pairs(
            [
                (f"{verdict.state}  {verdict.device}", f"{verdict.name + ': ' if verdict.name else ''}{verdict.reason}")
                for verdict in judged[:MOST_SHOWN]
            ]
        )
        if len(judged) > MOST_SHOWN:
            text.say(f"{len(judged) - MOST_SHOWN} more: --json lists them.")
        text.say(*notes, *(f"GPU {gpu} is given no new jobs: {reason}" for gpu, reason in drained.items()))
    ctx.exit(1 if api.is_sick(judged) else 0)
