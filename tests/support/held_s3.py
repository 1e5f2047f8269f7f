"""A real moto server on the loopback with a gate before it: an upload can be held at a moment that a test chooses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


class HeldS3:
    """`hold(when)`: the first request for which `when(method, path, query)` is true waits, and `reached` tells of it."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._when: Callable[[str, str, dict[str, str]], bool] | None = None
        self._go_on = threading.Event()
        self.reached = threading.Event()
        self.server = make_server("127.0.0.1", 0, self, threaded=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def hold(self, when: Callable[[str, str, dict[str, str]], bool]) -> None:
        self.reached.clear()
        self._go_on.clear()
        self._when = when

    def let_go(self) -> None:
        self._when = None
        self._go_on.set()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"], keep_blank_values=True).items()}
        when = self._when
        if when is not None and when(environ["REQUEST_METHOD"], environ["PATH_INFO"], query):
            self._when = None
            self.reached.set()
            self._go_on.wait(60)
        answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer


@contextmanager
def serving() -> Iterator[HeldS3]:
    held = HeldS3()
    thread = threading.Thread(target=held.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield held
    finally:
        held.let_go()
        held.server.shutdown()
        thread.join(10)
        held.server.server_close()
