"""The small programs that stand between an event and the workload's command: `handler.py` in the function's image."""

LAMBDA = '''
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """One run of the command for each object that arrived. What fails goes back to the queue, and after three times aside."""
    failed = []
    for record in event.get("Records", [{}]):
        try:
            for url in objects(record):
                subprocess.run(COMMAND, check=True, env={**os.environ, "OBJECT_URL": url})
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"failed: {error}")
            failed.append({"itemIdentifier": record.get("messageId", "")})
    return {"batchItemFailures": failed}


def objects(record: dict[str, Any]) -> list[str]:
    """Addresses of the objects that a message tells of; an empty one where a run was asked for without any."""
    if "body" not in record:
        return [""]
    message = json.loads(record["body"])
    # S3 sends one test message when the notification is set up.
    told = [one["s3"] for one in message.get("Records", [])]
    return [f"s3://{one['bucket']['name']}/{unquote_plus(one['object']['key'])}" for one in told]
'''

LAMBDA_IMPORTS = """
from __future__ import annotations

import json
import os
import subprocess
from typing import Any
from urllib.parse import unquote_plus
"""

PUSHED = '''
class Handler(BaseHTTPRequestHandler):
    """Pub/Sub pushes one message for each object that arrived. Any answer but 2xx sends it again."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        about = body.get("message", {}).get("attributes", {})
        url = f"gs://{about.get('bucketId', '')}/{about.get('objectId', '')}"
        done = subprocess.run(COMMAND, env={**os.environ, "OBJECT_URL": url}, check=False)
        self.send_response(204 if done.returncode == 0 else 500)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    HTTPServer(("", int(os.environ.get("PORT", "8080"))), Handler).serve_forever()
'''

PUSHED_IMPORTS = """
from __future__ import annotations

import json
import os
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
"""
