"""What is kept in S3 of each attempt: small objects whose names say most. S3 shows a write to all who look afterwards, which
EC2 does not; so the word of S3 decides what was ordered, and what is over.

    live/JOB/N/order            the controller wants machines; written before they are asked for
    live/JOB/N/fleet            which ones it got
    live/JOB/N/refused          there were none to be had: the attempt is over
    live/JOB/N/leave            save and go
    live/JOB/N/end              now, should EC2 not be heard
    live/JOB/N/notice-MACHINE   AWS takes a machine back; from the machine or from the queue of events
    live/JOB/N/here-MACHINE, begun-RANK, progress, ended-RANK-CODE, broken-MACHINE      what machines tell
    live/JOB/N/health-RANK, watched-RANK        lines of its kernel log about devices; what devices did while it ran
    controller                  when somebody led this place last
    over/JOB/N                  ended or cleared: nothing of it may start any more
    logs/JOB/N/rank-RANK.log, checkpoints/JOB/                          what outlives it
    code/DIGEST.tar.gz          folders in which commands run, as they were when a job was submitted
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chipwise.adapters.state_files import STATUS_BYTES
from chipwise.runner.writing import LARGEST_COUNT, LARGEST_NUMBER

from .cloud import Cloud, Key
from .errors import of_code, translated

ORDERS = ("order", "fleet", "refused", "leave", "end")  # marks of the controller; all others are a machine's
_MISSING = ("NoSuchKey", "404", "NotFound", "InvalidRange")

Marks = dict[str, str]
"""Names of one attempt's objects under live/, with what tells one version from another."""


def was_ordered(marks: Marks) -> bool:
    """Whether the controller wrote of it: machines cannot write these names."""
    return not marks.keys().isdisjoint(ORDERS)


@dataclass(slots=True)
class AttemptStore:
    cloud: Cloud
    _read: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)  # by key and version

    @property
    def _bucket(self) -> str:
        return self.cloud.config.bucket

    def _key(self, *parts: object) -> str:
        return self.cloud.config.prefix + "/".join(map(str, parts))

    def marks(self, key: Key | None = None) -> dict[Key, Marks]:
        """Of all attempts that are not cleared, or of one."""
        begin = self._key("live", "") if key is None else self._key("live", *key, "")
        attempts: dict[Key, Marks] = {}
        for name, version in self._listed(begin).items():
            parts = name.removeprefix(self._key("live", "")).split("/")
            if len(parts) == 3 and parts[1].isdecimal():
                attempts.setdefault((parts[0], int(parts[1])), {})[parts[2]] = version
        seen = {(self._key("live", *one, mark), version) for one, marks in attempts.items() for mark, version in marks.items()}
        if key is None:  # what is gone is not asked for again
            self._read = {known: value for known, value in self._read.items() if known in seen}
        return attempts

    def newest(self, job: str) -> int:
        """The highest number of an attempt that was ordered or ended, 0 where none was. What machines wrote does not count:
        each may write of any job."""
        live = [name for name in self._listed(self._key("live", job, "")) if name.rpartition("/")[2] in ORDERS]
        names = [*live, *self._listed(self._key("over", job, ""))]
        numbers = [name.removeprefix(self.cloud.config.prefix).split("/")[2] for name in names]
        return max((int(one) for one in numbers if one.isdecimal()), default=0)

    def is_over(self, key: Key) -> bool:
        return self._key("over", *key) in self._listed(self._key("over", *key))

    def lead(self, now: float) -> None:
        """Machines take a place for deserted where this has not changed for long."""
        self._put(self._key("controller"), f"{now:.0f}\n".encode())

    def mark_over(self, key: Key) -> None:
        self._put(self._key("over", *key), b"over\n")

    def put(self, key: Key, mark: str, **content: object) -> None:
        self._put(self._key("live", *key, mark), json.dumps(content).encode())

    def read(self, key: Key, mark: str, version: str) -> Mapping[str, Any]:
        """What a mark says; each version is fetched once. What is no JSON object says nothing."""
        name = self._key("live", *key, mark)
        if (name, version) not in self._read:
            text = self._get(name, max_bytes=None if mark in ORDERS else STATUS_BYTES)
            value = _parsed(text) if text is not None else {}
            self._read[name, version] = value if isinstance(value, dict) else {"value": value}
        return self._read[name, version]

    def clear(self, key: Key) -> None:
        names = sorted(self._listed(self._key("live", *key, "")))
        for start in range(0, len(names), 1000):
            with translated("s3:DeleteObject"):
                answer = self.cloud.client("s3").delete_objects(
                    Bucket=self._bucket,
                    Delete={"Objects": [{"Key": one} for one in names[start : start + 1000]], "Quiet": True},
                )
            for error in answer.get("Errors", ())[:1]:  # an answer that is otherwise fine
                raise of_code(str(error.get("Code", "")), str(error.get("Message", "")), "s3:DeleteObject")

    def bring(self, name: str, body: bytes) -> str:
        """Sent unless it is there, since its name says what is in it; where it is then."""
        if self._key(name) not in self._listed(self._key(name)):
            self._put(self._key(name), body)
        return f"s3://{self._bucket}/{self._key(name)}"

    def log(self, key: Key, rank: int, since: int = 0) -> bytes:
        """What was uploaded of it, from a byte on."""
        return self._get(self._key("logs", *key, f"rank-{rank}.log"), since) or b""

    def _put(self, name: str, body: bytes) -> None:
        with translated("s3:PutObject"):
            self.cloud.client("s3").put_object(Bucket=self._bucket, Key=name, Body=body)

    def _get(self, name: str, since: int = 0, max_bytes: int | None = None) -> bytes | None:
        part = {"Range": f"bytes={since}-"} if since else {}
        with translated("s3:GetObject", _MISSING):
            body: bytes = self.cloud.client("s3").get_object(Bucket=self._bucket, Key=name, **part)["Body"].read(max_bytes)
            return body
        return None

    def _listed(self, begin: str) -> dict[str, str]:
        with translated("s3:ListBucket"):
            pages = self.cloud.client("s3").get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=begin)
            return {one["Key"]: one["ETag"] for page in pages for one in page.get("Contents", ())}


def _parsed(text: bytes) -> Any:
    """Whoever is root on a machine writes what it likes: a number that no record takes is none."""
    try:
        return json.loads(text, parse_int=_count, parse_float=_number, parse_constant=lambda text: None)
    except (ValueError, RecursionError):
        return {}


def _count(text: str) -> int | None:
    value = int(text) if len(text) < 20 else None  # of more digits Python reads none, or takes long
    return value if value is not None and abs(value) <= LARGEST_COUNT else None


def _number(text: str) -> float | None:
    value = float(text)
    return value if -LARGEST_NUMBER <= value <= LARGEST_NUMBER else None
