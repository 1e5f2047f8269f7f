"""A file that is judged: a recording, a kernel log or a listing of nodes, by what it holds."""

from __future__ import annotations

import json
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.files import handed
from chipwise.observe.health import kernel_log, nodes
from chipwise.observe.health.judge import verdicts
from chipwise.observe.health.verdict import Verdict, rank
from chipwise.observe.recording import decoded

LARGEST = 256 << 20
_WHAT = "Give a recording, a kernel log (dmesg > FILE) or nodes (kubectl get nodes -o json > FILE)."


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
