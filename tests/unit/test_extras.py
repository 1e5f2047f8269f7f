"""Extras can be installed together: one version of each package serves all of them, and it is the one that is pinned."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NOT_PINNED = {"torch", "jax", "orbax-checkpoint"}  # gigabytes, and each machine has its own build
PINS: dict[str, str] = {
    canonicalize_name(name): version
    for name, _, version in re.findall(
        r"^([\w.-]+)(==)(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
}


def needed(extra: str) -> list[Requirement]:
    """Of an extra, with those of the extras that it names."""
    requirements = [Requirement(text) for text in EXTRAS[extra]]
    own = [one for one in requirements if one.name == PROJECT["name"]]
    return [one for one in requirements if one not in own] + [
        more for one in own for name in one.extras for more in needed(name)
    ]


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_an_extra_needs_is_pinned_to_a_version_that_it_takes(extra: str) -> None:
    for requirement in needed(extra):
        name = canonicalize_name(requirement.name)
        assert name in PINS or name in NOT_PINNED, f"{name}: make lock"
        assert name not in PINS or requirement.specifier.contains(PINS[name]), f"{requirement}, and {PINS[name]} is pinned"


def test_what_the_pinned_versions_need_of_each_other_is_pinned() -> None:
    """As far as they are installed here. botocore is the usual quarrel: boto3 takes one version of it, aiobotocore a few."""
    checked = 0
    for name, version in PINS.items():
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue
        if installed.version != version:
            continue
        for text in installed.requires or ():
            requirement = Requirement(text)
            other = canonicalize_name(requirement.name)
            if (requirement.marker is None or requirement.marker.evaluate({"extra": ""})) and other in PINS:
                assert requirement.specifier.contains(PINS[other], prereleases=True), f"{name} {version} needs {requirement}"
                checked += 1
    assert checked > 50


def test_both_libraries_of_aws_are_pinned_alike() -> None:
    """boto3 1.43.117 needs botocore 1.43.117 or a later one of 1.43, and s3fs an aiobotocore that takes it."""
    assert PINS["boto3"].rsplit(".", 1)[0] == PINS["botocore"].rsplit(".", 1)[0]
    assert PINS["s3fs"] == PINS["fsspec"]
