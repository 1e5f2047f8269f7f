"""What a machine does when it comes up (`start.sh`, its user data): fetch, run the container, save, and end itself.

It needs nothing but the metadata of the machine, whose tags say which one of several it is. The launcher writes two lines
before it: IMAGE, and KEEP, the place in S3 where data, checkpoints and logs outlive the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from chipwise.render.aws.parts import (
    chips,
    copies,
    divided,
    is_torch,
    parts,
    settings,
    shard,
    shell_words,
    together,
    torchrun,
    uses_efa,
    words,
)
from chipwise.render.deployment import Deployment, Form, Volume
from chipwise.render.file import CannotRender
from chipwise.render.heading import heading
from chipwise.render.launch.shards import in_shards
from chipwise.render.launch.starting import RENDEZVOUS_PORT, apart, part_reason, quoted, run_machines
from chipwise.render.quoting import shell
from chipwise.units import GIB

MOST_BYTES = 15_000  # of 16,384 that user data may have; the launcher adds some lines
SAVES_EVERY_S = 300

_HEAD = """\
set -euo pipefail
exec > >(tee -a /var/log/chipwise.log) 2>&1

metadata() { # IMDSv2; fails where the path is not there
  local token
  token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' http://169.254.169.254/latest/api/token)
  curl -sf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}
REGION=$(metadata placement/region)
export AWS_DEFAULT_REGION="$REGION"
"""

_SCRATCH = """
# The fast local disks, where there are any; the deep learning images mount them already.
SCRATCH=/var/lib/chipwise
if mountpoint -q /opt/dlami/nvme; then
  SCRATCH=/opt/dlami/nvme
else
  mapfile -t disks < <(lsblk -dpno NAME,MODEL | awk '/Instance Storage/ { print $1 }')
  if [ "${#disks[@]}" -gt 0 ]; then
    mkdir -p "$SCRATCH"
    disk=${disks[0]}
    if [ "${#disks[@]}" -gt 1 ]; then
      command -v mdadm > /dev/null || dnf install -y -q mdadm
      mdadm --create /dev/md0 --run --level=0 --raid-devices="${#disks[@]}" "${disks[@]}"
      disk=/dev/md0
    fi
    mkfs.xfs -q -f "$disk"
    mount "$disk" "$SCRATCH"
  fi
fi
"""

PULL = """\
command -v docker > /dev/null || dnf install -y -q docker
systemctl enable --now docker
case "$IMAGE" in
  *.dkr.ecr.*.amazonaws.com*/*)
    aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
    ;;
esac
docker pull -q "$IMAGE"
"""

_NOTICE = """
# A spot machine is told two minutes before it is taken: stop the program so that it can save, and send what it saved.
(
  while sleep 5; do
    if metadata spot/instance-action > /dev/null; then
      touch "$TAKEN"
      docker ps -q | xargs -r docker stop -t 75
      save
      break
    fi
  done
) &
"""


def start_script(deployment: Deployment) -> str:
    job = deployment.form is Form.JOB
    text = "#!/bin/bash\n"
    text += "".join(f"# {line}\n" for line in heading(deployment, "Runs on each machine when it starts.").splitlines())
    text += _HEAD
    text += _ranks(deployment)
    text += _SCRATCH + _folders(deployment)
    text += _saving(deployment) if job else ""
    text += _secrets(deployment)
    text += f"\n{PULL}"
    text += _NOTICE if job and deployment.spot else ""
    text += _loop() if job and _sent(deployment) else ""
    text += _run(deployment)
    size = len(text.encode())
    if size > MOST_BYTES:
        raise CannotRender(
            f"User data of EC2 holds 16 KiB, {MOST_BYTES:,} bytes without the launcher's; {deployment.name} needs {size:,}.",
            remedy="Put the command into a script inside the image, or take --to kubernetes or batch.",
        )
    return text


def _ranks(deployment: Deployment) -> str:
    text = ""
    if deployment.form is Form.JOB:
        text += (
            "trap 'shutdown -h now' EXIT # whatever goes wrong from here on, the machine ends\n"
            "\n# Which machine this is: the launcher tags how many came before, EC2 counts within one request.\n"
            "RANK=$(($(metadata tags/instance/chipwise-first-rank) + $(metadata ami-launch-index)))\n"
        )
    if together(deployment):
        text += (
            "# Where all meet: the address of the first, which the launcher writes into a tag once it is known.\n"
            "until HEAD=$(metadata tags/instance/chipwise-head); do sleep 3; done\n"
        )
    return text


def _local(volume: Volume) -> str:
    return f'"$SCRATCH"/{volume.name}'


def _sent(deployment: Deployment) -> list[Volume]:
    """What a job writes and somebody wants afterwards. Answers of a batch stand beside its requests."""
    named = ("checkpoints", "data") if in_shards(deployment) else ("checkpoints",)
    return [one for one in deployment.volumes if one.name != "models" and (one.url is None or one.name in named)]


def _place(volume: Volume) -> str:
    return shell([volume.url.rstrip("/")]) if volume.url else f'"$KEEP"/{volume.name}'


def _folders(deployment: Deployment) -> str:
    if not deployment.volumes:
        return ""
    text = "mkdir -p " + " ".join(_local(one) for one in deployment.volumes) + "\n"
    text += "chmod 0777 " + " ".join(_local(one) for one in deployment.volumes) + " # programs of images that are not root\n"
    for one in deployment.volumes:
        if one.url is not None and one.url.startswith("s3://"):
            text += f"aws s3 sync --only-show-errors {_place(one)} {_local(one)}\n"
        elif one.name != "models" and deployment.form is Form.JOB:
            text += f'[ -z "$KEEP" ] || aws s3 sync --only-show-errors {_place(one)} {_local(one)} # what an earlier run left\n'
    return text


def _saving(deployment: Deployment) -> str:
    text = "\nsave() {\n"
    text += '  [ -z "$KEEP" ] || aws s3 cp --only-show-errors /var/log/chipwise.log "$KEEP/logs/machine-$RANK.log" || true\n'
    for one in _sent(deployment):
        guard = "" if one.url else '[ -z "$KEEP" ] || '
        if one.url is None or one.url.startswith("s3://"):
            text += f"  {guard}aws s3 sync --only-show-errors {_local(one)} {_place(one)} || true\n"
    text += "}\n"
    text += "TAKEN=/run/chipwise-taken # there once AWS wants the machine back\n" if deployment.spot else ""
    text += 'finish() {\n  status=$?\n  echo "ended with status $status"\n  save\n'
    if deployment.spot:
        text += (
            '  [ ! -e "$TAKEN" ] || sleep 300 # until it is taken: who watches sees a loss then, and not the end of the job\n'
        )
    text += (
        '  [ -z "$KEEP" ] || echo "$(metadata instance-id) $status" | aws s3 cp --only-show-errors - \\\n'
        '    "$KEEP/logs/machine-$RANK.status" || true\n'
        "  shutdown -h now # ends the machine: it was started so that a shutdown terminates it\n"
        "}\n"
        "trap finish EXIT\n"
    )
    if deployment.deadline_s is not None:
        text += f"shutdown -h +{math.ceil(deployment.deadline_s / 60)} # the deadline: nothing that hangs runs for longer\n"
    return text


def _loop() -> str:
    return (
        f"\n(while sleep {SAVES_EVERY_S}; do save; done) & # a lost machine loses no more than this and the last checkpoint\n"
    )


def _secrets(deployment: Deployment) -> str:
    text = ""
    for setting, name, key in deployment.software.secrets:
        what = shell(["import json, sys; print(json.load(sys.stdin)[sys.argv[1]])", key])
        text += (
            f"{setting}=$(aws secretsmanager get-secret-value --secret-id {shell([name])} \\\n"
            f"  --query SecretString --output text | python3 -c {what})\n"
            f"export {setting}\n"
        )
    why = "\n# Read at start from Secrets Manager; docker takes them from this shell, so they stand on no disk.\n"
    return f"{why}{text}" if text else ""


def _devices(deployment: Deployment) -> list[str]:
    node = deployment.node
    lines = []
    if node.accelerated and node.kind == "gpu" and node.vendor == "NVIDIA":
        lines.append("--gpus all" if copies(deployment) == 1 else '--gpus "\\"device=$chips\\""')
    elif node.accelerated and node.kind == "gpu":
        lines.append("--device /dev/kfd --device /dev/dri")
    elif node.accelerated and node.kind == "neuron":
        many = range(node.chips)
        lines.append(" ".join(f"--device /dev/neuron{at}" for at in many) if copies(deployment) == 1 else '"${neuron[@]}"')
    elif node.kind == "fpga":
        lines.append("--privileged")
    if uses_efa(deployment):
        lines.append("--device /dev/infiniband --ulimit memlock=-1")
    return lines


def _run(deployment: Deployment) -> str:
    software, many = deployment.software, copies(deployment)
    job = deployment.form is Form.JOB
    share = (deployment.node.memory_bytes or 32 * GIB) / many / GIB / 8
    lines = ["--network host", f"--shm-size {max(int(share), 1)}g", *_devices(deployment)]
    lines += [f"--volume {_local(one)}:{shell([one.path])}" for one in deployment.volumes]
    lines += [f"--env {shell([f'{key}={value}'])}" for key, value in settings(deployment).items()]
    lines += [f"--env {setting}" for setting, _, _ in software.secrets]
    if divided(deployment):
        told = ("PART", "PARTS", "SHARD") if apart(deployment) else ("RUN",)
        lines.append(" ".join(f'--env "{one}=${one}"' for one in told))
    elif together(deployment):
        lines += [f'--env "NODE_RANK=$RANK" --env NODES={run_machines(deployment)} --env "HEAD_ADDRESS=$HEAD"']
    if not job:
        lines.append("--restart unless-stopped --detach")
    program, rest = _command(deployment)
    if many > 1 and software.engine and software.port is not None:
        rest = _moved_port(rest, software.port)
    lines.append(f"--entrypoint {program}")
    comment = _why_command(deployment)
    if deployment.node.kind == "fpga":
        comment += "# An FPGA is reached through its PCI device, for which docker has no narrower right.\n"
    if divided(deployment) and apart(deployment):
        comment += f"PARTS={parts(deployment)}\n"
    if many > 1:
        return "\n" + comment + _each(deployment, lines, rest)
    if not divided(deployment):
        return "\n" + comment + _docker("--name main", lines, rest, "") + "\n"
    if apart(deployment):
        return "\n" + comment + _part("RANK", "") + _docker("--name main", lines, rest, "") + "\n"
    return "\n" + comment + "status=0\n" + _runs(deployment, lines, rest, "") + '(exit "$status")\n'


def _why_command(deployment: Deployment) -> str:
    software = deployment.software
    if in_shards(deployment) or (divided(deployment) and apart(deployment)):
        return "".join(f"# {line}\n" for line in part_reason(deployment))
    text = (
        ""
        if software.given or software.engine
        else "# The usual program of its kind: put your own into program.command of the workload.\n"
    )
    if divided(deployment):
        text += (
            f"# RUN, from 0, tells the program which of {parts(deployment)} runs is its own. One that fails stops no other.\n"
        )
    return text


def _part(number: str, pad: str) -> str:
    return f"{pad}PART=$(({number}))\n{pad}SHARD={shard(chr(34) + '$PART' + chr(34))}\n"


def _runs(deployment: Deployment, lines: Sequence[str], rest: str, pad: str) -> str:
    """One run after the other, where there are more than places."""
    many, places = copies(deployment), deployment.machines * copies(deployment)
    first = "RANK" if many == 1 else f"RANK * {many} + copy"
    return (
        f"{pad}for ((RUN = {first}; RUN < {parts(deployment)}; RUN += {places})); do\n"
        + _docker('--name "run-$RUN"', lines, rest, f"{pad}  ")
        + f" || status=$?\n{pad}done\n"
    )


def _docker(name: str, lines: Sequence[str], rest: str, pad: str) -> str:
    options = "".join(f"{pad}  {line} \\\n" for line in lines)
    return f'{pad}docker run --init {name} \\\n{options}{pad}  "$IMAGE"' + (f" {rest}" if rest else "")


def _each(deployment: Deployment, lines: Sequence[str], rest: str) -> str:
    """The machine ends when the last copy does: one that fails must not take the others' work with it."""
    many, each, job = copies(deployment), max(chips(deployment), 1), deployment.form is Form.JOB
    text = f"# {many} copies of the program share the machine, each with {each} of its {deployment.node.chips} chips.\n"
    text += "started=()\n" if job else ""
    text += f"for ((copy = 0; copy < {many}; copy++)); do\n"
    text += _part(f"RANK * {many} + copy", "  ") if job and apart(deployment) else ""
    if deployment.node.kind == "neuron":
        text += f"  neuron=()\n  for ((chip = copy * {each}; chip < (copy + 1) * {each}; chip++)); do\n"
        text += '    neuron+=(--device "/dev/neuron$chip")\n  done\n'
    elif deployment.node.accelerated:
        text += "  chips=$copy\n" if each == 1 else f"  chips=$(seq -s, $((copy * {each})) $(((copy + 1) * {each} - 1)))\n"
    if not job:
        return text + _docker('--name "copy-$copy"', lines, rest, "  ") + "\ndone\n"
    if apart(deployment):
        text += _docker('--name "copy-$copy"', lines, rest, "  ") + " &\n"
    else:
        text += "  (\n    status=0\n" + _runs(deployment, lines, rest, "    ") + '    exit "$status"\n  ) &\n'
    text += "  started+=($!)\ndone\nstatus=0\n"
    return (
        text
        + 'for one in "${started[@]}"; do wait "$one" || status=$?; done # all of them, whatever one says\n(exit "$status")\n'
    )


def _command(deployment: Deployment) -> tuple[str, str]:
    """(program, the rest of its line), for a shell. Engines' images start themselves; the plan's command names the program,
    so theirs is put aside."""
    if is_torch(deployment) and together(deployment):
        line = shell(torchrun(deployment, "HEAD")[1:])
        line = line.replace(f"--rdzv-endpoint=HEAD:{RENDEZVOUS_PORT}", f'--rdzv-endpoint="$HEAD":{RENDEZVOUS_PORT}', 1)
        return "torchrun", f'--node-rank="$RANK" {line}'
    made = shell_words(deployment) if divided(deployment) else quoted(words(deployment))
    return made[0], " ".join(made[1:])


def _moved_port(words: str, port: int) -> str:
    """Copies of a service listen on ports of their own, one after the other."""
    for flag in ("--port ", "--http-port="):
        words = words.replace(f"{flag}{port}", f'{flag}"$(({port} + copy))"', 1)
    return words
