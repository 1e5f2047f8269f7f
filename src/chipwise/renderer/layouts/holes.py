"""Where objects of several environments differ: the places in their templates and the values that stand there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chipwise.renderer.layouts.variants import ABSENT, NAMESPACE, Key, Variant, item_key
from chipwise.renderer.yaml_text import Noted, Yaml, plain

ENABLED = "enabled"  # of an object that not every environment has
# Values that people replace as a whole: half of an affinity or of a command means nothing.
REPLACED_WHOLE = frozenset(
    {"affinity", "tolerations", "resources", "nodeSelector", "hard", "command", "args", "env", "metrics", "ingress", "egress"}
)
Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Hole:
    number: int
    steps: Steps  # from the object down
    parent: str  # the value's object
    field: str
    scalar: bool
    optional: bool  # not in every environment
    falsy: bool  # 0, false or empty somewhere, which `with` takes for nothing
    names_space: bool  # its values name the namespace

    @property
    def path(self) -> str:
        return f".Values.{self.parent}.{self.field}"


class Holes:
    """All of a chart: what is the same for every variant is no hole."""

    def __init__(self, variants: Sequence[Variant], wanted: Sequence[Key]) -> None:
        self._variants = variants
        self._names: dict[Key, str] = {}
        self._holes: dict[Key, list[Hole]] = {}
        self._optional: set[Key] = set()
        count = 0
        for key in wanted:
            bodies = [one.manifests[key].body if key in one.manifests else ABSENT for one in variants]
            present = [body for body in bodies if body is not ABSENT]
            places = list(differing(present, ()))
            if len(present) < len(bodies):
                self._optional.add(key)
            if not places and len(present) == len(bodies):
                continue
            is_repeated = sum(other.kind == key.kind for other in wanted) > 1
            self._names[key] = _name(key, variants[0].deployment.name if is_repeated else key.name)
            fields = _fields(places)
            self._holes[key] = [
                _hole(count + index, steps, self._names[key], fields[steps], [value_at(body, steps) for body in present])
                for index, steps in enumerate(places)
            ]
            count += len(places)

    def holder(self, key: Key) -> Variant:
        """Who has it first: the defaults, or an environment of which it is a part."""
        return next(one for one in self._variants if key in one.manifests)

    def of(self, key: Key) -> list[Hole]:
        return self._holes.get(key, [])

    def optional(self, key: Key) -> bool:
        return key in self._optional

    def name(self, key: Key) -> str:
        return self._names[key]

    def common(self, key: Key) -> Yaml:
        """The object of its first holder, with the comments that hold in every environment."""
        bodies = [one.manifests[key].body for one in self._variants if key in one.manifests]
        return _agreed(bodies[0], bodies[1:])

    def numbered(self, number: int) -> Hole:
        return next(one for holes in self._holes.values() for one in holes if one.number == number)

    def values(self, variant: Variant) -> dict[str, Yaml]:
        """What the variant has in each hole. Of an object that it has not, what its first holder has."""
        values: dict[str, Yaml] = {}
        for key, name in self._names.items():
            has = key in variant.manifests
            body = (variant if has else self.holder(key)).manifests[key].body
            fields: dict[str, Yaml] = {ENABLED: has} if key in self._optional else {}
            for hole in self._holes[key]:
                if (value := value_at(body, hole.steps)) is not ABSENT:
                    fields[hole.field] = _for_tpl(value) if hole.names_space else value
            values[name] = fields
        return values


def _agreed(body: Yaml, other_bodies: Sequence[Yaml]) -> Yaml:
    """Without comments that another has otherwise at the same place: they are about numbers of one environment."""
    inner = _bare(body)
    if isinstance(inner, Mapping):
        inner = {key: _agreed(entry, _all_at(other_bodies, str(key))) for key, entry in inner.items()}
    elif isinstance(inner, list):
        inner = [_agreed(entry, _all_at(other_bodies, index)) for index, entry in enumerate(inner)]
    comments = {body.comment if isinstance(body, Noted) else "" for body in (body, *other_bodies)}
    return Noted(inner, body.comment) if isinstance(body, Noted) and len(comments) == 1 else inner


def _all_at(bodies: Sequence[Yaml], step: str | int) -> list[Yaml]:
    """Of those that have something there."""
    entries = (value_at(body, (step,)) for body in bodies)
    return [entry for entry in entries if entry is not ABSENT]


def _for_tpl(value: Yaml) -> Yaml:
    match value:
        case Noted():
            return Noted(_for_tpl(value.value), value.comment)
        case Mapping():
            return {key: _for_tpl(inner) for key, inner in value.items()}
        case str():
            return value.replace("{{", '{{ "{{" }}').replace(NAMESPACE, "{{ .Release.Namespace }}")
        case Sequence():
            return [_for_tpl(inner) for inner in value]
    return value


def _bare(value: Yaml) -> Yaml:
    return value.value if isinstance(value, Noted) else value


def value_at(body: Yaml, steps: Steps) -> Yaml:
    """With its comment; ABSENT where there is nothing."""
    for step in steps:
        inner = _bare(body)
        indices = range(len(inner)) if isinstance(inner, list) else inner if isinstance(inner, Mapping) else ()
        if step not in indices:
            return ABSENT
        body = inner[step]  # type: ignore[index]
    return body


def differing(values: Sequence[Yaml], steps: Steps) -> Iterator[Steps]:
    """The highest places below which it makes no sense to tell apart, where the values are not all the same."""
    bare = [_bare(one) for one in values]
    field = next((step for step in reversed(steps) if isinstance(step, str)), "")
    maps = [one for one in bare if isinstance(one, Mapping)]
    lists = [one for one in bare if isinstance(one, list)]
    alike = all(plain(one) == plain(values[0]) for one in values)
    if alike and not _has_images(values[0]):
        return
    # Without a common key nothing might be left between the holes, which is no mapping.
    common = len(maps) == len(bare) and bool(set(maps[0]).intersection(*maps[1:]))
    if common and field not in REPLACED_WHOLE:
        for key in dict.fromkeys(key for one in maps for key in one):
            inner = [one.get(key, ABSENT) for one in maps]
            if any(one is ABSENT for one in inner):
                yield (*steps, str(key))
            elif key == "image" and isinstance(_bare(inner[0]), str):
                yield (*steps, "image")
            else:
                yield from differing(inner, (*steps, str(key)))
    elif len(lists) == len(bare) and field not in REPLACED_WHOLE and _parallel(field, lists):
        for index in range(len(lists[0])):
            yield from differing([one[index] for one in lists], (*steps, index))
    elif not alike:
        yield steps


def _has_images(value: Yaml) -> bool:
    inner = _bare(value)
    if isinstance(inner, Mapping):
        return any((key == "image" and isinstance(_bare(one), str)) or _has_images(one) for key, one in inner.items())
    return isinstance(inner, list) and any(_has_images(one) for one in inner)


def _parallel(field: str, lists: Sequence[list[Yaml]]) -> bool:
    """Lists of objects whose items belong together one by one."""
    if len({len(one) for one in lists}) != 1 or not all(isinstance(_bare(item), Mapping) for one in lists for item in one):
        return False
    rows = [[plain(item) for item in one] for one in lists]
    key = item_key(field, [item for row in rows for item in row])
    return key is None or all([item[key] for item in row] == [item[key] for item in rows[0]] for row in rows)  # type: ignore[index]


def _hole(number: int, steps: Steps, parent: str, field: str, values: Sequence[Yaml]) -> Hole:
    bare = [plain(one) for one in values if one is not ABSENT]
    return Hole(
        number=number,
        steps=steps,
        parent=parent,
        field=field,
        scalar=not any(isinstance(one, Mapping | list) for one in bare),
        optional=len(bare) < len(values),
        falsy=not all(bare),
        names_space=any(NAMESPACE in str(one) for one in bare),
    )


def _name(key: Key, known: str) -> str:
    """The kind, and what the object's name has besides a name that is `known`: cronJobOpen, cronJobClose."""
    words = re.findall(r"[A-Za-z0-9]+", key.name.removeprefix(known))
    return key.kind[0].lower() + key.kind[1:] + "".join(word[0].upper() + word[1:] for word in words)


def _fields(places: Sequence[Steps]) -> dict[Steps, str]:
    """The last word of each place, with as many of those above it as tell it apart."""
    names: dict[Steps, str] = {}
    for steps in places:
        words = [step for step in steps if isinstance(step, str)]
        size = 1
        while size < len(words) and any(_joined(words, size) == _joined(other, size) for other in _other_words(places, steps)):
            size += 1
        name = _joined(words, size)
        while name in names.values():
            name += str(steps[-2] if isinstance(steps[-2], int) else len(names))
        names[steps] = name
    return names


def _other_words(places: Sequence[Steps], steps: Steps) -> list[list[str]]:
    return [[step for step in steps_there if isinstance(step, str)] for steps_there in places if steps_there != steps]


def _joined(words: Sequence[str], size: int) -> str:
    parts: list[str] = [part for word in words[-size:] for part in re.findall(r"[A-Za-z0-9]+", word)]
    return parts[0] + "".join(part[0].upper() + part[1:] for part in parts[1:])


def punched(body: Yaml, holes: Sequence[Hole]) -> Yaml:
    """The object with a mark in each hole; the comment of what was there goes with the value."""
    for hole in holes:
        body = _marked(body, hole.steps, f"chipwiseHole{hole.number}x")
    return body


def _marked(body: Yaml, steps: Steps, mark: str) -> Yaml:
    if not steps:
        return mark
    if isinstance(body, Noted):
        return Noted(_marked(body.value, steps, mark), body.comment)
    if isinstance(body, Mapping):
        inner = body.get(steps[0], ABSENT)
        return {**body, steps[0]: mark if inner is ABSENT or len(steps) == 1 else _marked(inner, steps[1:], mark)}
    assert isinstance(body, list)
    return [_marked(one, steps[1:], mark) if index == steps[0] else one for index, one in enumerate(body)]
