"""Induced bottlenecks: runs each program for some seconds, samples ten times a second, and asks the doctor.

    python benchmarks/bottlenecks/drive.py [--out FOLDER] [--sizes 3,4,5] [--only gpu,cpu,healthy,played] [KIND ...]
    python benchmarks/bottlenecks/drive.py --again FOLDER      # the doctor once more over stored recordings

Prints a table "kind, size, first finding, right?" and the shares, and writes the recordings as JSON lines, a few files in all,
each with several recordings one after the other. `played` ones are made from levels and not measured, and are counted apart.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT / "src"), str(ROOT / "tests" / "support")]

from bottlenecks.gpu_programs import large_file  # noqa: E402
from bottlenecks.sampling import Gpu, Program, Watcher  # noqa: E402
from chipwise.catalog.chip import ChipKind, Precision, bare  # noqa: E402
from chipwise.catalog.fact import Fact  # noqa: E402
from chipwise.observe.diagnosis import Diagnosis, diagnose  # noqa: E402
from chipwise.observe.finding import Severity  # noqa: E402
from chipwise.observe.recording import Encoder, decoded, header_line  # noqa: E402
from chipwise.observe.sample import Recording  # noqa: E402

SEEN = "0,1,2"  # by who made the rules
EVERY_S = 0.1
PATIENCE_S = 60.0
GPU_KINDS = (
    "launch-bound",
    "synchronisation",
    "transfer-bound",
    "memory-bound",
    "tensor-cores-idle",
    "batch-too-small",
    "compute-bound",
    "idle",
    "one-core",
    "few-workers",
    "cpu-saturated",
    "slow-disk",
    "noisy-neighbour",
    "memory-full",
)
CPU_KINDS = ("one-core", "few-workers", "slow-disk", "idle", "straggler", "noisy-neighbour")
HEALTHY = (
    "matrix-products",
    "transformer-training",
    "transformer-inference",
    "attention",
    "double-precision",
    "overlapped-transfer",
    "fed-by-workers",
    "convolutions",
    "perceptron-training",
    "low-rank",
)
# By what the catalog says: it is not read here, since its libraries need not be on a machine that is only measured.
CHIPS = {
    "H200": replace(
        bare("H200", "NVIDIA", ChipKind.GPU, "Hopper", Fact((), "2026-11")),
        power_w=700.0,
        pcie_gen=5,
        memory_bytes_per_s=4.8e12,
        link_bytes_per_s=900e9,
        rates={Precision.FP32: 67e12, Precision.TF32: 494.7e12, Precision.BF16: 989.4e12},
    )
}


@dataclass(frozen=True)
class Case:
    place: str  # gpu, cpu, healthy, played
    kind: str
    size: int = 0

    @property
    def title(self) -> str:
        return f"{self.place} {self.kind} {self.size}" if self.place != "healthy" else f"healthy {self.kind}"


@dataclass(frozen=True)
class Result:
    case: Case
    text: str
    right: bool | None  # None: it could not be run here


class Worker:
    """A process that runs one program after the other."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
            start_new_session=True,
            env=environment,
        )

    def give(self, case: Case, seconds: float) -> None:
        assert self.process.stdin is not None
        task = {"place": case.place, "kind": case.kind, "size": case.size, "seconds": seconds}
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()

    def answer(self, patience_s: float) -> str | None:
        """Why it could not run, empty if it could; None while it runs."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(patience_s, 0.0))
        if not ready:
            return None
        line = self.process.stdout.readline()
        return str(json.loads(line)["problem"]) if line else f"it ended with exit code {self.process.wait()}"

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def watched(worker: Worker, case: Case, seconds: float, gpu: Gpu | None) -> tuple[Recording, str]:
    """The recording, and why the program could not run."""
    device = gpu if case.place != "cpu" else None
    watcher = Watcher([Program(worker.process.pid)], device)
    strangers = _strangers(case)
    worker.give(case, seconds)
    due, problem = time.monotonic(), None
    while problem is None and time.monotonic() - watcher.started_s < PATIENCE_S:
        if case.kind == "straggler" and len(watcher.programs) == 1:
            watcher.programs = [*watcher.programs, *_ranks(worker.process.pid)]
        watcher.look()
        due += EVERY_S
        problem = worker.answer(due - time.monotonic())
    for stranger in strangers:
        stranger.kill()
        stranger.wait()
    recording = Recording(
        started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        devices=(device.device(),) if device else (),
        samples=watcher.samples,
        labels={"place": case.place, "kind": case.kind, "size": str(case.size)},
    )
    return recording, problem if problem is not None else "it did not end"


def _ranks(pid: int) -> Sequence[Program]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Program(int(child), f"program:{rank}") for rank, child in enumerate(children)] if len(children) >= 4 else []


def _strangers(case: Case) -> list[subprocess.Popen[bytes]]:
    """Programs of others on the processors."""
    if (case.place, case.kind) != ("cpu", "noisy-neighbour"):
        return []
    return [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(len(os.sched_getaffinity(0)))]


def judged(case: Case, recording: Recording) -> Result:
    diagnosis = diagnose(recording, CHIPS)
    first = diagnosis.first
    named = first is not None and first.rule == case.kind
    right = diagnosis.is_healthy if case.place == "healthy" else named
    return Result(case, described(diagnosis), right)


def described(diagnosis: Diagnosis) -> str:
    evidence = diagnosis.evidence
    findings = " > ".join(
        f"{one.rule}{'' if one.severity is Severity.NOTE else '!'} {one.confidence:.2f}/{one.lost_share:.2f}"
        for one in diagnosis.findings
    )
    means = []
    for device in evidence.devices[:1]:
        for name in ("busy", "graphics_active", "sm_active", "tensor_active", "dram_active", "fp32_active"):
            value = device.mean(name)
            means.append(f"{name.partition('_')[0]} {'-' if value is None else round(100 * value)}")
        means.append(f"{device.or_zero('power'):.0f} W, pcie {device.or_zero('pcie_received') / 1e9:.2f} GB/s")
        means.append(f"clock {device.or_zero('clock'):.0f}, processes {device.or_zero('processes'):.0f}")
    program = evidence.program
    means.append(f"cores {program.or_zero('cpu'):.1f} thread {program.or_zero('cpu_highest_thread'):.2f}")
    means.append(f"disk {program.or_zero('disk_read') / 1e6:.0f} read {program.or_zero('io_read') / 1e6:.0f} MB/s")
    means.append(f"steady {evidence.window_s[0]:.1f}-{evidence.window_s[1]:.1f} of {evidence.length_s:.1f} s")
    return f"{findings or 'nothing'}\n      {', '.join(means)}"


def cases(places: Sequence[str], kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Case]:
    """All kinds once before any twice: when time runs out, every kind has been seen."""
    from played_recordings import MAKERS

    for size in sizes:
        for place, names in (("gpu", GPU_KINDS), ("cpu", CPU_KINDS), ("played", tuple(MAKERS) if size < 3 else ())):
            if place in places:
                yield from (Case(place, kind, size) for kind in names if not kinds or kind in kinds)
        if size == sizes[0] and "healthy" in places:
            yield from (Case("healthy", kind) for kind in HEALTHY if not kinds or kind in kinds)


def stored(recording: Recording) -> str:
    encoder = Encoder()
    return header_line(recording) + "".join(map(encoder.line, recording.samples))


def loaded(path: Path) -> Iterator[Recording]:
    """Several recordings of one file, each of which begins with its header."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    part: list[bytes] = []
    for line in [*content.splitlines(keepends=True), b""]:
        if part and (not line or line.startswith(b'{"chipwise_recording"')):
            yield decoded(part, path.name).recording
            part = []
        part.append(line)


def file_of(case: Case, out: Path) -> Path:
    """Six files in all."""
    waits = case.kind in ("one-core", "few-workers", "cpu-saturated", "slow-disk", "idle")
    return out / f"{case.place}{'-waiting' if waits and case.place == 'gpu' else ''}.jsonl"


def measured(arguments: argparse.Namespace) -> list[Result]:
    from played_recordings import MAKERS

    places, sizes = arguments.only.split(","), [int(size) for size in arguments.sizes.split(",")]
    gpu = None
    if "gpu" in places or "healthy" in places:
        gpu = Gpu()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.jsonl"):
        old.unlink()
    if any(case.kind == "slow-disk" and case.place != "played" for case in cases(places, arguments.kinds, sizes)):
        large_file()
    results: list[Result] = []
    began, worker = time.monotonic(), Worker()
    try:
        for case in cases(places, arguments.kinds, sizes):
            if time.monotonic() - began > arguments.limit:
                results.append(Result(case, "no time was left", None))
                continue
            if case.place == "played":
                recording = replace(
                    MAKERS[case.kind](case.size), labels={"place": "played", "kind": case.kind, "size": str(case.size)}
                )
                problem = ""
            else:
                recording, problem = watched(worker, case, arguments.seconds, gpu)
            if problem:
                worker.end()
                worker = Worker()
            else:
                with file_of(case, out).open("a", encoding="utf-8") as stream:
                    stream.write(stored(recording))
            results.append(Result(case, problem, None) if problem else judged(case, recording))
            show(results[-1])
    finally:
        worker.end()
    return results


def again(folder: Path) -> list[Result]:
    results = []
    for path in sorted(folder.glob("*.jsonl*")):
        for recording in loaded(path):
            labels = recording.labels
            results.append(judged(Case(labels["place"], labels["kind"], int(labels["size"])), recording))
            show(results[-1])
    return results


def show(result: Result) -> None:
    mark = {True: "right", False: "WRONG", None: "skipped"}[result.right]
    print(f"{mark:<8}{result.case.title:<32}{result.text}", flush=True)


def summary(results: Sequence[Result]) -> str:
    lines = []
    for place in dict.fromkeys(result.case.place for result in results):
        mine = [result for result in results if result.case.place == place]
        run = [result for result in mine if result.right is not None]
        right = sum(result.right is True for result in run)
        kinds = len({result.case.kind for result in run})
        share = f"{right / len(run):.0%}" if run else "-"
        lines.append(f"{place}: {right} of {len(run)} right ({share}), {kinds} kinds, {len(mine) - len(run)} skipped")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "build/bottlenecks")))
    parser.add_argument("--seconds", type=float, default=4.5)
    parser.add_argument("--limit", type=float, default=500.0)
    parser.add_argument("--only", default="gpu,cpu,healthy,played")
    parser.add_argument("--sizes", default=SEEN, help="of 0 to 5; 3 to 5 were not seen when the rules were made")
    parser.add_argument("--again", type=Path)
    arguments = parser.parse_args()
    results = again(arguments.again) if arguments.again else measured(arguments)
    text = summary(results)
    print(text)
    if not arguments.again:
        table = "".join(f"{result.case.title}\t{result.right}\t{result.text}\n" for result in results)
        (arguments.out / "table.tsv").write_text(table + text + "\n", encoding="utf-8")
    return 0 if all(result.right is not False for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
