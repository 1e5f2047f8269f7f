"""The pods of a Job end and begin again: how is stated, and where a program counts on it, it must be there."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, is_spot, pods_of, variables, words_of
from chipwise.auditor.source import Sources, line_of, look

ABOUT = "jobs state how their pods restart, are numbered and are tried again"
_WORKFLOWS = ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        policy = pod.spec.get("restartPolicy", "Always")
        if pod.owner.kind in ("Job", "CronJob", "JobSet") and policy == "Always":
            yield Finding(
                rule="job-policy",
                weight=Weight.HIGH,
                path=pod.owner.path,
                line=line_of(pod.spec, "restartPolicy"),
                what=f"{pod.owner.title} restarts its pods always; Kubernetes rejects it",
                fix="Set restartPolicy: Never (with backoffLimit), or OnFailure.",
            )
        yield from _numbered(pod)
        yield from _tried_again(pod)
        yield from _gives_up(pod)


def _numbered(pod: Pod) -> Iterator[Finding]:
    """Only an Indexed Job numbers its pods."""
    spec = look(pod.owner.body, "spec")
    if pod.owner.kind not in ("Job", "CronJob"):
        return
    spec = look(spec, "jobTemplate", "spec") if pod.owner.kind == "CronJob" else spec
    texts = [word for container in pod.containers for word in words_of(container)]
    texts += [value for container in pod.containers for _, value, _ in variables(container)]
    if look(spec, "completionMode") != "Indexed" and any("JOB_COMPLETION_INDEX" in text for text in texts):
        yield Finding(
            rule="job-policy",
            weight=Weight.HIGH,
            path=pod.owner.path,
            line=line_of(spec, "completionMode") if "completionMode" in (spec or {}) else line_of(spec),
            what=f"{pod.owner.title} uses JOB_COMPLETION_INDEX, which only Indexed jobs have",
            fix="Set completionMode: Indexed, and completions.",
        )


def _gives_up(pod: Pod) -> Iterator[Finding]:
    """A Job on spot machines whose first lost pod is its last."""
    spec = look(pod.owner.body, "spec")
    if pod.owner.kind != "Job" or not is_spot(pod.spec) or look(spec, "podFailurePolicy"):
        return
    if str(look(spec, "backoffLimit")) == "0" and not look(spec, "backoffLimitPerIndex"):
        yield Finding(
            rule="job-policy",
            weight=Weight.MEDIUM,
            path=pod.owner.path,
            line=line_of(spec, "backoffLimit"),
            what=f"{pod.owner.title} runs on spot machines and gives up with the first that is taken away",
            fix="Set backoffLimit to 6 or more, or a podFailurePolicy that ignores DisruptionTarget.",
        )


def _tried_again(pod: Pod) -> Iterator[Finding]:
    """Argo gives a step up that lost its machine, unless a strategy says otherwise."""
    if pod.owner.kind not in _WORKFLOWS or not is_spot(pod.spec):
        return
    spec = look(pod.owner.body, "spec")
    spec = look(spec, "workflowSpec") if pod.owner.kind == "CronWorkflow" else spec
    places = (pod.spec, look(spec, "templateDefaults"), spec)
    if not any(look(one, "retryStrategy") for one in places):
        yield Finding(
            rule="job-policy",
            weight=Weight.MEDIUM,
            path=pod.owner.path,
            line=line_of(pod.spec),
            what=f"{pod.owner.title}: {pod.spec.get('name', '?')} runs on spot machines and is never tried again",
            fix="Set retryStrategy with a limit and retryPolicy: Always.",
        )
