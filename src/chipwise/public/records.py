"""Results that are rows: a `Record` is a mapping whose keys are attributes as well, a `Table` is a sequence of records.

Both are frozen, compare by what they hold, can be hashed and pickled, and print in at room 20 lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from html import escape
from typing import Any, Never, Self, overload

from chipwise.catalog.region import readable
from chipwise.errors import Problem
from chipwise.public.layout import LINES, data_frame, folded, html_pairs, html_table, text_pairs, text_table
from chipwise.spelling import nearest
from chipwise.text import json_value, plural

_MOST_COLUMNS = 8  # that are printed where no choice was made


def frozen(value: Any) -> Any:
    """Mappings become records, lists of them tables and other lists tuples, all the way down."""
    if isinstance(value, Mapping):
        return value if isinstance(value, Record) else Record(value)
    if isinstance(value, list | tuple) and value and all(isinstance(inner, Mapping) for inner in value):
        return Table(value)
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return value.value if isinstance(value, Enum) else value


def plain(value: Any) -> Any:
    """The opposite of `frozen`: dictionaries and lists that are the caller's own."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | Table):
        return [plain(inner) for inner in value]
    return value


def _shown(column: str, value: Any) -> Any:
    """A region for people: "Sichuan, CN, AS" is Sichuan, China."""
    is_region = column == "region" or (column in ("name", "location") and isinstance(value, str) and "," in value)
    return readable(value) if is_region and isinstance(value, str) else value


class Record(Mapping[str, Any]):
    """One result: `offer.usd_per_hour` and `offer["usd_per_hour"]` are the same."""

    __slots__ = ("_data",)
    _data: dict[str, Any]

    def __init__(self, data: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_data", {key: frozen(value) for key, value in data.items()})

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._data:
            return self._data[name]
        near = nearest(name, list(self._data)) if not name.startswith("_") else ()
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}")

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(key for key in self._data if key.isidentifier())})

    def __hash__(self) -> int:
        return hash(frozenset(self._data.items()))

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        return type(self), (plain(self),)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, as `--json` prints them."""
        return {key: json_value(plain(value)) for key, value in self._data.items()}

    def __repr__(self) -> str:
        return "\n".join([type(self).__name__, *text_pairs(list(self._data.items()), LINES - 1)])

    def _repr_html_(self) -> str:
        return html_pairs(list(self._data.items()))


class Table(Sequence[Record]):
    """Rows of one kind. `columns` are those that are printed; each row has more, and `to_pandas` gives all of them."""

    __slots__ = ("_rows", "columns", "notes")
    _rows: tuple[Record, ...]
    columns: tuple[str, ...]
    notes: tuple[str, ...]

    def __init__(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = (), notes: Sequence[str] = ()) -> None:
        object.__setattr__(self, "_rows", tuple(frozen(row) for row in rows))
        object.__setattr__(self, "notes", tuple(notes))
        known = tuple(self._rows[0]) if self._rows else ()
        printed = tuple(name for name in columns if name in known) or known[:_MOST_COLUMNS]
        object.__setattr__(self, "columns", printed)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Table: ...
    def __getitem__(self, index: int | slice) -> Record | Table:
        return Table(self._rows[index], self.columns, self.notes) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._rows == other._rows and self.notes == other.notes

    def __hash__(self) -> int:
        return hash((self._rows, self.notes))

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(f"A table is frozen: {name} cannot be set")

    def __reduce__(self) -> tuple[type[Self], tuple[list[Any], tuple[str, ...], tuple[str, ...]]]:
        return type(self), (plain(self), self.columns, self.notes)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary a row, as `--json` prints them."""
        return [row.to_dict() for row in self._rows]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with every column; needs pandas (pip install 'chipwise[pandas]')."""
        return data_frame(plain(self))

    def _cells(self, rows: Sequence[Record]) -> list[list[Any]]:
        return [[_shown(name, row.get(name)) for name in self.columns] for row in rows]

    def __repr__(self) -> str:
        if not self._rows:
            return "no rows"
        notes = self.notes[:2]
        room = LINES - 2 - len(notes)
        return (
            "\n".join([*text_table(self.columns, self._cells(self._rows[:room]), len(self._rows) - room), *notes])
            if (len(self._rows) > room)
            else "\n".join([*text_table(self.columns, self._cells(self._rows)), *notes])
        )

    def _repr_html_(self) -> str:
        return html_table(self.columns, self._cells(self._rows), notes=self.notes)


_PLAIN_NAMES = {"told": "text", "said": "remark", "wish": "requested"}  # keys of `--json` by the names that programs use


def with_plain_names(value: Any) -> Any:
    """The same view, all the way down, by the names of `_PLAIN_NAMES`."""
    if isinstance(value, Mapping):
        return {_PLAIN_NAMES.get(key, key): with_plain_names(inner) for key, inner in value.items()}
    return [with_plain_names(inner) for inner in value] if isinstance(value, list | tuple | Table) else value


class Why(Record):
    """What became of a name in a plan: printed as sentences, which `text` holds."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(folded(*self["text"]))


class Ownership(Record):
    """Owning against renting: printed with its answer and the figures behind it."""

    __slots__ = ()

    def __repr__(self) -> str:
        rows = [[one.get(name) for name in _RENTS] for one in self["cloud"]]
        head = f"{plural(self['machines'], 'machine')} of {self['chips']:g}x {self['chip']}, owned for {self['years']:g} years"
        notes = folded(*self["notes"][:2])
        return "\n".join([head, *folded(self["answer"]), *text_table(_RENTS, rows[:8], max(len(rows) - 8, 0)), *notes])


_RENTS = ("provider", "purchase", "usd_per_hour", "break_even_utilisation", "break_even_month")


class Checked(Record):
    """Whether a workload is valid: printed with its problems, or its notes."""

    __slots__ = ()

    def __repr__(self) -> str:
        if self["valid"]:
            return "\n".join([f"{self['path']}: valid", *folded(*self["notes"])])
        lines = [str(Problem(**{**one, "nearest": tuple(one["nearest"])})) for one in self["problems"]]
        places = [f"{self['path']}:{one['line']}" if one["line"] else str(self["path"]) for one in self["problems"]]
        return "\n".join(folded(*(f"{place}: {line}" for place, line in zip(places, lines, strict=True))))


class Targets(Record):
    """Names of targets and what each of them expresses: printed as a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        wide, room = max(map(len, self)), LINES - 4
        lines = [f"{name.ljust(wide)}  {what}" for name, what in self.items()]
        rest = list(self)[room:]
        return "\n".join([*lines[:room], *(folded(f"... {len(rest)} more: {', '.join(rest)}") if rest else [])])


class Sentences(Table):
    """Rows of two texts: printed as sentences."""

    __slots__ = ()

    def __repr__(self) -> str:
        pairs = (tuple(map(str, row.values())) for row in self._rows)
        lines = (f"{name} {text}" if name.endswith(("?", ":")) else f"{name}: {text}" for name, text in pairs)
        return "\n".join(folded(*lines)) or "no rows"


class Meanings(Table):
    """What a name means, a record for each meaning: printed with its fields."""

    __slots__ = ()

    @property
    def refused(self) -> tuple[str, ...]:
        """Why software that was asked for does not run on it."""
        return tuple(row.reason for record in self._rows for row in record.get("compatibility", ()) if row.answer == "refused")

    def __bool__(self) -> bool:
        """Something has the name, and nothing that was asked for is refused."""
        return bool(self._rows) and not self.refused

    def __repr__(self) -> str:
        room = LINES // max(len(self), 1) - 1
        lines = [self._lines(record, room) for record in self._rows] if room > 1 else []
        return "\n".join(line for one in lines for line in one) if lines else super().__repr__()

    @staticmethod
    def _lines(record: Record, room: int) -> list[str]:
        left_out = ("meaning", "compatibility")
        stated = [(name, value) for name, value in record.items() if value not in (None, (), "") and name not in left_out]
        answers = Meanings._answers(record)
        lines = folded(*answers)[:room]
        return [str(record.get("meaning", "")), *lines, *text_pairs(stated, room - len(lines))[: max(room - len(lines), 0)]]

    @staticmethod
    def _answers(record: Record) -> list[str]:
        return [f"{row.answer}: {row.reason}" for row in record.get("compatibility", ())]

    def _repr_html_(self) -> str:
        tables = []
        for record in self._rows:
            pairs = [(name, value) for name, value in record.items() if name != "compatibility"]
            answers = "".join(f"<p>{escape(answer)}</p>" for answer in self._answers(record))
            tables.append(f"{answers}{html_pairs(pairs, str(record.get('meaning', '')))}")
        return "".join(tables)
