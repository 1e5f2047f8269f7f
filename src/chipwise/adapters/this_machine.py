"""What this machine calls its own parts: GPUs as their driver names them, the processor as the kernel knows it."""

from __future__ import annotations

import platform
import re
import shutil
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import BadInput, OutsideFailed

# Virtual machines often call their processor "Intel Xeon Processor" and no more; its family and model numbers remain. Intel and
# AMD count them in CPUID (as Linux lists them in arch/x86/include/asm/intel-family.h), Arm by implementer and part.
_KNOWN = {
    ("GenuineIntel", 6, 85): "Xeon-Cascade-Lake",  # from stepping 5; below, it is a Skylake
    ("GenuineIntel", 6, 106): "Xeon-Ice-Lake",
    ("GenuineIntel", 6, 143): "Xeon-Sapphire-Rapids",
    ("GenuineIntel", 6, 173): "Xeon-Granite-Rapids",
    **{("AuthenticAMD", 25, model): "EPYC-Milan" for model in range(16)},
    **{("AuthenticAMD", 25, model): "EPYC-Genoa" for model in range(16, 32)},
}
_ARM = {"0xd0c": "Graviton2", "0xd40": "Graviton3", "0xd4f": "Graviton4"}  # on machines of AWS; elsewhere others have them too


def host_name() -> str:
    """By which a machine of the user's catalog is this one."""
    return socket.gethostname().partition(".")[0]


@dataclass(frozen=True, slots=True)
class Processor:
    name: str  # in its own words, without marks and clock
    known_as: str = ""  # the catalog's name, where numbers tell


def gpus_here() -> tuple[int, ...]:
    """As the driver lists them; none where there is no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        result = subprocess.run(
            [program, "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, timeout=20, check=True
        )
        return tuple(int(line) for line in result.stdout.split())
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise OutsideFailed(
            f"nvidia-smi did not list the GPUs: {error}.", remedy="Set CHIPWISE_GPUS, such as 0,1 or none."
        ) from None


def devices(text: str | None, present: tuple[int, ...], setting: str) -> tuple[int, ...]:
    """What the user set for this machine, such as 0,1 or none; else what was found."""
    if text is None or not text.strip():
        return present
    if text.strip().lower() == "none":
        return ()
    try:
        ids = tuple(int(one) for one in text.split(","))
    except ValueError:
        ids = (-1,)
    if any(one < 0 for one in ids) or len(set(ids)) != len(ids):
        raise BadInput(f"{setting} is {text[:60]!r}.", remedy="Write ids with commas, each once, such as 0,1, or none.")
    return ids


def gpu_names() -> dict[int, str]:
    """By the driver's number; none where there is no driver, or where it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        result = subprocess.run(
            [program, "--query-gpu=index,name", "--format=csv,noheader"], capture_output=True, text=True, timeout=20, check=True
        )
        pairs = (line.partition(",") for line in result.stdout.splitlines() if line.strip())
        return {int(number): name.strip() for number, _, name in pairs}
    return {}


def processor(cpuinfo: str | None = None, vendor: str | None = None) -> Processor:
    """`cpuinfo`: as Linux tells it; `vendor`: who made the machine. Both are read here unless given."""
    text = _read("/proc/cpuinfo") if cpuinfo is None else cpuinfo
    first = dict(re.findall(r"^([^:\n]+?)[ \t]*:[ \t]*(.*)$", text.partition("\n\n")[0], re.MULTILINE))
    name = _plain(first.get("model name") or platform.processor() or platform.machine())
    if "CPU part" in first:
        maker = _read("/sys/class/dmi/id/sys_vendor") if vendor is None else vendor
        return Processor(name, _ARM.get(first["CPU part"].lower(), "") if "amazon" in maker.lower() else "")
    with suppress(KeyError, ValueError):
        key = (first["vendor_id"], int(first["cpu family"]), int(first["model"]))
        if key[2] == 85 and not 5 <= int(first.get("stepping", "0")) <= 7:
            return Processor(name)
        return Processor(name, _KNOWN.get(key, ""))
    return Processor(name)


def _plain(name: str) -> str:
    """Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz: Intel Xeon Platinum 8488C."""
    name = re.sub(r"\((?:R|TM|tm)\)|@.*$|\b(?:CPU|Processor|\d+-Core)\b", " ", name)
    return " ".join(name.split())


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
