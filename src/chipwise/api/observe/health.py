"""The verb `health`: whether the devices of this machine, a recording, a kernel log or a cluster are well."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.observe import live
from chipwise.errors import BadInput
from chipwise.files import handed
from chipwise.observe.health import kernel_log, nodes
from chipwise.observe.health.decide import Drain, MachineUse, decide
from chipwise.observe.health.judge import verdicts
from chipwise.observe.health.verdict import Condition, Verdict, rank
from chipwise.observe.recording import decoded

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

LARGEST = 256 << 20
WATCHED_S = 2.0
LOG_WITHIN_S = 10.0
_LOGS = (("journalctl", "--dmesg", "--no-pager", "--output=short", "--since=-30d"), ("dmesg",))
_WHAT = "Give a recording, a kernel log (dmesg > FILE) or nodes (kubectl get nodes -o json > FILE)."


def here(session: Session, seconds: float = WATCHED_S) -> tuple[tuple[Verdict, ...], list[str]]:
    """Of this machine, and what could not be looked at."""
    notes: list[str] = []
    recording = live.recorded(session, seconds)
    if not recording.devices:
        notes.append("No accelerator answers: no driver is loaded, or it is too old.")
    text = _kernel_log()
    if text is None:
        notes.append("The kernel log cannot be read by this user: codes that the driver wrote there are not seen.")
    log = kernel_log.read(text.splitlines()) if text is not None else None
    return verdicts(recording, log), notes


def of_file(path: Path) -> tuple[Verdict, ...]:
    """A recording, a kernel log or a listing of nodes, by what it holds."""
    name = str(path)[:200]
    try:
        content = handed.read_bytes(path, LARGEST)
    except FileNotFoundError:
        raise BadInput(f"There is no file {name}.", remedy=_WHAT) from None
    except IsADirectoryError:
        raise BadInput(f"{name} is a folder.", remedy=_WHAT) from None
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror or error}.", remedy="Check its permissions.") from error
    if len(content) > LARGEST:
        raise BadInput(f"{name} is larger than {LARGEST >> 20} MiB.", remedy="Give its last part: tail -c 200M FILE.")
    if content.startswith(b'{"chipwise_recording"'):
        return verdicts(decoded(content.splitlines(keepends=True), name).recording)
    if content.lstrip()[:1] == b"{":
        return _of_nodes(content, name)
    if b"\0" in content.rstrip(b"\0"):  # a file system that lost power leaves zeros at the end; elsewhere it is no text
        raise BadInput(f"{name} is not text.", remedy=_WHAT)
    log = kernel_log.read(content.decode("utf-8", errors="replace").splitlines())
    if not log.lines:
        raise BadInput(f"{name} is empty.", remedy=_WHAT)
    return verdicts(None, log)


def _of_nodes(content: bytes, name: str) -> tuple[Verdict, ...]:
    try:
        listing = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is not JSON.", remedy=_WHAT) from error
    judged = nodes.verdicts(listing)
    if not judged:
        raise BadInput(f"{name} lists no nodes.", remedy=_WHAT)
    return tuple(sorted(judged, key=lambda verdict: (-rank(verdict.state), verdict.device)))


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


def _kernel_log() -> str | None:
    for command in _LOGS:
        program = shutil.which(command[0])
        if program is None:
            continue
        try:
            result = subprocess.run(
                [program, *command[1:]], capture_output=True, text=True, errors="replace", timeout=LOG_WITHIN_S
            )
        except (OSError, subprocess.SubprocessError):
            continue
        if result.returncode == 0:
            return result.stdout
    return None
