"""What a picture shows, before anybody draws it: places, boxes in them, and arrows between boxes.

One row for each stage of a pipeline, one column for each place: however deep a pipeline is, the picture stays as wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chipwise.renderer.deployment import Deployment, Form, HandOff, Stand, Volume
from chipwise.renderer.quoting import one_line
from chipwise.units import GB

LONGEST = 60
ENGINES = {"vllm": "vLLM", "tgi": "TGI", "sglang": "SGLang", "triton": "Triton"}


class Look(StrEnum):
    JOB = "job"
    SERVICE = "service"
    DEVICE = "device"
    STORE = "store"
    PEOPLE = "people"


@dataclass(frozen=True, slots=True)
class Box:
    key: str  # made by us
    look: Look
    title: str
    lines: tuple[str, ...]
    row: int
    place: int | None = None  # None: outside of all


@dataclass(frozen=True, slots=True)
class Arrow:
    source: str
    target: str
    label: str = ""
    both: bool = False  # it goes there and back: requests and answers


@dataclass(frozen=True, slots=True)
class Scene:
    title: str
    subtitle: str
    places: tuple[str, ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    @property
    def rows(self) -> int:
        return 1 + max(box.row for box in self.boxes)


def scene(deployment: Deployment) -> Scene:
    if deployment.form is Form.PIPELINE:
        return _pipeline(deployment)
    return _single(deployment)


def text(value: str, longest: int = LONGEST) -> str:
    flat = one_line(value)
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def size(many: float | None) -> str:
    if many is None:
        return ""
    if many >= 1000 * GB:
        return f"{many / 1000 / GB:.3g} TB"
    return f"{many / GB:.3g} GB" if many >= GB else f"{max(many / 1e6, 0.01):.3g} MB"


def machine_lines(one: Deployment, machines: int | None = None, machine: str | None = None) -> tuple[str, ...]:
    """What it runs on, and what runs."""
    node, many = one.node, machines if machines is not None else one.machines
    lines = [text(f"{many} x {machine or node.machine}" if many > 1 else machine or node.machine)]
    if one.form is Form.DEVICES:
        pass  # named by its chip already
    elif node.accelerated:
        chips = f"{node.chips * many} x {node.chip}" if node.chips * many > 1 else node.chip
        if node.held > 1:
            chips += f", {node.profile or f'each shared by {node.held}'}"
        lines.append(text(chips))
    elif node.chip:
        lines.append(text(f"{node.chip}{_vcpus(node.vcpus)}"))
    extra = [one.purchase]
    if one.form is Form.JOB and many > 1:
        linked = node.fabric.upper() if node.fabric == "efa" else node.fabric.capitalize()
        extra.append(f"{linked} between them" if linked else "ordinary network")
    lines.append(text(", ".join(extra)))
    runs = _program(one)
    return tuple([*lines, runs] if runs else lines)


def _vcpus(many: int | None) -> str:
    return "" if not many else f", {many} vCPUs" if many > 1 else ", 1 vCPU"


def _program(one: Deployment) -> str:
    parts = [ENGINES.get(one.software.engine, "")] if one.form is not Form.DEVICES else []
    if one.model is not None:
        parts += [one.model.name, one.model.precision]
    return text(", ".join(part for part in parts if part))


def _look(one: Deployment) -> Look:
    return {Form.SERVICE: Look.SERVICE, Form.SESSIONS: Look.SERVICE, Form.DEVICES: Look.DEVICE}.get(one.form, Look.JOB)


def _place(one: Deployment) -> str:
    if one.form is Form.DEVICES:
        return f"on site, {one.machines} places" if one.machines > 1 else "on site"
    return text(f"{one.node.provider} {one.node.region}")


def _head(one: Deployment) -> tuple[str, str]:
    title = text(one.title, 80)
    return title, text(one.description, 120) or f"{one.kind}, by chipwise from the plan"


# -- a pipeline


def _pipeline(whole: Deployment) -> Scene:
    places = tuple(dict.fromkeys(_place(stage) for stage in whole.stages))
    boxes = []
    for row, stage in enumerate(whole.stages):
        lines = (*machine_lines(stage), *_kept(stage))
        boxes.append(Box(f"s{row}", _look(stage), text(stage.title), lines, row, places.index(_place(stage))))
    keys = {stage.title: f"s{row}" for row, stage in enumerate(whole.stages)}
    arrows = [
        Arrow(keys[one.source], keys[one.target], _handed(one))
        for one in whole.hand_offs
        if one.source in keys and one.target in keys
    ]
    if not whole.hand_offs:
        arrows += [Arrow(f"s{row}", f"s{row + 1}") for row in range(len(whole.stages) - 1)]
    for row, stage in enumerate(whole.stages):
        if stage.form is Form.SERVICE:
            boxes.append(Box(f"u{row}", Look.PEOPLE, "Users", _origins(stage), len(whole.stages)))
            arrows.append(Arrow(f"u{row}", f"s{row}", "requests", True))
    return Scene(*_head(whole), places, tuple(boxes), tuple(arrows))


def _kept(stage: Deployment) -> Iterator[str]:
    """Two to a line."""
    told = [f"{one.name} {size(one.size_bytes)}" for one in stage.volumes]
    for at in range(0, len(told), 2):
        yield text(("keeps " if at == 0 else "") + ", ".join(told[at : at + 2]))


def _handed(one: HandOff) -> str:
    return text(" ".join(part for part in (size(one.size_bytes), one.format) if part), 30)


def _origins(one: Deployment) -> tuple[str, ...]:
    shares = sorted(one.traffic.items(), key=lambda item: -item[1])
    told = ", ".join(f"{where} {share:.0%}" for where, share in shares[:6])
    return (text(told + (", ..." if len(shares) > 6 else "")),) if told else ()


# -- one workload


def _single(one: Deployment) -> Scene:
    stands = one.stands or (Stand(one.node.provider, one.node.region, one.node.machine, one.machines, 1.0),)
    several = len(stands) > 1
    places = tuple(text(f"{stand.provider} {stand.region}") for stand in stands) if several else (_place(one),)
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    outer = list(_outer(one))
    beside = 1 if outer else 0  # the row of what a job reads
    first = beside + (1 if _before(one) else 0)
    boxes += outer
    for at, stand in enumerate(stands):
        lines = machine_lines(one, stand.machines, stand.machine)
        if one.scaling is not None and not several:
            lines = (*lines, f"{one.scaling.least} to {one.scaling.most} replicas")
        key = f"m{at}"
        boxes.append(Box(key, _look(one), _titled(one), lines, first, at))
        arrows += [
            Arrow(box.key, key, f"{stand.share:.0%}" if several else _traffic(one), True)
            for box in outer
            if box.look is Look.PEOPLE
        ]
        arrows += [Arrow(box.key, key, "read") for box in outer if box.look is Look.STORE]
        for number, volume in enumerate(_before(one)):
            boxes.append(_store(f"b{at}x{number}", volume, beside, at))
            arrows.append(Arrow(f"b{at}x{number}", key, "read"))
        for number, volume in enumerate(_after(one)):
            boxes.append(_store(f"a{at}x{number}", volume, first + 1, at))
            arrows.append(Arrow(key, f"a{at}x{number}", _used(one, volume), volume.name == "checkpoints"))
    return Scene(*_head(one), places, tuple(boxes), tuple(arrows))


def _titled(one: Deployment) -> str:
    return {Form.SERVICE: "Service", Form.SESSIONS: "Notebooks", Form.DEVICES: "Devices"}.get(one.form, one.kind.capitalize())


def _traffic(one: Deployment) -> str:
    rate = one.scaling.per_replica * one.scaling.usual if one.scaling is not None and one.scaling.per_replica else None
    if one.form is Form.SESSIONS:
        return "sessions"
    return f"up to {rate:,.3g} a second" if rate is not None and rate < 1e6 else "requests"


def _outer(one: Deployment) -> Iterator[Box]:
    """Who uses it, and stores elsewhere that it reads."""
    if one.form is Form.SERVICE:
        yield Box("users", Look.PEOPLE, "Users", _origins(one), 0)
    elif one.form is Form.SESSIONS:
        yield Box("people", Look.PEOPLE, f"{one.people} people" if one.people else "People", (), 0)
    for number, volume in enumerate(one.volumes):
        if volume.url is not None and volume.name != "checkpoints":
            yield _store(f"e{number}", volume, 0, None)


def _before(one: Deployment) -> Sequence[Volume]:
    """What a job reads, beside it."""
    if one.form is not Form.JOB:
        return ()
    return [volume for volume in one.volumes if volume.url is None and volume.name in ("data", "models")]


def _after(one: Deployment) -> Sequence[Volume]:
    if one.form is not Form.JOB:
        return [volume for volume in one.volumes if volume.url is None]
    return [volume for volume in one.volumes if volume.name == "checkpoints"]


def _used(one: Deployment, volume: Volume) -> str:
    if volume.name != "checkpoints":
        return "read at start" if volume.name == "models" else "read"
    return f"every {one.checkpoint_s / 60:.0f} min" if one.checkpoint_s else "save, resume"


def _store(key: str, volume: Volume, row: int, place: int | None) -> Box:
    lines = [size(volume.size_bytes)]
    if volume.url is not None:
        lines.append(text(volume.url, 40))
    return Box(key, Look.STORE, volume.name.capitalize(), tuple(lines), row, place)
