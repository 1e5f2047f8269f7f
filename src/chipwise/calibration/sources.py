"""Who measured a row: a repository, an author's repositories of one campaign, a submitter of MLPerf.

Rows of one source share a machine, a stack and habits, so they say little of the next source: they are left out together.
"""

from __future__ import annotations

import re

from chipwise.perf.rows import Row

_CAMPAIGNS = (
    ("NVIDIA-NeMo/", "NVIDIA NeMo"),
    ("NVIDIA/NeMo", "NVIDIA NeMo"),
    ("NVIDIA/Megatron-LM", "NVIDIA NeMo"),
    ("NVIDIA/dgxc-benchmarking", "NVIDIA NeMo"),
    ("NVIDIA/TensorRT", "NVIDIA TensorRT"),
    ("google/maxtext", "AI-Hypercomputer"),
    ("AI-Hypercomputer/", "AI-Hypercomputer"),
    ("QwenLM/", "QwenLM"),
    ("mosaicml/", "mosaicml"),
    ("foundation-model-stack/", "foundation-model-stack"),
)
_TRAINING = re.compile(r"MLPerf Training v[\d.]+ \w+; (median of|[A-Za-z0-9-]+)")


def source_of(row: Row) -> str:
    repository, notes = row.text("source_repo"), row.text("notes")
    if repository.startswith("mlcommons/"):
        submitter = re.search(r"submitter ([^;]+);", notes) or _TRAINING.match(notes)
        return f"MLPerf {submitter[1] if submitter else 'training'}"
    if repository.endswith("pytorch-image-models"):
        return f"{repository} {row.text('source_path')}"
    return next((name for start, name in _CAMPAIGNS if repository.startswith(start)), repository)
