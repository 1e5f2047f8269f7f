"""One stage of a workflow: a container where one pod does it, else the Job or the Deployment that is applied and waited for.

Argo replaces `{{...}}` in whatever it reads, over and over, and knows no way to write the two signs as such: a command that
has them is refused.
"""

from __future__ import annotations

import math

from chipwise.renderer.cluster import jobs, services
from chipwise.renderer.cluster.pod import Object, labels, meta, priority_of, template
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.handing import written_by
from chipwise.renderer.launch.streams import live
from chipwise.renderer.launch.timing import rollout_seconds
from chipwise.renderer.layout import completions, meets
from chipwise.renderer.workflow.hand_offs import ROOT, PlaceHandOffs, arriving, key, leaving, room
from chipwise.renderer.yaml_text import Noted, document, plain
from chipwise.units import GIB

# Lost: the pod went without an answer (Error), or a signal ended it (128 and above). Anything else is the program's own fault.
LOST = 'lastRetry.status == "Error" or asInt(lastRetry.exitCode) >= 128'
RUN_LABEL = "workflows.argoproj.io/workflow"
# A Job whose pods fail one by one says so by its first condition, whose name depends on the cluster's version.
GIVEN_UP = "status.conditions.0.type in (Failed, FailureTarget)"


def applied(stage: Deployment) -> bool:
    """Several pods, or one that stays: an object of its own, which Argo applies and waits for."""
    return stage.form is Form.SERVICE or completions(stage) > 1


def check(stage: Deployment) -> None:
    if live(stage):
        raise CannotRender(
            f"{stage.title[:60]} works on live streams, whose list is a file beside it.",
            remedy="Use --to kubernetes for it, with --stage.",
        )
    texts = (*stage.software.command, *(value for _, value in stage.software.env), stage.software.image)
    if any("{{" in text or "}}" in text for text in texts):
        raise CannotRender(
            f"A command or setting of {stage.title[:60]} has {{{{ or }}}} in it, which Argo would replace.",
            remedy="Put it into a script of the image and call that; or take --to kubernetes.",
        )


def stage_template(stage: Deployment, hand_offs: PlaceHandOffs, account: str) -> Object:
    """`account` applies objects."""
    if stage.form is Form.SERVICE:
        return _service(stage, account)
    return _job(stage, account) if applied(stage) else _container(stage, hand_offs)


def _container(stage: Deployment, hand_offs: PlaceHandOffs) -> Object:
    """The pod of the stage, field by field as a template has them."""
    pod = template(stage, jobs.command_of(stage))
    spec = pod["spec"]
    assert isinstance(spec, dict)
    [main] = spec["containers"]
    container = {name: value for name, value in main.items() if name not in ("name", "lifecycle")}
    volumes, mounts = list(spec["volumes"]), list(container["volumeMounts"])
    fields: Object = {"name": key(stage.title), "metadata": pod["metadata"]}
    if hand_offs.inputs_of(stage):
        fields["inputs"] = arriving(stage, hand_offs)
    if hand_offs.out_of(stage):
        fields["outputs"] = leaving(stage, hand_offs)
        size = f"{max(math.ceil(1.5 * room(stage, hand_offs) / GIB), 1)}Gi"
        if written_by(stage) is None:
            volumes.append({"name": "out", "emptyDir": {"sizeLimit": Noted(size, "The output, and half as much again.")}})
            mounts.append({"name": "out", "mountPath": f"{ROOT}/out"})
    fields |= _limits(stage)
    fields["priorityClassName"] = priority_of(stage)
    fields |= {name: spec[name] for name in ("nodeSelector", "affinity", "tolerations", "securityContext") if spec.get(name)}
    fields["container"] = container | {"volumeMounts": mounts}
    fields["volumes"] = volumes
    patch = document({"terminationGracePeriodSeconds": plain(spec["terminationGracePeriodSeconds"])})
    fields["podSpecPatch"] = Noted(patch, "Templates have no field for it: time to save what was done.")
    return fields


def _limits(stage: Deployment) -> Object:
    fields: Object = {}
    if stage.deadline_s is not None:
        fields["activeDeadlineSeconds"] = Noted(math.ceil(stage.deadline_s), "The stage's deadline.")
    again: Object = {
        "limit": str(jobs.retries(stage)),
        "retryPolicy": "Always",
        "expression": Noted(LOST, "A lost machine or a signal; a fault of the program's own is not tried again."),
        "backoff": {"duration": "30s", "factor": "2", "maxDuration": "1h"},
    }
    return fields | {"retryStrategy": again}


def _job(stage: Deployment, account: str) -> Object:
    """Pods by their numbers; the Job itself replaces what is lost."""
    pod_count, run = completions(stage), f"{{{{workflow.name}}}}-{key(stage.title)[:10].rstrip('-')}"
    spec = jobs.spec(stage)
    if meets(stage):
        _meet_at(spec, f"--rdzv-endpoint={stage.name}-0.", f"--rdzv-endpoint={run}-0.")
    failed = Noted(f"status.failed > {jobs.retries(stage)}", "More of the program's own faults than it may have.")
    if jobs.each_by_itself(stage):
        failed = Noted(GIVEN_UP, "Pods fail one by one; the Job says when these were too many.")
    metadata = meta(stage, run)
    metadata["labels"] = labels(stage) | {RUN_LABEL: "{{workflow.name}}"}
    resource: Object = {
        "action": Noted("create", f"{pod_count} pods by their numbers: a template of its own is one pod."),
        "setOwnerReference": Noted(True, "It goes with the workflow."),
        "successCondition": f"status.succeeded = {pod_count}",
        "failureCondition": failed,
        "manifest": document({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}),
    }
    fields: Object = {"name": key(stage.title), "serviceAccountName": account}
    if stage.deadline_s is not None:
        fields["activeDeadlineSeconds"] = Noted(math.ceil(stage.deadline_s) + 60, "A minute after the Job's own deadline.")
    return fields | {"resource": resource}


def _meet_at(spec: Object, old: str, new: str) -> None:
    """The Job has the run's name, so its first pod has too."""
    pod = spec["template"]
    assert isinstance(pod, dict)
    [main] = pod["spec"]["containers"]
    command = main["command"]
    words = plain(command)
    assert isinstance(words, list)
    changed = [word.replace(old, new, 1) if "/bin/sh" in words else word for word in words]  # ours stands before the user's
    head = new.partition("=")[2]
    for setting in main["env"]:
        if isinstance(setting, dict) and setting.get("name") == "HEAD_ADDRESS":
            setting["value"] = head + str(setting["value"]).partition("-0.")[2]
    main["command"] = Noted(changed, command.comment) if isinstance(command, Noted) else changed


def _service(stage: Deployment, account: str) -> Object:
    scaling = stage.scaling
    assert scaling is not None
    ready = f"status.updatedReplicas > {scaling.minimum - 1}, status.availableReplicas > {scaling.minimum - 1}"
    resource: Object = {
        "action": Noted("apply", "A rollout: the old version stays until the new one is up."),
        "successCondition": Noted(ready, "The least that the plan wants."),
        "manifest": document(services.deployment_object(stage)),
    }
    wait = rollout_seconds(stage)
    return {
        "name": key(stage.title),
        "serviceAccountName": account,
        "activeDeadlineSeconds": Noted(wait, "Replicas in turn: one ends, a machine comes, weights come at 150 MB/s."),
        "resource": resource,
    }
