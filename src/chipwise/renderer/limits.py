"""Sizes that services refuse: one value for each service, asked at the place where a target hands something to it.

A plan says nothing about the length of a command or the number of settings, so a target learns here, and not from the service
an hour later, that they do not fit. Each method gives back what it was given, or raises with the numbers and a way out.
Sources: the services' own descriptions of their interfaces and their pages of quotas, as of 2026.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.quoting import one_line
from chipwise.renderer.yaml_text import Noted

Kind = TypeVar("Kind")
# A document of a file, or a file that has one only: the store of a Kubernetes cluster takes no larger object.
MOST_DOCUMENT_BYTES = 1_048_576
MOST_BYTES = 16 * MOST_DOCUMENT_BYTES  # of all files of a target together: more is not read, nor reviewed
MOST_PODS = 2**31 - 1  # as many as a number of Kubernetes counts
_SMALLER = "Render one stage of a pipeline at a time with --stage, and put long commands, settings and texts into files"
_FILE = "Put the settings into a file that the program reads"
_SCRIPT = "Put the command into a script inside the image, and long settings into a file"


@dataclass(frozen=True, slots=True)
class Service:
    """None: the service says nothing of it."""

    name: str  # as a sentence begins with it
    instead: str  # targets that take more
    most_settings: int | None = None
    longest_name: int | None = None
    longest_value: int | None = None
    all_settings: int | None = None  # bytes of all of them, as JSON
    names: str = ""  # what the name of a setting looks like
    total_bytes: int | None = None  # bytes of everything that it is told, as JSON or as a script
    packed: bool = False  # it is compressed before it is counted

    def settings(self, values: Mapping[str, str]) -> dict[str, str]:
        count, size = len(values), _json_bytes(dict(values))
        if self.most_settings is not None and count > self.most_settings:
            raise self._refused(f"takes {self.most_settings} settings; this workload has {count:,}", _FILE)
        for key, value in values.items():
            if self.names and not re.fullmatch(self.names, key):
                raise self._refused(f"takes no setting of the name {one_line(key)}", "Call it something else in program.env")
            for noun, length, limit in (("name", len(key), self.longest_name), ("value", len(value), self.longest_value)):
                if limit is not None and length > limit:
                    message = f"takes {noun}s of settings of {limit:,} characters; that of {one_line(key)[:40]} has {length:,}"
                    raise self._refused(message, _FILE)
        if self.all_settings is not None and size > self.all_settings:
            raise self._refused(f"takes {self.all_settings:,} bytes of settings; this workload has {size:,}", _FILE)
        return dict(values)

    def document(self, body: Kind) -> Kind:
        """What is sent to it as JSON; comments do not count."""
        self._measure(_json_bytes(body))
        return body

    def script(self, text: str) -> str:
        """What a machine of it is told to do when it starts."""
        content = text.encode("utf-8", "replace")
        self._measure(len(zlib.compress(content, 9)) if self.packed else len(content))
        return text

    def _measure(self, size: int) -> None:
        if self.total_bytes is not None and size > self.total_bytes:
            packed = ", packed," if self.packed else ""
            raise self._refused(
                f"takes {self.total_bytes:,} bytes{packed} of command and settings; this workload has {size:,}", _SCRIPT
            )

    def _refused(self, what: str, way: str) -> CannotRender:
        return CannotRender(f"{self.name} {what}.", remedy=f"{way}, or take --to {self.instead}.")


def bounded(target: str, files: Sequence[File]) -> None:
    """Refuses files that nothing would take, or nobody would read."""
    total = 0
    for file in files:
        total += len(file.text.encode("utf-8", "replace"))
        largest = max(len(part.encode("utf-8", "replace")) for part in file.text.split("\n---\n"))
        if largest > MOST_DOCUMENT_BYTES:
            raise CannotRender(
                f"{file.path} of {target} would have {largest:,} bytes in one document; the limit is {MOST_DOCUMENT_BYTES:,}.",
                remedy=f"{_SMALLER}.",
            )
    if total > MOST_BYTES:
        raise CannotRender(
            f"The files of {target} would have {total:,} bytes; the limit is {MOST_BYTES:,}.", remedy=f"{_SMALLER}."
        )


def countable(pods: int) -> int:
    """A number of pods that Kubernetes can count."""
    if pods > MOST_PODS:
        raise CannotRender(
            f"Kubernetes counts {MOST_PODS:,} pods at most; the plan has {pods:,}.",
            remedy="Describe a part of the work, and render it for each of several clusters.",
        )
    return pods


def _json_bytes(made: object) -> int:
    """As services count: without blanks, signs of other languages by their bytes."""
    return len(json.dumps(made, default=_bare, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def _bare(value: object) -> object:
    return value.value if isinstance(value, Noted) else str(value)


# Its interface's own description: 100 settings, names and values of 512.
SAGEMAKER_JOB = Service(
    name="A training job of SageMaker",
    instead="batch, ec2 or kubernetes",
    most_settings=100,
    longest_name=512,
    longest_value=512,
)
SAGEMAKER_MODEL = Service(
    name="An endpoint of SageMaker",
    instead="ecs or kubernetes",
    most_settings=100,
    longest_name=1024,
    longest_value=1024,
    all_settings=32 * 1024,
)
# 24 KiB, less what the script adds around the container: image, roles, secrets, mounts, retries.
BATCH = Service("A job definition of AWS Batch", "ec2, kubernetes or slurm", total_bytes=22_000)
# 64 KiB, less what the script fills in.
ECS = Service("A task definition of ECS", "kubernetes or terraform", total_bytes=62_000)
LAMBDA = Service("Lambda", "batch or ecs", all_settings=4_096, names=r"[A-Za-z][A-Za-z0-9_]+")
CLOUD_RUN = Service("Cloud Run", "kubernetes or terraform", most_settings=1_000, longest_value=32 * 1024)
# An object is kept in 1.5 MiB, and a workflow holds several containers; a program is started with 2 MiB at most.
KUBERNETES = Service("A container of Kubernetes", "compose or slurm", total_bytes=400_000)
# User data: 16 KiB and 64 KiB, less what Terraform writes before the script; a value of Google's metadata: 256 KiB.
EC2_PACKED = Service("User data of EC2", "kubernetes or batch", total_bytes=15_000, packed=True)
AZURE_MACHINE = Service("Custom data of an Azure machine", "kubernetes", total_bytes=62_000)
GOOGLE_MACHINE = Service("The start script of a Google Cloud machine", "kubernetes", total_bytes=250_000)
