"""A wire between a client and its server that can be cut at a chosen moment: for the answers that never arrive."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Passes bytes on. When the client has said `word` and cuts are left, the server hears it and nobody hears the answer
    (`hears`), or the server does not even hear it."""

    def __init__(self, port: int, word: bytes) -> None:
        self._to, self._word = port, word
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.cuts, self.hears, self.made = 0, True, 0
        self.refuses = False  # whoever calls, as long as this is set
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in self._open:
            _shut(one)
        for thread in self._threads:
            thread.join(10)

    def cut_all(self) -> None:
        """Whatever is open now; who calls again gets through."""
        held, self._open = self._open, []
        for one in held:
            _shut(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    if self.refuses:
                        raise ConnectionRefusedError
                    server = socket.create_connection(("127.0.0.1", self._to))
                except OSError:  # it is down, and may come back
                    client.close()
                    continue
                self._open += [client, server]
                for work in (self._forward, self._back):
                    self._threads.append(threading.Thread(target=work, args=(client, server), daemon=True))
                    self._threads[-1].start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while said := client.recv(1 << 16):
                if self.cuts > 0 and self._word in said:
                    self.cuts, self.made = self.cuts - 1, self.made + 1
                    if self.hears:
                        _shut(client)  # first, so that no answer gets through
                        server.sendall(said)
                        server.settimeout(5)
                        server.recv(1)  # it has answered
                    break
                server.sendall(said)
        _shut(client)
        _shut(server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while said := server.recv(1 << 16):
                client.sendall(said)
        _shut(client)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def cutting(port: int, word: bytes) -> Iterator[Proxy]:
    proxy = Proxy(port, word)
    try:
        yield proxy
    finally:
        proxy.close()
