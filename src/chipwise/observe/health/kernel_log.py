"""Lines of a kernel log that speak of devices: NVIDIA (NVRM), AMD (amdgpu), AWS Neuron, PCIe (AER).

A log holds what programs of strangers caused to be written: it is read line by line and within limits, numbers are bounded, and
nothing of it decides by its wording except what these drivers write themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chipwise.observe.health.codes import HIGHEST_CODE, code
from chipwise.observe.health.verdict import Blame, Condition, JobEffect, Sign

MOST_LINES = 2_000_000
LONGEST_LINE = 4096
_PCI = r"(?:PCI:)?((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?"
_XID = re.compile(rf"NVRM: Xid \({_PCI}\): (\d{{1,6}})(?:, pid=['<]?(\d{{1,10}})?)?")
_IDENTITY = re.compile(rf"NVRM: GPU at {_PCI}: (GPU-[0-9a-fA-F-]{{8,60}})")
_LOST = re.compile(rf"NVRM: GPU (?:at )?{_PCI}: GPU has fallen off the bus")
_SWITCH = re.compile(rf"nvidia-nvswitch\d*: SXid \({_PCI}\): (\d{{1,6}})(, Fatal|, Non-fatal)?")
_AMD = re.compile(rf"amdgpu {_PCI}: amdgpu: .{{0,200}}?(?:(\d{{1,9}}) uncorrectable hardware errors|GPU reset begin)")
_NEURON = re.compile(r"\bnd\[?(\d{1,3})\]?.{0,200}?NEURON_HW_ERR=([A-Z_]{3,40})|NEURON_HW_ERR=([A-Z_]{3,40})")
_AER = re.compile(rf"{_PCI}: (?:AER: )?PCIe Bus Error: severity=(Corrected|Uncorrected \((?:Non-)?Fatal\))")
_RECOVERY = re.compile(r"\((None|Drain P2P|Drain and Reset|GPU Reset Required|Node Reboot Required)\)\s*$")
_RECOVERED = {"None": Condition.FINE}  # anything else is a drain
_NEURON_WORDS = {
    "SRAM_UNCORRECTABLE_ERROR": "an uncorrectable error in the chip's own memory",
    "HBM_UNCORRECTABLE_ERROR": "an uncorrectable error in device memory",
    "NC_UNCORRECTABLE_ERROR": "an uncorrectable error in a core",
    "DMA_ERROR": "an error of a copy engine",
}


@dataclass(frozen=True, slots=True)
class Logged:
    device: str  # "pci:0000:3b:00", "neuron:3"
    sign: Sign


@dataclass(frozen=True, slots=True)
class Log:
    events: tuple[Logged, ...]
    identities: tuple[tuple[str, str], ...]  # device of the log, its UUID
    lines: int
    is_cut: bool  # only the first so many lines were read


def read(lines: Iterable[str]) -> Log:
    events: list[Logged] = []
    identities: dict[str, str] = {}
    count = 0
    for line in lines:
        count += 1
        if count > MOST_LINES:
            break
        line = line[:LONGEST_LINE]
        if identity := _IDENTITY.search(line):
            identities[_device(identity[1])] = identity[2]
        events += _events(line)
    return Log(tuple(events), tuple(identities.items()), min(count, MOST_LINES), count > MOST_LINES)


def _events(line: str) -> Iterator[Logged]:
    if match := _XID.search(line):
        number = min(int(match[2]), HIGHEST_CODE)
        yield Logged(_device(match[1]), _xid(number, int(match[3]) if match[3] else None, line))
    elif match := _LOST.search(line):
        yield Logged(_device(match[1]), xid_sign(79))
    elif match := _SWITCH.search(line):
        fatal = match[3] != ", Non-fatal"
        words = f"NVSwitch error {match[2]}{'' if fatal else ', not fatal'}"
        sign = Sign(
            Condition.DRAIN if fatal else Condition.WATCH, words, Blame.LINK, JobEffect.DIES if fatal else JobEffect.CONTINUES
        )
        yield Logged(_device(match[1]), sign)
    elif match := _AMD.search(line):
        if match[2] and int(match[2]) == 0:
            return
        words = f"{match[2]} uncorrectable hardware errors" if match[2] else "the driver reset the GPU"
        yield Logged(
            _device(match[1]), Sign(Condition.DRAIN if match[2] else Condition.WATCH, words, Blame.DEVICE, JobEffect.DIES)
        )
    elif match := _NEURON.search(line):
        kind = match[2] or match[3]
        words = _NEURON_WORDS.get(kind, "an error of the hardware")
        state = Condition.DRAIN if kind in _NEURON_WORDS else Condition.WATCH
        yield Logged(f"neuron:{match[1] or '?'}", Sign(state, f"the driver reports {words}", Blame.DEVICE, JobEffect.DIES))
    elif (match := _AER.search(line)) and match[2] != "Corrected":
        yield Logged(_device(match[1]), Sign(Condition.WATCH, "an uncorrected error on PCIe", Blame.LINK, JobEffect.MAY_DIE))


def xid_sign(number: int, pid: int | None = None) -> Sign:
    known = code(number)
    reason = f"XID {number}, {known.name}: {known.meaning}"
    return Sign(state=known.state, reason=reason, blame=known.blame, job=known.job, code=number, pid=pid)


def _xid(number: int, pid: int | None, line: str) -> Sign:
    """Of 154 the end of the line says what the driver asks for."""
    sign = xid_sign(number, pid)
    request = _RECOVERY.search(line) if number == 154 else None
    if request is None:
        return sign
    state = _RECOVERED.get(request[1], Condition.DRAIN)
    words = f"XID 154: the driver asks for {'nothing' if state is Condition.FINE else request[1].lower()}"
    return Sign(state=state, reason=words, blame=sign.blame, job=sign.job, code=number, pid=pid)


def _device(pci: str) -> str:
    """One spelling: pci:0000:3b:00."""
    parts = pci.lower().split(":")
    domain = parts[0][-4:] if len(parts) == 3 else "0000"
    return f"pci:{domain}:{parts[-2]}:{parts[-1]}"
