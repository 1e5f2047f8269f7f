"""The user data of a job: its own lines, then the program that all machines run. No secret stands in it, only names of them."""

from __future__ import annotations

import math
import re

from chipwise.errors import BadInput
from chipwise.render.launch.starting import RENDEZVOUS_PORT
from chipwise.render.quoting import shell
from chipwise.run.hand_off import by_engine
from chipwise.run.job import Job

from . import TRAITS
from .config import Config
from .machine_program import PROGRAM, PULLING
from .request import neuron

MOST_BYTES = 16_384  # that EC2 takes, before base64
IMAGE = "CHIPWISE_IMAGE"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def user_data(job: Job, config: Config, hard_minutes: int) -> str:
    """`hard_minutes`: after which the machine ends itself; 0: never."""
    spec, number = job.spec, len(job.attempts)
    _check(job)
    env = {key: value for key, value in spec.env.items() if key != IMAGE}
    env.setdefault("CHIPWISE_CHECKPOINTS", spec.checkpoints or f"{config.keep.rstrip('/')}/checkpoints/{job.id}")
    if spec.interruptions_per_hour is not None:
        env.setdefault("CHIPWISE_INTERRUPTIONS_PER_HOUR", f"{spec.interruptions_per_hour:g}")
    idle_s = 0 if spec.service or config.idle_minutes is None else int(config.idle_minutes * 60)
    gpus = 0 if neuron(job.attempts[-1].where.machine) else spec.needs.gpus
    values = {
        "JOB": job.id,
        "ATTEMPT": number,
        "KEEP": config.keep.rstrip("/"),
        "MACHINES": job.machines,
        "PROCESSES": max(spec.needs.processes, 1),
        "GPUS": gpus,
        "GRACE": math.ceil(spec.grace_s),
        "IDLE_S": idle_s,
        "ORPHAN_S": int((config.orphan_minutes or 0) * 60),
        "START_MINUTES": math.ceil(config.start_minutes),
        "HARD_MINUTES": hard_minutes,
        "PORT": RENDEZVOUS_PORT,
        "REBALANCE": "yes" if config.heeds_rebalance else "no",
        "IMAGE": spec.env.get(IMAGE, config.container),
        "FOLDER": re.sub(r"^s3:/+", "s3://", spec.folder),  # a path loses the second slash
        "NAMES": " ".join(sorted({*env, *spec.secrets})),
        "AWS_DEFAULT_REGION": config.kept_in,
    }
    text = "#!/bin/sh\n# One attempt of a chipwise job: runs it, tells how it ended, and ends this machine.\nset -u\n"
    text += "".join(f"{name}={shell([str(value)])}\n" for name, value in values.items())
    text += "export AWS_DEFAULT_REGION\n"
    text += f"set -- {shell(spec.command)}\n"
    text += _function("settings", [f"export {key}={shell([value])}" for key, value in sorted(env.items())])
    names = sorted(spec.secrets.items())
    text += _function("secrets", [line for key, kept in names for line in _secret(key, kept)])
    text += _function("produced", [_wanted(one) for one in by_engine(spec, TRAITS.looks_at)])
    text += PULLING + _without_comments(PROGRAM)
    size = len(text.encode())
    if size > MOST_BYTES:
        fixed = len((PULLING + _without_comments(PROGRAM)).encode())
        raise BadInput(
            f"User data of EC2 holds {MOST_BYTES:,} bytes; command and settings of {job.id} need {size - fixed:,} on top of "
            f"{fixed:,} of the machine's own program.",
            remedy="Put the command into a script, and large settings into a file that it reads.",
        )
    return text


def _check(job: Job) -> None:
    spec = job.spec
    if not spec.command:
        raise BadInput(f"{job.id} has no command.", remedy="Give one after --, such as: -- python train.py")
    for name in (*spec.env, *spec.secrets):
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name[:60]!r} is no name of a setting.", remedy="Use letters, digits and _, such as BATCH_SIZE.")
    for setting, kept in spec.secrets.items():
        if not kept:
            raise BadInput(
                f"The secret for {setting} has no name under which a machine can read it.",
                remedy="Keep it in Secrets Manager or SSM, and name it: name, name/key or ssm:/path.",
            )


def _function(name: str, lines: list[str]) -> str:
    return f"{name}() {{\n" + "".join(f"  {line}\n" for line in lines or [":"]) + "}\n"


def _secret(key: str, kept: str) -> list[str]:
    """Its value is blotted out in what the machine uploads."""
    return [f"{key}=$(secret {shell([kept])}) && export {key} || return 1", f'printf "%s\\n" "${key}" >>"$ROOT/hidden"']


def _wanted(path: str) -> str:
    """A listing of S3 has all keys that begin so, too: what is named must be one of them, and not be empty, or be a folder."""
    quoted = shell([path])
    if not path.startswith("s3://"):
        there = (
            f'at=$(cd "${{FOLDER:-/}}" && realpath -m {quoted}) && [ -s "$at" ] && [ -n "$(find "$at" ! -type d | head -n 1)" ]'
        )
    elif path.endswith("/"):
        there = f"aws s3 ls {quoted} > /dev/null"
    else:
        name = re.sub(r"[][\\.^$*+?(){}|]", r"\\\g<0>", path.rpartition("/")[2])
        there = f"aws s3 ls {quoted} | grep -Eq {shell([f'^ +PRE {name}/$|^[^ ]+ [^ ]+ +[1-9][0-9]* {name}$'])}"
    return f"{there} || printf '%s ' {quoted}"


def _without_comments(text: str) -> str:
    """Comments are for who reads our source; user data has little room."""
    kept = [re.sub(r"\s+# .*$", "", line) for line in text.splitlines() if not line.lstrip().startswith("# ")]
    return "\n".join(line for line in kept if line.strip()) + "\n"
