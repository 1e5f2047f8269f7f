"""SkyPilot: a task with the plan's accelerators and what may stand for them, recovery from lost spot machines, or a service."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chipwise.renderer.deployment import BUSY, Deployment, Form, Node, Volume
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import finetuning, nodes
from chipwise.renderer.launch.health import listens
from chipwise.renderer.launch.mounted import mounted_volumes
from chipwise.renderer.launch.program_notes import OWN_PROGRAM, program_note
from chipwise.renderer.launch.sky_chips import accelerator
from chipwise.renderer.launch.starting import (
    RENDEZVOUS_PORT,
    SHARD_DIGITS,
    apart,
    by_torchrun,
    folded,
    on_one_machine,
    part_command,
    part_reason,
    parts,
    processes,
    quoted,
    run_chips,
    run_machines,
    torchrun,
)
from chipwise.renderer.launch.timing import ready_seconds
from chipwise.renderer.launch.whole_machines import refuse_copies, whole_machines
from chipwise.renderer.layout import uses_efa
from chipwise.renderer.quoting import label_value
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Noted, Yaml, document
from chipwise.units import GIB

FITS = "jobs and services on clouds that SkyPilot rents from, with spot recovery; its names of chips and places"
WRITES = ("task.yaml",)
STARTS_MACHINES = True
Object = dict[str, Yaml]
_CLOUDS = {
    "aws",
    "azure",
    "cudo",
    "do",
    "fluidstack",
    "gcp",
    "hyperbolic",
    "ibm",
    "lambda",
    "mithril",
    "nebius",
    "oci",
    "paperspace",
    "primeintellect",
    "runpod",
    "scp",
    "seeweb",
    "shadeform",
    "vast",
    "verda",
    "yotta",
}
_STORES = {"aws": "s3", "gcp": "gcs", "azure": "azure", "oci": "oci", "nebius": "nebius", "ibm": "ibm"}
_SCHEMES = {"s3": "s3", "gs": "gcs", "az": "azure"}


def render(deployment: Deployment) -> list[File]:
    _refuse(deployment)
    deployment = whole_machines(deployment)
    task: Object = {"name": deployment.name, "resources": _resources(deployment)}
    if devices := _devices(deployment):
        reason = "SkyPilot hands NVIDIA's chips to a container by itself, and no others."
        task["config"] = {"docker": {"run_options": Noted(devices, reason)}}
    if run_machines(deployment) > 1:
        task["num_nodes"] = run_machines(deployment)
    if deployment.software.built:
        task["workdir"] = Noted(".", "The program; what .gitignore and .skyignore name stays here.")
    task["envs"] = _settings(deployment)
    if not task["envs"]:
        del task["envs"]
    if deployment.software.secrets:
        needed: Object = {key: Noted(None, f"Kept as {name}/{part}.") for key, name, part in deployment.software.secrets}
        task["secrets"] = Noted(needed, "Taken from your shell at launch (--secret NAME) and never written here.")
    mounts = {one.path: _mount(deployment, one) for one in deployment.volumes if _mounted(one)}
    if mounts:
        task["file_mounts"] = mounts
    if deployment.form is Form.SERVICE:
        task["service"] = _service(deployment)
    setup = _setup(deployment)
    if setup:
        task["setup"] = setup
    task["run"] = _run(deployment)
    files = [File("task.yaml", document(task, title=f"{heading(deployment)}\n{_usage(deployment)}"))]
    if _job_count(deployment) > 1:
        files.append(File("submit.sh", _submit(deployment), executable=True))
    return [*files, *(finetuning.files(deployment) if finetuning.is_written(deployment) else [])]


def _refuse(deployment: Deployment) -> None:
    node, software = deployment.node, deployment.software
    if node.kind == "gpu" and node.vendor == "AMD" and software.built and software.purpose == "pytorch":
        raise CannotRender(
            "SkyPilot would install PyTorch on the machine, and a release for AMD's GPUs comes with their drivers' images.",
            remedy="Give program.image with one of ROCm, or take --to kubernetes or slurm.",
        )
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender(
                "Stages that wait for each other's files are not one SkyPilot task.",
                remedy=f"Use --to argo, or {one_stage(deployment)}.",
            )
        case Form.SESSIONS:
            raise CannotRender("Notebooks need a hub that starts and stops them.", remedy="Use --to jupyterhub.")
        case Form.DEVICES:
            raise CannotRender("SkyPilot rents machines, and this runs on devices of your own.", remedy="Use --to compose.")
    if node.provider not in _CLOUDS:
        raise CannotRender(
            f"SkyPilot does not rent from {node.provider}.",
            remedy="Plan with --cloud aws,gcp,azure, or take --to terraform, slurm or compose.",
        )
    if node.kind == "gpu" and node.profile:
        raise CannotRender(f"SkyPilot takes whole chips, not slices ({node.profile}).", remedy="Use --to kubernetes.")
    if deployment.form is Form.JOB and run_chips(deployment) < node.chips:
        raise CannotRender(
            f"The plan runs several simulations on one {node.machine}, and SkyPilot gives each job machines of its own.",
            remedy="Use --to slurm or parallelcluster, which share a machine's chips between jobs.",
        )
    if node.kind == "tpu" and accelerator(node, node.chips) is None:
        raise CannotRender(
            f"SkyPilot rents TPUs by the name of their slice, and none is known to us for {node.machine}.",
            remedy="Plan with --chip TPU-v6e, or take --to kubernetes.",
        )
    if deployment.form is Form.SERVICE:
        refuse_copies(deployment)
    copies = deployment.per_machine if deployment.form is Form.SERVICE else 1
    if copies > 1 and (deployment.software.engine != "vllm" or deployment.software.is_custom):
        raise CannotRender(
            f"The plan puts {copies} copies on one {node.machine}; a SkyPilot replica is a machine that answers on one port.",
            remedy="Give program.engine: vllm, which spreads requests over them, or take --to kubernetes, ecs or terraform.",
        )
    if deployment.form is Form.SERVICE and (not listens(deployment) or deployment.software.health is None):
        raise CannotRender(
            "A SkyPilot service answers a readiness probe, and this program listens on no port.",
            remedy="Give program.port and program.health, or take --to kubernetes.",
        )


def _devices(deployment: Deployment) -> list[Yaml]:
    """Options of docker for chips of other makers, where the task runs in an image."""
    node = deployment.node
    if deployment.software.built or not node.accelerated:
        return []
    if node.kind == "neuron":
        return [f"--device=/dev/neuron{at}" for at in range(node.chips)]
    amd = node.kind == "gpu" and node.vendor == "AMD"
    return ["--device=/dev/kfd", "--device=/dev/dri", "--group-add=video", "--group-add=109"] if amd else []


def _resources(deployment: Deployment) -> Object:
    node = deployment.node
    fields: Object = {}
    grows = deployment.spot or deployment.form is Form.SERVICE  # only these take another machine in place of the plan's
    choices = [_choice(deployment, one) for one in (node, *(deployment.alternatives if grows else ()))]
    different = [one for at, one in enumerate(choices) if one not in choices[:at]]
    if len(different) > 1:
        fields["any_of"] = Noted(different, "The plan's first; the others serve as well, and SkyPilot takes what there is.")
    else:
        fields |= choices[0]
    if deployment.spot:
        fields["use_spot"] = True
        if deployment.form is Form.JOB:
            recovery: Object = {"strategy": "EAGER_NEXT_REGION" if len(deployment.regions) > 1 else "FAILOVER"}
            recovery["max_restarts_on_errors"] = Noted(3, "The program's own failures; lost machines do not count.")
            fields["job_recovery"] = recovery
    software = deployment.software
    if not software.built and node.kind != "tpu":
        fields["image_id"] = f"docker:{software.image}"
    size = sum(one.size_bytes for one in deployment.volumes if not _mounted(one))
    fields["disk_size"] = Noted(max(int(size / GIB) + 100, 256), "GB: what is not mounted lies here, beside the system.")
    if uses_efa(deployment):
        fields["network_tier"] = Noted("best", "The fabric between machines, where the cloud has one.")
    if deployment.form is Form.SERVICE:
        fields["ports"] = software.port
    labels = {label_value(key).lower(): label_value(value).lower() for key, value in deployment.labels.items()}
    fits = [(key, value) for key, value in labels.items() if key and value and re.fullmatch(r"[a-z][a-z0-9_-]*", key)]
    selected = dict(fits[:40])  # clouds take 50 and more, and SkyPilot adds its own
    if selected:
        fields["labels"] = Noted({key: re.sub(r"[^a-z0-9_-]", "-", value) for key, value in selected.items()}, "Who pays.")
    return fields


def _choice(deployment: Deployment, node: Node) -> Object:
    """A place and a chip. The machine's type is named only where the chip does not decide it."""
    count = deployment.chips_each if deployment.form is Form.SERVICE else node.chips
    chip = accelerator(node, count)
    fields: Object = {"infra": f"{node.provider}/{node.region}"}
    if chip is None:
        return fields | {"instance_type": node.machine}
    return fields | {"accelerators": chip}


def _settings(deployment: Deployment) -> Object:
    values: Object = dict(deployment.software.env)
    if apart(deployment) and deployment.machines > 1:
        values["MACHINE"] = Noted("0", "Which of the machines this is: submit.sh counts them.")
    elif deployment.runs > 1:
        values["RUN"] = Noted("0", "Which of the runs this is: submit.sh counts them.")
    return values


def _mounted(volume: Volume) -> bool:
    """Weights are fetched to the machine's own disk; everything else must outlive the machine."""
    if volume.url is not None:
        return "$" not in volume.url and volume.url.partition("://")[0] in _SCHEMES
    return volume.name != "models"


def _mount(deployment: Deployment, volume: Volume) -> Yaml:
    writes = volume.name == "checkpoints" or not deployment.software.is_custom
    mode = "MOUNT_CACHED" if writes else "MOUNT"
    if volume.url is not None:
        return {"source": volume.url, "mode": mode}
    store = _STORES.get(deployment.node.provider)
    store_note = (
        "" if store is not None else f" It is on AWS, since {deployment.node.provider} has no buckets that SkyPilot mounts."
    )
    bucket: Object = {"name": f"{deployment.name}-{volume.name}", "store": store or "s3", "mode": mode, "persistent": True}
    reason = f"{volume.reason.capitalize()}. " if volume.reason else ""
    return Noted(bucket, f"{reason}A bucket of this name is made if there is none; names are taken world-wide.{store_note}")


def _service(deployment: Deployment) -> Object:
    scaling, software = deployment.scaling, deployment.software
    assert scaling is not None
    policy: Object = {"min_replicas": scaling.minimum, "max_replicas": scaling.maximum}
    if scaling.per_replica is not None and scaling.minimum < scaling.maximum:
        rate = scaling.per_replica * BUSY
        policy["target_qps_per_replica"] = Noted(
            float(f"{rate:.3g}"), f"{BUSY:.0%} of what the plan says one answers within the goals."
        )
        policy["upscale_delay_seconds"] = 60
        policy["downscale_delay_seconds"] = Noted(600, "A machine takes minutes to come: do not let it go for a lull.")
    elif scaling.minimum != scaling.maximum:
        policy["max_replicas"] = Noted(scaling.minimum, "Nobody stated what one answers per second: raise it with the rate.")
    if deployment.spot:
        policy["dynamic_ondemand_fallback"] = Noted(True, "While spot machines are not available, others replace them.")
    return {
        "readiness_probe": {
            "path": software.health,
            "initial_delay_seconds": Noted(ready_seconds(deployment), "The machine, the image, and the weights."),
            "timeout_seconds": 5,
        },
        "replica_policy": policy,
        "load_balancing_policy": Noted("least_load", "Requests differ in length: count those in work, do not take turns."),
    }


def _setup(deployment: Deployment) -> str:
    software = deployment.software
    lines = []
    loose = [one.path for one in deployment.volumes if not _mounted(one)]
    if loose:
        lines += [f"sudo mkdir -p {' '.join(loose)}", f'sudo chown "$(id -u)" {" ".join(loose)}']
    if software.built:
        lines += [f"pip install {word}" for word in _framework(deployment)]
        if finetuning.is_written(deployment):
            lines.append(f"pip install --requirement {finetuning.REQUIREMENTS}")
        if software.requirements is not None:
            lines.append(f"pip install --requirement {software.requirements}")
        if software.framework == "mpi":
            lines.append("sudo apt-get update && sudo apt-get install --yes openmpi-bin")
    return "\n".join(["set -e", *lines]) + "\n" if lines else ""


def _framework(deployment: Deployment) -> list[str]:
    software, kind = deployment.software, deployment.node.kind
    if software.purpose == "jax":
        extra = {"gpu": f"[cuda{software.cuda.partition('.')[0] or '12'}]", "tpu": "[tpu]"}.get(kind, "")
        return [f'"jax{extra}=={software.version}"']
    if software.purpose != "pytorch":
        return []
    match kind:
        case "gpu" if software.cuda:
            wheels = f"https://download.pytorch.org/whl/cu{software.cuda.replace('.', '')}"
            return [f"torch=={software.version} --index-url {wheels}"]
        case "tpu":
            return [f'torch=={software.version} "torch_xla[tpu]=={software.version}"']
        case "neuron":
            return [
                f'"torch-neuronx=={software.version}.*" neuronx-cc --extra-index-url https://pip.repos.neuron.amazonaws.com'
            ]
    return [f"torch=={software.version} --index-url https://download.pytorch.org/whl/cpu"]


def _in_image(deployment: Deployment, words: Sequence[str]) -> list[str]:
    """SkyPilot starts no image on the machines of TPUs, which have docker. Privileged and on the machine's network, as vLLM's
    guide has it: the devices and the memory that the driver locks are the machine's."""
    software = deployment.software
    if deployment.node.kind != "tpu" or software.built:
        return list(words)
    names = [*_settings(deployment), *(key for key, _, _ in software.secrets)]
    if apart(deployment):
        names += ["PART", "PARTS", "SHARD"]
    settings = [f"--env {name}" for name in names]
    mounts = [f"--volume {one.path}:{one.path}" for one in deployment.volumes if one in mounted_volumes(deployment)]
    options = ["--rm --privileged --net host --shm-size 16g", *settings, *mounts]
    return ["sudo", "--preserve-env docker run", *options, f"--entrypoint {words[0]}", software.image, *words[1:]]


def _run(deployment: Deployment) -> str:
    lines = ["set -e"]
    if apart(deployment):
        per_machine = deployment.per_machine
        lines += [*(f"# {line.strip()}" for line in part_reason(deployment)), f"export PARTS={parts(deployment)}"]
        words = part_command(deployment)
        shard = f'SHARD="$(printf %0{SHARD_DIGITS}d "$PART")"'
        machine = "${MACHINE:-0}"
        if per_machine == 1:
            started = _in_image(deployment, words)
            return "\n".join([*lines, f"export PART={machine}", shard, *folded(started[0], started[1:])]) + "\n"
        lines += [
            "pids=()",
            f"for chip in $(seq 0 {per_machine - 1}); do",
            f"  export PART=$(({machine} * {per_machine} + chip))",
            f"  export CUDA_VISIBLE_DEVICES={_visible(deployment)}",
            f"  {shard}",
            *folded(f"  {words[0]}", [*words[1:], "&"]),
            '  pids+=("$!")',
            "done",
            "# The job fails if any of them does.",
            'for pid in "${pids[@]}"; do wait "$pid"; done',
        ]
        return "\n".join(lines) + "\n"
    written = f"finetune.py and its settings lie beside this file, in the workdir. {OWN_PROGRAM}"
    if note := written if finetuning.is_written(deployment) else program_note(deployment):
        lines.append(f"# {note}")
    if run_machines(deployment) > 1:
        first = 'FIRST="$(echo "$SKYPILOT_NODE_IPS" | head -n 1)"'
        if by_torchrun(deployment):
            words = torchrun(deployment, '"$SKYPILOT_NODE_RANK"', '"$FIRST"', str(RENDEZVOUS_PORT), '"$SKYPILOT_TASK_ID"')
            return "\n".join([*lines, first, *folded(words[0], words[1:])]) + "\n"
        if deployment.software.framework == "mpi":
            slots = processes(deployment) if deployment.node.accelerated else deployment.node.vcpus or 1
            lines += [
                "# The first machine starts the ranks on all of them; the others only wait for it.",
                'if [ "$SKYPILOT_NODE_RANK" != 0 ]; then exit 0; fi',
                f'hosts="$(echo "$SKYPILOT_NODE_IPS" | sed "s/$/:{slots}/" | paste -sd,)"',
                f'mpirun --host "$hosts" --map-by slot {" ".join(quoted(deployment.software.command))}',
            ]
            return "\n".join(lines) + "\n"
        lines.append(first)
        lines.append(f"# {nodes.REASON}")
        lines.append(nodes.exports(deployment, "$SKYPILOT_NODE_RANK", "$FIRST"))
    words = _in_image(deployment, quoted(on_one_machine(deployment)))
    return "\n".join([*lines, *folded(words[0], words[1:])]) + "\n"


def _visible(deployment: Deployment) -> str:
    each = deployment.chips_each
    return '"$chip"' if each <= 1 else f'"$(seq -s, $((chip * {each})) $((chip * {each} + {each - 1})))"'


def _job_count(deployment: Deployment) -> int:
    """Jobs that are started one by one: machines that work apart, or runs of a simulation."""
    return deployment.machines if apart(deployment) else deployment.runs


def _usage(deployment: Deployment) -> str:
    secrets = "".join(f" --secret {key}" for key, _, _ in deployment.software.secrets)
    if deployment.form is Form.SERVICE:
        window = ""
        if deployment.starts and deployment.stops:
            window = (
                f"\nWanted from {deployment.starts} to {deployment.stops} ({deployment.time_zone}), as cron writes it:"
                "\nSkyPilot has no clock, so let one call sky serve up as above (with --yes)"
                f" and sky serve down --yes {deployment.name}."
            )
        return f"sky serve up --service-name {deployment.name} task.yaml{secrets}{window}"
    if _job_count(deployment) > 1:
        unit = "machine: a lost one stops no other" if apart(deployment) else "run"
        return f"./submit.sh starts one managed job for each {unit}."
    return f"sky jobs launch task.yaml{secrets}"


def _submit(deployment: Deployment) -> str:
    secrets = "".join(f" --secret {key}" for key, _, _ in deployment.software.secrets)
    lines = ["#!/bin/bash", *(f"# {line}" for line in heading(deployment).splitlines()), "set -euo pipefail", ""]
    counted = "MACHINE" if apart(deployment) else "RUN"
    words = [f'--name {deployment.name}-"$at"', f'--env {counted}="$at"{secrets}', "task.yaml"]
    lines += [
        f"for at in $(seq 0 {_job_count(deployment) - 1}); do",
        *folded("  sky jobs launch --yes --detach-run", words),
        "done",
    ]
    return "\n".join(lines) + "\n"
