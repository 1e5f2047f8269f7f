"""The verb `health`: whether the devices of this machine, a recording, a kernel log or a cluster are well."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from chipwise.adapters.kernel_messages import kernel_messages
from chipwise.api.observe import watching
from chipwise.observe.health import kernel_log
from chipwise.observe.health.decide import Drain, MachineUse, decide
from chipwise.observe.health.files import of_file as of_file
from chipwise.observe.health.judge import verdicts
from chipwise.observe.health.verdict import Condition, Verdict, rank

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

WATCHED_S = 2.0


def here(session: Session, seconds: float = WATCHED_S) -> tuple[tuple[Verdict, ...], list[str]]:
    """Of this machine, and what could not be looked at."""
    notes: list[str] = []
    recording = watching.recorded(session, seconds)
    if not recording.devices:
        notes.append("No accelerator answers: no driver is loaded, or it is too old.")
    text = kernel_messages()
    if text is None:
        notes.append("The kernel log cannot be read by this user: codes that the driver wrote there are not seen.")
    log = kernel_log.read(text.splitlines()) if text is not None else None
    return verdicts(recording, log), notes


def drain_here(session: Session, judged: tuple[Verdict, ...]) -> dict[int, str]:
    """Local jobs are given no GPU that is to be drained; one that is well again is used again. What is drained now."""
    from chipwise.adapters.engines.local import drained

    machine = MachineUse(name=socket.gethostname(), devices=tuple(verdict.device for verdict in judged))
    sick = {action.device: action.reason for action in decide(judged, machine) if isinstance(action, Drain)}
    numbers = {name: int(name.partition(":")[2]) for name in machine.devices if name.startswith(("nvidia:", "amd:"))}
    root = session.config.run_dir / "jobs"
    kept = {gpu: reason for gpu, reason in drained.read(root).items() if gpu not in numbers.values()}
    now = kept | {number: sick[name] for name, number in numbers.items() if name in sick}
    root.parent.mkdir(parents=True, exist_ok=True)
    drained.write(root, now)
    return now


def is_sick(judged: tuple[Verdict, ...]) -> bool:
    return any(rank(verdict.state) >= rank(Condition.DRAIN) for verdict in judged)
