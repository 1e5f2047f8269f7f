"""The models people name, each with its shape: packaged rows plus whatever a user's own files add.

Packaged rows are in `data/models`, one file per kind; they are read when first asked for, and a shape is built when its
model is. The published count of a row is what its source prints: it is there to check the computed one and is never
used to compute it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import InvalidFile, Problem, UnknownName
from chipwise.spelling import nearest
from chipwise.workload.model import networks
from chipwise.workload.model.rows import EXAMPLE, ModelRow, read_csv, read_yaml
from chipwise.workload.model.spelled import key, without_owner

if TYPE_CHECKING:
    from chipwise.workload.model.shape import Shape

DATA = Path(__file__).resolve().parents[2] / "data" / "models"
UNKNOWN_MODEL_REMEDY = (
    "For any other model give its config.json, an ONNX file, or an inline shape; of a network that is no transformer "
    "{kind: network, parameters: 25600000, macs: 4100000000, layers: cnn, image_size: 224} is enough."
)
PARTS = ("text", "image", "denoiser", "vae", "text_encoders")  # fields that may name other rows instead of a shape

# What people add to a name without changing the shape: tuning, packaging, number format.
_SUFFIX = re.compile(
    r"-(?:instruct|chat|it|hf|base|pretrained|pt|sft|dpo|gguf|ggml|awq|gptq|bnb|exl-2|mlx|onnx|latest|quantized|dynamic"
    r"|fp-(?:4|8|16|32)|bf-16|int-(?:4|8)|nvfp-4|mxfp-4|nf-4|w-\d+-a-\d+|[234568]-?bit|q-\d(?:-[a-z\d]+){0,3}"
    r"|v-0\.\d|g-(?:32|64|128)|marlin|autoround|unsloth)$"
)
_SIZE = re.compile(r"-\d+(?:\.\d+)?(?:-x-\d+(?:\.\d+)?)?-[bm]$")


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    aliases: tuple[str, ...]
    family: str
    shape: Shape
    context: int | None  # tokens; None where length has no meaning or nobody stated it
    published_parameters: int | None
    source: str
    as_of: str
    year: int | None = None
    published_precision: str = ""  # of the weights; empty: 16 bits
    local: bool = False  # read from a directory on this machine
    notes: tuple[str, ...] = ()  # what its shape leaves out


class Registry:
    """Models by every name they go by. A later row takes over the names of an earlier one."""

    def __init__(self, rows: Iterable[ModelRow]) -> None:
        self._rows: dict[str, ModelRow] = {}
        self._names: dict[str, str] = {}
        self._models: dict[str, Model] = {}  # those that were asked for: a plan asks thousands of times for one
        bare: dict[str, str] = {}
        for row in rows:
            self._rows[row.name] = row
            for name in (row.name, *row.aliases):
                self._names[key(name)] = row.name
                bare[key(without_owner(name))] = row.name
        self._names = bare | self._names  # a full name always means what it says

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._rows)

    def __iter__(self) -> Iterator[Model]:
        return (self.model(name) for name in self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def model(self, name: str) -> Model:
        """The model of exactly this name; `find` is for names that people type."""
        known = self._models.get(name)
        if known is None:
            known = self._models[name] = self._built(self._rows[name])
        return known

    def _built(self, row: ModelRow) -> Model:
        from chipwise.workload.model.inline import shape_from_mapping  # who only lists names need not load the shapes

        return Model(
            name=row.name,
            aliases=row.aliases,
            family=row.family,
            shape=shape_from_mapping(self._joined(row.fields), row.path),
            context=row.context,
            published_parameters=row.published_parameters,
            published_precision=row.published_precision,
            source=row.source,
            as_of=row.as_of,
            year=row.year,
        )

    def known(self, name: str) -> Model | None:
        """Resolve a name: as it stands, without its owner, then without suffixes such as -Instruct or -AWQ."""
        for candidate in _candidates(name):
            if candidate in self._names:
                return self.model(self._names[candidate])
        return _network(name)

    def find(self, name: str) -> Model:
        """The same, or UnknownName with the nearest names."""
        if (model := self.known(name)) is not None:
            return model
        raise UnknownName(
            "model", name if len(name) <= 100 else name[:97] + "...", self._near(name), remedy=UNKNOWN_MODEL_REMEDY
        )

    def _near(self, name: str) -> tuple[str, ...]:
        """The same size of later families that begin with the name, the sizes of its own family, then what is spelled alike."""
        shortest = _candidates(name)[-1:]
        family = _SIZE.sub("", shortest[0]) if shortest else ""
        sizes = [known for known in self._rows if family and _SIZE.sub("", key(known)) == family][:5]
        size = shortest[0].removeprefix(family) if family else ""
        later = [known for known in self._rows if size and key(known).startswith(f"{family}-") and key(known).endswith(size)]
        alike = nearest(without_owner(name), (*self._rows, *networks.names()))
        return tuple(dict.fromkeys((*sorted(later, reverse=True)[:3], *sizes, *alike)))[: max(3, len(sizes))]

    def _joined(self, fields: Mapping[str, object]) -> Mapping[str, object]:
        """A row may name other rows where a shape is wanted; put their fields in place."""
        joined = dict(fields)
        for part in PARTS:
            value = joined.get(part)
            if isinstance(value, list):
                joined[part] = [self._fields_of(item) for item in value]
            elif value is not None:
                joined[part] = self._fields_of(value)
        return joined

    def _fields_of(self, named: object) -> object:
        known = self._names.get(key(named)) if isinstance(named, str) else None
        return named if known is None else self._rows[known].fields


def load(extra: Sequence[Path] = ()) -> Registry:
    """The packaged models and those of the user's own YAML files, which win where names meet."""
    if not extra:
        return _packaged()
    files = [(path, *read_yaml(path)) for path in extra]
    registry = Registry([*_packaged_rows(), *(row for _, rows, _ in files for row in rows)])
    for path, rows, problems in files:
        row_problems = problems + [problem for row in rows if row.fields for problem in _problems_of(row, registry)]
        if row_problems:
            raise InvalidFile(str(path), sorted(row_problems, key=lambda problem: problem.line or 0), remedy=EXAMPLE)
    return registry


def known(name: str) -> Model | None:
    """The packaged model that `name` means, if it means one."""
    return _packaged().known(name)


def find(name: str) -> Model:
    """The packaged model that `name` means; UnknownName with the nearest names otherwise."""
    return _packaged().find(name)


@cache
def _network(name: str) -> Model | None:
    """A network of which the counts are known; None for a name that nobody counted. A size at its end is the picture's."""
    for candidate, size in ((name, 0), networks.without_size(name)):
        rows = next((rows for tried in _candidates(candidate)[:2] if (rows := networks.rows_of(tried))), ())
        if rows:
            return Model(
                name=rows[0][0],
                aliases=(),
                family=networks.family_of(rows[0][0]),
                shape=networks.shape_of(rows, size),
                context=None,
                published_parameters=None,
                source=networks.source_of(rows),
                as_of="2026-11-17",
            )
    return None


def _problems_of(row: ModelRow, registry: Registry) -> list[Problem]:
    try:
        registry.model(row.name)
    except InvalidFile as error:
        return [replace(problem, field=f"{row.name}: shape.{problem.field}", line=row.line) for problem in error.problems]
    return []


def _candidates(name: str) -> list[str]:
    """Keys to try, the most literal first."""
    if not 0 < len(name) <= 200:
        return []
    candidates = [key(name), key(without_owner(name))]
    while (shorter := _SUFFIX.sub("", candidates[-1])) != candidates[-1]:
        candidates.append(shorter)
    return [candidate for candidate in dict.fromkeys(candidates) if candidate]


@cache
def _packaged() -> Registry:
    return Registry(_packaged_rows())


@cache
def _packaged_rows() -> tuple[ModelRow, ...]:
    return tuple(row for path in sorted(DATA.glob("*.csv")) for row in read_csv(path))
