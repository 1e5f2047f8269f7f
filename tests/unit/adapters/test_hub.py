"""Fetching a config, against a hub on loopback that behaves and misbehaves."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from chipwise.adapters.hub import fetch_config
from chipwise.errors import BadInput, NotAllowed, NotFound, OutsideFailed, TryLater

CONFIG = {"model_type": "llama", "hidden_size": 4096}


class Hub(BaseHTTPRequestHandler):
    """The model's name says how to behave; what was asked is remembered in `seen`."""

    seen: list[tuple[str, str | None]]
    over: threading.Event  # the test is done, nobody listens any more

    def do_GET(self) -> None:
        type(self).seen.append((self.path, self.headers.get("Authorization")))
        name = self.path.split("/")[2]
        if name == "moved":
            self._answer(307, b"", {"Location": "/org/good/resolve/main/config.json"})
        elif name.isdecimal():
            self._answer(int(name), b"no")
        elif name == "cut":
            self._answer(200, b'{"model_type"', {"Content-Length": "5000"})
        elif name == "cutchunks":
            self._answer(200, b'1000\r\n{"model', {"Transfer-Encoding": "chunked"})
        elif name == "garbage":
            self._answer(200, b"<html>please log in</html>")
        elif name == "binary":
            self._answer(200, b"\xff\xfe\x00\x80")
        elif name == "list":
            self._answer(200, b"[]")
        elif name == "huge":
            self._answer(200, b" " * 5_000_002)
        elif name == "slow":
            type(self).over.wait(10)
        elif name == "dribble":
            self.send_response(200)
            self.end_headers()
            while not type(self).over.wait(0.02):
                self.wfile.write(b" ")
        else:
            self._answer(200, json.dumps(CONFIG).encode())

    def _answer(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in (headers or {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what some of these tests are about."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HF_TOKEN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    Hub.seen, Hub.over = [], threading.Event()
    with QuietServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        Hub.over.set()
        server.shutdown()
        thread.join()


def test_a_config_is_fetched_from_the_main_revision(hub: str) -> None:
    assert fetch_config("org/good", hub + "/") == CONFIG
    assert Hub.seen == [("/org/good/resolve/main/config.json", None)]


def test_the_token_goes_along_as_bearer(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", " secret ")
    fetch_config("org/good", hub)

    assert Hub.seen[0][1] == "Bearer secret"


def test_the_token_does_not_follow_a_redirect(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")

    assert fetch_config("org/moved", hub) == CONFIG
    assert [token for _, token in Hub.seen] == ["Bearer secret", None]


@pytest.mark.parametrize("code", [401, 403])
def test_a_gated_model_says_to_accept_its_licence(hub: str, code: int) -> None:
    with pytest.raises(NotAllowed, match=r"Accept its licence .* set HF_TOKEN"):
        fetch_config(f"org/{code}", hub)


def test_a_refused_token_is_named_but_never_shown(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret-value")

    with pytest.raises(NotAllowed, match="refused the token in HF_TOKEN") as caught:
        fetch_config("org/401", hub)

    assert "secret-value" not in str(caught.value)


@pytest.mark.parametrize("code", [404, 410])
def test_a_model_without_a_config_is_not_found(hub: str, code: int) -> None:
    with pytest.raises(NotFound, match="Check the spelling"):
        fetch_config(f"org/{code}", hub)


@pytest.mark.parametrize("name", ["500", "503", "429", "cut", "cutchunks"])
def test_what_may_work_later_says_so(hub: str, name: str) -> None:
    with pytest.raises(TryLater, match="Try again"):
        fetch_config(f"org/{name}", hub)


def test_another_refusal_is_an_outside_failure(hub: str) -> None:
    with pytest.raises(OutsideFailed, match="HTTP 418"):
        fetch_config("org/418", hub)


@pytest.mark.parametrize("name", ["garbage", "binary", "list", "huge"])
def test_an_answer_that_is_no_config_is_an_outside_failure(hub: str, name: str) -> None:
    with pytest.raises(OutsideFailed, match=r"Check the"):
        fetch_config(f"org/{name}", hub)


@pytest.mark.parametrize("name", ["slow", "dribble"])
def test_a_slow_hub_is_given_up_on_in_time(hub: str, name: str) -> None:
    started = time.monotonic()

    with pytest.raises(TryLater, match="in time"):
        fetch_config(f"org/{name}", hub, timeout=0.2)

    assert time.monotonic() - started < 5


def test_an_unreachable_hub_says_to_try_later(hub: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"

        with pytest.raises(TryLater, match="cannot be reached"):
            fetch_config("org/good", address, timeout=1)


@pytest.mark.parametrize(
    "model_id",
    [
        "",
        "/",
        "a/b/c",
        "../etc",
        "org/..",
        "org/../x",
        "org/a b",
        "org/a?x",
        "org/a#x",
        "org/a%2e",
        "/org/a",
        "org/",
        "-a",
        "org/a\n",
    ],
)
def test_what_is_no_model_id_is_refused_before_anything_is_sent(hub: str, model_id: str) -> None:
    with pytest.raises(BadInput, match="is not a model id"):
        fetch_config(model_id, hub)

    assert Hub.seen == []


@pytest.mark.parametrize("endpoint", ["file:///etc", "ftp://x", "huggingface.co", "http://", "javascript:1"])
def test_an_address_that_is_no_hub_is_refused(endpoint: str) -> None:
    with pytest.raises(BadInput, match="is not an address of a hub"):
        fetch_config("org/good", endpoint)
