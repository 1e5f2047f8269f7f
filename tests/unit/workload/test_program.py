"""What runs: image, command, settings and where secrets are kept."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chipwise.workload.program import Program


def test_a_line_is_taken_apart_as_a_shell_would() -> None:
    assert Program.model_validate({"command": "python train.py --name 'a b'"}).command == (
        "python",
        "train.py",
        "--name",
        "a b",
    )
    assert Program.model_validate({"command": ["python", "train.py", 3]}).command == ("python", "train.py", "3")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("command", ""),
        ("command", []),
        ("command", "a 'b"),
        ("command", [True]),
        ("command", ["a\x00"]),
        ("command", 3),
        ("command", ["x"] * 401),
        ("command", ["x" * 16_385]),
        ("image", "UPPER/Case:1"),
        ("image", "a b"),
        ("image", ""),
        ("image", "x;rm"),
        ("env", {"A-B": "x"}),
        ("env", {"1A": "x"}),
        ("env", {"A": True}),
        ("env", {"A": None}),
        ("env", {"A": "x\x00"}),
        ("secrets", {"A": "value"}),
        ("secrets", {"A": "../x/y"}),
        ("secrets", {"A": "UP/x"}),
        ("port", 0),
        ("port", 65536),
        ("health", "health"),
        ("health", "/a b"),
        ("engine", "gpt"),
        ("framework", "fortran"),
        ("requirements", "/etc/passwd"),
        ("requirements", "a/../../b"),
        ("trigger", "http://x"),
        ("trigger", "s3://A/b"),
        ("command", ["python", False]),
        ("command", ["python", None]),
        ("command", ["python", []]),
        ("command", [""]),
        ("command", " "),
        ("command", ["python", float("inf")]),
        ("env", {"A": float("nan")}),
        ("port", True),
        ("secrets", {"A": "hub/.."}),
        ("secrets", {"A": "hub/."}),
        ("secrets", {"A": "a..b/c"}),
        ("secrets", {"A": "a/b\n"}),
        ("requirements", "a/"),
        ("requirements", "a b"),
        ("requirements", "a\n"),
        ("requirements", "../x"),
        ("checkpoints", "s3://a/\nb"),
        ("checkpoints", "s3://a/\x1b[31m"),
        ("env", {f"A{n}": "x" * 16_000 for n in range(63)}),
    ],
)
def test_what_would_only_fail_on_the_machine_is_told_here(field: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        Program.model_validate({field: value})


@pytest.mark.parametrize(
    "image", ["python", "python:3.12-slim", "team/trainer:1.4", "host.example:5000/team/a_b/c:v1", "a@sha256:" + "0" * 64]
)
def test_images_as_people_write_them(image: str) -> None:
    assert Program.model_validate({"image": image}).image == image


def test_a_setting_is_no_secret_at_the_same_time() -> None:
    with pytest.raises(ValidationError, match="is in env as well"):
        Program.model_validate({"env": {"TOKEN": "x"}, "secrets": {"TOKEN": "kept/token"}})


def test_numbers_are_taken_as_text() -> None:
    assert Program.model_validate({"env": {"N": 3}}).env == {"N": "3"}


def test_what_is_told_is_what_was_written() -> None:
    """Not a pattern, and not what became of it on the way."""
    for value, told in (({"command": ""}, "'' is not a command"), ({"requirements": "../x"}, "'../x' is not a file next to")):
        with pytest.raises(ValidationError, match=told):
            Program.model_validate(value)


@pytest.mark.parametrize("kept", ["hub-token/token", "a.b-c/.dockerconfigjson", "a/tls.key", "a/..b"])
def test_places_of_secrets_as_kubernetes_has_them(kept: str) -> None:
    assert Program.model_validate({"secrets": {"A": kept}}).secrets == {"A": kept}
