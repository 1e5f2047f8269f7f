"""The demo behind `make demo`: real questions, answered by the catalog and the planner, with the commands that answer them.

A team in Europe wants eight GPUs of 80 GB for a fine-tuning job. What is there, what does it cost, how clean is the power,
and does their old image run on it? Then: what should the job run on, and the service behind it? Each plan also becomes a
page that opens in a browser, and the service becomes manifests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHIPWISE = str(Path(sys.executable).parent / "chipwise")
OFFERS = "offers --kind gpu --memory 80GB --min-chips 8 --max-chips 8 --region EU --purchase on-demand --real"
FILES = "demo-deploy"
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
        f"plan examples/finetune/workload.yaml --html {REPORTS[0]}",
        0,
    ),
    ("And the chat service behind it?", f"plan examples/serve/workload.yaml --html {REPORTS[1]}", 0),
    ("That service as Kubernetes manifests:", f"render examples/serve/workload.yaml --to kubernetes --out {FILES} --force", 0),
    ("Would a careful engineer object to them?", f"audit {FILES}", 0),
)


def main() -> int:
    for title, command, expected in STEPS:
        print(f"\n# {title}\n$ chipwise {command}", flush=True)
        code = subprocess.run([CHIPWISE, *command.split()], cwd=ROOT).returncode
        if code != expected:
            print(f"demo: chipwise {command} ended with {code}, not {expected}", file=sys.stderr)
            return 1
    print(f"\nReports to open in a browser: {' and '.join(REPORTS)}; manifests to read: {FILES}/")
    print("Next: .venv/bin/chipwise --help, and docs/tutorial/first-steps.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
