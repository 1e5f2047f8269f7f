"""A machine where a prediction asks for a chip: its chip, with all that it carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.catalog.names import Names

_COUNTED = ("chips", "tp", "pp", "cp", "ep", "replicas")  # settings that say how many chips there are


def whole_machine(names: Names, hardware: str, settings: Mapping[str, Any]) -> tuple[str, list[str], Mapping[str, Any]]:
    """CHIP,STAGE=CHIP with the chip in place of a machine that carries one, what was taken so, and the settings: with all chips
    of a machine where it stands alone and nothing says how many are used."""
    parts, notes = [], []
    for part in hardware.split(","):
        stage, equals, name = part.rpartition("=")
        machines = None if names.chips_or_none(name) else names.machines_or_none(name)
        chips = {machine.chip for machine in machines or ()}
        if not machines or len(chips) != 1 or not (chip := chips.pop()):
            parts.append(part)
            continue
        parts.append(f"{stage}{equals}{chip}")
        count = max(machine.chips or 1 for machine in machines)
        all_chips = count >= 1 and hardware == name and not any(settings.get(option) for option in _COUNTED)
        used = "all of them are used" if all_chips else "as many are used as chips says, else one"
        used = "it has 1" if count == 1 else f"it has {count:g}, and {used}"
        notes.append(f"{name.strip()} is taken as its chip, {chip}; {used}.")
        settings = {**settings, "chips": int(count)} if all_chips and count > 1 else settings
    return ",".join(parts), notes, settings
