"""Makes fixtures of recordings: only what rules look at, to four digits, packed.

python benchmarks/bottlenecks/shrink.py FOLDER tests/fixtures/bottlenecks/NAME.jsonl.gz
"""

from __future__ import annotations

import gzip
import math
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "src"), str(ROOT / "tests" / "support")]

from bottlenecks.drive import loaded, stored  # noqa: E402
from chipwise.observe.recording import thinned  # noqa: E402
from chipwise.observe.sample import Reading, Recording, Sample  # noqa: E402

EVERY_S = 0.1
DIGITS = 4
LEFT_OUT = {"threads", "load", "switches_waiting", "io_written", "disk_written", "sm_occupancy", "fp16_active"}
COUNTED = {"io_read", "disk_read", "swapped", "network_received", "network_sent", "switches_taken"}


def shrunk(recording: Recording) -> Recording:
    return replace(recording, samples=[_short(sample) for sample in thinned(recording.samples, math.inf, EVERY_S)])


def _short(sample: Sample) -> Sample:
    readings: dict[str, Reading] = {}
    for name, reading in sample.readings.items():
        if name in LEFT_OUT:
            continue
        is_level = isinstance(reading, float | int) and name not in COUNTED
        readings[name] = float(f"{reading:.{DIGITS}g}") if is_level and isinstance(reading, float | int) else reading
    return replace(sample, readings=readings)


def main(folder: Path, target: Path) -> None:
    recordings = [recording for path in sorted(folder.glob("*.jsonl")) for recording in loaded(path)]
    text = "".join(stored(shrunk(recording)) for recording in recordings)
    with target.open("wb") as stream, gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
        packed.write(text.encode())
    print(f"{len(recordings)} recordings, {target.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
