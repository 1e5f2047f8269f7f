"""The demo behind `make demo`: real questions, answered by the catalog and the planner, with the commands that answer them.

A team in Europe wants eight GPUs of 80 GB for a fine-tuning job. What is there, what does it cost, how clean is the power,
and does their old image run on it? Then: what should the job run on, and the service behind it? Each plan also becomes a
page that opens in a browser, and the service becomes manifests. At the end a small training runs on this machine, loses its
processes in the middle, and goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHIPWISE = str(Path(sys.executable).parent / "chipwise")
OFFERS = "offers --kind gpu --memory 80GB --min-chips 8 --max-chips 8 --region EU --purchase on-demand --real"
FILES = "demo-deploy"
JOBS = ROOT / "demo-jobs"  # a record of its own, beside the user's
REPORTS = ("demo-finetune.html", "demo-serve.html")
STEPS = (
    (
        "Eight GPUs of 80 GB in the EU, real offers only, the cheapest chip first:",
        f"{OFFERS} --sort price-per-chip --limit 8",
        0,
    ),
    ("How the candidates compare:", "chips A100 H100 H200", 0),
    ("Which regions of two clouds run on clean power:", "regions --provider gcp --provider aws --sort carbon --limit 6", 0),
    ("Does our image, built for CUDA 11.6, run on an H100? (It does not.)", "explain h100-sxm --with cuda=11.6", 1),
    ("Is our workload file right?", "check examples/finetune/workload.yaml", 0),
    (
        "What should that fine-tuning run on, where, and what does it cost?",
        f"plan examples/finetune/workload.yaml --html {REPORTS[0]} --force",
        0,
    ),
    ("And the chat service behind it?", f"plan examples/serve/workload.yaml --html {REPORTS[1]} --force", 0),
    ("That service as Kubernetes manifests:", f"render examples/serve/workload.yaml --to kubernetes --out {FILES} --force", 0),
    ("Would a careful engineer object to them?", f"audit {FILES}", 0),
)


def run_and_lose() -> int:
    """A training job whose processes are killed once, as when a spot machine is taken away."""
    shutil.rmtree(JOBS, ignore_errors=True)
    env = {**os.environ, "CHIPWISE_DATA_DIR": str(JOBS)}

    def chipwise(title: str, *words: str) -> int:
        print(f"\n# {title}\n$ chipwise {' '.join(words)}", flush=True)
        return subprocess.run([CHIPWISE, *words], cwd=ROOT, env=env, timeout=120).returncode

    program = ("--name", "curve", "--", sys.executable, "examples/run/train.py")
    shown = "chipwise run -d --name curve -- python examples/run/train.py"
    print(f"\n# A small training on this machine, as a job:\n$ {shown}", flush=True)
    if subprocess.run([CHIPWISE, "run", "-d", *program], cwd=ROOT, env=env, timeout=60).returncode:
        return 1
    for _ in range(200):  # until it has saved something
        done = subprocess.run([CHIPWISE, "top", "--json"], cwd=ROOT, env=env, capture_output=True, timeout=60, check=True)
        found = [one for one in json.loads(done.stdout) if one["supervisor"] and (one["step"] or 0) >= 60]
        if found:
            break
        time.sleep(0.1)
    else:
        print("demo: the job did not come to its 60th step", file=sys.stderr)
        return 1
    try:
        os.kill(found[0]["supervisor"], signal.SIGKILL)
    except ProcessLookupError:
        print("\n# The training ended before it could be killed.", flush=True)
    else:
        print(f"\n# Killed at about step {found[0]['step']}, as when a machine is taken away:\n$ kill -9 ...", flush=True)
    code = chipwise("It goes on by itself, from its newest checkpoint:", "attach", "curve")
    return code or chipwise("Its story:", "describe", "curve")


def main() -> int:
    for title, command, expected in STEPS:
        print(f"\n# {title}\n$ chipwise {command}", flush=True)
        code = subprocess.run([CHIPWISE, *command.split()], cwd=ROOT).returncode
        if code != expected:
            print(f"demo: chipwise {command} ended with {code}, not {expected}", file=sys.stderr)
            return 1
    if code := run_and_lose():
        return code
    print(f"\nReports to open in a browser: {' and '.join(REPORTS)}; manifests to read: {FILES}/")
    print("Next: .venv/bin/chipwise --help, and docs/tutorial/first-steps.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
