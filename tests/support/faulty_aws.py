"""A proxy of our own before a stand-in for AWS: it throttles, fails, cuts answers off or says that there is no machine.

It also does what EC2 does and moto does not: a fleet that is asked for again by the same token is not made a second time, and
other settings with that token are refused.

A fault is for requests of one action (`CreateFleet`; for S3 the method and the path, such as `PUT /kept/team/live`), and for a
number of times.
"""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from urllib.parse import parse_qs, urlsplit

_HOP_BY_HOP = ("connection", "transfer-encoding", "expect")
MANY = 10**6


@dataclass
class Fault:
    action: str  # how it begins
    status: int = 0  # 0: the connection is cut
    code: str = ""
    message: str = "injected by the test"
    times: int = MANY
    heard: bool = False  # for a cut: the server did what was asked, and nobody hears of it
    holds: str = ""  # text that the request must hold; its signature, which names the region, is part of it
    body: str = ""  # an answer that is told as it is


@dataclass
class Faulty:
    to: str
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # actions, in their order
    forms: list[dict[str, str]] = field(default_factory=list)
    storm: Random | None = None  # any request may fail, one of four
    tokens: dict[str, tuple[dict[str, str], tuple[int, bytes, str]]] = field(default_factory=dict)

    def count(self, action: str) -> int:
        return sum(one.startswith(action) for one in self.asked)

    def clear(self) -> None:
        self.faults.clear()
        self.asked.clear()
        self.forms.clear()
        self.tokens.clear()
        self.storm = None

    def fault(self, action: str, text: str) -> Fault | None:
        for one in self.faults:
            if one.times > 0 and action.startswith(one.action) and one.holds in text:
                one.times -= 1
                return one
        if self.storm is None or self.storm.random() > 0.25:
            return None
        kinds = (Fault(action, 503, "RequestLimitExceeded"), Fault(action, 500), Fault(action), Fault(action, heard=True))
        return self.storm.choice(kinds)


def no_machines(code: str, machine: str, lifecycle: str, message: str = "There is no capacity.") -> str:
    """A fleet that got nothing, as EC2 answers it."""
    return (
        '<CreateFleetResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId>'
        "<fleetId>fleet-0</fleetId><errorSet><item><launchTemplateAndOverrides><overrides>"
        f"<instanceType>{machine}</instanceType><availabilityZone>eu-west-1a</availabilityZone></overrides>"
        f"</launchTemplateAndOverrides><lifecycle>{lifecycle}</lifecycle><errorCode>{code}</errorCode>"
        f"<errorMessage>{message}</errorMessage></item></errorSet><fleetInstanceSet/></CreateFleetResponse>"
    )


@contextmanager
def faulty(to: str) -> Iterator[Faulty]:
    state = Faulty(to)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _passing(state))
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def _passing(state: Faulty) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            if self.headers.get("Expect") == "100-continue":  # or the client waits a second before it sends its body
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            text = body.decode(errors="replace")
            form = {key: values[0] for key, values in parse_qs(text).items()} if self.command == "POST" else {}
            target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
            action = target or form.get("Action") or f"{self.command} {self.path}"
            state.asked.append(action)
            state.forms.append(form)
            fault = state.fault(action, f"{text}\n{self.headers.get('Authorization', '')}")
            if fault is None:
                self._give(*self._passed(body, form))
            elif fault.body:
                self._give(200, fault.body.encode(), "text/xml")
            elif fault.status:
                self._give(fault.status, _error(fault), "text/xml")
            else:
                if fault.heard:
                    self._passed(body, form)
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

        def _passed(self, body: bytes, form: dict[str, str]) -> tuple[int, bytes, str]:
            token = form.get("ClientToken", "") if form.get("Action") == "CreateFleet" else ""
            if token not in state.tokens:
                told = self._asked(body)
                if token and told[0] == 200:
                    state.tokens[token] = form, told
                return told
            before, answer = state.tokens[token]
            other = Fault("CreateFleet", 400, "IdempotentParameterMismatch")
            return answer if before == form else (400, _error(other), "text/xml")

        def _asked(self, body: bytes) -> tuple[int, bytes, str]:
            server = http.client.HTTPConnection(urlsplit(state.to).netloc, timeout=60)
            sent = {key: value for key, value in self.headers.items() if key.lower() not in _HOP_BY_HOP}
            server.request(self.command, self.path, body, sent)
            answer = server.getresponse()
            told = answer.status, answer.read(), answer.headers.get("Content-Type", "text/xml")
            server.close()
            return told

        def _give(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Tests say what they need to say."""

    return Handler


def _error(fault: Fault) -> bytes:
    code, message = fault.code or str(fault.status), fault.message
    if fault.action.split(" ")[0] in ("GET", "PUT", "DELETE"):
        return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    return f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>".encode()
