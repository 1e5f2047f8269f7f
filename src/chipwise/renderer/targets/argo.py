"""Argo Workflows: a pipeline as a DAG of its stages, each on its own machines; on a clock where the workload has one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from chipwise.catalog.region import readable
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import USER, Object, namespace_of
from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.handing import SETTINGS
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.workflow.hand_offs import ROOT, STORES, Place, PlaceHandOffs, key, mover, publisher, task_arguments
from chipwise.renderer.workflow.rules import rules
from chipwise.renderer.workflow.stages import RUN_LABEL, applied, check, stage_template
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "pipelines as workflows, one for each place; single jobs too, also on a clock"
EXPRESSES = frozenset({"hours", "pulls"})
WRITES = ("workflow.yaml",)
LONGEST_NAME = 30  # a run's name and a stage's are put behind it
KEPT_S = 7 * 86400
PLAIN = "python:3.12-slim-bookworm"  # where the catalog was not asked: any small image will do


def render(deployment: Deployment) -> list[File]:
    stages = _stages(deployment)
    files = []
    places = _places(deployment, stages)
    for place in places:
        folder = f"{place.name}/" if len(places) > 1 else ""
        name = dns_name(deployment.name, LONGEST_NAME)
        workflow = _work(deployment, place, name)
        about = _about(deployment, place, places)
        files += [
            File(f"{folder}namespace.yaml", document(*rules(name, place), title=heading(deployment, "Apply this first."))),
            File(f"{folder}workflow.yaml", document(workflow, title=heading(deployment, about))),
        ]
    return files


def _stages(deployment: Deployment) -> tuple[Deployment, ...]:
    if deployment.form not in (Form.PIPELINE, Form.JOB):
        target = {Form.SERVICE: "kubernetes", Form.SESSIONS: "jupyterhub", Form.DEVICES: "compose"}[deployment.form]
        raise CannotRender(
            f"A workflow ends, and {deployment.kind} here does not ({deployment.form}).", remedy=f"Use --to {target}."
        )
    stages = deployment.stages or (deployment,)
    rendered = tuple(stage for stage in stages if stage.form is not Form.DEVICES)
    if not rendered:
        raise CannotRender("All stages run on edge devices; no cluster reaches them.", remedy="Use --to compose with --stage.")
    for stage in rendered:
        if stage.form is Form.SESSIONS:
            raise CannotRender(f"{stage.title[:60]} is for people.", remedy="Use --to jupyterhub for it, with --stage.")
        resource_of(stage.node)  # raises for what Kubernetes cannot hand out
        check(stage)
    return rendered


def _places(deployment: Deployment, stages: Sequence[Deployment]) -> list[Place]:
    """By provider and region, in the order of their first stages. Stages of several pods get a volume for what they pass on."""
    groups: dict[tuple[str, str], list[Deployment]] = {}
    for stage in stages:
        groups.setdefault((stage.node.provider, stage.node.region), []).append(_with_room(deployment, stage))
    return [Place(*where, tuple(found)) for where, found in groups.items()]


def _with_room(deployment: Deployment, stage: Deployment) -> Deployment:
    hand_offs = [one for one in deployment.hand_offs if stage.title in (one.source, one.target)]
    if not hand_offs:
        return stage
    env = SETTINGS | dict(stage.software.env)
    stage = replace(stage, software=replace(stage.software, env=tuple(sorted(env.items()))))
    if not applied(stage):
        return stage
    size = 1.2 * sum(one.size_bytes or 1e9 for one in hand_offs)
    volume = Volume(
        name="hand-offs",
        path=ROOT,
        size_bytes=max(size, 1e9),
        shared=True,
        url=None,
        reason="what comes from other stages and goes to others",
    )
    return replace(stage, volumes=(*stage.volumes, volume))


def _about(deployment: Deployment, place: Place, places: Sequence[Place]) -> str:
    lines = []
    if len(places) > 1:
        names = ", ".join(other.name for other in places if other is not place)
        lines.append(
            f"The part of {place.provider} {readable(place.region)}: {', '.join(stage.title for stage in place.stages)}."
        )
        lines.append(f"The rest is in {names}. Start each with the same parameter `run`; hand-offs are under keys with it.")
    lines += [f"{stage.title}: {note}" for stage in place.stages if deployment.stages for note in stage.notes]
    left = [stage.title for stage in deployment.stages if stage.form is Form.DEVICES]
    if left:
        lines.append(f"{', '.join(left)}: on devices, which no cluster reaches. They fetch their input from the store.")
    return "\n".join(lines)


def _work(deployment: Deployment, place: Place, name: str) -> Object:
    store = STORES.get(deployment.node.provider, "s3")
    hand_offs = PlaceHandOffs(name, store, deployment.hand_offs, place)
    spec = _spec(deployment, place, hand_offs, name)
    space = namespace_of(place.stages[0])
    labels: Object = {"app.kubernetes.io/part-of": name, "app.kubernetes.io/managed-by": "chipwise"}
    starts, zone = _clock(deployment)
    if not starts:
        metadata: Object = {"generateName": Noted(f"{name}-", "A name for each run: kubectl create, not apply.")}
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": metadata | {"namespace": space, "labels": labels},
            "spec": spec,
        }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "CronWorkflow",
        "metadata": {"name": name, "namespace": space, "labels": labels},
        "spec": {
            "schedules": [starts],
            "timezone": zone,
            "concurrencyPolicy": Noted("Forbid", "A run that takes longer is not overtaken by the next."),
            "startingDeadlineSeconds": Noted(3600, "Missed by less than an hour, it is made up for."),
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "workflowSpec": spec,
        },
    }


def _clock(deployment: Deployment) -> tuple[str, str]:
    """Of a job, or of the first job among the stages: the hours of a service are not those of its pipeline."""
    jobs = [one for one in (deployment.stages or (deployment,)) if one.form is Form.JOB and one.starts]
    return (jobs[0].starts, jobs[0].time_zone) if jobs else ("", "UTC")


def _spec(deployment: Deployment, place: Place, hand_offs: PlaceHandOffs, name: str) -> Object:
    image = deployment.platforms.get("Images", {}).get("plain", PLAIN)
    fields: Object = {"entrypoint": "stages", "onExit": "ended", "serviceAccountName": f"{name}-steps"}
    if deployment.hand_offs:
        run = {
            "name": "run",
            "value": Noted("1", "Part of the keys of hand-offs: another for each run that must not overwrite."),
        }
        fields["arguments"] = {"parameters": [run]}
        reference = {"configMap": "artifact-repositories", "key": "default"}
        reason = (
            f"A bucket ({hand_offs.store}) that your cluster's ConfigMap of this name points to; the same one in every place."
        )
        fields["artifactRepositoryRef"] = Noted(reference, reason)
    if deployment.deadline_s is not None and deployment.form is not Form.PIPELINE:
        fields["activeDeadlineSeconds"] = Noted(math.ceil(deployment.deadline_s), "The workload's deadline, waiting included.")
    fields["archiveLogs"] = bool(deployment.hand_offs)
    fields["podGC"] = {"strategy": Noted("OnPodSuccess", "Failed pods are kept for inspection.")}
    fields["ttlStrategy"] = {"secondsAfterCompletion": Noted(KEPT_S, "A week.")}
    fields["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    templates: list[Yaml] = [{"name": "stages", "dag": {"tasks": _tasks(place, hand_offs)}}]
    for stage in place.stages:
        if applied(stage) and hand_offs.inputs_of(stage):
            templates.append(mover(stage, hand_offs, True, image))
        templates.append(stage_template(stage, hand_offs, f"{name}-apply"))
        if applied(stage) and hand_offs.out_of(stage):
            templates.append(mover(stage, hand_offs, False, image))
    if any(not hand_offs.comes_from_here(one) for stage in place.stages for one in hand_offs.inputs_of(stage)):
        templates.append({"name": "wait", "suspend": {}})
    fields["templates"] = [*templates, *_ending(place, name, image)]
    return fields


def _tasks(place: Place, hand_offs: PlaceHandOffs) -> list[Yaml]:
    """Each stage after those that hand something to it; without any hand-off, one after the other."""
    tasks: list[Yaml] = []
    before: str | None = None
    waits: set[str] = set()
    for stage in place.stages:
        task, incoming = key(stage.title), hand_offs.inputs_of(stage)
        needs = [publisher(one.source, hand_offs) for one in incoming if hand_offs.comes_from_here(one)]
        if not hand_offs.all and before is not None:
            needs = [before]
        for title in dict.fromkeys(one.source for one in incoming if not hand_offs.comes_from_here(one)):
            wait = f"{key(title)}-elsewhere"
            if wait not in waits:
                reason = f"{title} runs in another place. When it is done there: argo resume, node {wait}."
                tasks.append(Noted({"name": wait, "template": "wait"}, reason))
            waits.add(wait)
            needs.append(wait)
        source: Object = task_arguments(stage, hand_offs)
        if applied(stage) and incoming:
            tasks.append({"name": f"{task}-fetch", "template": f"{task}-fetch", **_after(needs), **source})
            needs, source = [f"{task}-fetch"], {}
        tasks.append({"name": task, "template": task, **_after(needs), **source})
        if applied(stage) and hand_offs.out_of(stage):
            tasks.append({"name": f"{task}-publish", "template": f"{task}-publish", **_after([task])})
        before = task
    return tasks


def _after(needs: list[str]) -> Object:
    return {"depends": " && ".join(dict.fromkeys(needs))} if needs else {}


def _ending(place: Place, name: str, image: str) -> list[Yaml]:
    """Whatever happened: no machine keeps running for a run that is over, and somebody is told."""
    tell: Object = {
        "name": "tell",
        "container": {
            "image": image,
            "command": ["sh", "-c", 'echo "$STATUS after $SECONDS_TAKEN s: $FAILURES"'],
            "env": [
                {"name": "STATUS", "value": "{{workflow.status}}"},
                {"name": "SECONDS_TAKEN", "value": "{{workflow.duration}}"},
                {"name": "FAILURES", "value": "{{workflow.failures}}"},
            ],
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        },
    }
    steps: list[Yaml] = []
    templates: list[Yaml] = []
    if any(applied(stage) and stage.form is Form.JOB for stage in place.stages):
        failed = {"name": "release", "template": "release", "when": "{{workflow.status}} != Succeeded"}
        steps.append([Noted(failed, "A Job does not end with the workflow that made it: its machines would run on.")])
        flags = ["jobs.batch", "--selector", f"{RUN_LABEL}={{{{workflow.name}}}}", "--ignore-not-found=true"]
        templates.append(
            {"name": "release", "serviceAccountName": f"{name}-apply", "resource": {"action": "delete", "flags": flags}}
        )
    steps.append([Noted({"name": "tell", "template": "tell"}, "Put your notifier here.")])
    return [{"name": "ended", "steps": steps}, *templates, tell]
