"""What `watch` shows: a line for each device with its history, then the host, the program and servers; 80 columns, 24 lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from chipwise.observe.sample import HOST, PROGRAM, SERVER, NoReading, Recording, Sample, SampledDevice
from chipwise.observe.series import SampleStore
from chipwise.text import number, percent, plural, size, span
from chipwise.units import GIB

MOST_DEVICES = 12
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = " .:-=+*#"
_HEAD = ("device", "busy", "SM", "tensor", "DRAM", "memory GiB", "power", "temp", "PCIe GB/s", "history")
_WIDTHS = (11, 4, 4, 6, 4, 10, 6, 4, 9)
_SHARES = ("busy", "sm_active", "tensor_active", "dram_active")
_NAMES = {"sm_active": "SM", "tensor_active": "tensor", "dram_active": "DRAM", "busy": "busy", "power": "power"}


def lines(
    store: SampleStore,
    header: Recording,
    notes: Sequence[str] = (),
    *,
    width: int = 80,
    unicode: bool = True,
    clock: str = "",
    finding: str = "",
) -> list[str]:
    """Of what was sampled so far; `clock`: the time of day, as people write it; `finding`: what the doctor says of it."""
    sources = sorted(store.newest, key=_order)
    devices = [source for source in sources if _is_device(source)]
    names = {device.source: device for device in header.devices}
    rows = [_title(store, header, clock)]
    if devices:
        rows.append(_row(_HEAD[:-1], _HEAD[-1]))
        rows += [_device(store, store.newest[one], names.get(one), width, unicode) for one in devices[:MOST_DEVICES]]
        if len(devices) > MOST_DEVICES:
            rows.append(f"and {plural(len(devices) - MOST_DEVICES, 'device')} more: --json shows all")
        rows += _reasons(store, devices)
    if (host := store.newest.get(HOST)) is not None:
        rows += _labelled("host", _host(store, host), width)
    if (program := store.newest.get(PROGRAM)) is not None:
        rows += _labelled("program", _program(store, header, program), width)
    for source in sources:
        if source.partition(":")[0] == SERVER:
            rows += _labelled("server", _server(store, store.newest[source]), width)
    if finding:
        rows.append(f"{'finding':9}{finding}")
    rows += [line for note in notes for line in wrap(note, max(width, 20))]
    return [_cut(row, width) for row in rows]


def _is_device(source: str) -> bool:
    return source.partition(":")[0] not in (HOST, PROGRAM, SERVER)


def _order(source: str) -> tuple[str, int, str]:
    kind, _, rest = source.partition(":")
    return kind, int(rest) if rest.isdecimal() else 0, rest


def _title(store: SampleStore, header: Recording, clock: str) -> str:
    subject = header.labels.get("job") or (f"process {header.labels['pid']}" if "pid" in header.labels else "this machine")
    attempt = f", attempt {header.labels['attempt']}" if header.labels.get("attempt", "1") != "1" else ""
    last = max((sample.at_s for sample in store.newest.values()), default=0.0)
    return f"{subject}{attempt}, sampled for {span(last)}{f', {clock}' if clock else ''}"


def _row(cells: Sequence[str], rest: str) -> str:
    first, *numbers = (cell[:width] for cell, width in zip(cells, _WIDTHS, strict=True))
    padded = [first.ljust(_WIDTHS[0]), *(cell.rjust(width) for cell, width in zip(numbers, _WIDTHS[1:], strict=True))]
    return f"{' '.join(padded)} {rest}".rstrip()


def _device(store: SampleStore, sample: Sample, device: SampledDevice | None, width: int, unicode: bool) -> str:
    kind, _, index = sample.source.partition(":")
    name = (device.chip or device.name if device is not None else kind).removeprefix("NVIDIA ").removeprefix("AMD ")
    shares = [_percent(sample.value(share)) for share in _SHARES]
    used, total = sample.value("memory_used"), sample.value("memory_total")
    memory = "-" if used is None else f"{used / GIB:.0f}/{total / GIB:.0f}" if total else f"{used / GIB:.0f}"
    power, heat = sample.value("power"), sample.value("temperature")
    received, sent = sample.value("pcie_received"), sample.value("pcie_sent")
    pcie = "-" if received is None or sent is None else f"{received / 1e9:.1f}/{sent / 1e9:.1f}"
    cells = [f"{index} {name}", *shares, memory, "-" if power is None else f"{power:.0f} W"]
    cells += ["-" if heat is None else f"{heat:.0f}C", pcie]
    row = _row(cells, "")
    room = max(width - sum(_WIDTHS) - len(_WIDTHS), 4)
    metric = "sm_active" if store.series(sample.source, "sm_active") is not None else "busy"
    history = sparkline(store.recent(sample.source, metric, room), unicode=unicode)
    return f"{row.ljust(sum(_WIDTHS) + len(_WIDTHS))}{history}".rstrip()


def sparkline(values: Iterable[float], highest: float = 1.0, unicode: bool = True) -> str:
    bars = _BARS if unicode else _PLAIN_BARS
    return "".join(bars[min(max(int(value / highest * len(bars)), 0), len(bars) - 1)] for value in values)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}%"


def _reasons(store: SampleStore, devices: Sequence[str]) -> list[str]:
    """Why columns are empty, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for source in devices:
        for name, words in _NAMES.items():
            reading = store.newest[source].readings.get(name)
            if isinstance(reading, NoReading) and words not in by_reason.setdefault(reading.reason, []):
                by_reason[reading.reason].append(words)
    sentences = [f"{', '.join(words)}: {reason}" for reason, words in by_reason.items()]
    return [line for sentence in sentences for line in wrap(sentence, 80)][:3]


def _host(store: SampleStore, sample: Sample) -> list[str]:
    cpu, cores, busiest = sample.value("cpu"), sample.value("cores"), sample.value("cpu_highest_core")
    used, total = sample.value("memory_used"), sample.value("memory_total")
    parts = []
    if cpu is not None and cores is not None:
        parts.append(f"CPU {percent(cpu)} of {plural(cores, 'core')}")
    if busiest is not None:
        parts.append(f"busiest core {percent(busiest)}")
    if used is not None and total is not None:
        parts.append(f"memory {size(used)} of {size(total)}")
    traffic = []
    for words, name in (("disk read", "disk_read"), ("written", "disk_written"), ("network in", "network_received")):
        if (rate := store.rate(HOST, name)) is not None:
            traffic.append(f"{words} {size(rate)}/s")
    pressures = [(name, sample.value(f"pressure_{name}")) for name in ("cpu", "memory", "io")]
    waits = [f"{name} {percent(value)}" for name, value in pressures if value]
    if waits:
        traffic.append(f"waiting for {', '.join(waits)}")
    return [", ".join(parts), ", ".join(traffic)]


def _program(store: SampleStore, header: Recording, sample: Sample) -> list[str]:
    cpu, thread, memory = (sample.value(name) for name in ("cpu", "cpu_highest_thread", "memory_used"))
    processes, threads = sample.value("processes"), sample.value("threads")
    first = []
    if cpu is not None:
        first.append(f"cores {number(cpu)}")
    if thread is not None:
        first.append(f"busiest thread {_percent(thread)}")
    if memory is not None and processes is not None and threads is not None:
        first.append(f"{size(memory)}, {processes:.0f} process{'' if processes == 1 else 'es'}, {plural(threads, 'thread')}")
    ended = sample.readings.get("cpu")
    if not first and isinstance(ended, NoReading):
        first.append(ended.reason)
    return [", ".join(first), _steps(store, header, sample)]


def _steps(store: SampleStore, header: Recording, sample: Sample) -> str:
    """How fast it is beside what was predicted."""
    step, rate = sample.value("step"), store.rate(PROGRAM, "step", 30.0)
    if step is None:
        return ""
    words = f"step {step:,.0f}" + (f", {number(rate)} steps/s" if rate is not None else "")
    if (interval := header.predicted.get("steps_per_s")) is not None:
        low, value, high = interval
        words += f" (predicted {number(value)}" + (f", {number(low)} to {number(high)})" if low < high else ")")
    for name, unit in (("tokens", "tokens/s"), ("data_wait", "")):
        if (speed := store.rate(PROGRAM, name, 30.0)) is not None:
            words += f", {number(speed)} {unit}" if unit else f", waiting for data {percent(min(speed, 1.0))}"
    return words


def _server(store: SampleStore, sample: Sample) -> list[str]:
    parts = []
    for words, name in (("running", "running"), ("waiting", "waiting")):
        if (count := sample.value(name)) is not None:
            parts.append(f"{count:,.0f} {words}")
    if (cache := sample.value("kv_used")) is not None:
        parts.append(f"KV cache {percent(cache)}")
    for words, name in (("prompt", "prompt_tokens"), ("answer", "answer_tokens")):
        if (rate := store.rate(sample.source, name)) is not None:
            parts.append(f"{number(rate)} {words} tokens/s")
    return [", ".join(parts)]


def _labelled(label: str, texts: Iterable[str], width: int) -> list[str]:
    """Folded to the width, at most three lines."""
    folded = [line for text in texts if text for line in wrap(text, max(width - 9, 20))]
    return [f"{label if place == 0 else '':9}{line}" for place, line in enumerate(folded[:3])]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}~"


def view(samples: Sequence[Sample]) -> dict[str, Any]:
    """One group of samples as plain data; a sensor that is missing is its reason."""
    return {
        "at_s": round(samples[0].at_s, 3) if samples else None,
        "sources": {
            sample.source: {
                name: {"missing": reading.reason} if isinstance(reading, NoReading) else reading
                for name, reading in sample.readings.items()
            }
            for sample in samples
        },
    }
