"""What a picture shows, before anybody draws it: places, boxes in them, and arrows between boxes.

One row for each stage of a pipeline, one column for each place: however deep a pipeline is, the picture stays as wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chipwise.catalog.region import readable
from chipwise.renderer.deployment import Deployment, Form, HandOff, Stand, Volume
from chipwise.renderer.quoting import one_line
from chipwise.text import decimal_size, duration

LONGEST = 60
ENGINES = {"vllm": "vLLM", "tgi": "TGI", "sglang": "SGLang", "triton": "Triton", "tei": "TEI"}


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
    is_two_way: bool = False  # it goes there and back: requests and answers


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


def size(size_bytes: float | None) -> str:
    return "" if size_bytes is None else decimal_size(max(size_bytes, 1e4))


def machine_lines(deployment: Deployment, machines: int | None = None, machine: str | None = None) -> tuple[str, ...]:
    """What it runs on, and what runs."""
    node, count = deployment.node, machines if machines is not None else deployment.machines
    lines = [text(f"{count} x {machine or node.machine}" if count > 1 else machine or node.machine)]
    if deployment.form is Form.DEVICES:
        pass  # named by its chip already
    elif node.accelerated:
        chips = f"{node.chips * count} x {node.chip}" if node.chips * count > 1 else node.chip
        if node.users_per_chip > 1:
            chips += f", {node.profile or f'each shared by {node.users_per_chip}'}"
        lines.append(text(chips))
    elif node.chip:
        lines.append(text(f"{node.chip}{_vcpus(node.vcpus)}"))
    extra = [deployment.purchase]
    if deployment.form is Form.JOB and count > 1:
        linked = node.fabric.upper() if node.fabric == "efa" else node.fabric.capitalize()
        extra.append(f"{linked} between them" if linked else "ordinary network")
    lines.append(text(", ".join(extra)))
    runs = _program(deployment)
    return tuple([*lines, runs] if runs else lines)


def _vcpus(many: int | None) -> str:
    return "" if not many else f", {many} vCPUs" if many > 1 else ", 1 vCPU"


def _program(deployment: Deployment) -> str:
    parts = [ENGINES.get(deployment.software.engine, "")] if deployment.form is not Form.DEVICES else []
    if deployment.model is not None:
        parts += [deployment.model.name, deployment.model.precision]
    return text(", ".join(part for part in parts if part))


def _look(one: Deployment) -> Look:
    return {Form.SERVICE: Look.SERVICE, Form.SESSIONS: Look.SERVICE, Form.DEVICES: Look.DEVICE}.get(one.form, Look.JOB)


def _place(deployment: Deployment) -> str:
    if deployment.form is Form.DEVICES:
        return f"on site, {deployment.machines} places" if deployment.machines > 1 else "on site"
    return text(f"{deployment.node.provider} {readable(deployment.node.region)}")


def _head(one: Deployment) -> tuple[str, str]:
    title = text(one.title, 80)
    return title, text(one.description, 120) or f"{one.kind}, by chipwise from the plan"


# -- a pipeline


def _pipeline(deployment: Deployment) -> Scene:
    places = tuple(dict.fromkeys(_place(stage) for stage in deployment.stages))
    boxes = []
    for row, stage in enumerate(deployment.stages):
        lines = (*machine_lines(stage), *_volume_lines(stage))
        boxes.append(
            Box(
                key=f"s{row}",
                look=_look(stage),
                title=text(stage.title),
                lines=lines,
                row=row,
                place=places.index(_place(stage)),
            )
        )
    keys = {stage.title: f"s{row}" for row, stage in enumerate(deployment.stages)}
    arrows = [
        Arrow(keys[hand_off.source], keys[hand_off.target], _handed(hand_off))
        for hand_off in deployment.hand_offs
        if hand_off.source in keys and hand_off.target in keys
    ]
    if not deployment.hand_offs:
        arrows += [Arrow(f"s{row}", f"s{row + 1}") for row in range(len(deployment.stages) - 1)]
    for row, stage in enumerate(deployment.stages):
        if stage.form is Form.SERVICE:
            boxes.append(Box(key=f"u{row}", look=Look.PEOPLE, title="Users", lines=_origins(stage), row=len(deployment.stages)))
            arrows.append(Arrow(f"u{row}", f"s{row}", "requests", True))
    return Scene(*_head(deployment), places, tuple(boxes), tuple(arrows))


def _volume_lines(stage: Deployment) -> Iterator[str]:
    """Two to a line."""
    volumes = [f"{one.name} {size(one.size_bytes)}" for one in stage.volumes]
    for start in range(0, len(volumes), 2):
        yield text(("keeps " if start == 0 else "") + ", ".join(volumes[start : start + 2]))


def _handed(one: HandOff) -> str:
    return text(" ".join(part for part in (size(one.size_bytes), one.format) if part), 30)


def _origins(deployment: Deployment) -> tuple[str, ...]:
    shares = sorted(deployment.traffic.items(), key=lambda item: -item[1])
    origins = ", ".join(f"{where} {share:.0%}" for where, share in shares[:6])
    return (text(origins + (", ..." if len(shares) > 6 else "")),) if origins else ()


# -- one workload


def _single(deployment: Deployment) -> Scene:
    stands = deployment.stands or (
        Stand(
            provider=deployment.node.provider,
            region=deployment.node.region,
            machine=deployment.node.machine,
            machines=deployment.machines,
            share=1.0,
        ),
    )
    spread = len(stands) > 1
    places = tuple(text(f"{stand.provider} {readable(stand.region)}") for stand in stands) if spread else (_place(deployment),)
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    outer = list(_outer(deployment))
    store_row = 1 if outer else 0  # the row of what a job reads
    first = store_row + (1 if _before(deployment) else 0)
    boxes += outer
    for index, stand in enumerate(stands):
        lines = machine_lines(deployment, stand.machines, stand.machine)
        if deployment.scaling is not None and not spread:
            lines = (*lines, f"{deployment.scaling.minimum} to {deployment.scaling.maximum} replicas")
        key = f"m{index}"
        boxes.append(Box(key=key, look=_look(deployment), title=_titled(deployment), lines=lines, row=first, place=index))
        arrows += [
            Arrow(box.key, key, f"{stand.share:.0%}" if spread else _traffic(deployment), True)
            for box in outer
            if box.look is Look.PEOPLE
        ]
        arrows += [Arrow(box.key, key, "read") for box in outer if box.look is Look.STORE]
        for number, volume in enumerate(_before(deployment)):
            boxes.append(_store(f"b{index}x{number}", volume, store_row, index))
            arrows.append(Arrow(f"b{index}x{number}", key, "read"))
        for number, volume in enumerate(_after(deployment)):
            boxes.append(_store(f"a{index}x{number}", volume, first + 1, index))
            arrows.append(Arrow(key, f"a{index}x{number}", _used(deployment, volume), volume.name == "checkpoints"))
    return Scene(*_head(deployment), places, tuple(boxes), tuple(arrows))


def _titled(one: Deployment) -> str:
    return {Form.SERVICE: "Service", Form.SESSIONS: "Notebooks", Form.DEVICES: "Devices"}.get(one.form, one.kind.capitalize())


def _traffic(deployment: Deployment) -> str:
    rate = (
        deployment.scaling.per_replica * deployment.scaling.usual
        if deployment.scaling is not None and deployment.scaling.per_replica
        else None
    )
    if deployment.form is Form.SESSIONS:
        return "sessions"
    return f"up to {rate:,.3g} a second" if rate is not None and rate < 1e6 else "requests"


def _outer(deployment: Deployment) -> Iterator[Box]:
    """Who uses it, and stores elsewhere that it reads."""
    if deployment.form is Form.SERVICE:
        yield Box(key="users", look=Look.PEOPLE, title="Users", lines=_origins(deployment), row=0)
    elif deployment.form is Form.SESSIONS:
        yield Box(
            key="people",
            look=Look.PEOPLE,
            title=f"{deployment.people} people" if deployment.people else "People",
            lines=(),
            row=0,
        )
    for number, volume in enumerate(deployment.volumes):
        if volume.url is not None and volume.name != "checkpoints":
            yield _store(f"e{number}", volume, 0, None)


def _before(deployment: Deployment) -> Sequence[Volume]:
    """What a job reads, beside it."""
    if deployment.form is not Form.JOB:
        return ()
    return [volume for volume in deployment.volumes if volume.url is None and volume.name in ("data", "models")]


def _after(deployment: Deployment) -> Sequence[Volume]:
    if deployment.form is not Form.JOB:
        return [volume for volume in deployment.volumes if volume.url is None]
    return [volume for volume in deployment.volumes if volume.name == "checkpoints"]


def _used(deployment: Deployment, volume: Volume) -> str:
    if volume.name != "checkpoints":
        return "read at start" if volume.name == "models" else "read"
    return f"every {duration(deployment.checkpoint_s)}" if deployment.checkpoint_s else "save, resume"


def _store(key: str, volume: Volume, row: int, place: int | None) -> Box:
    lines = [size(volume.size_bytes)]
    if volume.url is not None:
        lines.append(text(volume.url, 40))
    return Box(key=key, look=Look.STORE, title=volume.name.capitalize(), lines=tuple(lines), row=row, place=place)
