"""Runs a program once, looks at it until somebody has seen enough, and ends it with all that it started.

The program has a session of its own, so Ctrl-C reaches us alone, and we end it. All its processes carry a tag
(`adapters/process_tag.py`) by which they are character wherever they go. Its output is passed through, or left out.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from chipwise.adapters import process_tag
from chipwise.adapters.characterising.counters import Counters
from chipwise.adapters.engines.local import descendants
from chipwise.adapters.probes import program as program_probe
from chipwise.errors import BadInput, NoResult, OutsideFailed
from chipwise.files.handed import check_ends
from chipwise.observe.characterise.values import Observed
from chipwise.observe.sample import Sample
from chipwise.text import duration

INJECTED = Path(__file__).resolve().parent / "injected"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
EVERY_S = 0.2
GRACE_S = 3.0
BACKGROUND_S = 0.5  # processes that are left so long after the program ended run in the background


@dataclass(frozen=True, slots=True)
class Launch:
    command: tuple[str, ...]
    stdin: Path | None = None

    @property
    def title(self) -> str:
        text = shlex.join(self.command)
        return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, slots=True)
class RunMode:
    """How a run is done: "time" or "count", with so many threads, and where its output goes (None: nowhere)."""

    mode: str = "time"
    threads: int | None = None
    output: IO[str] | None = None
    longest_s: float = 600.0


def observe(program: Launch, way: RunMode, enough: Callable[[Observed], bool]) -> Observed:
    """Until it ends, `enough` is true of what was seen, or `way.longest_s` have passed. A failure of the program is raised."""
    tag = process_tag.tag_of(f"characterize-{secrets.token_hex(8)}")
    with tempfile.TemporaryDirectory(prefix="chipwise-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with _started(program, way, folder, tag) as process:
            counters = Counters(process.pid)
            try:
                return _watched(program, way, process, folder, tag, counters, enough)
            finally:
                counters.close()
                _end(process, tag)


def _watched(
    program: Launch,
    way: RunMode,
    process: subprocess.Popen[bytes],
    folder: Path,
    tag: int,
    counters: Counters,
    enough: Callable[[Observed], bool],
) -> Observed:
    began = time.monotonic()
    probe = program_probe.connect(lambda: _processes(process.pid, tag), closeness=program_probe.CLOSE)
    samples: list[Sample] = []
    steps = _StepFiles(folder)
    last_look = 0.0
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(EVERY_S)
        now = time.monotonic()
        code = process.poll()
        if code is None:
            samples += (sample for sample in probe.read(now) if sample.value("processes"))
        if code is not None or now - began > way.longest_s or now - last_look > 1.0:
            last_look = now
            seen = Observed(
                began_s=began,
                wall_s=now - began,
                exit_code=code,
                step_times=steps.read(),
                samples=samples,
                counts=_counts(folder),
                counters=counters.read(),
                progress=_progress(folder),
            )
            if code is not None:
                _check_end(program, code, now - began, tag)
                return seen
            if now - began > way.longest_s or enough(seen):
                return seen


def _check_end(program: Launch, code: int, wall_s: float, tag: int) -> None:
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        raise OutsideFailed(f"{program.title} was killed by {name} after {duration(wall_s)}.", remedy="Nothing was written.")
    if code > 0:
        hint = "" if program.stdin else " It gets no standard input; --stdin FILE gives it one."
        raise OutsideFailed(
            f"{program.title} failed with exit code {code} after {duration(wall_s)}; nothing was written.",
            remedy=f"Its own output says why.{hint}",
        )
    late = time.monotonic() + BACKGROUND_S
    while left := descendants.living(descendants.with_tag(tag)):
        if time.monotonic() > late:
            raise BadInput(
                f"{program.title} ended and left {len(left)} process{'es' if len(left) > 1 else ''} in the background, which "
                "cannot be measured with it; they were ended.",
                remedy="Start it so that it stays in the foreground.",
            )
        time.sleep(0.05)


@contextmanager
def _started(program: Launch, way: RunMode, folder: Path, tag: int) -> Iterator[subprocess.Popen[bytes]]:
    with _opened(program.stdin) as source:
        try:
            process = subprocess.Popen(
                program.command,
                stdin=source,
                stdout=subprocess.DEVNULL if way.output is None else _descriptor(way.output),
                stderr=subprocess.DEVNULL if way.output is None else None,
                env=_environment(way, folder),
                start_new_session=True,
                preexec_fn=lambda: process_tag.put_on(tag),
            )
        except (FileNotFoundError, NotADirectoryError):
            raise BadInput(f"There is no program {program.command[0]!r}.", remedy="Check its name and its path.") from None
        except PermissionError:
            raise BadInput(
                f"{program.command[0]!r} cannot be executed.", remedy="Make it executable, or name its interpreter first."
            ) from None
        except (OSError, ValueError) as error:
            raise BadInput(f"{program.command[0][:60]!r} cannot be started: {error}.") from None
        yield process


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes] | int]:
    if path is None:
        yield subprocess.DEVNULL
        return
    try:
        check_ends(path)
        stream = path.open("rb")
    except OSError as error:
        raise BadInput(
            f"--stdin: {path} cannot be read: {error.strerror}.", remedy="Give a file that this user can read."
        ) from None
    with stream:
        yield stream


def _descriptor(stream: IO[str]) -> int | None:
    stream.flush()
    try:
        return stream.fileno()
    except (OSError, ValueError):  # a stream that is no file, as in a notebook
        return None


def _environment(way: RunMode, folder: Path) -> dict[str, str]:
    environment = dict(os.environ)
    settings = {"folder": str(folder), "mode": way.mode}
    paths = [str(INJECTED), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    environment |= {
        "CHIPWISE_HOOK": json.dumps(settings),
        "PYTHONPATH": os.pathsep.join(paths),
        "CHIPWISE_RUN_DIR": str(folder),
    }
    environment.setdefault("PYTHONUNBUFFERED", "1")
    if way.mode == "count":
        environment["TORCHDYNAMO_DISABLE"] = "1"  # compiled code would hide its operators
    if way.threads is not None:
        environment |= dict.fromkeys(THREADS, str(way.threads))
    return environment


def _processes(pid: int, tag: int) -> Sequence[int]:
    if sys.platform == "linux":
        return sorted({pid, *descendants.with_tag(tag)})
    return [pid, *descendants.below(pid)]


def _end(process: subprocess.Popen[bytes], tag: int) -> None:
    """With all that it started: asked first, so that it can save, then killed."""
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    if process.poll() is None or descendants.living(descendants.with_tag(tag)):
        descendants.end(lambda: [*([process.pid] if process.poll() is None else []), *descendants.with_tag(tag)])
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)


class _StepFiles:
    """Times that the hook writes, read on where the last look ended; of several processes those of the one with the most."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, tuple[int, list[float]]] = {}

    def read(self) -> dict[str, list[float]]:
        kinds: dict[str, list[float]] = {}
        for path in self._folder.glob("steps-*-*.txt"):
            offset, times = self._read.get(path, (0, []))
            with suppress(OSError), path.open("rb") as file:
                file.seek(offset)
                content = file.read()
                complete = content[: content.rfind(b"\n") + 1]
                times = times + [float(line) for line in complete.split()]
                self._read[path] = (offset + len(complete), times)
            kind = path.name.split("-")[1]
            if len(times) > len(kinds.get(kind, [])):
                kinds[kind] = times
        return kinds


def _counts(folder: Path) -> Mapping[str, object] | None:
    """Of the process that says the most: the program, not what helps it."""
    best: dict[str, object] | None = None
    for path in folder.glob("counts-*.json"):
        with suppress(OSError, ValueError):
            value = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(value, dict) and (best is None or _weight(value) > _weight(best)):
                best = value
    return best


def _weight(counts: Mapping[str, object]) -> tuple[bool, float, int]:
    flop = counts.get("total_flop")
    return "step_flop" in counts, float(flop) if isinstance(flop, int | float) else 0.0, len(counts)


def _progress(folder: Path) -> Mapping[str, float | None] | None:
    with suppress(OSError, ValueError):
        value = json.loads((folder / "progress.json").read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return {str(name): number for name, number in value.items() if isinstance(number, int | float | None)}
    return None


def refuse_short(program: Launch, seen: Observed, shortest_s: float) -> None:
    if seen.ended and seen.wall_s < shortest_s:
        raise NoResult(
            f"{program.title} ended after {duration(seen.wall_s)}: too soon to be measured; nothing was written.",
            remedy="Give it more to do: more steps, or larger inputs.",
        )
