"""Docker Compose on one machine of the plan, on a workstation like it, or on a device at the edge.

Compose starts containers on one machine only. Replicas and parts of divided work that need nothing of each other are
started machine by machine; a job whose machines must meet is for another target.
"""

from __future__ import annotations

from chipwise.renderer.cluster.accelerators import KEPT_BACK, pod_share
from chipwise.renderer.cluster.pod import USER
from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.health import EVERY_S, LONGEST_S, TRIES, check_words, listens, start_seconds
from chipwise.renderer.launch.mounted import mounted_volumes
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import (
    SHARD_DIGITS,
    apart,
    on_one_machine,
    part_command,
    part_reason,
    parts,
    run_machines,
)
from chipwise.renderer.launch.streams import FOLDER, LIST, list_reason, live, stream_list, stream_reason, stream_words
from chipwise.renderer.launch.timing import grace_seconds
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Noted, Yaml, document
from chipwise.units import GIB

FITS = "one machine with Docker: a service, a job that fits one machine, or a device at the edge"
EXPRESSES = frozenset({"streams"})
WRITES = ("compose.yaml",)
Object = dict[str, Yaml]
# Device files by which accelerators that Docker does not know are handed over (their makers' documentation).
_ROCM = "HIP_VISIBLE_DEVICES"
_FILES = {"Hailo": ("/dev/hailo0",), "Google": ("/dev/apex_0",)}


def render(deployment: Deployment) -> list[File]:
    _refuse(deployment)
    service = _service(deployment)
    project: Object = {"name": deployment.name, "services": {"main": service}}
    volumes = _named_volumes(deployment)
    if volumes:
        project["volumes"] = {
            volume.name: {
                "name": Noted(f"{deployment.name}-{volume.name}", f"{volume.reason.capitalize()}.")
                if volume.reason
                else f"{deployment.name}-{volume.name}"
            }
            for volume in volumes
        }
    files = _secret_files(deployment)
    if files:
        project["secrets"] = {
            name: {
                "file": Noted(path, f"Readable by user {USER} alone (chown {USER}, mode 400); keep the directory out of git.")
            }
            for name, path in files.items()
        }
    listed = [File(LIST, stream_list(deployment))] if live(deployment) else []
    return [File("compose.yaml", document(project, title=f"{heading(deployment)}\n{_usage(deployment)}")), *listed]


def _refuse(deployment: Deployment) -> None:
    node = deployment.node
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender(
                "The stages of a pipeline run on machines of their own, and Compose knows one machine.",
                remedy=f"Use --to argo, or {one_stage(deployment)}.",
            )
        case Form.SESSIONS:
            raise CannotRender("Notebooks need a hub that starts and stops them.", remedy="Use --to jupyterhub.")
    if deployment.form is Form.JOB and run_machines(deployment) > 1:
        raise CannotRender(
            f"The job runs on {run_machines(deployment)} machines that must meet, and Compose knows one machine.",
            remedy="Use --to slurm, kubernetes or skypilot, or plan for one machine with --limit machines=1.",
        )
    if node.hosts > 1:
        raise CannotRender(
            f"{node.machine} is a slice of {node.hosts} hosts, and Compose knows one machine.",
            remedy="Use --to kubernetes or skypilot.",
        )
    if node.kind in ("fpga", "npu"):
        raise CannotRender(
            f"How {node.chip} appears to a container depends on what is loaded into it.",
            remedy="Use --to ec2 or terraform for the machine, and start the program on it directly.",
        )


def _usage(deployment: Deployment) -> str:
    """How to start it, and how often."""
    own = [one.name for one in mounted_volumes(deployment, custom=True) if one not in _named_volumes(deployment)]
    first = f"Once: mkdir -p {' '.join(own)} && sudo chown {USER}:{USER} {' '.join(own)}\n" if own else ""
    return first + _start(deployment)


def _start(deployment: Deployment) -> str:
    if deployment.form is Form.DEVICES:
        return "On each device: docker compose up --detach"
    if deployment.per_machine > 1:
        per_copy = deployment.chips_each
        chips = " ".join(f"GPU{at}=$((chip * {per_copy} + {at}))" for at in range(per_copy)) if per_copy > 1 else "GPU0=$chip"
        port = f" PORT=$(({deployment.software.port} + chip))" if deployment.software.port is not None else ""
        part = " PART=$((first + chip))" if apart(deployment) else " GROUP=$((first + chip))" if live(deployment) else ""
        text = (
            f"One replica. The machine holds {deployment.per_machine}: for chip in $(seq 0 {deployment.per_machine - 1}); do\n"
            f"  {chips}{port}{part} docker compose --project-name {deployment.name}-$chip up --detach; done"
        )
        if part:
            text += f"\nfirst: 0 on the first machine, {deployment.per_machine} on the second, and so on."
        return text
    suffix = f" Do so on each of the {deployment.machines} machines." if deployment.machines > 1 else ""
    part = "PART=0 " if apart(deployment) and deployment.machines > 1 else ""
    if live(deployment):
        last = deployment.machines - 1
        group = f" on the first machine, GROUP=1 on the next, up to {last}." if last else ""
        return f"GROUP=0 docker compose up --detach --wait{group}"
    if deployment.form is Form.SERVICE:
        return f"docker compose up --detach --wait{'.' if suffix else ''}{suffix}"
    return f"{part}docker compose up --exit-code-from main{'.' if suffix else ''}{suffix}"


def _service(deployment: Deployment) -> Object:
    software = deployment.software
    fields: Object = {"image": _text(software.image)}
    if software.built and deployment.form is Form.DEVICES:
        fields["image"] = Noted(
            software.image, "Built once from `chipwise render --to dockerfile`: push it, and put its full name here."
        )
    elif software.built:
        fields["build"] = {"context": Noted(".", "The Dockerfile of `chipwise render --to dockerfile`.")}
    elif software.image.endswith(":latest"):
        fields["image"] = Noted(software.image, "No release of it is known to us: pin it by digest after the first pull.")
    fields |= _command(deployment)
    fields["environment"] = _environment(deployment)
    if _secret_files(deployment):
        fields["secrets"] = list(_secret_files(deployment))
    if listens(deployment):
        outside = f"${{PORT:-{software.port}}}" if deployment.per_machine > 1 else str(software.port)
        fields["ports"] = Noted(
            [f"127.0.0.1:{outside}:{software.port}"], "For this machine only: put a proxy with TLS before it."
        )
    mounts = [_mount(deployment, one) for one in mounted_volumes(deployment, custom=True)]
    if live(deployment):
        listed: Object = {"type": "bind", "source": f"./{LIST}", "target": f"{FOLDER}/{LIST}", "read_only": True}
        mounts.append(Noted(listed | {"bind": {"create_host_path": False}}, list_reason(deployment)))
    if mounts:
        fields["volumes"] = mounts
    fields |= _devices(deployment)
    check = check_words(deployment)
    if check is not None:
        fields["healthcheck"] = {
            "test": ["CMD", *map(_text, check)],
            "interval": f"{EVERY_S}s",
            "timeout": f"{LONGEST_S}s",
            "retries": TRIES,
            "start_period": Noted(f"{start_seconds(deployment)}s", "Time to fetch the weights and load them."),
        }
    return fields | _guards(deployment)


def _command(deployment: Deployment) -> Object:
    """Secrets are files in the container; a shell reads them into the settings that the program expects and gives way."""
    software, words = deployment.software, [_text(word) for word in on_one_machine(deployment)]
    note = program_note(deployment)
    reads = [f'export {key}="$(cat /run/secrets/{_secret_name(name, part)})"' for key, name, part in software.secrets]
    if apart(deployment):
        script = "\n".join(
            [*reads, f'SHARD="$(printf %0{SHARD_DIGITS}d "$PART")"', f"exec {' '.join(part_command(deployment))}"]
        )
        return {"entrypoint": ["/bin/sh", "-c"], "command": Noted([_text(script)], "\n".join(part_reason(deployment)))}
    if live(deployment):
        words, note = [_text(word) for word in stream_words(deployment)], "\n".join(stream_reason(deployment))
    command: Yaml = Noted(words, note) if note else words
    if not reads:
        return {"entrypoint": [], "command": command}
    shell_words = ["/bin/sh", "-c", _text("; ".join([*reads, 'exec "$@"'])), "main"]
    reason = "Secrets come as files: the shell reads each into its setting, and the program takes the shell's place."
    return {"entrypoint": Noted(shell_words, reason), "command": command}


def _text(text: str) -> str:
    """Compose replaces `$NAME` in every value; doubled, it stays text."""
    return text.replace("$", "$$")


def _environment(deployment: Deployment) -> Object:
    values: Object = {"HOME": "/tmp", **{key: _text(value) for key, value in deployment.software.env}}
    if name := _visible(deployment):
        reason = "Of the chips that it sees, those of this copy."
        values[name] = Noted(",".join(_numbers(deployment)), reason)
    if live(deployment):
        values["GROUP"] = Noted("${GROUP:?which group of streams, from 0}", "Its own streams.")
    if apart(deployment):
        values["PARTS"] = str(parts(deployment))
        values["PART"] = Noted("${PART:?which part, from 0}", "Its own part of the work.")
    return values


def _secret_name(name: str, part: str) -> str:
    return f"{name}-{part}"


def _secret_files(deployment: Deployment) -> dict[str, str]:
    return {_secret_name(name, part): f"./secrets/{name}/{part}" for _, name, part in deployment.software.secrets}


def _mount(deployment: Deployment, volume: Volume) -> Yaml:
    if volume in _named_volumes(deployment):
        return f"{volume.name}:{volume.path}"
    mount: Object = {
        "type": "bind",
        "source": f"./{volume.name}",
        "target": volume.path,
        "bind": {"create_host_path": False},
    }
    if volume.url is not None:
        return Noted(mount, f"Its contents lie at {volume.url}: fetch them first.")
    return Noted(mount, f"{volume.reason.capitalize()}.") if volume.reason else mount


def _named_volumes(deployment: Deployment) -> tuple[Volume, ...]:
    """A fresh volume takes the owner of the image's directory, and only images that we build have one for our user. For
    others, and for data that is brought, a directory of the machine is taken."""
    return tuple(one for one in mounted_volumes(deployment, custom=True) if one.name != "data" and deployment.software.built)


def _visible(deployment: Deployment) -> str | None:
    """The setting that says which chips a copy uses, where its container sees those of all copies."""
    node = deployment.node
    if deployment.per_machine == 1 or not node.accelerated:
        return None
    return "HABANA_VISIBLE_DEVICES" if node.kind == "gaudi" else _ROCM if node.kind == "gpu" and node.vendor == "AMD" else None


def _numbers(deployment: Deployment) -> list[str]:
    """Of a copy's chips on its machine, which whoever starts several gives."""
    return [f"${{GPU{at}:-{at}}}" for at in range(deployment.chips_each or deployment.node.chips)]


def _devices(deployment: Deployment) -> Object:
    """How the machine's accelerator is handed to the container."""
    node, share = deployment.node, pod_share(deployment) * (1 - KEPT_BACK)
    limits: Object = {}
    if node.vcpus is not None:
        limits["cpus"] = f"{max(node.vcpus * share, 0.5):.1f}"
    if node.memory_bytes is not None:
        limits["memory"] = f"{max(int(node.memory_bytes * share / GIB * 1024), 128)}M"
    resources: Object = {"limits": Noted(limits, "A tenth of the machine stays for the system.")} if limits else {}
    fields: Object = {}
    count = deployment.chips_each or node.chips
    if node.kind in ("gpu", "edge") and node.vendor == "NVIDIA" and node.accelerated:
        wanted: Object = {"driver": "nvidia"}
        if deployment.per_machine > 1:
            wanted["device_ids"] = _numbers(deployment)
        else:
            wanted["count"] = count
        resources["reservations"] = {"devices": [wanted | {"capabilities": ["gpu"]}]}
        if node.kind == "edge":
            fields["runtime"] = Noted("nvidia", "Jetsons hand their chip over through NVIDIA's container runtime.")
    elif node.kind == "gpu":
        fields["devices"] = Noted(["/dev/kfd", "/dev/dri"], "How ROCm's chips are handed over; all of the machine's.")
        groups = ["video", "${RENDER_GROUP:-109}"]
        reason = "Who may use the chips. An image need not know render by name: RENDER_GROUP=$(stat -c %g /dev/kfd)"
        fields["group_add"] = Noted(groups, reason)
    elif node.kind == "neuron":
        numbers = _numbers(deployment) if deployment.per_machine > 1 else [str(at) for at in range(count)]
        fields["devices"] = [f"/dev/neuron{number}" for number in numbers]
    elif node.kind == "gaudi":
        fields["runtime"] = "habana"
    elif node.kind == "tpu":
        fields["privileged"] = Noted(True, "The TPU's driver needs the host's devices and locked memory; nothing less works.")
    elif node.kind == "edge" and node.vendor in _FILES:
        fields["devices"] = list(_FILES[node.vendor])
    if resources:
        fields["deploy"] = {"resources": resources}
    return fields


def _guards(deployment: Deployment) -> Object:
    lasting = deployment.form is not Form.JOB
    fields: Object = {
        "restart": "unless-stopped" if lasting else Noted("on-failure:3", "The program's own failures; it resumes by itself."),
        "stop_grace_period": _grace(deployment),
        "init": Noted(True, "Passes signals on and collects what ended."),
        "user": f"{USER}:{USER}",
        "read_only": True,
        "tmpfs": Noted(
            [f"/tmp:mode=1777,exec,size={_scratch(deployment)}"], "Compilers of kernels load what they write there."
        ),
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    }
    if deployment.node.kind == "tpu":
        fields.pop("cap_drop")
        fields["user"] = Noted("0:0", "A TPU's devices belong to root.")
    if deployment.node.accelerated and deployment.form is not Form.DEVICES:
        size = (deployment.node.memory_bytes or 32 * GIB) * pod_share(deployment) / 8 / GIB
        fields["shm_size"] = Noted(f"{max(int(size), 1)}gb", "Readers and NCCL share memory; 64 MiB is the default.")
        fields["ulimits"] = {"memlock": -1, "stack": 67108864}
    fields["logging"] = {
        "driver": "local",
        "options": Noted({"max-size": "20m", "max-file": "5"}, "A disk full of logs has ended many a long run."),
    }
    return fields


def _grace(deployment: Deployment) -> Yaml:
    match deployment.form:
        case Form.JOB:
            return Noted("300s", "Time to save what was done.")
        case Form.SERVICE:
            return Noted(f"{grace_seconds(deployment)}s", "Time to end the longest answer.")
    return "60s"


def _scratch(deployment: Deployment) -> str:
    """Counts as memory of the container: a tenth of it, and no more than is useful."""
    size = (deployment.node.memory_bytes or 16 * GIB) * pod_share(deployment) / 10
    return f"{max(min(int(size / 2**20), 20_480), 64)}m"
