"""`chipwise top`: jobs and the devices they hold, again and again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from chipwise.cli.options import Duration

if TYPE_CHECKING:
    from rich.table import Table

    from chipwise.api.running.watching import Standing


@click.command()
@click.option("--every", type=Duration(), default=2.0, help="How often to look.")
@click.option("--once", is_flag=True, help="Look once and return.")
@click.option("--json", "as_json", is_flag=True, help="One look, as JSON.")
def top(every: float, once: bool, as_json: bool) -> None:
    """Watch jobs and the devices they hold: processor, memory, GPU, steps.

    GPU use and memory are as nvidia-smi reports them for a job's GPUs; blank: it reports none. What jobs on a cluster or
    a cloud use is not visible here: for them the machines and GPUs that they have or asked for are shown.
    """
    from rich.console import Console
    from rich.live import Live

    from chipwise.api.running import asking, watching
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    with asking.opened(open_session()) as held:
        if as_json:
            text.show_json([watching.view(one) for one in watching.look(held, 0.2)])
            return
        if once:
            if standings := watching.look(held, 0.2):
                Console(width=text.width()).print(_table(standings))
            else:
                text.say("No job runs; chipwise ps lists those that wait.")
            return
        try:
            with Live(_table(watching.look(held, 0.2)), screen=True, auto_refresh=False) as live:
                while True:
                    time.sleep(max(every, 0.2))
                    live.update(_table(watching.look(held, 0.0)), refresh=True)
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
            one.id,
            one.phase,
            duration(one.seconds),
            _gpus(one),
            f"{one.cpu_percent:.0f}%" if one.cpu_percent is not None else "",
            size_text(one.memory_bytes) if one.memory_bytes is not None else "",
            f"{one.gpu_percent:.0f}%" if one.gpu_percent is not None else "",
            _memory(one),
            f"{one.step:,}" if one.step is not None else "",
            one.engine if one.place else "",
        ]
        for one in standings
    ]
    # What nobody has leaves its room to the others; where that is not enough, the names of jobs give way first.
    shown = [at for at, (name, _) in enumerate(_COLUMNS) if name in _ALWAYS or any(row[at] for row in rows)]
    wide = {at: max([len(_COLUMNS[at][0]), *(len(row[at]) for row in rows)]) for at in shown}
    room = text.width() - sum(size + 2 for at, size in wide.items() if at)
    for at in shown:
        name, right = _COLUMNS[at]
        most = None if at else max(room, _LEAST)
        table.add_column(name, justify="right" if right else "left", no_wrap=True, max_width=most)
    for row in rows:
        table.add_row(*(row[at] for at in shown))
    return table


_COLUMNS = (
    ("job", False),
    ("phase", False),
    ("for", True),
    ("GPUs", False),
    ("CPU", True),
    ("memory", True),
    ("GPU use", True),
    ("GPU memory", True),
    ("step", True),
    ("at", False),
)
_LEAST = 12  # letters of a job's name
_ALWAYS = ("job", "phase", "for", "CPU", "memory")


def _gpus(one: Standing) -> str:
    """Here by their numbers; elsewhere how many, of each machine where there are several."""
    if not one.place:
        return ",".join(map(str, one.gpus))
    return f"{one.machines} x {one.asks_gpus}" if one.machines > 1 else str(one.asks_gpus)


def _memory(one: Standing) -> str:
    from chipwise.text import size as size_text

    if one.gpu_memory_bytes is None:
        return ""
    of = f" of {size_text(one.gpu_memory_total_bytes)}" if one.gpu_memory_total_bytes is not None else ""
    return size_text(one.gpu_memory_bytes) + of
