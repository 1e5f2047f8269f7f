"""A stand-in of the endpoint picker that holds every request for a while, and of the replica behind it. Needs grpcio and the
messages of Envoy (xds-protos):

python holding_picker.py SECONDS PICKER_PORT REPLICA_PORT
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Replica(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None: ...


def answers(messages: Any, requests: Iterator[Any], seconds: float) -> Iterator[Any]:
    """As the protocol of the Inference Extension has it: nothing is said before the whole body is there."""
    body = b""
    for request in requests:
        kind = request.WhichOneof("request")
        if kind == "request_body":
            body += request.request_body.body
            if request.request_body.end_of_stream:
                time.sleep(seconds)
                yield messages.ProcessingResponse(request_headers=messages.HeadersResponse())
                yield streamed(messages, "request_body", body, True)
        elif kind == "response_headers":
            yield messages.ProcessingResponse(response_headers=messages.HeadersResponse())
        elif kind == "response_body":
            yield streamed(messages, "response_body", request.response_body.body, request.response_body.end_of_stream)


def streamed(messages: Any, kind: str, body: bytes, ends: bool) -> Any:
    response = messages.ProcessingResponse()
    change = getattr(response, kind).response.body_mutation.streamed_response
    change.body, change.end_of_stream = body, ends
    return response


def main(seconds: float, picker_port: int, replica_port: int) -> None:
    grpc: Any = importlib.import_module("grpc")
    messages: Any = importlib.import_module("envoy.service.ext_proc.v3.external_processor_pb2")
    service: Any = importlib.import_module("envoy.service.ext_proc.v3.external_processor_pb2_grpc")

    class Picker(service.ExternalProcessorServicer):  # type: ignore[misc]
        def Process(self, requests: Iterator[Any], _: object) -> Iterator[Any]:  # noqa: N802 (Envoy's name)
            yield from answers(messages, requests, seconds)

    server = grpc.server(futures.ThreadPoolExecutor(4))
    service.add_ExternalProcessorServicer_to_server(Picker(), server)
    server.add_insecure_port(f"127.0.0.1:{picker_port}")
    server.start()
    print("ready", flush=True)
    ThreadingHTTPServer(("127.0.0.1", replica_port), Replica).serve_forever()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
