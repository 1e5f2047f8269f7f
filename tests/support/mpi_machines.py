"""Two machines on this one, for programs that start each other by SSH: each has addresses, files and a user of its own.

A machine is a network and a mount namespace of the kernel, so that nothing outside sees them. Only root may make these.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

USER = 10001
ACCOUNT = f"app:x:{USER}:{USER}::/tmp:/bin/sh"
_MOUNTS = (
    'mount --make-rprivate / && mount --bind "$MACHINE/etc" /etc && mount --bind "$MACHINE/work" /mnt && mount --bind'
    ' "$MACHINE/tmp" /tmp && cd /mnt && exec setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs "$@"'
)


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    address: str
    folder: Path
    network: str

    def command(self, words: Sequence[str]) -> list[str]:
        inside = ["unshare", "--mount", "sh", "-ec", _MOUNTS.format(user=USER), "machine", *words]
        return ["ip", "netns", "exec", self.network, *inside]

    def environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "MACHINE": str(self.folder), **settings}


def missing() -> str:
    """What two machines need and is not here; empty: nothing."""
    programs = {"mpirun": "mpirun", "sshd": "/usr/sbin/sshd", "ip": "ip", "unshare": "unshare", "setpriv": "setpriv"}
    for name, program in programs.items():
        if shutil.which(program) is None:
            return f"{name}: not found"
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True).returncode:
        return "namespaces: only root may make them"
    return ""


@contextlib.contextmanager
def pair(folder: Path, names: tuple[str, str]) -> Iterator[tuple[Machine, Machine]]:
    """Two machines of these names with a cable between them, which know each other's names."""
    keys = folder / "keys"
    keys.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", keys / "id_rsa"], check=True)
    shutil.copy(keys / "id_rsa.pub", keys / "authorized_keys")
    tag = f"cw{os.getpid()}"
    first, second = (
        Machine(name, f"10.77.0.{number}", folder / name, f"{tag}-{number}") for number, name in enumerate(names, 1)
    )
    try:
        for one in (first, second):
            _ip("netns", "add", one.network)
        _ip("-n", first.network, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", second.network)
        for one in (first, second):
            _ip("-n", one.network, "addr", "add", f"{one.address}/24", "dev", "eth0")
            for interface in ("lo", "eth0"):
                _ip("-n", one.network, "link", "set", interface, "up")
            _files(one, (first, second), keys)
        yield first, second
    finally:
        for one in (first, second):
            subprocess.run(["ip", "netns", "delete", one.network], capture_output=True)


def _files(machine: Machine, every: Sequence[Machine], keys: Path) -> None:
    """Its own /etc, /tmp and working directory, as a container of the rendered image has them."""
    shutil.copytree("/etc", machine.folder / "etc", symlinks=True, ignore=shutil.ignore_patterns("shadow*", "gshadow*"))
    etc = machine.folder / "etc"
    (etc / "passwd").write_text(f"{(etc / 'passwd').read_text(encoding='utf-8')}{ACCOUNT}\n", encoding="utf-8")
    (etc / "hosts").write_text("".join(f"{one.address} {one.name}\n" for one in every), encoding="utf-8")
    (etc / "mpi").mkdir()
    (etc / "mpi" / "hostfile").write_text("".join(f"{one.name} slots=2\n" for one in every), encoding="utf-8")
    shutil.copytree(keys, etc / "mpi-keys")
    for key in (etc / "mpi-keys").iterdir():
        key.chmod(0o644)  # a Secret's files are root's, and all may read them
    for name in ("tmp", "work"):
        (machine.folder / name).mkdir()
        os.chown(machine.folder / name, USER, USER)
    for parent in (machine.folder, *machine.folder.parents):
        if parent.stat().st_uid == os.getuid() and parent.parts[:2] == ("/", "tmp") and len(parent.parts) > 2:
            parent.chmod(parent.stat().st_mode | 0o055)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
