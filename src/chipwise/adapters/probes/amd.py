"""AMD devices by the library `amdsmi`, which ROCm brings; where it is missing, by the program `amd-smi` and its JSON.

The library is asked at every sample. The program takes about a second of a core, so it is asked every `PROGRAM_S` only, and its
answer stands in between. Fields are those of AMD's documentation of both (ROCm 6 and 7); units vary with versions, and are
written beside the numbers in the JSON.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from chipwise.errors import BadInput, ChipwiseError, NotFound, OutsideFailed, TryLater
from chipwise.observe.probe import MOST_SHARE, usable
from chipwise.observe.sample import NoReading, Reading, Sample, SampledDevice
from chipwise.units import MIB

PROGRAM_S = 10.0
WITHIN_S = 10.0
MOST_BYTES = 16 << 20
_AUTHOR = "amd-smi"
_GENERATIONS = ((2.5, 1), (5.0, 2), (8.0, 3), (16.0, 4), (32.0, 5), (64.0, 6))  # transfers a lane, 1e9 per second
_UNITS = {"MB": MIB, "MiB": MIB, "GB": MIB * 1024, "B": 1.0, "W": 1.0, "mW": 1e-3, "uW": 1e-6, "J": 1.0, "kJ": 1e3, "uJ": 1e-6}
_ABSENT = NoReading("amd-smi does not report it on this chip")

# Metric: where it is in the JSON (the first that is there counts), and how it is read.
_PLACES: dict[str, tuple[tuple[str, ...], ...]] = {
    "busy": (("usage", "gfx_activity"),),
    "memory_busy": (("usage", "umc_activity"),),
    "power": (("power", "socket_power"), ("power", "current_socket_power"), ("power", "average_socket_power")),
    "temperature": (("temperature", "hotspot"), ("temperature", "edge")),
    "memory_temperature": (("temperature", "mem"),),
    "energy": (("energy", "total_energy_consumption"),),
    "memory_used": (("mem_usage", "used_vram"),),
    "memory_total": (("mem_usage", "total_vram"),),
    "clock": (("clock", "gfx_0", "clk"), ("clock", "gfx", "clk")),
    "clock_max": (("clock", "gfx_0", "max_clk"), ("clock", "gfx", "max_clk")),
    "pcie_width": (("pcie", "width"),),
    "pcie_generation": (("pcie", "speed"),),
    "pcie_replays": (("pcie", "replay_count"),),
    "ecc_corrected": (("ecc", "total_correctable_count"),),
    "ecc_uncorrected": (("ecc", "total_uncorrectable_count"),),
}


def connect(devices: Collection[int] | None = None, library: Any = None, run: Callable[[], str] | None = None) -> Amd:
    """Raises where there is neither the library with a device nor the program."""
    ask: Callable[[], Mapping[int, dict[str, Reading]]]
    library = library or (_imported() if run is None else None)
    try:
        if library is not None:
            ask = _Library(library).read
        elif run is not None or shutil.which("amd-smi"):
            ask = _Program(run or _run_program).read
        else:
            raise NotFound("No AMD driver with amd-smi is installed.", remedy="Install ROCm's amd-smi.")
        present = ask()
    except ChipwiseError:
        raise
    except Exception as error:  # the library raises its own kinds
        raise OutsideFailed(f"The AMD driver did not answer: {error}.", remedy="Check that amd-smi works.") from error
    if not present:
        raise NotFound("The AMD driver lists no device.", remedy="Check that amd-smi list shows them.")
    if devices is not None and (absent := sorted(set(devices) - present.keys())):
        raise BadInput(f"There is no AMD device {absent[0]}.", remedy="amd-smi list shows them.")
    return Amd(ask, sorted(present if devices is None else devices), is_slow=library is None)


class Amd:
    def __init__(self, ask: Callable[[], Mapping[int, dict[str, Reading]]], numbers: Sequence[int], is_slow: bool) -> None:
        self._ask, self._numbers, self._is_slow = ask, numbers, is_slow
        self._answer: Mapping[int, dict[str, Reading]] = {}
        self._at_s: float | None = None

    def devices(self) -> Sequence[SampledDevice]:
        return [SampledDevice(f"amd:{number}", "AMD device") for number in self._numbers]

    def read(self, at_s: float) -> Sequence[Sample]:
        if self._at_s is None or not self._is_slow or at_s - self._at_s >= PROGRAM_S:
            self._at_s = at_s
            try:
                self._answer = self._ask()
            except Exception as error:  # of the library or of the program: a sensor that fails is a reason
                failed = NoReading(f"the AMD driver did not answer: {error}"[:200])
                self._answer = {number: dict.fromkeys(_PLACES, failed) for number in self._numbers}
        lost: dict[str, Reading] = {"busy": NoReading("amd-smi does not list this device any more")}
        return [Sample(at_s, f"amd:{number}", self._answer.get(number, lost)) for number in self._numbers]

    def close(self) -> None: ...


# -- the program


class _Program:
    def __init__(self, run: Callable[[], str]) -> None:
        self._run = run

    def read(self) -> Mapping[int, dict[str, Reading]]:
        return read_json(self._run())


def read_json(text: str) -> dict[int, dict[str, Reading]]:
    """What `amd-smi metric --json` prints: a list of devices, or since ROCm 7 an object with that list."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise OutsideFailed("amd-smi printed no JSON.", remedy="Check that `amd-smi metric --json` works.") from None
    rows = content.get("gpu_data") if isinstance(content, dict) else content
    devices: dict[int, dict[str, Reading]] = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(number := row.get("gpu"), int) and not isinstance(number, bool):
            devices[number] = {name: _reading(name, _first(row, places)) for name, places in _PLACES.items()}
    return devices


def _first(row: Mapping[str, Any], places: Sequence[Sequence[str]]) -> object:
    for place in places:
        value: Any = row
        for key in place:
            value = value.get(key) if isinstance(value, dict) else None
        if value not in (None, "N/A", ""):
            return value
    return None


def _reading(name: str, field: object) -> Reading:
    """A number, a text that is one, or {"value": 12, "unit": "W"}."""
    value, unit = (field.get("value"), str(field.get("unit", ""))) if isinstance(field, dict) else (field, "")
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if value is None or value == "N/A":
        return _ABSENT
    if name in ("busy", "memory_busy"):
        percent = usable(value, _AUTHOR, 100.0 * MOST_SHARE)
        return percent if isinstance(percent, NoReading) else percent / 100.0
    if name == "pcie_generation":
        return _generation(value)
    number = usable(value, _AUTHOR)
    if isinstance(number, NoReading):
        return number
    if name.startswith("memory_") and name != "memory_temperature":
        return number * _UNITS.get(unit, MIB)
    return number * _UNITS.get(unit, 1.0)


def _generation(value: object) -> Reading:
    if isinstance(value, int | float) and not isinstance(value, bool):
        giga = value / 1000.0 if value >= 1000 else float(value)  # mega-transfers in the library
        return next((float(number) for speed, number in _GENERATIONS if abs(giga - speed) < 0.1 * speed), _ABSENT)
    return _ABSENT


def _run_program() -> str:
    try:
        completed = subprocess.run(["amd-smi", "metric", "--json"], capture_output=True, timeout=WITHIN_S, check=True)
    except subprocess.TimeoutExpired:
        raise TryLater(
            f"amd-smi did not answer within {WITHIN_S:g} s.", remedy="Check the driver: dmesg shows its errors."
        ) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise OutsideFailed(f"amd-smi failed: {error}.", remedy="Check that `amd-smi metric --json` works.") from error
    return completed.stdout[:MOST_BYTES].decode(errors="replace")


# -- the library


def _imported() -> Any:
    with suppress(ImportError, OSError, AttributeError, KeyError):  # it looks for its own files when it is imported
        return import_module("amdsmi")
    return None


class _Library:
    def __init__(self, library: Any) -> None:
        self._library = library
        library.amdsmi_init()
        self._handles = list(library.amdsmi_get_processor_handles())

    def read(self) -> Mapping[int, dict[str, Reading]]:
        return {number: self._device(handle) for number, handle in enumerate(self._handles)}

    def _device(self, handle: Any) -> dict[str, Reading]:
        """In the form of the program's JSON, so that one table reads both."""
        library = self._library
        row: dict[str, Any] = {
            "usage": _answer_or_none(lambda: library.amdsmi_get_gpu_activity(handle)),
            "power": _answer_or_none(lambda: library.amdsmi_get_power_info(handle)),
            "temperature": {
                "hotspot": _answer_or_none(lambda: self._temperature(handle, "HOTSPOT", "JUNCTION")),
                "mem": _answer_or_none(lambda: self._temperature(handle, "VRAM")),
            },
            "mem_usage": _answer_or_none(lambda: _vram(library.amdsmi_get_gpu_vram_usage(handle))),
            "clock": {"gfx": _answer_or_none(lambda: library.amdsmi_get_clock_info(handle, library.AmdSmiClkType.GFX))},
            "pcie": _answer_or_none(lambda: _link(library.amdsmi_get_pcie_info(handle)["pcie_metric"])),
            "ecc": _answer_or_none(lambda: _errors(library.amdsmi_get_gpu_total_ecc_count(handle))),
            "energy": _answer_or_none(lambda: _energy(library.amdsmi_get_energy_count(handle))),
        }
        return {name: _reading(name, _first(row, places)) for name, places in _PLACES.items()}

    def _temperature(self, handle: Any, *sensors: str) -> Any:
        library = self._library
        sensor = next(
            getattr(library.AmdSmiTemperatureType, name) for name in sensors if hasattr(library.AmdSmiTemperatureType, name)
        )
        return library.amdsmi_get_temp_metric(handle, sensor, library.AmdSmiTemperatureMetric.CURRENT)


def _answer_or_none(ask: Callable[[], Any]) -> Any:
    with suppress(Exception):  # every kind of the library's own errors means that this sensor has nothing to say
        return ask()
    return None


def _vram(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"used_vram": answer.get("vram_used"), "total_vram": answer.get("vram_total")}


def _link(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: answer.get(f"pcie_{name}") for name in ("width", "speed", "replay_count")}


def _errors(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {f"total_{name}": answer.get(name) for name in ("correctable_count", "uncorrectable_count")}


def _energy(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of so many microjoules."""
    count = answer.get("energy_accumulator", answer.get("power"))
    return {"total_energy_consumption": float(count) * float(answer["counter_resolution"]) / 1e6 if count is not None else None}
