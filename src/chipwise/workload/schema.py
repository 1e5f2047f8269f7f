"""The JSON Schema of workload files, by which editors complete and check them.

It is published as docs/reference/workload.schema.json and made from the classes: names and types by pydantic, descriptions
from the strings under the fields. It is looser than the parser where it must be (a quantity is any text), and knows only
the usual spelling of a choice: the parser also takes BF16 for bf16. Overlays under `environments` have the same fields
with none of them required, and null to remove one.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from chipwise.workload import quantity
from chipwise.workload.overlay import KEY
from chipwise.workload.part import JsonSchema, Section
from chipwise.workload.pipeline import KINDS
from chipwise.workload.problems import adapter
from chipwise.workload.quantity import Quantity

_OVERLAY = "Overlay"


def json_schema() -> JsonSchema:
    """The schema of a workload file, draft 2020-12."""
    definitions: JsonSchema = adapter().json_schema(by_alias=True, mode="validation")["$defs"]
    for model in _all_parts(Section):
        _describe(model, definitions.get(model.__name__))
    quantities = {_shape(mark): (_pascal(mark.noun), mark) for mark in _quantities()}
    definitions = {name: _tidy(definition, quantities) for name, definition in definitions.items()}
    definitions |= {name: json.loads(shape) | {"description": mark.noun} for shape, (name, mark) in quantities.items()}
    plain = {name for name, definition in definitions.items() if "properties" not in json.dumps(definition)}
    overlays = {
        f"{name}{_OVERLAY}": _as_overlay(definition, plain) for name, definition in definitions.items() if name not in plain
    }
    names = [model.__name__ for model in KINDS]
    tags = [model.model_fields["kind"].default for model in KINDS]
    for name in names:
        below: JsonSchema = {"anyOf": [{"$ref": f"#/$defs/{name}{_OVERLAY}"}, {"type": "null"}]}
        about = "What differs in dev, test, prod and so on: each field replaces that of the rest of the file."
        definitions[name]["properties"][KEY] = {"type": "object", "additionalProperties": below, "description": about}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "chipwise workload",
        "description": "What is to run, its goals and its limits.",
        "type": "object",
        "required": ["kind", "name"],
        "properties": {"kind": {"enum": tags, "description": "What sort of work this is."}, "name": {"type": "string"}},
        "allOf": [
            {"if": {"properties": {"kind": {"const": tag}}, "required": ["kind"]}, "then": {"$ref": f"#/$defs/{name}"}}
            for tag, name in zip(tags, names, strict=True)
        ],
        "$defs": dict(sorted((definitions | _used(overlays, (f"{name}{_OVERLAY}" for name in names))).items())),
    }


def schema_text() -> str:
    """What is published."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"


def _all_parts(model: type[Section]) -> Iterable[type[Section]]:
    for inner in model.__subclasses__():
        yield inner
        yield from _all_parts(inner)


def _describe(model: type[Section], definition: JsonSchema | None) -> None:
    """Descriptions from the strings under the fields; `kind` is always to be written."""
    if definition is None:
        return
    full = definition if "properties" in definition else definition["anyOf"][-1]
    for name, text in field_texts(model).items():
        full["properties"][model.model_fields[name].alias or name]["description"] = text
    if "kind" in full["properties"]:
        full["required"] = ["kind", *(name for name in full.get("required", []) if name != "kind")]


def field_texts(model: type[Section]) -> dict[str, str]:
    """The strings under the fields, by field."""
    texts: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if not issubclass(owner, Section) or owner is Section:
            continue
        for field, text in pairwise(_classes(owner.__module__)[owner.__name__].body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    texts[name] = words
    return texts


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Those that the file of a module defines, read once for all of them."""
    source = inspect.getsource(import_module(module))
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def _quantities() -> Iterable[Quantity]:
    for alias in vars(quantity).values():
        yield from (mark for mark in getattr(alias, "__metadata__", ()) if isinstance(mark, Quantity))


def _shape(mark: Quantity) -> str:
    return json.dumps(mark.json_schema(), sort_keys=True)


def _pascal(words: str) -> str:
    return "".join(word.capitalize() for word in words.replace("-", " ").split() if word not in ("a", "an", "of", "in"))


def _tidy(schema: Any, quantities: Mapping[str, tuple[str, Quantity]]) -> Any:
    """Without titles and nulls that say nothing; quantities by reference, so that each is there once."""
    if isinstance(schema, list):
        return [_tidy(item, quantities) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "string" and "const" in schema:
        schema = {key: value for key, value in schema.items() if key != "default"}
    bare = {key: value for key, value in schema.items() if key in ("anyOf", "examples")}
    rest = {key: value for key, value in schema.items() if key not in ("title", "anyOf", "examples", "discriminator")}
    if (shape := json.dumps(bare, sort_keys=True)) in quantities:
        return rest | {"$ref": f"#/$defs/{quantities[shape][0]}"}
    tidy: JsonSchema = {}
    for key, value in schema.items():
        if key in ("title", "discriminator") or (key == "default" and value is None):
            continue
        if key == "properties":
            tidy[key] = {name: _tidy(inner, quantities) for name, inner in value.items()}
        elif key == "anyOf" and {"type": "null"} in value and len(value) == 2:
            tidy |= _tidy(next(item for item in value if item != {"type": "null"}), quantities)
        elif key in ("default", "examples", "enum", "const"):
            tidy[key] = value
        else:
            tidy[key] = _tidy(value, quantities)
    return tidy


def _as_overlay(schema: Any, plain: set[str]) -> Any:
    """The same with nothing required and null allowed wherever a field is; references lead to other overlays."""
    if isinstance(schema, list):
        return [_as_overlay(item, plain) for item in schema]
    if not isinstance(schema, dict):
        return schema
    overlay: JsonSchema = {}
    for key, value in schema.items():
        match key:
            case "required" | "default" | "minProperties":
                continue
            case "$ref":
                overlay[key] = value if value.removeprefix("#/$defs/") in plain else f"{value}{_OVERLAY}"
            case "properties" | "patternProperties":
                overlay[key] = {name: _or_null(_as_overlay(inner, plain)) for name, inner in value.items()}
            case "oneOf":  # without a required tag more than one may fit
                overlay["anyOf"] = _as_overlay(value, plain)
            case "items":
                overlay[key] = value  # lists replace as a whole, so their items are complete
            case _:
                overlay[key] = _as_overlay(value, plain)
    return overlay


def _or_null(schema: JsonSchema) -> JsonSchema:
    described = {key: schema.pop(key) for key in ("description",) if key in schema}
    return described | {"anyOf": [schema, {"type": "null"}]}


def _used(overlays: JsonSchema, wanted: Iterable[str]) -> JsonSchema:
    """The overlays that are reached from those wanted."""
    reached: JsonSchema = {}
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in reached or name not in overlays:
            continue
        reached[name] = overlays[name]
        waiting += [ref.removeprefix("#/$defs/") for ref in _refs(overlays[name])]
    return reached


def _refs(schema: Any) -> Iterable[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from _refs(item)
