"""A store that others can read, over FTP: what fsspec opens with the standard library alone. It serves one folder, read-only,
and can be told to hang: it takes connections then, and never answers."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FtpStore(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.root, self.hangs = root, threading.Event()
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"ftp://127.0.0.1:{self.server_address[1]}"


class _Session(socketserver.StreamRequestHandler):
    server: FtpStore

    def handle(self) -> None:
        if self.server.hangs.is_set():
            self.server.over.wait(60)
            return
        self._say("220 ready")
        while line := self.rfile.readline(4096).decode(errors="replace").strip():
            verb, _, rest = line.partition(" ")
            if verb.upper() in ("PASV", "EPSV"):
                self._data = socket.socket()
                self._data.bind(("127.0.0.1", 0))
                self._data.listen(1)
                port = self._data.getsockname()[1]
                told = f"227 ok (127,0,0,1,{port >> 8},{port & 255})" if verb.upper() == "PASV" else f"229 ok (|||{port}|)"
                self._say(told)
            elif verb.upper() == "MLSD":
                self._list(rest)
            elif verb.upper() == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say(
                    {"USER": "331 go on", "PASS": "230 in", "TYPE": "200 ok", "FEAT": "211 none"}.get(verb.upper(), "502 no")
                )

    def _list(self, folder: str) -> None:
        at = self.server.root / folder.strip("/")
        with self._data:
            if not at.is_dir():
                self._say("550 not there")
                return
            self._say("150 here it comes")
            there, _ = self._data.accept()
            with there:
                for one in at.iterdir():
                    kind = "dir" if one.is_dir() else "file"
                    there.sendall(f"type={kind};size={one.stat().st_size}; {one.name}\r\n".encode())
        self._say("226 done")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def ftp_store(root: Path) -> Iterator[FtpStore]:
    with FtpStore(root) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
