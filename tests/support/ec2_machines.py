"""Stand-ins for what moto does not have: machines that execute their user data, their metadata, their shutdown and their CLI.

`Hall` looks at moto's instances when it is asked to (`turn`): one that runs gets its user data executed for real, by `bash`,
in a folder and a session of its own; one that ended has its processes ended. A machine that calls its stand-in for `shutdown`
is ended in moto with the reason that EC2 gives. Nothing here shuts anything down: the stand-in writes a line into a file.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import psutil

from aws_stand_in import Aws
from patience import deadline

MARK = "CHIPWISE_ROOT"
REASONS = {
    "taken": ("Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination"),
    "by itself": ("Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown"),
}

SHUTDOWN = """#!/bin/sh
# A harmless stand-in for shutdown: it writes down what it was asked.
echo "$*" >> "$CHIPWISE_ROOT/shutdown"
"""

CLI = """#!/bin/sh
# A stand-in for the AWS CLI: the few calls that a machine makes, by curl; moto does not check the signature.
signed='Authorization: AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0'
what="$1 $2"
shift 2
[ "${1:-}" != --only-show-errors ] || shift
case $what in
  's3 cp')
    if [ "$1" = - ]; then
      file=$(mktemp "$CHIPWISE_ROOT/cli.XXXXXX")
      cat > "$file"
      curl -sf -m 20 -H "$signed" -o /dev/null -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$file" \
        "$STAND_IN_URL/${2#s3://}"
      code=$?
      rm -f "$file"
      exit "$code"
    fi
    exec curl -sf -m 20 -H "$signed" "$STAND_IN_URL/${1#s3://}"
    ;;
  's3 ls')
    path=${1#s3://}
    found=$(curl -sf -m 20 -G -H "$signed" -d list-type=2 -d delimiter=/ --data-urlencode "prefix=${path#*/}" \\
      "$STAND_IN_URL/${path%%/*}" | tr '<' '\\n' | awk '
        sub(/^Key>/, "") { sub(/.*\\//, ""); key = $0 }
        sub(/^Size>/, "") { printf "2026-11-15 00:00:00 %10d %s\\n", $0, key }
        /^CommonPrefixes>/ { inside = 1 }
        inside && sub(/^Prefix>/, "") { sub(/\\/$/, ""); sub(/.*\\//, ""); printf "%27s PRE %s/\\n", "", $0; inside = 0 }')
    [ -n "$found" ] || exit 1
    printf '%s\\n' "$found"
    ;;
  *) # secrets: a file for each
    while [ $# -gt 0 ]; do
      case $1 in --secret-id | --name) name=$2 ;; esac
      shift
    done
    exec cat "$STAND_IN_SECRETS/$(printf '%s' "$name" | tr / _)"
    ;;
esac
"""

DMESG = """#!/bin/sh
# A stand-in for dmesg: what a test writes of this machine, and never of the one that the tests run on.
cat "$CHIPWISE_ROOT/kernel" 2>/dev/null
"""
SMI = """#!/bin/sh
# A stand-in for nvidia-smi: one device that works.
echo "0, NVIDIA L4, 570.1, 80, 4000, 60.0, 55"
"""

DOCKER = """#!/bin/sh
# A stand-in for docker: it writes down what it was asked, has every image but those called missing, and runs nothing.
echo "$*" >> "$CHIPWISE_ROOT/docker"
case $* in pull*missing*) exit 1 ;; esac
"""
NOTHING = "#!/bin/sh\n# A stand-in that does nothing.\n"


@dataclass
class Metadata:
    """The metadata service for all machines: each finds its own under its id. IMDSv2: without a token nothing is told."""

    told: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: int = 0

    def __post_init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _metadata(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def interrupt(self, machine: str, in_s: float = 120.0) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + in_s))
        self.told[machine]["spot/instance-action"] = json.dumps({"action": "terminate", "time": at})

    def recommend(self, machine: str) -> None:
        self.told[machine]["events/recommendations/rebalance"] = json.dumps({"noticeTime": "2026-11-15T00:00:00Z"})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _metadata(state: Metadata) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self._give(200, "token" if self.headers.get("X-aws-ec2-metadata-token-ttl-seconds") else "")

        def do_GET(self) -> None:
            machine, _, path = self.path.lstrip("/").partition("/latest/meta-data/")
            if self.headers.get("X-aws-ec2-metadata-token") != "token":
                state.refused += 1
                self._give(401, "")
                return
            found = state.told.get(machine, {}).get(path)
            self._give(404 if found is None else 200, found or "")

        def _give(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Tests say what they need to say."""

    return Handler


def unpacked(data: bytes) -> str:
    """User data as a machine sees it. `data`: as EC2 keeps it."""
    return gzip.decompress(base64.b64decode(data)).decode()


@dataclass
class Hall:
    aws: Aws
    root: Path
    region: str
    every: str = "0.1"
    also: tuple[str, ...] = ()  # further regions
    secrets: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.metadata = Metadata()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.programs = self.root / "programs"
        self.programs.mkdir(parents=True)
        for name, text in {
            "stand-in-shutdown": SHUTDOWN,
            "aws": CLI,
            "dmesg": DMESG,
            "docker": DOCKER,
            "nvidia-smi": SMI,
            "systemctl": NOTHING,
            "shutdown": NOTHING,
        }.items():
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)
        (self.programs / "loadavg").write_text("0.00 1.00 0.00 1/1 1\n")  # something computes
        for name, value in self.secrets.items():
            (self.programs / name.replace("/", "_")).write_text(value)

    def folder(self, machine: str) -> Path:
        return self.root / machine

    def environment(self, machine: str) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        return kept | {
            "PATH": f"{self.programs}:{kept.get('PATH', '/usr/bin:/bin')}",
            MARK: str(self.folder(machine)),
            "CHIPWISE_METADATA": f"{self.metadata.url}/{machine}",
            "CHIPWISE_SHUTDOWN": str(self.programs / "stand-in-shutdown"),
            "CHIPWISE_EVERY": self.every,
            "CHIPWISE_NOTICE_S": "0",
            "CHIPWISE_ASK_S": "0",
            "CHIPWISE_UPLOAD_S": "1",
            "CHIPWISE_LOADAVG": str(self.programs / "loadavg"),
            "CHIPWISE_DMESG": str(self.programs / "dmesg"),
            "STAND_IN_URL": self.aws.moto,
            "STAND_IN_SECRETS": str(self.programs),
        }

    def boot(self, machine: str, address: str, text: str) -> subprocess.Popen[bytes]:
        """Executes user data, as a machine does when it comes up."""
        at = self.folder(machine)
        at.mkdir()
        (at / "user-data").write_text(text)
        self.metadata.told[machine] = {"instance-id": machine, "local-ipv4": address}
        with (at / "console").open("wb") as console:
            self.processes[machine] = subprocess.Popen(
                ["bash", str(at / "user-data")],
                env=self.environment(machine),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        return self.processes[machine]

    def instances(self) -> list[Any]:
        from moto.backends import get_backend

        backends: list[Any] = [get_backend("ec2")["123456789012"][one] for one in (self.region, *self.also)]
        return [one for each in backends for group in each.reservations.values() for one in group.instances]

    def turn(self) -> None:
        for one in self.instances():
            if one.state == "running" and one.id not in self.processes:
                self.boot(one.id, one.private_ip, unpacked(one.user_data.as_bytes()))
            elif one.state == "running" and self.shut_down(one.id):
                self.lose(one.id, "by itself")
            if one.state == "terminated" and one.id in self.processes:
                self.cut(one.id)

    def shutdowns(self, machine: str) -> list[str]:
        path = self.folder(machine) / "shutdown"
        return path.read_text().splitlines() if path.exists() else []

    def shut_down(self, machine: str) -> bool:
        return "-h now" in self.shutdowns(machine)

    def lose(self, machine: str, how: str) -> None:
        from moto.backends import get_backend
        from moto.ec2.models.instances import StateReason

        [region] = [one.ec2_backend.region_name for one in self.instances() if one.id == machine]
        backend: Any = get_backend("ec2")["123456789012"][region]
        code, message = REASONS[how]
        with mock.patch("moto.ec2.models.instances.StateReason", return_value=StateReason(message, code)):
            backend.terminate_instances([machine])
        self.cut(machine)

    def of(self, machine: str) -> list[psutil.Process]:
        """What runs on it: every process that has its folder in its environment."""
        found = []
        for one in psutil.process_iter():
            with suppress(psutil.Error):
                if one.environ().get(MARK) == str(self.folder(machine)) and one.status() != psutil.STATUS_ZOMBIE:
                    found.append(one)
        return found

    def cut(self, machine: str) -> None:
        """The machine is off: processes that this hall started on it, by their ids."""
        process = self.processes.get(machine)
        if process is None:
            return
        end = deadline(10)
        while (left := self.of(machine)) and time.monotonic() < end:
            for one in left:
                with suppress(psutil.Error):
                    one.send_signal(signal.SIGKILL)
            time.sleep(0.01)
        process.wait(timeout=10)

    def console(self, machine: str) -> str:
        at = self.folder(machine)
        return "\n".join(path.read_text() for path in (at / "console", at / "log") if path.exists())

    def close(self) -> None:
        for machine in self.processes:
            self.cut(machine)
        self.metadata.close()
