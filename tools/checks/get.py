"""Gets what judges rendered files besides a cluster: definitions and rules of KubeRay and Argo, Mermaid, MLflow.

KubeRay's and Argo's own rules are in their published Go modules; a small program for each (in the folders beside this file)
calls them. Everything lies outside the checkout, under names with versions, and gets there by a rename.

    python tools/checks/get.py            get what is missing (minutes the first time, nothing to do afterwards)
    python tools/checks/get.py --list     say where each is, or that it is missing
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # a script sees its own folder only

from kept import cache  # noqa: E402

KUBERAY, ARGO = "1.6.0", "3.7.3"
MERMAID, MLFLOW = "12.3.0", "3.17.2"
MODULES = {
    "kuberay": (f"github.com/ray-project/kuberay/ray-operator@v{KUBERAY}", "config/crd/bases/*.yaml"),
    "argo": (f"github.com/argoproj/argo-workflows/v3@v{ARGO}", "manifests/base/crds/full/*workflows.yaml"),
}
SECONDS = 1800.0


class CannotGet(Exception):
    """Why, in one sentence."""


def folder() -> Path:
    return cache() / "tools" / "checks"


def places() -> dict[str, Path]:
    """Where each lies when it is there."""
    at = folder()
    return {
        "kuberay definitions": at / f"kuberay-{KUBERAY}",
        "argo definitions": at / f"argo-{ARGO}",
        "kuberay rules": at / f"ray-check-{KUBERAY}",
        "argo rules": at / f"argo-check-{ARGO}",
        "mermaid": at / f"mermaid-{MERMAID}" / "node_modules" / "mermaid" / "dist" / "mermaid.min.js",
        "mlflow": at / f"mlflow-{MLFLOW}" / "bin" / "python",
    }


def definitions(name: str) -> Callable[[Path], None]:
    module, pattern = MODULES[name]

    def get(to: Path) -> None:
        told = json.loads(_run([_tool("go"), "mod", "download", "-json", module], HERE / "argo"))
        to.mkdir()
        for path in sorted(Path(told["Dir"]).glob(pattern)):
            if path.name != "kustomization.yaml":
                (to / path.name).write_bytes(path.read_bytes())

    return get


def rules(name: str) -> Callable[[Path], None]:
    def get(to: Path) -> None:
        _run([_tool("go"), "build", "-trimpath", "-o", str(to), "."], HERE / name)

    return get


def mermaid(to: Path) -> None:
    to.mkdir()
    _run([_tool("npm"), "install", "--no-fund", "--no-audit", f"--prefix={to}", f"mermaid@{MERMAID}"], to)


def mlflow(to: Path) -> None:
    """An environment of its own: it has a hundred packages that nothing else here needs. It cannot be moved afterwards."""
    venv.create(to, with_pip=True)
    _run([str(to / "bin" / "python"), "-m", "pip", "install", "--quiet", f"mlflow-skinny=={MLFLOW}"], to)


GET: dict[str, Callable[[Path], None]] = {
    "kuberay definitions": definitions("kuberay"),
    "argo definitions": definitions("argo"),
    "kuberay rules": rules("ray"),
    "argo rules": rules("argo"),
    "mermaid": mermaid,
    "mlflow": mlflow,
}


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise CannotGet(f"it needs {name}, which is not here")
    return found


def _run(command: list[str], where: Path) -> str:
    settings = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false"}
    try:
        done = subprocess.run(command, cwd=where, env=settings, capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CannotGet(f"`{Path(command[0]).name} {command[1]}`: {problem}") from problem
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise CannotGet(f"`{Path(command[0]).name} {command[1]}` failed: {said[-1]}")
    return done.stdout


def get(name: str) -> str:
    wanted = places()[name]
    if wanted.exists():
        return f"{name}: {wanted}"
    root = folder() / wanted.relative_to(folder()).parts[0]
    root.parent.mkdir(parents=True, exist_ok=True)
    try:
        if name == "mlflow":  # scripts of an environment name its folder, so it is made where it stays
            shutil.rmtree(root, ignore_errors=True)
            GET[name](root)
        else:
            with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
                made = Path(scratch) / root.name
                GET[name](made)
                made.rename(root)
    except CannotGet as problem:
        return f"{name}: NOT HERE: {problem}"
    return f"{name}: {wanted}"


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--list", action="store_true", dest="listed")
    listed = asked.parse_args().listed
    for name, path in places().items():
        print(f"{name}: {path if path.exists() else 'missing'}" if listed else get(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
