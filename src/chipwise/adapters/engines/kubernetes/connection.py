"""One cluster as its kubeconfig describes it: requests, watch streams, and the API's errors as ours in one table.

lightkube reads the kubeconfig (contexts, certificates, tokens, login programs) and makes the HTTP client; requests are plain
REST on it. Its own watch would hide what we must know: a read that times out, and a 410, after which what is gone is only found
by listing anew.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chipwise.errors import BadInput, ChipwiseError, MissingExtra, NotAllowed, NotFound, TryLater

from .kinds import Object, ObjectKind

TIMEOUT_S = 15.0
SILENT_S = 75.0  # of a watch, which the server itself ends before: it is dead
PAGE = 500
DRY_RUN = {"dryRun": "All"}
ROLE, SERVING_ROLE = "docs/running/kubernetes-role.yaml", "docs/serving/kubernetes-role.yaml"
_MEND = "Fix the workload, and render it to see the objects."
_LACKING = re.compile(r"cannot (\w+) resource")
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Expired(Exception):
    """The server no longer knows what came after this version: all is listed anew."""


class Exists(TryLater):
    """Somebody else made it, or changed it in the meantime. Who asked knows what that means."""


@dataclass(frozen=True, slots=True)
class Connection:
    client: Any  # an HTTP client, of the flavour that lightkube brings
    http: Any  # its module, for its errors
    server: str
    namespace: str
    manager: str
    role: str = ROLE  # the file that has the rights of what it is used for
    _streams: set[Any] = field(default_factory=set)  # sockets on which somebody waits for the next line

    def close(self) -> None:
        self.client.close()

    def cut(self) -> None:
        """Wakes whoever waits for a line. Not by closing: the number of a closed socket is soon that of another connection, of
        which the one who waits would take bytes away."""
        for stream in list(self._streams):
            with suppress(OSError):
                socket.socket.shutdown(stream, socket.SHUT_RDWR)  # below TLS, which another thread is reading from

    def get(self, kind: ObjectKind, name: str) -> Object | None:
        try:
            return self._call("GET", kind, name)
        except NotFound:
            return None

    def create(self, kind: ObjectKind, body: Object, *, dry_run: bool = False) -> Object:
        """Raises Exists where there is one. `dry_run`: the server says what it would do, and does nothing."""
        params = {"fieldManager": self.manager, "fieldValidation": "Strict", **(DRY_RUN if dry_run else {})}
        return self._call("POST", kind, "", body, params)

    def apply(self, kind: ObjectKind, body: Object, *, dry_run: bool = False) -> Object:
        """Server-side: fields that we do not name are left to whoever set them."""
        params = {"fieldManager": self.manager, "force": "true", "fieldValidation": "Strict", **(DRY_RUN if dry_run else {})}
        return self._call("PATCH", kind, body["metadata"]["name"], body, params, "application/apply-patch+yaml")

    def replace(self, kind: ObjectKind, body: Object, *, dry_run: bool = False) -> Object:
        """Only if it is still as it was read: raises Exists where somebody was faster."""
        params = {"fieldManager": self.manager, **(DRY_RUN if dry_run else {})}
        return self._call("PUT", kind, body["metadata"]["name"], body, params)

    def merge(self, kind: ObjectKind, name: str, change: Object) -> Object:
        params = {"fieldManager": self.manager}
        return self._call("PATCH", kind, name, change, params, "application/merge-patch+json")

    def delete(self, kind: ObjectKind, name: str, *, uid: str = "", grace_s: int | None = None) -> bool:
        """What it owns goes after it; whether there was one. `uid`: only this one, not another of its name."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            self._call("DELETE", kind, name, options)
        except (NotFound, Exists):
            return False
        return True

    def list(self, kind: ObjectKind, labels: str = "") -> tuple[list[Object], str]:
        """All of them, in pages, with the version to watch from."""
        items: list[Object] = []
        params = {"limit": str(PAGE), **({"labelSelector": labels} if labels else {})}
        while True:
            page = self._call("GET", kind, "", None, params, verb="list")
            items += page.get("items") or ()
            meta = page.get("metadata") or {}
            if not meta.get("continue"):
                return items, str(meta.get("resourceVersion", ""))
            params["continue"] = meta["continue"]

    @contextmanager
    def stream(self, kind: ObjectKind, labels: str, version: str, seconds: int) -> Iterator[Iterator[tuple[str, Object]]]:
        """Changes after a version, until the server ends it. Raises Expired where it no longer knows them."""
        params = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        params |= {"labelSelector": labels} if labels else {}
        timeout = self.http.Timeout(TIMEOUT_S, read=SILENT_S)
        with (
            self._translated("watch", kind),
            self.client.stream("GET", kind.path(self.namespace), params=params, timeout=timeout) as reply,
        ):
            if reply.status_code >= 300:
                reply.read()
                self._raise(reply, "watch", kind)
            stream = reply.extensions["network_stream"].get_extra_info("socket")
            self._streams.add(stream)
            try:
                yield self._changes(reply, kind)
            finally:
                self._streams.discard(stream)

    def text(
        self, kind: ObjectKind, name: str, part: str, params: Mapping[str, str], patience_s: float | None = None
    ) -> Iterator[bytes]:
        """What is no JSON: a pod's log. A quiet program may say nothing for long."""
        timeout = self.http.Timeout(TIMEOUT_S, read=patience_s)
        with (
            self._translated("get", kind),
            self.client.stream(
                "GET", f"{kind.path(self.namespace, name)}/{part}", params=dict(params), timeout=timeout
            ) as reply,
        ):
            if reply.status_code >= 300:
                reply.read()
                self._raise(reply, "get", kind)
            yield from reply.iter_bytes()

    def _changes(self, reply: Any, kind: ObjectKind) -> Iterator[tuple[str, Object]]:
        for line in reply.iter_lines():
            if not line.strip():
                continue
            try:
                change = json.loads(line)
            except ValueError as error:  # cut off in the middle
                raise TryLater(f"{self.server} sent half a line.") from error
            if change.get("type") == "ERROR":
                status = change.get("object") or {}
                if status.get("code") == 410:
                    raise Expired
                raise _error(int(status.get("code") or 500), str(status.get("message", "")), "watch", kind, self)
            yield str(change.get("type")), change.get("object") or {}

    def _call(
        self,
        method: str,
        kind: ObjectKind,
        name: str,
        body: Object | None = None,
        params: Mapping[str, str] | None = None,
        form: str = "application/json",
        verb: str = "",
    ) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        verb = verb or VERBS[method]
        with self._translated(verb, kind):
            reply = self.client.request(
                method, kind.path(self.namespace, name), content=content, params=params, headers={"Content-Type": form}
            )
            if reply.status_code >= 300:
                self._raise(reply, verb, kind)
            try:
                answer: dict[str, Any] = reply.json()
                return answer
            except ValueError as error:
                raise TryLater(f"{self.server} did not answer in JSON.", remedy="Is it a Kubernetes API server?") from error

    def _raise(self, reply: Any, verb: str, kind: ObjectKind) -> None:
        try:
            message = str(reply.json().get("message", ""))
        except (ValueError, AttributeError):
            message = str(reply.text)[:300]
        if reply.status_code == 410:
            raise Expired
        raise _error(reply.status_code, message, verb, kind, self)

    @contextmanager
    def _translated(self, verb: str, kind: ObjectKind) -> Iterator[None]:
        """Of what happens before there is an answer."""
        from lightkube.core.exceptions import ConfigError

        try:
            yield
        except (self.http.HTTPError, self.http.StreamError) as error:
            message = str(error) or type(error).__name__
            raise TryLater(
                f"{self.server} cannot be reached to {verb} {kind.plural}: {message}.",
                remedy="It is tried again; `kubectl get --raw /readyz` says more.",
            ) from error
        except (ConfigError, FileNotFoundError, PermissionError) as error:  # a login program that failed, or is not there
            raise NotAllowed(
                f"The kubeconfig's way to log in to {self.server} failed: {error}.",
                remedy="Log in again, as your cluster asks.",
            ) from error


def _error(status: int, message: str, verb: str, kind: ObjectKind, connection: Connection) -> ChipwiseError:
    """The one table."""
    action = f"{verb} {kind.plural}{f'.{kind.group}' if kind.group else ''}"
    match status:
        case 401:
            return NotAllowed(
                f"{connection.server} rejects the credentials.", remedy="Log in again, or take another --context."
            )
        case 403 if "exceeded quota" in message:
            return TryLater(f"The namespace is full: {message}")
        case 403 if "admission webhook" in message or ("is forbidden: " in message and "User " not in message):
            return BadInput(f"The cluster refuses it: {message}", remedy="Change the workload, or ask who runs the cluster.")
        case 403:
            # Applying takes a right to create as well: the server knows which is missing.
            if lacking := _LACKING.search(message):
                action = action.replace(verb, lacking[1], 1)
            scope = f"in namespace {connection.namespace}" if kind.namespaced else "of the whole cluster"
            return NotAllowed(
                f"You may not {action} {scope}: {message}",
                remedy=f"Ask for the rights of {connection.role}: kubectl apply -f {connection.role}.",
            )
        case 404 if "namespaces" in message and "not found" in message:
            return NotFound(
                f"There is no namespace {connection.namespace} at {connection.server}.",
                remedy=f"kubectl create namespace {connection.namespace}, or take another with --namespace.",
            )
        case 404:
            return NotFound(f"To {action}: {message or 'not there'}", remedy="Is it installed in this cluster?")
        case 409:
            return Exists(message)
        case 400 | 413 | 415 | 422:
            return BadInput(f"The cluster refuses it: {message}", remedy=_MEND)
        case 500 if "failed to create typed patch object" in message:  # so it says that a field does not exist
            return BadInput(f"The cluster refuses it: {message}", remedy=_MEND)
    return TryLater(f"{connection.server} answered {status} to {action}: {message[:300]}")


def opened(kubeconfig: Path | None, context: str, namespace: str, manager: str) -> Connection:
    """By a file, or as kubectl finds it: KUBECONFIG, ~/.kube/config, or the account of the pod that we run in."""
    try:
        from lightkube import KubeConfig
        from lightkube.config import client_adapter
        from lightkube.core.exceptions import ConfigError
    except ImportError:
        raise MissingExtra("Running on Kubernetes", "kubernetes") from None
    try:
        config = _read(KubeConfig, ConfigError, kubeconfig)
        chosen = config.get(context or None)
        if chosen.user is None:
            raise BadInput(f"Context {chosen.context_name} names no user.", remedy="Add one, or take another --context.")
        http: Any = vars(client_adapter)["httpx"]  # whichever flavour it is made with
        params = client_adapter.ConnectionParams(timeout=http.Timeout(TIMEOUT_S))
        client = client_adapter.Client(chosen, params)
    except ConfigError as error:
        raise BadInput(f"{error}.", remedy="kubectl config get-contexts lists what there is.") from None
    except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        message = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise BadInput(
            f"{kubeconfig or 'The kubeconfig'} cannot be used: {message}.", remedy="Does `kubectl version` work with it?"
        ) from None
    server = str(chosen.cluster.server)
    return Connection(client=client, http=http, server=server, namespace=namespace or str(chosen.namespace), manager=manager)


def _read(reader: Any, trouble: type[Exception], path: Path | None) -> Any:
    """KUBECONFIG may name several files; the first that is there is taken."""
    paths = [Path(one) for one in os.environ.get("KUBECONFIG", "").split(os.pathsep) if one]
    candidates = [path] if path is not None else paths or [Path("~/.kube/config").expanduser()]
    for candidate in candidates:
        if candidate.is_file():
            import yaml

            try:
                return reader.from_file(str(candidate))
            except (yaml.YAMLError, UnicodeDecodeError) as error:
                message = str(error).splitlines()[0]
                raise BadInput(
                    f"{candidate} is no kubeconfig: {message}.", remedy="Does `kubectl version` work with it?"
                ) from None
    if path is None:
        try:
            return reader.from_service_account()
        except (trouble, KeyError):
            pass
    raise NotFound(
        f"There is no kubeconfig: {', '.join(map(str, candidates))} is not there.",
        remedy="Set KUBECONFIG, or write it with your cloud's command, such as aws eks update-kubeconfig --name CLUSTER.",
    )
