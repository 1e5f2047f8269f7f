"""`chipwise top`: jobs and the devices they hold, again and again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from chipwise.cli.parameter_types import Duration

if TYPE_CHECKING:
    from rich.table import Table

    from chipwise.api.running.watching import Standing


@click.command()
@click.option("--every", type=Duration(), default=2.0, help="Refresh at this interval.")
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print once, as JSON.")
def top(every: float, once: bool, as_json: bool) -> None:
    """Watch running jobs and what they use: CPU, memory, GPU, steps.

    GPU use says that something ran, and SM how much of the chip worked (NVIDIA Hopper and newer, with chipwise[nvidia]). Blank
    means that the driver reports none; chipwise watch JOB shows more. A finding is the doctor's first over the last minute
    (chipwise doctor JOB explains it). For jobs on a cluster or in a cloud the use is not known; their requested or assigned
    machines and GPUs are shown.
    """
    from rich.console import Console
    from rich.live import Live

    from chipwise.api.running import asking, watching
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    with asking.opened(open_session(), makes=True) as runtime:
        if as_json:
            text.show_json([watching.view(one) for one in watching.look(runtime, 0.2)])
            return
        if once:
            if standings := watching.look(runtime, 0.2):
                Console(width=text.width()).print(_table(standings))
            else:
                text.say("No job runs; chipwise ps lists those that wait.")
            return
        try:
            with Live(_table(watching.look(runtime, 0.2)), screen=True, auto_refresh=False) as live:
                while True:
                    time.sleep(max(every, 0.2))
                    live.update(_table(watching.look(runtime, 0.0)), refresh=True)
        except KeyboardInterrupt:
            return


def _table(standings: list[Standing]) -> Table:
    from rich.table import Table

    from chipwise.cli import text
    from chipwise.text import duration
    from chipwise.text import size as size_text

    table = Table(box=None, pad_edge=False, title=f"{text.plural(len(standings), 'job')}  {time.strftime('%H:%M:%S')}")
    rows = [
        [
            standing.id,
            standing.phase,
            duration(standing.seconds),
            _gpus(standing),
            f"{standing.cpu_percent:.0f}%" if standing.cpu_percent is not None else "",
            size_text(standing.memory_bytes) if standing.memory_bytes is not None else "",
            f"{standing.gpu_percent:.0f}%" if standing.gpu_percent is not None else "",
            f"{standing.gpu_sm_percent:.0f}%" if standing.gpu_sm_percent is not None else "",
            _memory(standing),
            f"{standing.step:,}" if standing.step is not None else "",
            "" if standing.is_here else standing.engine,
            "none" if standing.finding == "" else standing.finding or "",
        ]
        for standing in standings
    ]
    # What nobody has leaves its room to the others; where that is not enough, the names of jobs give way first.
    visible = [at for at, (name, _) in enumerate(_COLUMNS) if name in _ALWAYS or any(row[at] for row in rows)]
    wide = {at: max([len(_COLUMNS[at][0]), *(len(row[at]) for row in rows)]) for at in visible}
    room = text.width() - sum(size + 2 for at, size in wide.items() if at)
    for index in visible:
        name, right = _COLUMNS[index]
        max_width = None if index else max(room, _MINIMUM_WIDTH)
        table.add_column(name, justify="right" if right else "left", no_wrap=True, max_width=max_width)
    for row in rows:
        table.add_row(*(row[at] for at in visible))
    return table


_COLUMNS = (
    ("job", False),
    ("phase", False),
    ("for", True),
    ("GPUs", False),
    ("CPU", True),
    ("memory", True),
    ("GPU use", True),
    ("SM", True),
    ("GPU memory", True),
    ("step", True),
    ("at", False),
    ("finding", False),
)
_MINIMUM_WIDTH = 12  # letters of a job's name
_ALWAYS = ("job", "phase", "for", "CPU", "memory")


def _gpus(standing: Standing) -> str:
    """Here by their numbers; elsewhere how many, of each machine where there are several."""
    if standing.is_here:
        return ",".join(map(str, standing.gpus))
    return f"{standing.machines} x {standing.asks_gpus}" if standing.machines > 1 else str(standing.asks_gpus)


def _memory(standing: Standing) -> str:
    from chipwise.text import size as size_text

    if standing.gpu_memory_bytes is None:
        return ""
    suffix = f" of {size_text(standing.gpu_memory_total_bytes)}" if standing.gpu_memory_total_bytes is not None else ""
    return size_text(standing.gpu_memory_bytes) + suffix
