"""`start.sh`: what a machine does when it comes up. Fetch, run the container, save, and end itself.

One script for three clouds; what differs (metadata, object store, secrets, logs, the end) is a `Dialect`. Terraform writes the
settings that only it knows (IMAGE, BUCKET, ...) before the script.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from chipwise.render.deployment import Deployment, Form, Volume
from chipwise.render.heading import heading
from chipwise.render.launch.shards import in_shards, shard_words
from chipwise.render.launch.starting import apart, by_torchrun, on_one_machine, part_command, part_reason, parts, torchrun
from chipwise.render.quoting import shell
from chipwise.render.terraform.shape import copied, kept, saved, together
from chipwise.units import GIB

USER = 10001  # of the container: nobody on the machine
SAVES_EVERY_S = 300
TRIES = 3
LOSSES = 20  # tries of machines that work together on spot: each loss of one costs all of them a try
PORT = 29500
# NVIDIA's own packages, for images that have the driver alone.
TOOLKIT = """\
if command -v nvidia-smi > /dev/null && ! command -v nvidia-ctk > /dev/null; then
  curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | gpg --dearmor -o /usr/share/keyrings/nvidia.gpg
  from=https://nvidia.github.io/libnvidia-container/stable/deb
  echo "deb [signed-by=/usr/share/keyrings/nvidia.gpg] $from/$(dpkg --print-architecture) /" \\
    > /etc/apt/sources.list.d/nvidia.list
  apt-get update -q && apt-get install -y -q nvidia-container-toolkit
  nvidia-ctk runtime configure --runtime=docker && systemctl restart docker
fi
"""
ROOT = "/var/lib/chipwise"
LOGS = "/var/log/chipwise"
TAKEN = "/run/chipwise-taken"  # there once the machine is to go: no new try
FETCHED = "/run/chipwise-fetched"  # there once everything is
GRACE_S = 60  # to a program that is stopped at the deadline


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a cloud calls it. All are shell; `{...}` is filled by `str.replace`."""

    metadata: str  # a function `metadata PATH`
    rank: str  # sets RANK
    head: str  # sets HEAD, waits for it
    sync: str  # SOURCE and TARGET
    secret: str  # NAME, gives the stored text
    logs: str  # options of docker
    notice: str  # succeeds once the machine is to be taken away
    notice_s: int
    end: str  # ends the machine for good
    docker: str  # sets it up where it is missing, and signs in to the registry
    scheme: str  # of the object store
    host: str = ""  # that its addresses end in
    fetch: str = ""  # `sync` that says what went wrong; needed where `nothing` is told
    nothing: str = ""  # what it says where there is no such place; empty: for it an empty place is no failure

    def has(self, url: str | None) -> bool:
        """Whether the address is of this cloud's own store."""
        head, _, rest = (url or "").partition("://")
        return head == self.scheme and rest.partition("/")[0].endswith(self.host)


def script(deployment: Deployment, dialect: Dialect) -> str:
    job = deployment.form is Form.JOB
    text = "#!/bin/bash\n"
    text += "".join(f"# {line}\n" for line in heading(deployment, "Runs on each machine when it starts.").splitlines())
    text += "# Terraform writes IMAGE and the other settings in capitals before this.\n"
    text += f"set -euo pipefail\nmkdir -p {LOGS}\nexec > >(tee -a {LOGS}/start.log) 2>&1\n\n" + dialect.metadata
    text += _ending(deployment, dialect) if job else ""  # before anything that can fail
    text += _ranks(deployment, dialect) + (_deadline(deployment) if job else "") + _folders(deployment, dialect)
    text += _secrets(deployment, dialect) + "\n" + dialect.docker
    text += _watching(deployment, dialect) if job else ""
    return text + (_job(deployment, dialect) if job else _service(deployment, dialect))


def _ranks(deployment: Deployment, dialect: Dialect) -> str:
    if deployment.form is not Form.JOB or deployment.machines == 1:
        return ""
    return f"\n# Which machine this is, from 0. A machine that stands in for a lost one has its number.\n{dialect.rank}"


def _folder(volume: Volume) -> str:
    return f"{ROOT}/{volume.name}"


def _folders(deployment: Deployment, dialect: Dialect) -> str:
    if not deployment.volumes:
        return ""
    places = " ".join(_folder(one) for one in deployment.volumes)
    text = f"\nmkdir -p {places}\nchown {USER}:{USER} {places} # the program is not root\n"
    fetched = [(one, shell([one.url])) for one in copied(deployment) if one.url and dialect.has(one.url)]
    fetched += [(one, f'"$BUCKET/{one.name}"') for one in kept(deployment)]
    text += _fetch(dialect) if any(_may_be_empty(one) for one, _ in fetched) else ""
    for one, source in fetched:
        if dialect.nothing and _may_be_empty(one):
            text += f"fetch {source} {_folder(one)}\n"
        else:
            text += _filled(dialect.sync, SOURCE=source, TARGET=_folder(one))
    if fetched:
        text += f"chown -R {USER}:{USER} {places}\n"
    return text + (f"touch {FETCHED}\n" if saved(deployment) else "")


def _may_be_empty(volume: Volume) -> bool:
    """At the first start nothing is kept yet; data that the workload names must be there."""
    return volume.url is None or volume.name == "checkpoints"


def _fetch(dialect: Dialect) -> str:
    if not dialect.nothing:
        return ""
    command = _filled(dialect.fetch, SOURCE='"$1"', TARGET='"$2"')
    return (
        "fetch() { # SOURCE TARGET; an empty source is no failure, as at the first start\n"
        "  local said\n"
        f"  if said=$({command} 2>&1); then return; fi\n"
        '  echo "$said"\n'
        '  case "$said" in\n'
        f"    *{shell([dialect.nothing])}*) echo 'nothing there yet' ;;\n"
        "    *) return 1 ;;\n"
        "  esac\n"
        "}\n"
    )


def _ending(deployment: Deployment, dialect: Dialect) -> str:
    text, places = "\nsave() {\n", [one for one in saved(deployment) if one.url is None or dialect.has(one.url)]
    if places:
        text += f"  if [ -e {FETCHED} ]; then # not before: half a checkpoint must not go over a whole one\n"
        for one in places:
            target = f'"$BUCKET/{one.name}"' if one.url is None else shell([one.url])
            text += "    " + _filled(dialect.sync, SOURCE=_folder(one), TARGET=target).rstrip("\n") + " || true\n"
        text += "  fi\n"
    if kept(deployment):
        number = '"$BUCKET/logs/${RANK:-unknown}"' if deployment.machines > 1 else '"$BUCKET/logs"'
        text += "  " + _filled(dialect.sync, SOURCE=LOGS, TARGET=number).rstrip("\n") + " || true\n"
    text += (
        "  true\n}\n"
        "finish() {\n"
        '  echo "ended with status $?"\n'
        "  save\n" + "".join(f"  {line}\n" for line in dialect.end.splitlines()) + "}\n"
        "# A machine that does nothing is paid for like one that works: it ends itself, whether all went well or not.\n"
        "trap finish EXIT\n"
        "# Taken away or shut down by others: save, and leave it to them whether another takes its place.\n"
        "trap 'trap - EXIT; save; exit 143' TERM\n"
    )
    return text


def _deadline(deployment: Deployment) -> str:
    """A shutdown alone would be made good by a group, and paid for on Azure: the machine ends as it does when it is done."""
    if deployment.deadline_s is None:
        return ""
    last = math.ceil((deployment.deadline_s + 2 * GRACE_S) / 60) + 15
    return (
        "\n# The deadline of the workload, from the start of this machine: nothing that hangs runs for longer.\n"
        "(\n"
        f"  sleep {math.ceil(deployment.deadline_s)}\n"
        "  echo 'the deadline has come'\n"
        f"  touch {TAKEN}\n"
        f"  docker ps -q | xargs -r docker stop -t {GRACE_S} > /dev/null || true\n"
        "  finish\n"
        ") &\n"
        f"shutdown -h +{last} # should saving or leaving hang as well\n"
    )


def _secrets(deployment: Deployment, dialect: Dialect) -> str:
    text = ""
    for setting, name, key in deployment.software.secrets:
        reads = shell(["import json, sys; print(json.load(sys.stdin)[sys.argv[1]])", key])
        text += f"{setting}=$({_filled(dialect.secret, NAME=shell([name]))} |\n  python3 -c {reads})\nexport {setting}\n"
    why = "# Read at start, and passed on by name: they are neither in this script nor on a disk.\n"
    return f"\n{why}{text}" if text else ""


def _watching(deployment: Deployment, dialect: Dialect) -> str:
    text = ""
    if deployment.spot:
        text += (
            f"\n# The cloud tells {dialect.notice_s} s before it takes the machine: stop the program, so that it can save.\n"
            "(\n  while sleep 5; do\n"
            f"    if {dialect.notice}; then\n"
            f"      touch {TAKEN}\n"
            f"      docker ps -q | xargs -r docker stop -t {dialect.notice_s * 5 // 8}\n      break\n    fi\n  done\n) &\n"
        )
    if saved(deployment):
        text += f"(while sleep {SAVES_EVERY_S}; do save; done) & # a lost machine loses no more than this\n"
    return text


def _job(deployment: Deployment, dialect: Dialect) -> str:
    text = "\n" + _why_command(deployment)
    if deployment.software.framework == "mpi" and together(deployment):
        text += (
            "# The program starts on every machine with NODE_RANK, NODES and HEAD_ADDRESS. If mpirun must start it from\n"
            "# the first one, take `--to slurm` or parallelcluster: they bring the launcher that reaches the others.\n"
        )
    text += "run() {\n"
    if together(deployment):
        text += "".join(f"  {line}\n" for line in dialect.head.splitlines())
    many = deployment.per_machine if apart(deployment) else 1
    if many > 1:
        text += f"  local started=()\n  for ((copy = 0; copy < {many}; copy++)); do\n" + _chips(deployment, "    ")
        text += _container(deployment, dialect, "    ").removesuffix("\n") + " &\n    started+=($!)\n  done\n"
        text += '  local status=0\n  for one in "${started[@]}"; do wait "$one" || status=$?; done\n  return "$status"\n}\n'
    else:
        text += ("  local copy=0\n" if apart(deployment) else "") + _container(deployment, dialect, "  ") + "}\n"
    why = "machines that lost one of theirs meet again" if together(deployment) else "what it saved is still there"
    return text + (
        f"\nfor ((try = 1; try <= {LOSSES if deployment.spot and together(deployment) else TRIES}; try++)); do # {why}\n"
        "  if run; then exit 0; fi\n"
        + (
            f"  if [ -e {TAKEN} ]; then save; sleep infinity; fi # the end comes by itself; the work goes on elsewhere\n"
            if deployment.spot or deployment.deadline_s is not None
            else ""
        )
        + '  echo "try $try failed"\n'
        "  docker ps -aq | xargs -r docker rm -f > /dev/null\n"
        "  sleep 15\n"
        "done\nexit 1\n"
    )


def _service(deployment: Deployment, dialect: Dialect) -> str:
    many, port = deployment.per_machine, deployment.software.port
    text = "\n" + _why_command(deployment)
    if many == 1:
        return text + _container(deployment, dialect)
    last = f", on ports {port} to {port + many - 1}" if port is not None else ""
    text += f"# {many} replicas share the machine{last}.\nfor ((copy = 0; copy < {many}; copy++)); do\n" + _chips(
        deployment, "  "
    )
    return text + _container(deployment, dialect, "  ") + "done\n"


def _chips(deployment: Deployment, pad: str) -> str:
    """The chips of one of several containers on a machine."""
    each, kind = max(deployment.chips_each, 1), deployment.node.kind
    if not deployment.node.accelerated:
        return ""
    first = f"$((copy * {each}))"
    if kind == "neuron":
        return f'{pad}mapfile -t chips < <(seq -f "--device=/dev/neuron%.0f" {first} $(((copy + 1) * {each} - 1)))\n'
    return f"{pad}chips=$(seq -s, {first} $(((copy + 1) * {each} - 1)))\n"


def _container(deployment: Deployment, dialect: Dialect, pad: str = "") -> str:
    """`pad` stands before each line of ours; newlines inside a quoted word of the user stay as they are."""
    software, node = deployment.software, deployment.node
    job, several = deployment.form is Form.JOB, deployment.per_machine > 1 and not together(deployment)
    memory = (node.memory_bytes or 32 * GIB) / (deployment.per_machine if several else 1) / GIB / 8
    options = [
        f"--init --user {USER}:{USER} --cap-drop ALL --security-opt no-new-privileges",
        f"--shm-size {max(int(memory), 1)}g",
    ]
    options += _devices(deployment, several)
    options.append(dialect.logs)
    if together(deployment):
        options.append("--network host --ulimit memlock=-1")
        options.append(f'--env NODE_RANK="$RANK" --env NODES={deployment.machines} --env HEAD_ADDRESS="$HEAD"')
    elif software.port is not None and not job:
        options.append(f"--publish {f'$(({software.port} + copy))' if several else software.port}:{software.port}")
    if job and apart(deployment):
        many = deployment.per_machine
        rank = "RANK" if deployment.machines > 1 else "0"
        number = f"$(({rank} * {many} + copy))"
        options.append(f'--env PART="{number}" --env PARTS={parts(deployment)} --env SHARD="$(printf %05d {number})"')
    options += [f"--volume {_folder(one)}:{shell([one.path])}" for one in deployment.volumes]
    options.append("--env HOME=/tmp")
    options += [f"--env {shell([f'{key}={value}'])}" for key, value in software.env]
    options += [f"--env {setting}" for setting, _, _ in software.secrets]
    options.append("--rm" if job else "--detach --restart unless-stopped")
    words = _words(deployment)
    return (
        f"{pad}docker run \\\n"
        + "".join(f"{pad}  {one} \\\n" for one in [*options, f"--entrypoint {words[0]}"])
        + f'{pad}  "$IMAGE" {" ".join(words[1:])}'
        + "\n"
    )


def _words(deployment: Deployment) -> list[str]:
    if in_shards(deployment):
        return [shell([word]) for word in shard_words(deployment)]
    if deployment.form is Form.JOB and apart(deployment) and not deployment.software.given:
        words = part_command(deployment)
        return ["sh", "-c", shell([" ".join(words)])]  # the number of the part is a setting of the container
    if together(deployment) and by_torchrun(deployment):
        return torchrun(deployment, '"$RANK"', '"$HEAD"', str(PORT), deployment.name)
    return [shell([word]) for word in on_one_machine(deployment)]


def _devices(deployment: Deployment, several: bool) -> list[str]:
    node = deployment.node
    if not node.accelerated:
        return []
    match node.kind:
        case "gpu" if node.vendor == "NVIDIA":
            made = ['--gpus "\\"device=$chips\\""' if several else "--gpus all"]
        case "gpu":
            made = ["--device /dev/kfd --device /dev/dri --group-add video"]
        case "neuron":
            made = ['"${chips[@]}"' if several else " ".join(f"--device /dev/neuron{at}" for at in range(node.chips))]
        case _:
            made = ["--privileged"]
    return [*made, "--device /dev/infiniband"] if together(deployment) and node.fabric in ("efa", "infiniband") else made


def _why_command(deployment: Deployment) -> str:
    lines = []
    if in_shards(deployment) or (deployment.form is Form.JOB and apart(deployment) and parts(deployment) > 1):
        lines += part_reason(deployment)
    elif not deployment.software.given and not deployment.software.engine:
        lines.append("The usual program of its kind: put your own into program.command of the workload.")
    return "".join(f"# {line}\n" for line in lines)


def _filled(text: str, **values: str) -> str:
    """In one pass: what is filled in is not looked at again."""
    return re.sub(r"\{([A-Z]+)\}", lambda found: values.get(found[1], found[0]), text)
