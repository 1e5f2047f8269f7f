"""eksctl's own schema accepts the rendered cluster, where the program is there to print it."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import jsonschema
import pytest
import yaml

from chipwise.renderer.targets import eksctl
from deployments import deployment

pytestmark = pytest.mark.e2e
AWS = "clouds=[aws]"
CASES = [
    ("train", AWS),
    ("serve", AWS),
    ("serve", AWS, "chips=[inferentia2]"),
    ("batch", AWS),
    ("hybrid", AWS),
    ("interactive", AWS),
]


@pytest.fixture(scope="module")
def schema() -> Any:
    program = shutil.which("eksctl")
    if program is None:
        pytest.skip("eksctl: not found; its releases are on GitHub (github.com/eksctl-io/eksctl)")
    done = subprocess.run([program, "utils", "schema"], capture_output=True, text=True, timeout=300, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_eksctl_knows_every_field(schema: Any, case: tuple[str, ...]) -> None:
    [file] = eksctl.render(deployment(*case))
    jsonschema.validate(yaml.safe_load(file.text), schema)


def test_the_schema_refuses_a_misspelt_field(schema: Any) -> None:
    [file] = eksctl.render(deployment("train", AWS))
    config = yaml.safe_load(file.text)
    config["managedNodeGroups"][0]["efaEnable"] = True
    with pytest.raises(jsonschema.ValidationError, match="efaEnable"):
        jsonschema.validate(config, schema)
