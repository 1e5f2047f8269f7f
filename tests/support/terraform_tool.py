"""Terraform and its AWS provider where they are to be had, and what they make in a stand-in of AWS.

Both are looked for on the path, in the plugin directories that Terraform knows by itself, and under the cache of `make tools`;
a test that needs what is missing says so and how to get it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from aws_stand_in import Aws
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import File
from chipwise.renderer.targets.terraform import render
from install_tools import folder as tools_folder

PROVIDER = "registry.terraform.io/hashicorp/aws"
ACCOUNT = "123456789012"  # moto's own


class Missing(Exception):
    """What is not here, and what gets it."""


def terraform() -> str:
    found = (
        shutil.which("terraform") or shutil.which("tofu") or shutil.which("terraform", path=str(tools_folder() / "terraform"))
    )
    if found is None:
        raise Missing("terraform: not found (nor tofu); see make tools")
    return found


def mirror() -> Path:
    """A directory of providers, in the layout of a filesystem mirror."""
    named = os.environ.get("CHIPWISE_TERRAFORM_PROVIDERS")
    places = [Path(named)] if named else []
    places += [tools_folder() / "terraform" / "providers", Path.home() / ".terraform.d" / "plugins"]
    places += [Path("/usr/local/share/terraform/plugins"), Path("/usr/share/terraform/plugins")]
    places += sorted(Path("/opt").glob("*"))  # where images of build machines put them
    for place in places:
        if (place / PROVIDER).is_dir():
            return place
    raise Missing(
        "terraform: the AWS provider was not found; put a filesystem mirror with hashicorp/aws 5.100 into "
        "CHIPWISE_TERRAFORM_PROVIDERS (`terraform providers mirror DIR` makes one where the registry can be reached)"
    )


@dataclass(frozen=True, slots=True)
class Tool:
    """Terraform in one directory, with providers from disk alone."""

    program: str
    config: Path
    folder: Path
    settings: Mapping[str, str]

    def run(self, *words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TF_"))}
        env = kept | {"TF_CLI_CONFIG_FILE": str(self.config), "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
        said = subprocess.run(
            [self.program, *words],
            cwd=self.folder,
            env=env | dict(self.settings),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert said.returncode == 0, f"terraform {' '.join(words)}\n{said.stdout[-4000:]}\n{said.stderr[-6000:]}"
        return said


def write(folder: Path, files: Sequence[File]) -> None:
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")


def tool(folder: Path) -> Tool:
    """As a user has it: `init` looks for the provider that the files name, and every command compares its digest."""
    return _tool(folder, f'  filesystem_mirror {{\n    path = "{mirror()}"\n  }}\n', {})


def ready(folder: Path, settings: Mapping[str, str]) -> Tool:
    """With its provider at once, for files without modules: digests of 700 MB would take half of the time of each command."""
    binary = sorted((mirror() / PROVIDER).glob("*/*/terraform-provider-aws*"))[-1]
    return _tool(folder, f'  dev_overrides {{\n    "hashicorp/aws" = "{binary.parent}"\n  }}\n', settings)


def _tool(folder: Path, installation: str, settings: Mapping[str, str]) -> Tool:
    config = folder / "terraform.rc"
    config.write_text(f"provider_installation {{\n{installation}}}\n")
    return Tool(terraform(), config, folder, settings)


OVERRIDE = """\
provider "aws" {
  access_key                  = "testing"
  secret_key                  = "testing"
  s3_use_path_style           = true
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  max_retries                 = 2
}
"""


def applied(aws: Aws, planned: Deployment, folder: Path, given: Mapping[str, Any], inner: str = "") -> Tool:
    """Files of a plan, made in the stand-in of AWS."""
    image = {"AMI": {"ec2": "/aws/service/deeplearning/ami/test"}}
    write(folder, render(replace(planned, platforms={**planned.platforms, **image})))
    place = folder / inner
    (place / "moto_override.tf").write_text(OVERRIDE)
    (place / "terraform.tfvars.json").write_text(json.dumps(given))
    served = {f"AWS_ENDPOINT_URL_{one}": aws.url for one in ("EC2", "SSM", "EKS")}
    try:
        one = ready(place, {"AWS_ENDPOINT_URL": aws.moto, **served})
    except Missing as what:
        pytest.skip(str(what))
    one.run("apply", "-no-color", "-auto-approve")
    return one


def subnets(aws: Aws, region: str) -> list[str]:
    return sorted(one["SubnetId"] for one in aws.client("ec2", region).describe_subnets()["Subnets"])
