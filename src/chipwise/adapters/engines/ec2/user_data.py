"""The user data of a job: its settings, the boot script of all AWS machines, and what the engine adds to it.

No secret stands in it, only names of them. It is sent packed; what starts a machine unpacks it.
"""

from __future__ import annotations

import gzip
import math
import re
from functools import cache
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.renderer.launch.boot import booting
from chipwise.renderer.launch.starting import RENDEZVOUS_PORT
from chipwise.renderer.program_files import ShellSetting, body, program, variables
from chipwise.runner.hand_off import by_engine
from chipwise.runner.job import Job

from . import TRAITS
from .config import Config
from .machine_choice import neuron

MOST_BYTES = 16_384  # that EC2 takes, before base64
IMAGE = "CHIPWISE_IMAGE"
WATCH = "CHIPWISE_WATCH_S"  # of the job: 0 switches it off
_COMMENT = re.compile(r"^ *#(?! shellcheck).*\n|(?<=\(\) {) #.*$", re.M)  # EC2 has little room
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUPERVISE = Path(__file__).parent / "programs" / "supervise.sh"


@cache
def machine_program() -> str:
    """What all machines run, after the settings of their job."""
    own = (program("device_samples.sh"), _SUPERVISE.read_text(encoding="utf-8"))
    return _COMMENT.sub("", "\n".join([booting("aws"), *map(body, own), "boot\n"]))


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
    values: dict[str, ShellSetting] = {
        "JOB": job.id,
        "ATTEMPT": number,
        "KEEP": config.keep.rstrip("/"),
        "MACHINES": job.machines,
        "PROCESSES": max(spec.needs.processes, 1),
        "GPUS": gpus,
        "WATCHES": "no" if env.get(WATCH) == "0" else "yes",
        "GRACE": math.ceil(spec.grace_s),
        "IDLE_S": idle_s,
        "ORPHAN_S": int((config.orphan_minutes or 0) * 60),
        "START_MINUTES": math.ceil(config.start_minutes),
        "HARD_MINUTES": hard_minutes,
        "PORT": RENDEZVOUS_PORT,
        "REBALANCE": "yes" if config.heeds_rebalance else "no",
        "IMAGE": spec.env.get(IMAGE, config.container),
        "FOLDER": re.sub(r"^s3:/+", "s3://", spec.folder),  # a path loses the second slash
        "AWS_DEFAULT_REGION": config.home_region,
        "COMMAND": list(spec.command),
        "ENVIRONMENT": [f"{key}={value}" for key, value in sorted(env.items())],
        "SECRETS": [word for key, kept in sorted(spec.secrets.items()) for word in (key, kept, "")],
        "PRODUCES": list(by_engine(spec, TRAITS.looks_at)),
    }
    head = "#!/bin/bash\n# One attempt of a chipwise job: runs it, tells how it ended, and ends this machine.\n"
    text = head + variables(values) + machine_program()
    size = len(packed(text))
    if size > MOST_BYTES:
        fixed = len(packed(machine_program()))
        raise BadInput(
            f"User data of EC2 holds {MOST_BYTES:,} bytes; command and settings of {job.id} need {size - fixed:,} on top of "
            f"{fixed:,} of the machine's own program, both packed.",
            remedy="Put the command into a script, and large settings into a file that it reads.",
        )
    return text


def packed(text: str) -> bytes:
    """The same text gives the same bytes, so that a request which is sent again is the same request."""
    return gzip.compress(text.encode(), 9, mtime=0)


def _check(job: Job) -> None:
    spec = job.spec
    if not spec.command:
        raise BadInput(f"{job.id} has no command.", remedy="Give one after --, such as: -- python train.py")
    for name in (*spec.env, *spec.secrets):
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name[:60]!r} is not a variable name.", remedy="Use letters, digits and _, such as BATCH_SIZE.")
    for setting, secret in spec.secrets.items():
        if not secret:
            raise BadInput(
                f"The secret for {setting} has no name under which a machine can read it.",
                remedy="Keep it in Secrets Manager or SSM, and name it: name, name/key or ssm:/path.",
            )
