"""What the owner of a job may do at a place. A controller runs jobs as its own system user, so it starts only what whoever acts
for the place has allowed, whatever the record let in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chipwise.runner.job import Job, Phase


@dataclass(frozen=True, slots=True)
class Permit:
    may_submit: bool
    secrets: frozenset[str] | None = frozenset()
    """Names of stored secrets that their jobs may read; None: all."""


NOTHING = Permit(may_submit=False)


_REFERENCES = ("secret", "secretref", "secretkeyref", "imagepullsecrets")  # how fields end that name one
RESERVED = ("going.json",)  # what an engine keeps beside the folders of jobs
_LONGEST_NAME = 200  # bytes; a file system takes 255


def is_file_name(text: str) -> bool:
    """Whether a file or folder called so lies where it is put, and nowhere else."""
    return text not in ("", ".", "..") and not {"/", "\0"} & set(text) and len(text.encode(errors="replace")) <= _LONGEST_NAME


def is_job_id(text: str) -> bool:
    """Whether it can be the folder of a job, beside files of our own."""
    return is_file_name(text) and not text.startswith(".") and text.lower() not in RESERVED


def _mounted(node: object) -> Iterator[str]:
    """Secrets of the cluster that objects of a job name, as NAME/KEY or all of NAME."""
    if isinstance(node, list | tuple):
        for inner in node:
            yield from _mounted(inner)
    if not isinstance(node, Mapping):
        return
    for field, value in node.items():
        if field == "secretName" and isinstance(value, str):
            yield value
        references = value if field == "imagePullSecrets" and isinstance(value, list | tuple) else (value,)
        for one in references if field.lower().endswith(_REFERENCES) else ():
            if isinstance(one, Mapping) and isinstance(name := one.get("name"), str):
                yield f"{name}/{key}" if field == "secretKeyRef" and isinstance(key := one.get("key"), str) else name
        yield from _mounted(value)


def refusals(jobs: Mapping[str, Job], permits: Mapping[str, Permit]) -> dict[str, str]:
    """By the id of each waiting job that may not start: what is missing, and who can give it."""
    reasons: dict[str, str] = {}
    for id, job in jobs.items():
        if job.phase is Phase.QUEUED and not job.wish.stops:
            reason = refusal(job, permits.get(job.spec.owner, NOTHING))
            if reason:
                reasons[id] = reason
    return reasons


def refusal(job: Job, permit: Permit) -> str:
    """Empty: it may start."""
    spec = job.spec
    if is_file_name(job.id) and not is_job_id(job.id):
        return f"{job.id[:60]!r} is a reserved name, and cannot be the id of a job; submit it again with `chipwise run`"
    if odd := [name for name in (job.id, *spec.secrets) if not is_file_name(name)]:
        return f"{odd[0][:60]!r} cannot be the name of a file, and would lead elsewhere; submit it again with `chipwise run`"
    allow = f"`chipwise places allow {shlex.quote(spec.place)} --user {shlex.quote(spec.owner)}"
    if not permit.may_submit:
        return f"{spec.owner} may not run jobs at {spec.place}; its controller can allow it: {allow}`"
    if permit.secrets is None:
        return ""
    wanted = {name for name in spec.secrets.values() if name}
    # Of a cluster's secret with several keys a single one may be given, or all.
    missing = (wanted - permit.secrets) | {
        name for name in _mounted(spec.objects) if not {name, name.partition("/")[0]} & permit.secrets
    }
    if not missing:
        return ""
    name = min(missing)
    return f"{spec.owner} may not use the secret {name}; its controller can allow it: {allow} --secret {name}`"
