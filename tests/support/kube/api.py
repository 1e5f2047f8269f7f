"""The Kubernetes API by plain REST: server-side apply with strict field validation, and the server's own words back."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

Manifest = Mapping[str, Any]
MANAGER = "chipwise-test"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # definitions are long: the plain one takes seconds
SECONDS = 120.0  # a server beside others on a slow machine; only a fault takes as long
DISCOVERY_SECONDS = 5.0  # a kind whose definition was just accepted is served within about a second


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said to one request."""

    status: int
    body: Mapping[str, Any]

    @property
    def accepted(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        """Why it was refused, in the server's words; empty where it was not."""
        return "" if self.accepted else str(self.body.get("message", self.body))

    def must(self) -> Mapping[str, Any]:
        assert self.accepted, f"the server refused ({self.status}): {self.message}"
        return self.body


def documents(manifests: str | Iterable[Manifest]) -> list[tuple[Manifest, bytes]]:
    """Each manifest with the bytes to send: YAML text goes out as it was written, so that the server sees a key given twice."""
    if isinstance(manifests, str):
        # A line that starts with --- always separates: inside a block of text it would be indented.
        texts = re.split(r"^---.*$", manifests, flags=re.MULTILINE)
        read = [(yaml.load(text, Loader=LOADER), text.encode()) for text in texts]
        return [(manifest, text) for manifest, text in read if manifest]
    return [(manifest, json.dumps(manifest).encode()) for manifest in manifests]


class Api:
    """One person's view of the API: the server, and who asks. Not to be shared between threads."""

    def __init__(self, server: str, authority: Path, token: str) -> None:
        self._client = httpx.Client(
            base_url=server,
            verify=ssl.create_default_context(cafile=str(authority)),
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=SECONDS,
            trust_env=False,
        )
        self._served: dict[str, dict[str, tuple[str, bool]]] = {}

    def close(self) -> None:
        self._client.close()

    def call(
        self,
        method: str,
        path: str,
        body: Manifest | bytes | None = None,
        params: Mapping[str, str] | None = None,
        form: str = "application/json",
    ) -> Answer:
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            reply = self._client.request(method, path, content=content, params=params, headers={"Content-Type": form})
        except httpx.TransportError as problem:
            raise OSError(f"{method} {path}: {problem!r}") from problem
        try:
            said = reply.json()
        except json.JSONDecodeError:
            said = {"message": reply.text}
        return Answer(reply.status_code, said)

    def path(self, version: str, kind: str, name: str | None = None, namespace: str | None = None) -> str:
        plural, namespaced = self._resource(version, kind)
        parts = [f"/api/{version}" if "/" not in version else f"/apis/{version}"]
        if namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(plural)
        if name:
            parts.append(name)
        return "/".join(parts)

    def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        limit = time.monotonic() + DISCOVERY_SECONDS
        while kind not in self._served.get(version, {}):
            answer = self.call("GET", f"/api/{version}" if "/" not in version else f"/apis/{version}")
            if answer.accepted:
                self._served[version] = {
                    str(one["kind"]): (str(one["name"]), bool(one["namespaced"]))
                    for one in answer.body["resources"]
                    if "/" not in one["name"]
                }
            elif answer.status != 404:
                answer.must()
            if kind not in self._served.get(version, {}):
                assert time.monotonic() < limit, f"the server knows no {kind} of {version}"
                time.sleep(0.1)
        return self._served[version][kind]

    def apply(self, manifests: str | Iterable[Manifest], namespace: str = "default", *, dry_run: bool = False) -> list[Answer]:
        """Server-side apply of each manifest in order; an unknown, misspelt or repeated field is refused."""
        return [self._apply(manifest, text, namespace, dry_run) for manifest, text in documents(manifests)]

    def _apply(self, manifest: Manifest, text: bytes, namespace: str, dry_run: bool) -> Answer:
        meta = manifest["metadata"]
        path = self.path(manifest["apiVersion"], manifest["kind"], meta["name"], meta.get("namespace", namespace))
        params = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"} | (
            {"dryRun": "All"} if dry_run else {}
        )
        return self.call("PATCH", path, text, params, "application/apply-patch+yaml")

    def must_apply(self, manifests: str | Iterable[Manifest], namespace: str = "default") -> list[Mapping[str, Any]]:
        return [answer.must() for answer in self.apply(manifests, namespace)]

    def get(self, version: str, kind: str, name: str, namespace: str = "default") -> Mapping[str, Any] | None:
        answer = self.call("GET", self.path(version, kind, name, namespace))
        return None if answer.status == 404 else answer.must()

    def list(
        self, version: str, kind: str, namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> list[Mapping[str, Any]]:
        """Those of one namespace, or of all."""
        selected = {"labelSelector": labels, "fieldSelector": fields}
        answer = self.call("GET", self.path(version, kind, None, namespace), params={k: v for k, v in selected.items() if v})
        return list(answer.must()["items"])

    def merge(
        self, version: str, kind: str, name: str, change: Manifest, namespace: str = "default", *, status: bool = False
    ) -> Answer:
        """Changes some fields of an object, or of its status, which only the part of the cluster that runs it writes."""
        path = self.path(version, kind, name, namespace) + ("/status" if status else "")
        form = "application/merge-patch+json"
        return self.call("PATCH", path, change, {"fieldManager": MANAGER, "fieldValidation": "Strict"}, form)

    def empty(self, version: str, kind: str, namespace: str) -> None:
        """Deletes all of a kind in a namespace, at once."""
        options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        self.call("DELETE", self.path(version, kind, None, namespace), options).must()

    def delete(self, version: str, kind: str, name: str, namespace: str = "default", *, at_once: bool = False) -> bool:
        """Whether there was one."""
        options = {"propagationPolicy": "Background", **({"gracePeriodSeconds": 0} if at_once else {})}
        answer = self.call("DELETE", self.path(version, kind, name, namespace), options)
        if answer.status == 404:
            return False
        answer.must()
        return True
