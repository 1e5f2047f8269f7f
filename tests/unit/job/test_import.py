"""Importing the library costs a training program next to nothing."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"pydantic", "click", "rich", "yaml", "numpy", "torch", "jax", "fsspec", "asyncio", "inspect"}


def loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_import_brings_nothing_heavy() -> None:
    assert not (loaded("import chipwise.job") - loaded("pass")) & HEAVY


def test_training_without_arrays_needs_no_numpy(tmp_path: object) -> None:
    code = f"import chipwise.job as job\nfor step in job.steps({{'n': 1}}, total=3, directory={str(tmp_path)!r}): pass"
    assert not (loaded(code) - loaded("pass")) & (HEAVY - {"inspect"})
