"""CPU per streamed event and per plain request of our gateway, and of other routers in the same run against the same server.

python benchmarks/run.py gateway

One dummy token server, 64 streams of 100 tokens at 10 ms. CPU seconds are those of the router's processes alone, so neighbours
count little; the delay that it adds (p99 through it less p99 without it) does suffer from them. Others are taken from the
environments in CHIPWISE_ROUTERS, folders separated by colons with a `bin/` each, and from PATH; those that are missing, or do
not start in time, are named.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection, socket

import psutil

from figure import ROOT, Figure

PARTS = [sys.executable, str(ROOT / "benchmarks" / "gateway_parts.py")]
SERVER = [sys.executable, str(ROOT / "tests" / "support" / "token_server.py"), "--stamps"]
STREAMS, ROUNDS, TOKENS = 64, 5, 100
REQUESTS, AT_ONCE = 10_000, 16
START_S = 150.0  # LiteLLM takes most of it on a busy machine

NGINX = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{ access_log {folder}/access.log; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream up {{ server 127.0.0.1:{server}; keepalive 128; }}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://up; proxy_http_version 1.1;
    proxy_set_header Connection ""; proxy_buffering off; keepalive_requests 1000000; }} }} }}"""
LITELLM = """model_list:
  - model_name: tiny
    litellm_params: {{model: openai/tiny, api_base: "http://127.0.0.1:{server}/v1", api_key: none}}"""


def figures() -> Iterator[Figure]:
    """And how our CPU compares with each other's: the machine's noise is in both."""
    values: dict[str, float] = {}
    for figure in _absolute():
        values[figure.name] = figure.value
        yield figure
    for name in ("bare", "nginx", "vllm-router", "sglang-router", "smg", "litellm"):
        for unit in ("event", "request"):
            theirs = values.get(f"gateway_{name}_cpu_per_{unit}")
            if theirs:
                goal = {"max": 1.0} if name == "vllm-router" else {}
                ratio = values[f"gateway_ours_cpu_per_{unit}"] / theirs
                yield Figure(f"gateway_ours_over_{name}_cpu_per_{unit}", ratio, "times", goal)


def _absolute() -> Iterator[Figure]:
    with process([*SERVER, "--tokens", str(TOKENS), "--interval", "0.01"]) as (_, server):
        direct_events, direct_requests = _client("streams", server), _client("requests", server)
        with process([*PARTS, "gateway", str(server)]) as (started, port):
            yield from _measured("ours", started, port, direct_events, direct_requests, is_ours=True)
        with process([*PARTS, "bare", str(server)]) as (started, port):
            yield from _measured("bare", started, port, direct_events, direct_requests)
        for name, command in _others(server):
            with router(name, command, server) as (started, port):
                if started is None:
                    print(f"gateway: {name} is not here or did not start, so it is not compared", file=sys.stderr)
                else:
                    yield from _measured(name, started, port, direct_events, direct_requests)


def _measured(
    name: str,
    started: subprocess.Popen[str],
    port: int,
    direct_events: Mapping[str, float],
    direct_requests: Mapping[str, float],
    is_ours: bool = False,
) -> Iterator[Figure]:
    _client("requests", port, requests=500)  # warm
    before = cpu(started)
    events = _client("streams", port)
    between = cpu(started)
    requests = _client("requests", port)
    after = cpu(started)
    if events["events"] < STREAMS * ROUNDS * TOKENS or requests["events"] < REQUESTS // AT_ONCE * AT_ONCE:
        print(f"gateway: {name} lost answers: {events}, {requests}", file=sys.stderr)
    per_event = 1e6 * (between - before) / max(1.0, events["events"])
    per_request = 1e6 * (after - between) / max(1.0, requests["events"])
    yield Figure(f"gateway_{name}_cpu_per_event", per_event, "us", {"max": 18.0} if is_ours else {})
    yield Figure(f"gateway_{name}_cpu_per_request", per_request, "us", {"max": 45.0} if is_ours else {})
    added = 1e3 * (events["p99"] - direct_events["p99"])
    yield Figure(f"gateway_{name}_event_p50_added", 1e3 * (events["p50"] - direct_events["p50"]), "ms", {})
    yield Figure(f"gateway_{name}_event_p99_added", added, "ms", {"max": 1.0} if is_ours else {})
    yield Figure(f"gateway_{name}_request_p99_added", 1e3 * (requests["p99"] - direct_requests["p99"]), "ms", {})
    yield Figure(f"gateway_{name}_memory", memory(started) / 1e6, "MB", {"max": 80.0} if is_ours else {})


def _others(server: int) -> Iterator[tuple[str, Sequence[str]]]:
    url = f"http://127.0.0.1:{server}"
    yield "nginx", ["nginx", "-c", "{folder}/nginx.conf", "-p", "{folder}"]
    plain = ["--host", "127.0.0.1", "--port", "{port}", "--worker-urls", url, "--policy", "round_robin"]
    yield "vllm-router", ["vllm-router", *plain]
    yield "sglang-router", ["python", "-m", "sglang_router.launch_router", *plain]
    yield "smg", ["smg", "launch", *plain]
    yield "litellm", ["litellm", "--config", "{folder}/litellm.yaml", "--host", "127.0.0.1", "--port", "{port}"]


def _found(program: str, package: str) -> str | None:
    """A program in one of the environments; of `python`, that which has the package."""
    for folder in filter(None, os.environ.get("CHIPWISE_ROUTERS", "").split(":")):
        path = Path(folder) / "bin" / program
        if path.exists() and (program != "python" or list(Path(folder).glob(f"lib/python*/site-packages/{package}"))):
            return str(path)
    return None if program == "python" else shutil.which(program)


@contextmanager
def router(name: str, command: Sequence[str], server: int) -> Iterator[tuple[subprocess.Popen[str] | None, int]]:
    program = _found(command[0], "sglang_router")
    if program is None:
        yield None, 0
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "nginx.conf").write_text(NGINX.format(folder=folder, server=server, port=port))
        (Path(folder) / "litellm.yaml").write_text(LITELLM.format(server=server))
        filled = [program, *(word.format(folder=folder, port=port) for word in command[1:])]
        with (Path(folder) / "log").open("w+") as log:
            started = subprocess.Popen(filled, stdout=log, stderr=log, text=True, cwd=folder, start_new_session=True)
            try:
                yield (started if _answers(port) else None), port
            finally:
                stop(started)


def _answers(port: int) -> bool:
    """Whether a real request is answered: some listen before they know their workers."""
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b'content-length: 64\r\n\r\n{"model":"tiny","messages":[{"role":"user","content":"a"}]}     '
    )
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            with create_connection(("127.0.0.1", port), 5.0) as connection:
                connection.sendall(request)
                if connection.recv(64).startswith(b"HTTP/1.1 200"):
                    return True
        except OSError:
            pass
        time.sleep(0.5)
    return False


@contextmanager
def process(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """One of ours, and the port that it prints."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        assert started.stdout is not None
        yield started, int(started.stdout.readline())
    finally:
        stop(started)


def stop(started: subprocess.Popen[str]) -> None:
    for member in psutil.Process(started.pid).children(recursive=True):
        member.kill()
    started.kill()
    started.wait()


def _client(part: str, port: int, requests: int = REQUESTS) -> dict[str, float]:
    numbers = [str(STREAMS), str(ROUNDS)] if part == "streams" else [str(requests), str(AT_ONCE)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    command = [*PARTS, part, str(port), *numbers]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=300).stdout
    result: dict[str, float] = json.loads(printed)
    return result


def _all(started: subprocess.Popen[str]) -> list[psutil.Process]:
    main = psutil.Process(started.pid)
    return [main, *main.children(recursive=True)]


def cpu(started: subprocess.Popen[str]) -> float:
    return sum(times.user + times.system for times in (member.cpu_times() for member in _all(started)))


def memory(started: subprocess.Popen[str]) -> float:
    return float(sum(member.memory_info().rss for member in _all(started)))


def free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
