"""The gateway as a server: on the loopback unless asked for more, within its limits, and drained without losing a request."""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chipwise.adapters.http.client_connection import ClientConnection, Clients
from chipwise.adapters.http.state import GatewayState
from chipwise.errors import BadInput
from chipwise.files.handed import check_ends

TICK_S = 0.1
TICKS_PER_CLIENT_CHECK = 5
LET_GO_S = 5.0  # for clients that keep idle connections, after a successor has taken over
SPARE_FILES = 128  # for all that is no connection


@dataclass(frozen=True, slots=True)
class Door:
    """Where clients come in."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any that is free
    certificate: Path | None = None  # with `private_key`: TLS
    private_key: Path | None = None
    shares_port: bool = False  # with other processes
    backlog: int = 1024

    def context(self) -> ssl.SSLContext | None:
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            for path in filter(None, (self.certificate, self.private_key)):
                check_ends(path)
            context.load_cert_chain(self.certificate, self.private_key, password=lambda: "")  # nobody is asked for one
        except (OSError, ssl.SSLError) as error:  # a missing file is named by neither
            files = " with ".join(str(path) for path in (self.certificate, self.private_key) if path is not None)
            raise BadInput(
                f"The certificate {files} cannot be used: {error.strerror or error}.",
                remedy="Give a certificate and its unencrypted key as PEM files that this user can read.",
            ) from error
        return context


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Gateway:
    def __init__(self, state: GatewayState) -> None:
        self.state = state
        self._clients = Clients(min(state.settings.sizes.connections, _files() - SPARE_FILES))
        self._server: asyncio.Server | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._ticks = 0

    async def start(self, door: Door, listening: socket.socket | None = None) -> int:
        """The port that clients reach it at. `listening` is a socket that another process listened on before."""
        if not is_loopback(door.host) and self.state.keys.is_open:
            raise BadInput(f"{door.host} can be reached from other machines.", remedy="Add an API key, or listen on 127.0.0.1.")
        loop = asyncio.get_running_loop()
        if listening is not None:
            server = await loop.create_server(self._connection, sock=listening, ssl=door.context(), backlog=door.backlog)
        else:
            server = await loop.create_server(
                self._connection,
                door.host,
                door.port,
                ssl=door.context(),
                backlog=door.backlog,
                reuse_port=door.shares_port or None,
            )
        self._server = server
        self._tick = loop.call_later(TICK_S, self._check_times)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def _connection(self) -> ClientConnection:
        return ClientConnection(self.state, self._clients)

    def _check_times(self) -> None:
        self._tick = asyncio.get_running_loop().call_later(TICK_S, self._check_times)
        self.state.check_times()
        self._ticks += 1
        if self._ticks % TICKS_PER_CLIENT_CHECK == 0:
            self._clients.check_times(self.state.now())

    @property
    def listening(self) -> int:
        """The file descriptor of the socket that clients connect to, for a successor."""
        assert self._server is not None
        return self._server.sockets[0].fileno()

    async def drain(self, longest_s: float, has_successor: bool = False) -> bool:
        """Takes no new connection, answers what was begun, and closes; whether all was answered in time.

        With a successor that listens on the same socket, a client that keeps its connection open gets its next answer here,
        and with it the end of the connection; one that asks nothing more is let go after a while.
        """
        self.state.is_draining, self.state.has_successor = True, has_successor
        if self._server is not None:
            self._server.close()
        if has_successor:
            await self._wait(lambda: not self._clients.all, min(longest_s, LET_GO_S))
        for client in list(self._clients.all):
            client.close_if_idle()
        await self._wait(lambda: not self.state.pending, longest_s)
        was_all = not self.state.pending
        await asyncio.sleep(0.05)  # for the last bytes
        self.close()
        return was_all

    async def _wait(self, is_over: Callable[[], bool], longest_s: float) -> None:
        end = self.state.now() + longest_s
        while not is_over() and self.state.now() < end:
            await asyncio.sleep(0.02)

    def close(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
        if self._server is not None:
            self._server.close()
        self.state.close()
        for client in list(self._clients.all):
            client.cut()


def _files() -> int:
    """How many files this process may open, after asking for as many as it can get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1_048_576
