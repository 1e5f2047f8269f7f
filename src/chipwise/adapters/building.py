"""Helm and Kustomize, where they are installed: what they make of a directory, without the network."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from chipwise.auditor.building import Build
from chipwise.text import decimal_size

WITHIN_S = 60.0
_LARGEST = 5_000_000
_KUSTOMIZE = "Install kustomize or kubectl, or audit what it writes: kustomize build OVERLAY | chipwise audit -"
_HELM = "Install helm and audit the chart again, or audit what it writes: helm template CHART | chipwise audit -"


def helm_build(chart: Path) -> Build:
    program = shutil.which("helm")
    if program is None:
        return Build(reason="helm is not installed", fix=_HELM)
    return _run([program, "template", "release-name", str(chart)], "helm", "Run helm template on it, and fix what it says.")


def kustomize_build(directory: Path) -> Build:
    if program := shutil.which("kustomize"):
        command = [program, "build", str(directory)]
    elif program := shutil.which("kubectl"):
        command = [program, "kustomize", str(directory)]
    else:
        return Build(reason="neither kustomize nor kubectl is installed", fix=_KUSTOMIZE)
    return _run(command, "kustomize", "Run kustomize build on it, and fix what it says.")


def _run(command: list[str], name: str, fix: str) -> Build:
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=WITHIN_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return Build(reason=f"{name} took more than {WITHIN_S:.0f} s", fix=fix)
    except OSError as error:
        return Build(reason=f"{name} could not be started ({error.strerror})", fix=fix)
    if completed.returncode:
        message = " ".join(completed.stderr.split())[:300] or f"exit code {completed.returncode}"
        return Build(reason=f"{name} says: {message}", fix=fix)
    if len(completed.stdout) > _LARGEST:
        return Build(reason=f"{name} wrote more than {decimal_size(_LARGEST)}", fix="Audit its parts.")
    return Build(text=completed.stdout or "---\n")
