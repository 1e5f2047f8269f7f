"""`chipwise watch`: what devices, host and program do now, again and again; recorded, replayed, served."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chipwise.cli.parameter_types import Duration, WholeNumber

if TYPE_CHECKING:
    from chipwise.api.observe.watching import LiveWatch


@click.command()
@click.argument("job", metavar="[JOB]", required=False)
@click.option("--pid", type=WholeNumber(1, 2**31), default=None, help="Watch this process and its children.")
@click.option("--all", "everything", is_flag=True, help="Watch this machine and all its devices (the default).")
@click.option("--scrape", multiple=True, metavar="URL", help="Also read this endpoint: DCGM exporter, vLLM, TGI, SGLang.")
@click.option("--record", type=click.Path(path_type=Path), default=None, help="Write all samples into this file.")
@click.option("--replay", type=click.Path(path_type=Path), default=None, help="Show a recording instead of watching.")
@click.option(
    "--serve", metavar="[HOST]:PORT", default=None, help="Serve Prometheus metrics, such as :9400 (this machine only)."
)
@click.option("--every", type=Duration(), default=1.0, show_default="1s", help="Time between two samples.")
@click.option("--for", "duration", type=Duration(), default=None, help="Stop after this time.")
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print each sample as one line of JSON.")
def watch(
    job: str | None,
    pid: int | None,
    everything: bool,
    scrape: tuple[str, ...],
    record: Path | None,
    replay: Path | None,
    serve: str | None,
    every: float,
    duration: float | None,
    once: bool,
    as_json: bool,
) -> None:
    """Watch what accelerators really do: this machine, a job, or a process.

    Busy says only that something ran. SM, tensor and DRAM say how much of the chip worked: they need NVIDIA Hopper or newer.
    Jobs of this machine are sampled while they run, so that watching one shows its whole history. A sensor that is missing is
    a dash, and the reason is below the table. The last line is the doctor's first finding over the last minute; chipwise doctor
    says more.

    \b
    Examples:
      chipwise watch                          this machine
      chipwise watch train --record run.jsonl
      chipwise watch --pid 4711 --for 60s --json
      chipwise watch --replay run.jsonl
      chipwise watch train --serve :9400
    """
    from chipwise.api.observe import watching
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import BadInput

    wanted = watching.WatchTarget(job, pid, scrape)
    wanted.check(everything)
    if replay is not None:
        if job is not None or pid is not None or everything or scrape or record or serve:
            raise BadInput("--replay cannot be combined with what is watched now.", remedy="Give --replay FILE alone.")
        recorded, is_cut = watching.replayed(open_session(), replay)
        _show(recorded, as_json)
        if is_cut:
            text.say(f"The end of {replay} is missing: it was cut off while it was written.")
        return
    with ExitStack() as stack:
        watched = watching.begun(open_session(), wanted, record)
        stack.callback(watched.close)
        if as_json or record is not None:
            text.say(*watched.source.notes)
        if serve is not None:
            address, close = watching.served(watched, serve)
            stack.callback(close)
            text.say(f"Metrics are served at {address}.")
        is_live = sys.stdout.isatty() and not once and not as_json
        is_single = once or (not as_json and not sys.stdout.isatty() and duration is None and record is None and serve is None)
        with suppress(KeyboardInterrupt):
            if is_live:
                _live(watched, every, duration)
                return
            for samples in watching.turns(watched, every, duration):
                if as_json:
                    text.show_json(watching.view(samples))
                    sys.stdout.flush()
                if is_single:
                    break
        if not as_json:
            _show(watched, as_json)


def _live(watched: LiveWatch, every: float, duration: float | None) -> None:
    from rich.live import Live
    from rich.text import Text

    from chipwise.api.observe import watching

    with Live(Text(""), screen=True, auto_refresh=False) as live:
        for _ in watching.turns(watched, every, duration):
            live.update(Text("\n".join(_lines(watched))), refresh=True)
    _show(watched, as_json=False)


def _lines(watched: LiveWatch) -> list[str]:
    from chipwise.cli import text
    from chipwise.views.watch import lines

    rows = lines(
        watched.store,
        watched.header,
        watched.source.notes,
        width=text.width(),
        unicode=text.speaks_unicode(),
        clock=time.strftime("%H:%M:%S"),
        finding=watched.finding(),
    )
    return [text.printable(line) for line in rows]


def _show(watched: LiveWatch, as_json: bool) -> None:
    from chipwise.cli import text

    if as_json:
        text.show_json(
            {"labels": dict(watched.header.labels), "summary": watched.summary.value(), "finding": watched.finding() or None}
        )
    else:
        text.show_laid(_lines(watched))
        if words := watched.summary_words():
            text.show_lines(words)
