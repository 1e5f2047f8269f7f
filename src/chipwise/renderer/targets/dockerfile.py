"""A Dockerfile for the chosen chip: framework and driver that fit it, an ordinary user, and the workload's command.

Engines come as finished images: theirs is only given a user, directories, settings and the command that the plan chose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from chipwise.renderer.cluster.pod import USER
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import finetuning
from chipwise.renderer.launch.health import EVERY_S, LONGEST_S, TRIES, check_words, listens, start_seconds
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import on_one_machine, run_machines
from chipwise.renderer.layout import grouped, uses_efa
from chipwise.renderer.quoting import dns_name, one_line

FITS = "an image for any job, service or device: CUDA, ROCm, Neuron, TPU or CPU; one for each stage of a pipeline"
EXPRESSES = frozenset({"layers", "regions", "no run", "groups"})  # an image is the same however its machines are bought
WRITES = ("Dockerfile",)
LONGEST_LINE = 60_000  # bytes: Docker reads lines of up to 65,535
EFA_INSTALLER = "1.43.3"  # brings libfabric, Open MPI and the plugin by which NCCL finds EFA
TENSORFLOW = "2.20.0"
_WIDTH = 110
_CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
_IGNORED = (
    "# Whatever is not here is sent to the builder and may end in the image.",
    ".git",
    ".github",
    ".venv",
    "venv",
    "**/__pycache__",
    "**/*.pyc",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "# Secrets are given to the container when it runs, never to the image.",
    "**/.env*",
    "**/*.pem",
    "**/*.key",
    "secrets",
    ".aws",
    ".netrc",
    "# Data, weights and checkpoints are mounted.",
    "data",
    "models",
    "checkpoints",
    "**/*.safetensors",
    "**/*.ckpt",
    "**/*.pt",
    "**/*.gguf",
    "**/*.sif",
    "# A change of these must not rebuild the image.",
    "Dockerfile",
    ".dockerignore",
    "compose.yaml",
    "deploy",
)


def render(deployment: Deployment) -> list[File]:
    if deployment.form is Form.PIPELINE:
        rendered = []
        for stage in deployment.stages:
            try:
                files = render(stage)
            except CannotRender:
                continue
            rendered += [replace(file, path=f"{dns_name(stage.title)}/{file.path}") for file in files]
        if rendered:
            return rendered
    software = deployment.software
    if deployment.form is Form.SESSIONS:
        raise CannotRender(
            f"People's notebooks run in a finished image ({software.image}), as a user that the hub chooses.",
            remedy="Use --to jupyterhub; to add packages, begin your own Dockerfile with that image.",
        )
    if deployment.form is Form.PIPELINE or (not software.built and software.image != software.base):
        raise CannotRender(
            f"The workload brings an image of its own ({software.image}), so there is nothing to build.",
            remedy="Leave program.image out to get a Dockerfile; the other targets use the image as it is.",
        )
    text = "\n".join(_lines(deployment)) + "\n"
    if max(len(line.encode()) for line in text.splitlines()) > LONGEST_LINE:
        raise CannotRender(
            "The command or a setting is longer than a line of a Dockerfile may be (65,535 bytes).",
            remedy="Put it into a file beside the program; or take --to kubernetes, which has no such limit.",
        )
    program = finetuning.files(deployment) if finetuning.is_written(deployment) else []
    return [File("Dockerfile", text), File(".dockerignore", "\n".join(_IGNORED) + "\n"), *program]


def _lines(deployment: Deployment) -> Iterator[str]:
    software, node = deployment.software, deployment.node
    yield "# syntax=docker/dockerfile:1"
    yield "#"  # ends the directives: no comment below can become one
    name = software.image if software.built else f"{deployment.name}:1"
    yield from (f"# {line}" for line in heading(deployment).splitlines())
    yield f"# Build: docker buildx build --platform linux/{node.arch} --tag {name} ."
    yield ""
    yield from _base(deployment)
    yield from _packages(deployment)
    yield from _python(deployment)
    yield from _user(deployment)
    yield from _settings(deployment)
    if software.built:
        yield ""
        yield "# Last, because it changes most often. Owned by root: the program cannot rewrite itself."
        yield "COPY . ."
    yield ""
    yield f"USER {USER}:{USER}"
    yield from _service(deployment)
    yield from _command(deployment)


def _base(deployment: Deployment) -> Iterator[str]:
    software, node = deployment.software, deployment.node
    if software.cuda and node.accelerated:
        chip = f"{node.chip} (compute capability {node.capability:.1f})" if node.capability else node.chip
        driver = f"; the machine needs NVIDIA driver {software.driver} or newer" if software.driver else ""
        yield f"# CUDA {software.cuda} has code for {chip}{driver}."
    elif node.kind == "neuron":
        yield "# Compiler, runtime and collectives of one Neuron release; the driver comes with the machine's image."
    elif node.kind == "gpu" and node.vendor == "AMD":
        yield "# ROCm's user side; the amdgpu driver comes with the machine."
    if software.base.endswith(":latest"):
        yield "# No release of it is known to us: pin it by digest after the first pull."
        yield "# hadolint ignore=DL3007"
    yield f"FROM {software.base}"
    yield f"LABEL org.opencontainers.image.title={_value(deployment.name)} \\"
    yield f"      org.opencontainers.image.base.name={_value(software.base)}"


def _packages(deployment: Deployment) -> Iterator[str]:
    """What the system must have beside the base image. Root is needed for it, whoever the base image runs as."""
    software = deployment.software
    needed = []
    if not software.built:
        yield "# Some images start as another user, who may not add one."
        yield "USER 0"
        return
    if _bare(deployment):
        needed += ["python3", "python3-pip", "python3-venv"]
    efa = _installs_efa(deployment)
    if efa:
        needed += ["ca-certificates", "curl"]
    elif software.framework == "mpi":
        needed += ["openmpi-bin"]
    if software.framework == "mpi" and run_machines(deployment) > 1:
        needed += ["openssh-client", "openssh-server"]
    if needed:
        yield ""
        if efa:
            with_plugin = "libfabric and its NCCL plugin" if deployment.node.kind == "gpu" else "libfabric"
            yield f"# Without {with_plugin} in the image, machines would talk over TCP at a fraction of the speed."
        yield "# The base image's tag decides the versions of the distribution's packages."
        yield "# hadolint ignore=DL3003,DL3008" if efa else "# hadolint ignore=DL3008"
        yield "RUN apt-get update \\"
        yield f"    && apt-get install --yes --no-install-recommends {' '.join(needed)} \\"
        if efa:
            yield "    && mkdir /tmp/efa \\"
            yield "    && curl --fail --silent --show-error --output /tmp/efa.tar.gz \\"
            yield f"       https://efa-installer.amazonaws.com/aws-efa-installer-{EFA_INSTALLER}.tar.gz \\"
            yield "    && tar --extract --gzip --file /tmp/efa.tar.gz --directory /tmp/efa --strip-components 1 \\"
            yield "    && (cd /tmp/efa && ./efa_installer.sh --yes --skip-kmod --skip-limit-conf --no-verify) \\"
        yield f"    && rm -rf /var/lib/apt/lists/*{' /tmp/efa /tmp/efa.tar.gz' if efa else ''}"
    if efa:
        yield "ENV PATH=/opt/amazon/openmpi/bin:/opt/amazon/efa/bin:$PATH"
        if deployment.node.kind == "gpu":
            library = "/opt/amazon/ofi-nccl/lib:/opt/amazon/efa/lib"
            yield f"ENV LD_LIBRARY_PATH={library}:/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
    if _bare(deployment):
        yield "# Python's packages go into a directory of their own: the system's Python belongs to the distribution."
        yield "RUN python3 -m venv /opt/venv"
        yield "ENV PATH=/opt/venv/bin:$PATH"


def _bare(deployment: Deployment) -> bool:
    """An image without Python, for a program in it."""
    first = deployment.software.command[:1]
    python = first in (("python",), ("python3",)) or deployment.software.requirements is not None
    return deployment.software.purpose == "cuda" and python


def _installs_efa(deployment: Deployment) -> bool:
    """Images of Neuron have it already."""
    return uses_efa(deployment) and deployment.node.kind in ("gpu", "cpu")


def _python(deployment: Deployment) -> Iterator[str]:
    software = deployment.software
    if not software.built:
        return
    wanted = _framework(deployment)
    yield ""
    yield "WORKDIR /app"
    own = [finetuning.REQUIREMENTS] if finetuning.is_written(deployment) else []
    named = [*own, *([software.requirements] if software.requirements is not None else [])]
    if not wanted and not named:
        return
    if wanted:
        yield "# The cache stays with the builder and out of the image."
        yield "RUN --mount=type=cache,target=/root/.cache/pip \\"
        yield f"    PIP_BREAK_SYSTEM_PACKAGES=1 pip install {' '.join(wanted)}"
    for requirements in named:
        yield "# Before the program, so that a change of it reinstalls nothing. The cache stays out of the image."
        yield f"COPY {requirements} /tmp/requirements.txt"
        yield "RUN --mount=type=cache,target=/root/.cache/pip \\"
        yield "    PIP_BREAK_SYSTEM_PACKAGES=1 pip install --requirement /tmp/requirements.txt"


def _framework(deployment: Deployment) -> list[str]:
    """What is installed where the base image has no framework. Versions are those of the image table."""
    software, kind, accelerated = deployment.software, deployment.node.kind, deployment.node.accelerated
    plain = software.base.startswith("python:")
    if software.purpose == "jax":
        extra = {"gpu": f"[cuda{software.cuda.partition('.')[0] or '12'}]", "tpu": "[tpu]"}.get(kind, "") if accelerated else ""
        return [f'"jax{extra}=={software.version}"']
    if software.purpose == "pytorch" and plain:
        if kind == "tpu":
            return [f"torch=={software.version}", f'"torch_xla[tpu]=={software.version}"', f"--extra-index-url {_CPU_WHEELS}"]
        return [f"torch=={software.version}", f"--index-url {_CPU_WHEELS}"]
    if software.framework == "tensorflow":
        return [f'"tensorflow{"[and-cuda]" if kind == "gpu" and accelerated else ""}=={TENSORFLOW}"']
    return []


def _user(deployment: Deployment) -> Iterator[str]:
    paths = [one.path for one in deployment.volumes]
    yield ""
    yield "# A number that is nobody on the machine; the same that Kubernetes runs it as."
    if paths:
        yield "# Volumes take the owner of the directory that they are first mounted over."
    yield f"RUN groupadd --gid {USER} app \\"
    end = " \\" if paths else ""
    yield f"    && useradd --uid {USER} --gid {USER} --no-log-init --home-dir /tmp --no-create-home app{end}"
    if paths:
        yield f"    && install --directory --owner={USER} --group={USER} {' '.join(paths)}"


def _settings(deployment: Deployment) -> Iterator[str]:
    yield ""
    pairs = [("PYTHONUNBUFFERED", "1"), *(one for one in deployment.software.env if one[0] != "PYTHONUNBUFFERED")]
    printable = [(key, value) for key, value in pairs if value.isprintable()]
    last = len(printable) - 1
    for index, (key, value) in enumerate(printable):
        yield f"{'ENV ' if not index else '    '}{key}={_value(value)}{' ' + chr(92) if index < last else ''}"
    for key, value in pairs:
        if not value.isprintable():
            yield f"# {key} has signs that a Dockerfile cannot hold, such as a new line: give it to the container."
    if deployment.software.secrets:
        names = ", ".join(key for key, _, _ in deployment.software.secrets)
        yield f"# Given when it runs, never built in: {names}."


def _value(text: str) -> str:
    """A value of ENV or LABEL: in double quotes, `$`, the quote and the backslash are escaped to stay text."""
    return '"' + re.sub(r'(["$\\])', r"\\\1", one_line(text) if not text.isprintable() else text) + '"'


def _service(deployment: Deployment) -> Iterator[str]:
    software = deployment.software
    if listens(deployment):
        yield f"EXPOSE {software.port}"
    words = check_words(deployment)
    if words is not None:
        options = f"--interval={EVERY_S}s --timeout={LONGEST_S}s --retries={TRIES}"
        yield "# Failures count once there was time to fetch the weights and load them."
        yield f"HEALTHCHECK {options} --start-period={start_seconds(deployment)}s \\"
        yield f"    CMD {json.dumps(words)}"


def _command(deployment: Deployment) -> Iterator[str]:
    yield ""
    if finetuning.is_written(deployment):
        yield "# finetune.py and its settings are written beside this file. Your own instead: program.command of the workload."
    elif note := program_note(deployment):
        yield f"# {note}"
    elif grouped(deployment):
        yield "# One copy of the model takes several machines, and this is what each runs: their numbers come from outside, by"
        yield "# the pods of --to kubernetes, kueue or ray. Alone on one machine it does not start."
    elif run_machines(deployment) > 1:
        yield "# As one machine runs it. Over several, the scheduler's command tells each its number (--to kubernetes, slurm)."
    yield "ENTRYPOINT []"
    yield from _words("CMD", on_one_machine(deployment))


def _words(instruction: str, words: Sequence[str]) -> Iterator[str]:
    """Exec form: no shell between Docker and the program, so it gets the signals, and nothing in a word is expanded."""
    parts = [json.dumps(word, ensure_ascii=not word.isprintable()) for word in words]
    line = f"{instruction} [{', '.join(parts)}]"
    if len(line) <= _WIDTH:
        yield line
        return
    line = f"{instruction} [{parts[0]}"
    for part in parts[1:]:
        if len(line) + len(part) + 2 > _WIDTH:
            yield f"{line}, \\"
            line = f"     {part}"
        else:
            line = f"{line}, {part}"
    yield f"{line}]"
