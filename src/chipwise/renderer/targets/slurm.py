"""Slurm: a batch script for a job, an array where machines work apart, and a chain of them for a pipeline of jobs."""

from __future__ import annotations

from dataclasses import replace

from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.handing import SETTINGS, arrives_at, key, leaves_from
from chipwise.renderer.quoting import dns_name, one_line
from chipwise.renderer.slurm.script import script
from chipwise.units import GB

FITS = "jobs on a Slurm cluster: one node or many, arrays of independent parts, MPI, a pipeline of jobs"
EXPRESSES = frozenset({"hours"})
WRITES = ("job.sbatch",)


def render(deployment: Deployment) -> list[File]:
    if deployment.form is Form.PIPELINE:
        return _pipeline(deployment)
    _refuse(deployment)
    return [File("job.sbatch", script(deployment), executable=True)]


def _refuse(deployment: Deployment) -> None:
    node = deployment.node
    if deployment.form is not Form.JOB:
        causes = {Form.SERVICE: "A service runs until it is stopped", Form.SESSIONS: "Notebooks wait for people"}
        raise CannotRender(
            f"{causes.get(deployment.form, f'{deployment.title} runs on devices')}, and Slurm runs jobs that end.",
            remedy={Form.SESSIONS: "Use --to jupyterhub.", Form.SERVICE: "Use --to kubernetes, skypilot or compose."}.get(
                deployment.form, "Use --to compose for one device."
            ),
        )
    if node.kind == "tpu":
        raise CannotRender(
            f"{node.chip} is rented as slices that Slurm does not manage.", remedy="Use --to kubernetes or skypilot."
        )


def _handing(deployment: Deployment, stage: Deployment) -> Deployment:
    """With a directory of the shared storage for each thing that it is handed or hands on: one for both of its ends."""
    volumes = []
    for hand_off in deployment.hand_offs:
        name = f"hand-offs/{key(hand_off.source)}-{key(hand_off.target)}"
        if hand_off.target == stage.title:
            volumes.append(Volume(name, arrives_at(hand_off.source), hand_off.size_bytes or GB, True))
        if hand_off.source == stage.title:
            volumes.append(Volume(name, leaves_from(stage, hand_off), hand_off.size_bytes or GB, True))
    env = tuple(sorted((SETTINGS | dict(stage.software.env)).items())) if volumes else stage.software.env
    return replace(stage, volumes=(*volumes, *stage.volumes), software=replace(stage.software, env=env))


def _pipeline(deployment: Deployment) -> list[File]:
    """Each stage waits for those that it takes something from."""
    for stage in deployment.stages:
        try:
            _refuse(stage)
        except CannotRender as error:
            raise CannotRender(
                f"Stage {one_line(stage.title)}: {error.message}",
                remedy="Use --to argo for the whole, or --stage with one of: "
                + ", ".join(one_line(one.title) for one in deployment.stages if one.form is Form.JOB)
                + ".",
            ) from None
    names = {stage.title: dns_name(stage.title) for stage in deployment.stages}
    lines = ["#!/bin/bash", *(f"# {line}" for line in heading(deployment).splitlines())]
    lines += ["# Submits all stages; each begins when those before it have ended well.", "set -euo pipefail", ""]
    variables: dict[str, str] = {}
    for index, stage in enumerate(deployment.stages):
        before = [
            variables[one.source] for one in deployment.hand_offs if one.target == stage.title and one.source in variables
        ]
        waits = f" --dependency=afterok:{':'.join(f'${{{name}}}' for name in dict.fromkeys(before))}" if before else ""
        variables[stage.title] = f"stage_{index}"
        lines.append(f'stage_{index}="$(sbatch --parsable{waits} {names[stage.title]}.sbatch)"')
        lines.append(f'echo "{names[stage.title]}: job ${{stage_{index}}}"')
    handed = [_handing(deployment, stage) for stage in deployment.stages]
    files = [File("submit.sh", "\n".join(lines) + "\n", executable=True)]
    return files + [File(f"{names[stage.title]}.sbatch", script(stage), executable=True) for stage in handed]
