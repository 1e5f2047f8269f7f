"""A training job as a JobSet: pods with names that stay, which are all started again when one of them is lost.

The controller (sigs.k8s.io/jobset) makes the headless Service and calls pods SET-JOB-JOBNUMBER-PODNUMBER. A child Job tries
nothing by itself: it fails at once, and the set starts again as a whole from the last checkpoint. A lost machine fails it by
its podFailurePolicy, whose reason the set's own rules know, and does not count.
"""

from __future__ import annotations

from chipwise.planner.values.split import SampleTrainingSplit, TrainingSplit
from chipwise.renderer.cluster import jobs
from chipwise.renderer.cluster.pod import Object, namespace_of
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Noted, Yaml

API = "jobset.x-k8s.io/v1alpha2"
CHILD = "node"  # also what Kubeflow Trainer calls it
TRIES, SPOT_TRIES = 3, 6
KEPT_S = 86400


def check(deployment: Deployment, system: str) -> None:
    """Raises where it is no training job."""
    check_form(deployment, system)
    if not isinstance(deployment.split, TrainingSplit | SampleTrainingSplit):
        raise CannotRender(
            f"{system} is for training, whose machines start and end together, and this is {deployment.kind}.",
            remedy="Take --to kubernetes or kueue (an Indexed Job), mpijob (programs of MPI), or slurm.",
        )


def check_form(deployment: Deployment, system: str) -> None:
    """Raises where it is no job."""
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender(f"{system} runs one job, not stages.", remedy=f"Take {one_stage(deployment)}.")
        case Form.SERVICE:
            raise CannotRender(f"{system} runs until it is done, and a service does not end.", remedy="Take --to kubernetes.")
        case Form.SESSIONS:
            raise CannotRender(f"{system} runs jobs; notebooks need a hub.", remedy="Take --to jupyterhub.")
        case Form.DEVICES:
            raise CannotRender(f"{deployment.node.chip} is an edge device; no cluster reaches it.", remedy="Take --to compose.")


def first_pod(deployment: Deployment) -> str:
    return f"{deployment.name}-{CHILD}-0-0.{deployment.name}.{namespace_of(deployment)}.svc"


def spec(deployment: Deployment) -> Object:
    """Of the set: one Job with a pod for each machine, and what becomes of it when one is lost."""
    child = jobs.spec(deployment, first=first_pod(deployment))
    for key in ("ttlSecondsAfterFinished", "backoffLimit", "podFailurePolicy"):
        del child[key]  # these are the set's
    deadline = child.get("activeDeadlineSeconds")
    if isinstance(deadline, Noted):
        child["activeDeadlineSeconds"] = Noted(
            deadline.value, "The workload's deadline; the count begins again with each start of the set."
        )
    lost: Object = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    pod = child.pop("template")
    child["backoffLimit"] = Noted(0, "One lost pod ends all: the others would wait for it forever. The set starts them again.")
    child["podFailurePolicy"] = {"rules": [Noted(lost, "A lost or drained machine: the set knows this reason.")]}
    child["template"] = pod
    return {
        "network": {
            "enableDNSHostnames": Noted(
                True, f"Names that stay: the first pod is {deployment.name}-{CHILD}-0-0.{deployment.name}."
            ),
            "publishNotReadyAddresses": Noted(True, "They must meet before any of them is ready."),
        },
        "failurePolicy": failure_policy(deployment),
        "replicatedJobs": [{"name": CHILD, "replicas": 1, "template": {"spec": child}}],
    }


def failure_policy(deployment: Deployment) -> Object:
    tries = SPOT_TRIES if deployment.spot else TRIES
    rules: list[Yaml] = [
        Noted(
            {
                "name": "LostMachine",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
            },
            "A lost machine is no fault of the program: all begin again from the last checkpoint, and it does not count.",
        ),
        Noted(
            {"name": "DeadlinePassed", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
            "No more machines are paid for after the deadline.",
        ),
    ]
    return {"maxRestarts": Noted(tries, "After failures of the program itself."), "rules": rules}


def hours_note(deployment: Deployment, resource: str, suspending: str = '{"suspend": true}') -> str:
    """For a job that may run in some hours only: who pauses it, for these files do not. `suspending`: its spec then."""
    hours = deployment.hours
    if hours is None:
        return ""
    patch = f"kubectl patch {resource} {deployment.name} -n {namespace_of(deployment)} --type=merge -p"
    return (
        f"\nThe plan runs it in some hours only (cron, {deployment.time_zone}: from {hours.opens.cron} to {hours.closes.cron})."
        " No clock is written:\n"
        f"at the end of them {patch} '{{\"spec\": {suspending}}}', then false.\n"
        "In a queue of Kueue set spec.active of its Workload instead. --to kubernetes writes clocks."
    )
