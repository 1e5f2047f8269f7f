"""Places that have no accelerators, whatever a file asks for: what wants one there never starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from chipwise.auditor.ecs import task_definitions
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import accelerated
from chipwise.auditor.pods import Pod, node_labels, pods_of, title_of, variables, words_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look, mapped
from chipwise.auditor.tasks import Task, tasks_of
from chipwise.auditor.terraform import inner, line_inside, rows_of, text_of

ABOUT = "accelerators are asked for where there are some"
_FIX = "Run it on machines: EC2 capacity with GPUs, such as g6, in place of Fargate."
_DEVICE_IMAGES = re.compile(
    r"(?:^|/)(?:vllm/vllm-openai|vllm/vllm-openai-rocm|lmsysorg/sglang|huggingface/text-generation-inference|rocm/vllm)[:@]|nvcr\.io/nim/"
)
_GPU_ASKED = re.compile(r'"?type"?\s*[=:]\s*"GPU"')
_VISIBLE = ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_GPU_PARTITION = re.compile(r"gpu|[ahv]\d00|l40s?|mi\d{3}", re.IGNORECASE)
_ASKS = re.compile(r"^#SBATCH\s+(?:--gpus|-G|--gres|--gpus-per-task|--exclusive|--tres)", re.MULTILINE)
_ON_DEVICES = ("cuda", "vllm", "torchrun", "nvidia-smi", "deepspeed")
_COMPUTE = "eks.amazonaws.com/compute-type"


def check(sources: Sources) -> Iterator[Finding]:
    for task in task_definitions(sources):
        if task.is_fargate and task.gpus:
            message = f"{task.title} asks for {task.gpus} GPUs on Fargate, which has none"
            yield _finding(task.path, task.line, message)
    yield from _batch(sources)
    served = {id(pod.owner) for pod in pods_of(sources, partial=True) if pod.chips}  # a head needs none of its own
    for pod in pods_of(sources):
        claims = pod.spec.get("resourceClaims") or pod.spec.get("runtimeClassName")
        for container in pod.mains if not claims and id(pod.owner) not in served else ():
            image = str(container.get("image") or "")
            if _needs(image, words_of(container)) and not any(_claims(one) for one in pod.mains):
                message = f"{title_of(pod, container)} runs {image} and asks for no accelerator"
                fix = "Add nvidia.com/gpu (or the device that it is made for) to its limits."
                yield _finding(pod.owner.path, line_of(container, "image"), message, fix)
        yield from _runtime_only(pod) if id(pod.owner) not in served else ()
    for script in tasks_of(sources):
        yield from _partition(script)
    for compose in sources.compose:
        for name, service in mapped(compose.body.get("services")).items():
            devices = look(service, "deploy", "resources", "reservations", "devices") or look(service, "gpus")
            devices = devices or look(service, "runtime") or look(service, "devices") or look(service, "extends")
            words = words_of(service) if isinstance(service, Located) else []
            if not devices and _needs(str(look(service, "image") or ""), words):
                message = f"service {name} runs {look(service, 'image')} and has no GPU"
                fix = "Reserve it: deploy.resources.reservations.devices with capabilities [gpu], or gpus: all."
                yield _finding(compose.path, line_of(service, "image"), message, fix)
    for pod in pods_of(sources, partial=True):
        if pod.chips and "fargate" in node_labels(pod.spec).get(_COMPUTE, ()):
            message = f"{pod.owner.title} asks for accelerators on Fargate, which has none"
            yield _finding(pod.owner.path, line_of(pod.spec, "nodeSelector", _COMPUTE), message)


def _runtime_only(pod: Pod) -> Iterator[Finding]:
    """The runtime of NVIDIA without a device: what it shows is nothing, or what belongs to others."""
    settings = {name for container in pod.containers for name, _, _ in variables(container)}
    has_device = settings & set(_VISIBLE) or pod.spec.get("resourceClaims") or any(_claims(one) for one in pod.containers)
    if pod.spec.get("runtimeClassName") == "nvidia" and pod.owner.kind != "DaemonSet" and not has_device:
        message = f"{pod.owner.title} takes the runtime nvidia and asks for no GPU"
        line = line_of(pod.spec, "runtimeClassName")
        also = tuple((pod.owner.path, line_of(one, "resources", "limits")) for one in pod.mains)
        yield replace(_finding(pod.owner.path, line, message, "Add nvidia.com/gpu to its limits."), also=also)


def _partition(task: Task) -> Iterator[Finding]:
    """A batch script in a partition of GPUs: Slurm gives it none that it does not ask for."""
    body, text = task.manifest.body, str(task.manifest.body.get("run"))
    name = str(body.get("partition") or "")
    asks = _ASKS.search(text) or look(body, "resources", "accelerators")
    if _GPU_PARTITION.search(name) and not asks and any(sign in text for sign in _ON_DEVICES):
        message = f"the task runs in the partition {name} and asks for no GPU: Slurm gives it none"
        yield _finding(task.path, line_of(body, "partition"), message, "Add #SBATCH --gpus-per-node=1, or --gres=gpu:1.")


def _batch(sources: Sources) -> Iterator[Finding]:
    """A job of AWS Batch that asks for a GPU, where no environment brings machines with one."""
    jobs = [one for one in sources.blocks if one.labels[:1] == ("aws_batch_job_definition",)]
    wanting = [block for block in jobs if any(_GPU_ASKED.search(row) for _, row in rows_of(sources, block))]
    environments = [one for one in sources.blocks if one.labels[:1] == ("aws_batch_compute_environment",)]
    types = [
        (block, [text_of(one) for one in listed(resources.get("instance_type"))])
        for block in environments
        for resources in inner(block.body, "compute_resources")
    ]
    plain = types and all(names and not any("$" in one or accelerated(one) for one in names) for _, names in types)
    if wanting and plain and "optimal" not in types[0][1]:
        block, names = types[0]
        message = f"{wanting[0].title} asks for a GPU, and {', '.join(names)} of {block.title} has none"
        line = line_inside(sources, block, "instance_type")
        yield _finding(block.path, line, message, "Take machines with GPUs, such as g6.")


def _needs(image: str, words: list[str]) -> bool:
    """An image whose program ends where it finds no device; builds for processors say so."""
    return bool(_DEVICE_IMAGES.search(image)) and not any("cpu" in text.lower() for text in (image, *words))


def _claims(container: Located) -> bool:
    """By the resources of another kind: DRA, or shares that a vendor names."""
    limits = mapped(look(container, "resources", "limits"))
    return bool(look(container, "resources", "claims")) or any("gpu" in str(name).lower() for name in limits)


def _finding(path: str, line: int, message: str, fix: str = _FIX) -> Finding:
    return Finding(rule="no-accelerators", weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)
