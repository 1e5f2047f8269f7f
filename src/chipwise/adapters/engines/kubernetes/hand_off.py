"""What a job must leave behind, looked for inside its pod: a shell around the command looks once that has ended well. Pure.

Nobody else sees it: the files of a container go with it, and a volume may be mounted by one machine alone. What is missing is
told as the last line of the container's termination message, and by an exit code. Of pods that work together the first looks;
of those that do not, each does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from posixpath import join, normpath
from typing import Any

from chipwise.errors import BadInput
from chipwise.renderer.program_files import inline
from chipwise.renderer.quoting import kubernetes
from chipwise.runner.hand_off import CODE, by_engine, failure_reason
from chipwise.runner.job import Spec

from .kinds import JOB, Object, each_alone
from .sampled import without

SHELL = "/bin/sh"
SAYS = "chipwise: "
_PASSING = ("emptyDir", "configMap", "secret", "downwardAPI", "projected", "ephemeral", "image")  # volumes that end with a pod
_PROGRAM = Path(__file__).parent / "programs" / "hand_off.sh"


@cache
def _program() -> str:
    return inline(_PROGRAM.read_text(encoding="utf-8"))


def looking(container: Mapping[str, Any], spec: Spec, body: Mapping[str, Any]) -> dict[str, Any]:
    """The container with a shell around its command. `body`: of its Job."""
    wanted = by_engine(spec)
    if not wanted:
        return dict(container)
    if not container.get("command"):
        raise BadInput(
            f"{spec.name} runs the default command of its image, so {wanted[0]} cannot be checked afterwards.",
            remedy="Add its command to the workload, or leave out what it produces.",
        )
    arguments = ["each" if each_alone(body) else "first", str(len(wanted)), *map(kubernetes, wanted)]
    return {**container, "command": [SHELL, "-c", kubernetes(_program()), "sh", *arguments, *container["command"]]}


def missing(code: object, message: object) -> str:
    """What a pod that ended with this code says it lacks; another's message, and another's code, say nothing."""
    if code != CODE or not isinstance(message, str):
        return ""
    last = without(message).rstrip("\n").rpartition("\n")[2]
    return failure_reason(last.removeprefix(SAYS)) if last.startswith(SAYS) else ""


def without_shell(spec: Spec, message: object) -> str:
    """Why a container did not start, where it was for the shell that was to look."""
    wanted = by_engine(spec)
    if not wanted or SHELL not in str(message):
        return ""
    return f"its image has no {SHELL}, which would look for {wanted[0]}: take one that has, or leave out what it produces"


def passing(spec: Spec) -> list[str]:
    """Files that are looked for and then go with the pod, since they lie on no volume that outlives it."""
    pods = [one["spec"]["template"]["spec"] for one in spec.objects if one.get("kind") == JOB.name]  # type: ignore[index]
    return [path for path in by_engine(spec) for pod in pods if not _stays(path, pod)]


def _stays(path: str, pod: Object) -> bool:
    main = pod["containers"][0]
    volumes = {one["name"]: one for one in pod.get("volumes") or ()}
    target = normpath(join("/", str(main.get("workingDir") or ""), path))
    return any(_holds(mount, target) for mount in _lasting(main.get("volumeMounts") or (), volumes))


def _lasting(mounts: Sequence[Mapping[str, Any]], volumes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for mount in mounts:
        if not any(kind in volumes.get(mount["name"], {}) for kind in _PASSING):
            yield normpath(str(mount["mountPath"]))


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
