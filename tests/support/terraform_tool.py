"""Terraform and its AWS provider where they are to be had, and a moto server for what they make.

Both are looked for on the path, in the plugin directories that Terraform knows by itself, and under the cache of `make tools`;
a test that needs what is missing says so and how to get it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chipwise.renderer.file import File
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


def tool(folder: Path, settings: Mapping[str, str] | None = None) -> Tool:
    program, providers = terraform(), mirror()
    config = folder / "terraform.rc"
    config.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{providers}"\n  }}\n}}\n')
    return Tool(program, config, folder, settings or {})


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


@contextmanager
def moto() -> Iterator[str]:
    """A moto server on a free port of this machine; its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
