"""AWS for tests: a running moto server, and before it a small server that refuses what the test says, and answers in the
documented wire format what moto does not have (placement groups, the public SSM parameters of machine images)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

Refusal = Callable[[str, Mapping[str, str]], str | None]
"""(action, parameters) to the code of an error, or None."""
_HOP_BY_HOP = ("host", "content-length", "expect", "connection", "transfer-encoding")
AMI = "ami-12c6146b"  # one of moto's own


@dataclass
class Aws:
    url: str  # what scripts are told
    moto: str
    image: str = AMI
    refuse: Refusal = lambda action, asked: None
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    placement_groups: set[str] = field(default_factory=set)
    pod_identities: dict[str, dict[str, object]] = field(default_factory=dict)  # associations of EKS, by id

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_") and "proxy" not in key.lower()}
        return kept | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_MAX_ATTEMPTS": "1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def client(self, service: str, region: str) -> Any:
        import boto3

        anything: Any = boto3.client  # its types list every service there is
        return anything(service, region, endpoint_url=self.moto, aws_access_key_id="testing", aws_secret_access_key="testing")

    def run(self, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable] if script.suffix == ".py" else ["bash"]
        return subprocess.run(
            [*program, str(script), *words], capture_output=True, text=True, timeout=120, env=self.environment(), check=False
        )

    def reset(self) -> None:
        _post(f"{self.moto}/moto-api/reset", {})
        _post(f"{self.moto}/moto-api/config", {"batch": {"use_docker": False}, "lambda": {"use_docker": False}})
        self.refuse = lambda action, asked: None
        self.asked.clear()
        self.placement_groups.clear()
        self.pod_identities.clear()


def _post(url: str, body: object) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST")
    urllib.request.urlopen(request, timeout=60).read()


@contextmanager
def started() -> Iterator[Aws]:
    from moto.server import ThreadedMotoServer

    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    aws = Aws("", f"http://{host}:{port}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(aws))
    aws.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        aws.reset()
        yield aws
    finally:
        server.shutdown()
        server.server_close()
        moto.stop()


def _handler(aws: Aws) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            action, asked = _action(self.headers.get("X-Amz-Target", ""), body)
            aws.asked.append((action, asked))
            code = aws.refuse(action, asked)
            if code is not None:
                self._give(*_error(code, json_style="X-Amz-Target" in self.headers))
                return
            own = _pod_identity(aws, self.command, self.path, body) or _own(aws, action, asked)
            self._give(*own) if own is not None else self._forward(body)

        def _forward(self, body: bytes) -> None:
            sent = {key: value for key, value in self.headers.items() if key.lower() not in _HOP_BY_HOP}
            sent.setdefault("Content-Type", "application/octet-stream")  # or urllib calls it a form, and moto empties it
            # moto reads the service from the signature; a place to listen is not part of what it checks.
            request = urllib.request.Request(aws.moto + self.path, body or None, sent, method=self.command)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self._give(answer.status, answer.read(), answer.headers.get("Content-Type", "text/xml"))
            except urllib.error.HTTPError as error:
                self._give(error.code, error.read(), error.headers.get("Content-Type", "text/xml"))

        def _give(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Tests say what they need to say."""

    return Handler


def _action(target: str, body: bytes) -> tuple[str, dict[str, str]]:
    if target:
        return target.rpartition(".")[2], {key: str(value) for key, value in json.loads(body or b"{}").items()}
    if body.startswith(b"{"):
        return "", {key: str(value) for key, value in json.loads(body).items()}
    try:
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
    except UnicodeDecodeError:
        form = {}
    return form.get("Action", ""), form


def _error(code: str, json_style: bool) -> tuple[int, bytes, str]:
    if json_style:
        return 400, json.dumps({"__type": code, "message": "refused by the test"}).encode(), "application/x-amz-json-1.1"
    text = f"<Response><Errors><Error><Code>{code}</Code><Message>refused by the test</Message></Error></Errors></Response>"
    return 400, text.encode(), "text/xml"


def _pod_identity(aws: Aws, method: str, path: str, body: bytes) -> tuple[int, bytes, str] | None:
    """Associations of EKS, in the wire format of its reference: which moto does not have."""
    match = re.fullmatch(r"/clusters/([^/]+)/pod-identity-associations(?:/([^/?]+))?", path)
    if match is None:
        return None
    cluster, key = match.groups()
    if method == "POST" and key is None:
        asked = json.loads(body)
        key = f"a-{len(aws.pod_identities):017d}"
        arn = f"arn:aws:eks:us-east-1:123456789012:podidentityassociation/{cluster}/{key}"
        stated = {name: asked.get(name) for name in ("namespace", "serviceAccount", "roleArn", "tags")}
        dates = {"createdAt": 1.0, "modifiedAt": 1.0}
        aws.pod_identities[key] = stated | dates | {"clusterName": cluster, "associationId": key, "associationArn": arn}
    association = aws.pod_identities.get(key or "")
    if association is None:
        return 404, json.dumps({"__type": "ResourceNotFoundException", "message": "not there"}).encode(), "application/json"
    if method == "DELETE":
        del aws.pod_identities[str(key)]
    return 200, json.dumps({"association": association}).encode(), "application/json"


def _own(aws: Aws, action: str, asked: Mapping[str, str]) -> tuple[int, bytes, str] | None:
    space = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'
    if action == "GetParameter" and asked.get("Name", "").startswith("/aws/service/"):
        found = {"Parameter": {"Name": asked["Name"], "Type": "String", "Value": aws.image, "Version": 1}}
        return 200, json.dumps(found).encode(), "application/x-amz-json-1.1"
    name = asked.get("GroupName", "")
    if action == "CreatePlacementGroup":
        if name in aws.placement_groups:
            return _error("InvalidPlacementGroup.Duplicate", json_style=False)
        aws.placement_groups.add(name)
        body = f"<CreatePlacementGroupResponse {space}><return>true</return></CreatePlacementGroupResponse>"
        return 200, body.encode(), "text/xml"
    if action == "DescribePlacementGroups":
        wanted = asked.get("GroupName.1", "")
        if wanted and wanted not in aws.placement_groups:
            return _error("InvalidPlacementGroup.Unknown", json_style=False)
        items = "".join(
            f"<item><groupName>{one}</groupName><groupId>pg-{index:08d}</groupId><strategy>cluster</strategy>"
            "<state>available</state></item>"
            for index, one in enumerate(sorted(aws.placement_groups))
            if wanted in ("", one)
        )
        body = f"<DescribePlacementGroupsResponse {space}><placementGroupSet>{items}</placementGroupSet>"
        return 200, f"{body}</DescribePlacementGroupsResponse>".encode(), "text/xml"
    if action == "DeletePlacementGroup":
        if name not in aws.placement_groups:
            return _error("InvalidPlacementGroup.Unknown", json_style=False)
        aws.placement_groups.remove(name)
        body = f"<DeletePlacementGroupResponse {space}><return>true</return></DeletePlacementGroupResponse>"
        return 200, body.encode(), "text/xml"
    return None
