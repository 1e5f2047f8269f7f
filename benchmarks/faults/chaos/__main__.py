"""Ten minutes in which everything goes wrong that can: two hundred jobs of two people on a machine that they share.

    python benchmarks/faults/chaos --minutes 10 --jobs 200          (as root)

Programs, supervisors and the controller are killed and stopped, the wall clock is stepped by up to two days, the disk fills up,
PostgreSQL is restarted and cut off, and all the time a hostile member and a login that is no member send SQL of their own.
Afterwards it is counted what must never happen: a job lost or wrong, two copies of one, two on one GPU, a process left over,
a phase in `ps` that has not been true for more than five seconds, a device that is not free, a statement that did harm.

Real system users, a small disk and a stepped clock need root and a namespace of mounts of its own, which ends with the run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "tests" / "support")]
INSIDE = "CHAOS_HOME"
DISK = "96m"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=2.0, help="the longest between two faults, in seconds")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("The chaos run starts processes of several system users: run it as root.")
    if INSIDE not in os.environ:
        return _in_namespace()
    from faults.chaos import scene

    counts = scene.play(
        Path(os.environ[INSIDE]), options.jobs, options.steps, options.seed, 60.0 * options.minutes, options.pause
    )
    print(json.dumps({"benchmark": "faults/chaos", **counts.as_dict()}))
    return 0 if counts.fine else 1


def _in_namespace() -> int:
    """The same again, in a namespace of mounts that has a small disk and a clock that can be stepped."""
    home = Path(tempfile.mkdtemp(prefix="chipwise-chaos-"))
    home.chmod(0o755)
    try:
        (home / "clock").write_bytes(struct.pack("d", 0.0))
        (home / "clock").chmod(0o644)
        library = home / "stepped_clock.so"
        source = HERE / "stepped_clock.c"
        build = ["cc", "-shared", "-fPIC", "-O1", f'-DOFFSET_FILE="{home / "clock"}"', "-o", str(library), str(source), "-lm"]
        subprocess.run(build, check=True)
        for folder in ("srv", "etc", "overlay"):
            (home / folder).mkdir()
        (home / "etc" / "ld.so.preload").write_text(f"{library}\n")
        script = f"""set -e
            mount -t overlay overlay -o lowerdir=/etc,upperdir={home}/etc,workdir={home}/overlay /etc
            mount -t tmpfs -o size={DISK} none {home}/srv
            exec "$@" """
        command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, str(HERE), *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, INSIDE: str(home)}).returncode
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
