"""The connection and its watches, against a scripted server on the loopback: what a real one does only on a bad day."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chipwise.adapters.engines.kubernetes import watching
from chipwise.adapters.engines.kubernetes.connection import Connection, opened
from chipwise.adapters.engines.kubernetes.engine import Config, connect
from chipwise.adapters.engines.kubernetes.kinds import JOB, NODE, POD, ObjectKind, Watched
from chipwise.adapters.engines.kubernetes.picture import Picture
from chipwise.adapters.engines.kubernetes.watching import Watch
from chipwise.errors import BadInput, ChipwiseError, MissingExtra, NotAllowed, NotFound, TryLater

Answer = tuple[int, Any]
Lines = list[dict[str, Any] | str]


def _pod(name: str, version: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": str(version), "labels": {}},
        "status": {"phase": "Running"},
    }


def _listed(version: int, *names: str) -> Answer:
    return 200, {"metadata": {"resourceVersion": str(version)}, "items": [_pod(name, version) for name in names]}


def _status(code: int, message: str) -> Answer:
    return code, {"kind": "Status", "code": code, "message": message}


class Scripted:
    """Answers in order, one script for lists and one for watches; what it was asked is kept."""

    def __init__(self) -> None:
        self.lists: list[Answer] = []
        self.watches: list[Answer | Lines] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                script.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        query = {key: value[0] for key, value in parse_qs(urlsplit(request.path).query).items()}
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        watch = query.get("watch") == "true"
        self.asked.append(("watch" if watch else "list", query))
        said: Answer | Lines
        if watch:
            said = self.watches.pop(0) if self.watches else _status(500, "nothing more in the script")
        else:
            said = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if isinstance(said, tuple):
            content = json.dumps(said[1]).encode() if not isinstance(said[1], str) else said[1].encode()
            request.send_response(said[0])
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)
            return
        request.send_response(200)
        request.end_headers()  # without a length: until the connection is closed
        for line in said:
            request.wfile.write((line if isinstance(line, str) else json.dumps(line) + "\n").encode())
            request.wfile.flush()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@pytest.fixture
def server() -> Iterator[Scripted]:
    made = Scripted()
    yield made
    made.close()


def _config(path: Path, url: str, **context: Any) -> Path:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **context}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def connection(server: Scripted, tmp_path: Path) -> Iterator[Connection]:
    made = opened(_config(tmp_path / "config", server.url), "", "here", "chipwise")
    yield made
    made.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "WAITS_S", (0.01, 0.05))


def _followed(connection: Connection, wanted: Callable[[Watch], bool], kind: ObjectKind = POD, needed: bool = True) -> Watch:
    watch = Watch(connection, Watched(kind, "", needed), Picture())
    watch.start()
    limit = time.monotonic() + 8.0
    while not wanted(watch):
        assert time.monotonic() < limit, (watch.is_listed, watch.trouble, list(watch.picture.all(kind)))
        time.sleep(0.01)
    watch.stop()
    watch.join(3.0)
    return watch


def _names(watch: Watch) -> set[str]:
    return {one["metadata"]["name"] for one in watch.picture.all(watch.watched.kind)}


def _change(how: str, name: str, version: int) -> dict[str, Any]:
    return {"type": how, "object": _pod(name, version)}


def test_a_cut_connection_goes_on_from_the_last_version_that_was_seen(
    server: Scripted, connection: Connection, quick: None
) -> None:
    server.lists = [_listed(10, "a")]
    server.watches = [
        [_change("ADDED", "b", 11), '{"type": "MODIF'],  # cut in the middle of a line
        [_change("DELETED", "a", 12), {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}],
        _status(503, "going down"),
        [_change("ADDED", "c", 21)],
    ]
    watch = _followed(connection, lambda one: "c" in _names(one))
    assert _names(watch) == {"b", "c"}
    assert watch.relists == 1
    asked = [query["resourceVersion"] for how, query in server.asked if how == "watch"]
    assert asked[:4] == ["10", "11", "20", "20"]


@pytest.mark.parametrize(
    "gone",
    [_status(410, "too old"), [{"type": "ERROR", "object": {"code": 410, "message": "too old"}}]],
    ids=["answer", "event"],
)
def test_after_410_all_is_listed_anew_and_what_went_in_between_is_gone(
    server: Scripted, connection: Connection, quick: None, gone: Answer | Lines
) -> None:
    server.lists = [_listed(10, "a", "b"), _listed(30, "b", "c")]
    server.watches = [gone, [_change("ADDED", "d", 31)]]
    watch = _followed(connection, lambda one: "d" in _names(one))
    assert _names(watch) == {"b", "c", "d"}
    assert watch.relists == 2


def test_trouble_is_told_until_something_works_again(server: Scripted, connection: Connection, quick: None) -> None:
    server.lists = [_status(500, "etcd is away"), _status(429, "slow down"), (200, "no json"), _listed(10, "a")]
    told: list[str] = []

    def seen(watch: Watch) -> bool:
        if watch.trouble is not None and not watch.is_listed:
            told.append(str(watch.trouble))
        return watch.is_listed

    _followed(connection, seen)
    assert any("etcd is away" in one or "slow down" in one or "JSON" in one for one in told)


def test_a_list_comes_in_pages(server: Scripted, connection: Connection) -> None:
    first = {"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [_pod("a", 1)]}
    server.lists = [(200, first), _listed(9, "b")]
    found, version = connection.list(POD, "x=y")
    assert [one["metadata"]["name"] for one in found] == ["a", "b"]
    assert version == "9"
    assert [query.get("continue") for _, query in server.asked] == [None, "more"]


def test_what_may_not_be_read_is_done_without_unless_it_is_needed(
    server: Scripted, connection: Connection, quick: None
) -> None:
    server.lists = [
        _status(403, 'nodes is forbidden: User "u" cannot list resource "nodes" in API group "" at the cluster scope')
    ]
    watch = _followed(connection, lambda one: one.without, NODE, needed=False)
    assert not watch.is_listed
    needed = _followed(connection, lambda one: one.trouble is not None, JOB)
    assert not needed.without
    assert isinstance(needed.trouble, NotAllowed)


_NO_RIGHT = 'jobs.batch is forbidden: User "u" cannot list resource "jobs"'
_UNKNOWN = "failed to create typed patch object (x)"
ERRORS: dict[str, tuple[Answer, type[ChipwiseError], str]] = {
    "nobody": (_status(401, "Unauthorized"), NotAllowed, "rejects the credentials"),
    "a right": (_status(403, _NO_RIGHT), NotAllowed, "You may not list jobs.batch in namespace here"),
    "another right": (_status(403, _NO_RIGHT.replace("cannot list", "cannot create")), NotAllowed, "may not create jobs.batch"),
    "a quota": (_status(403, "jobs.batch is forbidden: exceeded quota: q, requested: 1"), TryLater, "namespace is full"),
    "a webhook": (_status(403, 'admission webhook "w" denied the request: no'), BadInput, "The cluster refuses it"),
    "a namespace": (_status(404, 'namespaces "here" not found'), NotFound, "no namespace here"),
    "a kind": (_status(404, "the server could not find the requested resource"), NotFound, "Is it installed"),
    "a field": (_status(422, "spec.x: Invalid value"), BadInput, "spec.x"),
    "a field unknown": (_status(500, f"{_UNKNOWN}: .spec.y: field not declared"), BadInput, "spec.y"),
    "throttled": (_status(429, "too many"), TryLater, "429"),
    "broken": (_status(500, "boom"), TryLater, "boom"),
    "a proxy": ((502, "<html>"), TryLater, "502"),
}


@pytest.mark.parametrize(("answer", "kind", "told"), ERRORS.values(), ids=ERRORS)
def test_each_refusal_is_one_of_our_errors_with_a_way_on(
    server: Scripted, connection: Connection, answer: Answer, kind: type[ChipwiseError], told: str
) -> None:
    server.lists = [answer]
    with pytest.raises(kind, match=told):
        connection.list(JOB)


def test_nobody_is_taken_for_absent_while_the_first_list_is_not_complete(server: Scripted, tmp_path: Path) -> None:
    server.lists = [_status(500, "etcd is away")]
    engine = connect(Config(_config(tmp_path / "config", server.url)))
    try:
        with pytest.raises(TryLater, match="etcd is away"):
            engine.look([], time.time())
    finally:
        engine.close()


# The kubeconfig


def test_the_place_is_the_server_and_the_namespace_whoever_asks(tmp_path: Path) -> None:
    path = _config(tmp_path / "config", "https://cluster.example.com:6443", namespace="train")
    for one in (connect(Config(path)), connect(Config(path, "x")), connect(Config(path, namespace="train"))):
        assert one.place == "kubernetes:cluster.example.com:6443/train"
        one.close()


def test_no_kubeconfig_is_told_with_a_way_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NotFound, match=r"no kubeconfig: .*none is not there.*Set KUBECONFIG"):
        connect(Config())
    with pytest.raises(NotFound, match="other is not there"):
        connect(Config(tmp_path / "other"))


def test_the_first_file_of_kubeconfig_that_is_there_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _config(tmp_path / "config", "https://a.example.com")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{path}")
    one = connect(Config())
    assert one.place == "kubernetes:a.example.com/default"
    one.close()


_NOBODY = (
    "{clusters: [{name: q, cluster: {server: 'https://a'}}], contexts: [{name: b, context: {cluster: q}}], current-context: b}"
)
BAD = {
    "no yaml": ("a: [", "is no kubeconfig"),
    "not text": (b"\xff\xfe\x00", "is no kubeconfig"),
    "a list": ("[]", "cannot be used"),
    "a word": ("hello", "cannot be used"),
    "empty": ("", "cannot be used"),
    "no clusters": ("contexts: []", "cannot be used"),
    "no current context": ("{clusters: [], contexts: []}", "No current context"),
    "another context": ("{clusters: [], contexts: [], current-context: b}", "'b' not found"),
    "no such cluster": ("{clusters: [], contexts: [{name: b, context: {cluster: q}}], current-context: b}", "cannot be used"),
    "nobody": (_NOBODY, "names no user"),
}


@pytest.mark.parametrize(("text", "told"), BAD.values(), ids=BAD)
def test_a_kubeconfig_that_cannot_be_used_is_told_in_one_sentence(tmp_path: Path, text: str | bytes, told: str) -> None:
    path = tmp_path / "config"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput, match=told):
        connect(Config(path))


def test_without_the_client_the_message_holds_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _config(tmp_path / "config", "https://a.example.com")
    monkeypatch.setitem(sys.modules, "lightkube", None)
    with pytest.raises(MissingExtra, match=r"pip install 'chipwise\[kubernetes\]'"):
        connect(Config(path))


def test_a_login_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = _config(tmp_path / "config", "http://127.0.0.1:9")
    content = json.loads(path.read_text())
    content["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "no-such-login"}}
    path.write_text(json.dumps(content))
    engine = connect(Config(path))
    try:
        with pytest.raises(NotAllowed, match="way to log in"):
            engine.look([], time.time())
    finally:
        engine.close()


def test_the_written_role_is_the_one_of_the_code() -> None:
    import kubernetes_rights as rights

    written = Path(__file__).parents[5] / "docs" / "running" / "kubernetes-role.yaml"
    assert written.read_text() == rights.text()
    assert (written.parents[1] / "serving" / written.name).read_text() == rights.serving_text()
