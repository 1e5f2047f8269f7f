"""A real PostgreSQL server for tests: its own folder, its own port on the loopback, ended by the id of its process."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patience import deadline

MISSING = "postgresql: not found; Debian's postgresql package has it"
ADMIN = "admin"
TRUSTED = ("alice", "bob", "carol", "dora", "eve", "robot")  # let in without a password, as the admin is


@dataclass(slots=True)
class Server:
    port: int
    folder: Path
    command: list[str]
    user: int | None
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        log = self.folder / "log"
        with log.open("ab") as file:
            self.process = subprocess.Popen(self.command, stdout=file, stderr=file, cwd="/", user=self.user)
        _wait(self.process, self.port, log)

    def stop(self) -> None:
        """At once: sessions are cut off."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(20)
        self.process = None

    def url(self, database: str, login: str = ADMIN, password: str = "", *, port: int | None = None) -> str:
        secret = f":{password}" if password else ""
        return f"postgresql://{login}{secret}@127.0.0.1:{port or self.port}/{database}"


def programs() -> Path | None:
    """The folder with `initdb` and `postgres`: Debian keeps each version in its own, off the path."""
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    kept = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parent.parent.name))
    return kept[-1].parent if kept else None


@contextmanager
def running(bin: Path, *settings: str) -> Iterator[Server]:
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="chipwise-pg-"))
    server = None
    try:
        folder.chmod(0o755)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if user is not None:
            os.chown(data, user, pwd.getpwuid(user).pw_gid)
        _run(
            [bin / "initdb", "--no-sync", "--locale=C", "--encoding=UTF8", "--auth=trust", f"--username={ADMIN}", "-D", data],
            user,
        )
        hba = "".join(f"host all {login} 127.0.0.1/32 trust\n" for login in (ADMIN, *TRUSTED))
        (data / "pg_hba.conf").write_text(hba + "host all all 127.0.0.1/32 scram-sha-256\n", encoding="utf-8")
        port = _free_port()
        options = [f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=60", *settings]
        arguments = [str(part) for option in options for part in ("-c", option)]
        server = Server(port, folder, [str(bin / "postgres"), "-D", str(data), *arguments], user)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> int | None:
    """PostgreSQL does not run as root."""
    return pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else None


def _run(command: list[object], user: int | None) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd="/", user=user, timeout=120)
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stderr[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg

    until = deadline(60)
    while time.monotonic() < until:
        if server.poll() is not None:
            break
        try:
            psycopg.connect(f"postgresql://{ADMIN}@127.0.0.1:{port}/postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise RuntimeError(f"postgres did not start: {log.read_text(errors='replace')[-2000:]}")
