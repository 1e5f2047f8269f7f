"""Machines boot by one script, with settings of their own: those of `--to ec2`, `--to terraform` and `run --engine ec2`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chipwise.adapters.engines.ec2.user_data import machine_program
from chipwise.renderer.launch.boot import booting

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "render"
CLOUDS = {"aws": "aws", "azure": "azure", "gcp": "google"}
STARTS = {path: path.read_text() for target in ("ec2", "terraform") for path in sorted((GOLDEN / target).rglob("start.sh"))}


@pytest.mark.parametrize("path", STARTS, ids=lambda path: "-".join(path.relative_to(GOLDEN).parts))
def test_what_is_rendered_boots_by_the_common_script(path: Path) -> None:
    provider = re.search(r" \((aws|azure|gcp) ", STARTS[path])
    assert provider is not None
    assert STARTS[path].endswith(f"{booting(CLOUDS[provider[1]])}\nboot\n")


def test_both_targets_start_machines() -> None:
    assert {path.relative_to(GOLDEN).parts[0] for path in STARTS} == {"ec2", "terraform"}


def test_the_engine_boots_by_the_same_script_and_adds_to_it() -> None:
    """But for comments, of which EC2 has no room."""

    def bare(text: str) -> list[str]:
        lines = (line.split(" # ")[0].rstrip() for line in text.splitlines())
        return [line for line in lines if line and not line.lstrip().startswith("#")]

    common, own = bare(booting("aws")), bare(machine_program())
    assert own[: len(common)] == common
    assert own[-1] == "boot"
