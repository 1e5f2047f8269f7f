"""The kinds of workload as a program writes them: the fields of a workload file, a name unless given, and our own errors.

    Serve(model="llama-3.1-8b", arrival={"rate": "10 req/s"}, input_tokens=1000, output_tokens=300)

Quantities are numbers or texts with a unit, as in a file. `docs/workloads.md` describes every field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time
from enum import Enum
from inspect import Parameter, Signature
from pathlib import PurePath
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import BaseModel, ModelWrapValidatorHandler, RootModel, ValidationError, model_validator
from pydantic.fields import FieldInfo

from chipwise.errors import BadInput, InvalidFile, InvalidSettings
from chipwise.planner.options import flat
from chipwise.public.calling import CORRECT
from chipwise.public.python_values import as_plain
from chipwise.workload import kinds, pipeline
from chipwise.workload.parse import parse
from chipwise.workload.part import Section

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as _Metaclass
else:
    _Metaclass = type(BaseModel)

_DURATIONS = ("ttft", "tpot")


def plain_fields(value: Any) -> Any:
    """Fields as a file could hold them: parts of a workload, enums, dates and paths written out."""
    value = as_plain(value)
    match value:
        case BaseModel():
            return _with_units(_stated(value, value.model_dump(mode="json", by_alias=True)))
        case Mapping():
            return {str(key): plain_fields(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain_fields(inner) for inner in value]
        case Enum():
            return value.value
        case datetime() | date() | time():
            return value.isoformat()
        case PurePath():
            return str(value)
        case None | bool() | int() | float() | str():
            return value
    raise BadInput(
        f"{type(value).__name__} cannot stand in a workload.", remedy="Give numbers, texts, true or false, lists and mappings."
    )


def _stated(part: Any, fields: Any) -> Any:
    """Without what was left open: a default that is written out would be taken for a wish."""
    match part:
        case BaseModel() if isinstance(fields, Mapping) and not isinstance(part, RootModel):
            stated = {}
            for name, field in type(part).model_fields.items():
                inner, written = getattr(part, name), field.serialization_alias or name
                left_open = name not in part.model_fields_set and inner == field.get_default(call_default_factory=True)
                if written in fields and (name == "kind" or not left_open):
                    stated[written] = _stated(inner, fields[written])
            return stated
        case list() | tuple() if isinstance(fields, list):
            return [_stated(inner, written) for inner, written in zip(part, fields, strict=True)]
        case Mapping() if isinstance(fields, Mapping):
            return {key: _stated(part[key], fields[key]) if key in part else fields[key] for key in fields}
    return fields


def _with_units(fields: Any, name: str = "") -> Any:
    """Goals as durations with a unit, since a bare number may be refused as milliseconds without one."""
    match fields:
        case Mapping():
            return {key: _with_units(inner, name if name in _DURATIONS else key) for key, inner in fields.items()}
        case list():
            return [_with_units(inner) for inner in fields]
        case int() | float() if name in _DURATIONS:
            return f"{fields!r}s"
    return fields


class _Described(_Metaclass):
    """What `help()` and `dir()` show of a workload: its fields, and not what every model of pydantic has."""

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return _described(cast(type[Section], self), vars(self).get("__doc__") or "")

    def __dir__(self) -> list[str]:
        return sorted(cast(type[Section], self).model_fields)

    @property
    def __signature__(self) -> Signature:
        """The fields, the model first; what each takes stands below it."""
        fields = cast(type[Section], self).model_fields
        kinds = {"model": Parameter.POSITIONAL_OR_KEYWORD}
        names = sorted(
            (name for name in fields if name != "kind"), key=lambda name: (name != "model", not fields[name].is_required())
        )
        return Signature(
            [
                Parameter(
                    name,
                    kinds.get(name, Parameter.KEYWORD_ONLY),
                    default=Parameter.empty if fields[name].is_required() else fields[name].get_default(),
                )
                for name in names
                if fields[name].is_required()
            ]
            + [Parameter("fields", Parameter.VAR_KEYWORD)]
        )

    @__signature__.setter
    def __signature__(self, value: object) -> None:
        """That of pydantic, which nobody can read."""

    def __call__(self, *args: Any, **fields: Any) -> Any:
        """A model may stand without a name."""
        if args and (len(args) > 1 or "model" not in cast(type[Section], self).model_fields or "model" in fields):
            raise BadInput(f"{self.__name__} takes its fields by name.", remedy=f"For example: {_example_of(self)}")
        return super().__call__(**({"model": args[0]} if args else {}), **fields)


def _example_of(kind: type) -> str:
    about = str(vars(kind).get("__doc__") or "")
    return about.partition("`")[2].partition("`")[0] or f"{kind.__name__}(name=...)"


def _described(kind: type[Section], about: str) -> str:
    """Read when it is asked for: the strings under the fields are found in the source."""
    from chipwise.workload.schema import field_texts

    try:
        texts = field_texts(kind)
    except (OSError, TypeError, KeyError):  # a class that somebody typed, or no source beside the bytecode
        texts = {}
    fields = ((name, field) for name, field in kind.model_fields.items() if name != "kind")
    lines = [f"  {_field_line(name, field, texts.get(name, ''))}" for name, field in fields]
    return "\n".join([about, "", "Fields, as in a workload file (docs/workloads.md):", *lines])


def _field_line(name: str, field: FieldInfo, text: str) -> str:
    """`output_tokens  Tokens of an answer.`, with what is taken where it is not stated."""
    default = field.get_default()
    is_told = (
        not field.is_required() and default != "" and isinstance(default, int | float | str) and not isinstance(default, bool)
    )
    stated = " (required)" if field.is_required() else f" (default {default})" if is_told else ""
    return f"{name:<22}{shorten(text, 90 - len(stated), placeholder=' ...')}{stated}".rstrip()


class OwnErrors(BaseModel, metaclass=_Described):
    """Says what is wrong with a workload as a workload file would be told: all of it at once, in the package's own error."""

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self).__name__
        raise BadInput(f"A workload does not change, and {name} cannot be set.", remedy=f"Make another {kind}(...).")

    def __repr__(self) -> str:
        """Only what was stated."""
        fields = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        stated = ", ".join(f"{name}={shorten(repr(value), 300, placeholder=' ...')}" for name, value in fields.items())
        return f"{type(self).__name__}({stated})"

    __str__ = __repr__

    @model_validator(mode="wrap")
    @classmethod
    def _told_as_of_a_file(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        value = as_plain(value, with_paths=True)
        try:
            return handler(value)
        except ValidationError as error:
            if not isinstance(value, Mapping):
                raise BadInput(f"{cls.__name__}: {error}") from error
            fields = {"kind": cls.model_fields["kind"].default, **value}
            try:
                parse(flat(plain_fields(fields)), cls.__name__)
            except InvalidFile as problems:
                settings = InvalidSettings(*(replace(problem, line=None) for problem in problems.problems))
                settings.remedy = CORRECT
                raise settings from error
            raise BadInput(f"{cls.__name__}: {error}") from error


class Train(OwnErrors, kinds.Train):
    """Training from the start, or continued pretraining: `Train(model="llama-3.1-8b", tokens="2B")`."""


class Finetune(OwnErrors, kinds.Finetune):
    """Adapting a trained model: `Finetune(model="llama-3.1-8b", method="lora", tokens="50M")`."""


class Serve(OwnErrors, kinds.Serve):
    """Online inference: `Serve(model="llama-3.1-8b", arrival="10 req/s", input_tokens=1000, output_tokens=300)`."""


class Batch(OwnErrors, kinds.Batch):
    """Offline inference over a known number of items: `Batch(model="qwen2.5-7b", items="1M", input_tokens=500)`."""


class Hpc(OwnErrors, kinds.Hpc):
    """Numerical work: `Hpc(flop_per_step="2 PFLOP", bytes_per_step="40 GB", steps=10_000)`."""


class Render(OwnErrors, kinds.Render):
    """Pictures from a scene: `Render(frames=240, resolution="1920x1080", samples_per_pixel=512)`."""


class Transcode(OwnErrors, kinds.Transcode):
    """Video decoded and encoded again, as live streams or an archive."""


class Stream(OwnErrors, kinds.Stream):
    """A fixed chain of operations that data flows through without a stop, as on an FPGA."""


class Hybrid(OwnErrors, kinds.Hybrid):
    """Quantum circuits and classical work in turns: `Hybrid(iterations=100, quantum={"qubits": 20, "shots": 1000})`."""


class Interactive(OwnErrors, kinds.Interactive):
    """People at notebooks: `Interactive(people=12, memory="20 GiB")`."""


class Pipeline(OwnErrors, pipeline.Pipeline):
    """Stages with hand-offs: `Pipeline(stages=[Finetune(...), Serve(...)])`; each stage needs a name of its own."""
