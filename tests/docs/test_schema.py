"""The published JSON Schema: fresh, valid, and in agreement with the parser on the examples and on mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from chipwise.files.source import read_yaml
from chipwise.workload.parse import load_with_lines
from chipwise.workload.schema import json_schema, schema_text

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "reference" / "workload.schema.json"
EXAMPLES = sorted((ROOT / "examples").glob("*/workload.yaml"))
SERVE: dict[str, Any] = {"kind": "serve", "name": "x", "model": "m", "arrival": "12 req/s"}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(PUBLISHED.read_text(encoding="utf-8")))


def test_the_published_schema_is_what_the_classes_say(update_golden: bool) -> None:
    if update_golden:
        PUBLISHED.write_text(schema_text(), encoding="utf-8")
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text(), "run pytest tests/docs --update-golden"


def test_the_schema_is_a_valid_schema_whose_references_lead_somewhere() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)
    wanted = {part.split('"')[0] for part in text.split("#/$defs/")[1:]}
    assert wanted <= set(schema["$defs"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_fits_the_schema_and_names_it(path: Path, validator: Draft202012Validator) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../../docs/reference/workload.schema.json\n")
    assert (path.parent / "../../docs/reference/workload.schema.json").resolve() == PUBLISHED
    assert list(validator.iter_errors(read_yaml(text, str(path)).data)) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_a_parsed_workload_written_out_in_full_fits_the_schema(path: Path, validator: Draft202012Validator) -> None:
    full = load_with_lines(path).workload.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert list(validator.iter_errors(full)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "srve"},
        {"colour": "red"},
        {"goals": {"objectiv": "cost"}},
        {"goals": {"objective": "cheap"}},
        {"goals": {"latency": {"q95": "1s"}}},
        {"goals": {"deadline": -5}},
        {"limits": {"precision": "bf61"}},
        {"limits": {"interruptible": "perhaps"}},
        {"schedule": {"kind": "business-hours"}},
        {"schedule": "sometimes"},
        {"labels": {"team": 5}},
        {"environments": {"dev": {"colour": "red"}}},
        {"environments": {"dev": {"goals": {"objective": "cheap"}}}},
        {"environments": ["dev"]},
    ],
)
def test_the_schema_refuses_what_the_parser_refuses(change: dict[str, Any], validator: Draft202012Validator) -> None:
    assert validator.is_valid(SERVE)
    assert not validator.is_valid(SERVE | change)


@pytest.mark.parametrize("missing", SERVE)
def test_the_schema_asks_for_what_is_required(missing: str, validator: Draft202012Validator) -> None:
    assert not validator.is_valid({key: value for key, value in SERVE.items() if key != missing})


@pytest.mark.parametrize(
    "overlay",
    [None, {}, {"goals": {"latency": None}}, {"schedule": {"start": "09:00"}}, {"arrival": {"rate": None, "concurrency": 4}}],
)
def test_an_overlay_may_be_partial_and_may_remove(overlay: object, validator: Draft202012Validator) -> None:
    assert validator.is_valid(SERVE | {"environments": {"dev": overlay}})


def test_fields_are_described() -> None:
    serve = json_schema()["$defs"]["Serve"]["properties"]
    assert "system prompt" in serve["shared_prefix_tokens"]["description"]
    described = [name for name, info in serve.items() if "description" in info]
    assert len(described) >= 8
