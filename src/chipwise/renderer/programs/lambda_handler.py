#!/usr/bin/env python3
"""Runs the program of the workload for each object that arrives."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
COMMAND: list[str] = SETTINGS["COMMAND"]  # it finds the object's address in OBJECT_URL


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
    references = [one["s3"] for one in message.get("Records", [])]
    return [f"s3://{one['bucket']['name']}/{unquote_plus(one['object']['key'])}" for one in references]
