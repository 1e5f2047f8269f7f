"""The pods of a Job end and begin again: how is stated, and where a program counts on it, it must be there."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.cloudformation import Resource, resources_of
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, is_spot, pods_of, variables, words_of
from chipwise.auditor.source import Sources, line_of, look, mapped, whole_number
from chipwise.auditor.terraform import inner, line_inside, text_of
from chipwise.auditor.workloads import WORKFLOWS

ABOUT = "jobs state how their pods restart, are numbered and are tried again"
_MANY_PODS = 50


def check(sources: Sources) -> Iterator[Finding]:
    yield from _batch(sources)
    yield from _batch_of_cloudformation(sources)
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
        yield from _overlapping(pod)
        yield from _endless(pod)
        yield from _tried_again(pod)
        yield from _gives_up(pod)
        yield from _elastic(pod)


def _batch(sources: Sources) -> Iterator[Finding]:
    """AWS Batch tries a job once, unless it is told otherwise: one that loses its spot machine has failed."""
    environments = [one for one in sources.blocks if one.labels[:1] == ("aws_batch_compute_environment",)]
    kinds = {text_of(one.get("type")) for block in environments for one in inner(block.body, "compute_resources")}
    for block in sources.blocks if kinds == {"SPOT"} else ():
        if block.labels[:1] == ("aws_batch_job_definition",):
            attempts = [text_of(one.get("attempts")) for one in inner(block.body, "retry_strategy")]
            if not attempts or attempts[0] in ("", "1"):
                yield Finding(
                    rule="job-policy",
                    weight=Weight.MEDIUM,
                    path=block.path,
                    line=line_inside(sources, block, "attempts", "retry_strategy") if attempts else block.line,
                    what=f"{block.title} runs on spot machines and is never tried again",
                    fix="Set retry_strategy with attempts = 5, and evaluate_on_exit that retries on Host EC2*.",
                )


def _batch_of_cloudformation(sources: Sources) -> Iterator[Finding]:
    """The same where definitions are resources of CloudFormation."""
    environments = [mapped(one.properties.get("ComputeResources")) for one in _resources(sources, "ComputeEnvironment")]
    for resource in _resources(sources, "JobDefinition") if {str(one.get("Type")) for one in environments} == {"SPOT"} else ():
        strategy = resource.properties.get("RetryStrategy")
        if whole_number(look(strategy, "Attempts")) <= 1:
            yield Finding(
                rule="job-policy",
                weight=Weight.MEDIUM,
                path=resource.path,
                line=line_of(resource.properties, "RetryStrategy", "Attempts"),
                what=f"{resource.name} runs on spot machines and is never tried again",
                fix="Set RetryStrategy with Attempts 5, and EvaluateOnExit that retries on Host EC2*.",
            )


def _resources(sources: Sources, kind: str) -> Iterator[Resource]:
    return resources_of(sources, f"AWS::Batch::{kind}")


def _numbered(pod: Pod) -> Iterator[Finding]:
    """Only an Indexed Job numbers its pods."""
    spec = look(pod.owner.body, "spec")
    if pod.owner.kind == "JobSet":
        for job in pod.above:
            if job.get("completionMode") == "NonIndexed":
                yield Finding(
                    rule="job-policy",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(job, "completionMode"),
                    what=f"{pod.owner.title} has pods without numbers, and so without the names by which they find each other",
                    fix="Leave completionMode out: JobSet sets Indexed.",
                )
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


def _overlapping(pod: Pod) -> Iterator[Finding]:
    """A clock that starts jobs with accelerators more often than hourly, and lets the next begin beside the last."""
    spec = look(pod.owner.body, "spec")
    minutes = str(look(spec, "schedule") or "").split(" ")[0]
    often = minutes == "*" or minutes.startswith("*/") or "," in minutes
    policy = look(spec, "concurrencyPolicy")
    if pod.owner.kind == "CronJob" and pod.chips and often and policy not in ("Forbid", "Replace"):
        yield Finding(
            rule="job-policy",
            weight=Weight.MEDIUM,
            path=pod.owner.path,
            line=line_of(spec, "concurrencyPolicy" if policy else "schedule"),
            what=f"{pod.owner.title} starts beside runs that are not done, and each takes its accelerators",
            fix="Set concurrencyPolicy: Forbid.",
        )


def _endless(pod: Pod) -> Iterator[Finding]:
    """A program that fails at once is paid for as often as it is tried."""
    spec = look(pod.owner.body, "spec")
    spec = look(spec, "jobTemplate", "spec") if pod.owner.kind == "CronJob" else spec
    tries = whole_number(look(spec, "backoffLimit"))
    if pod.owner.kind in ("Job", "CronJob") and pod.chips and tries >= _MANY_PODS and not look(spec, "activeDeadlineSeconds"):
        yield Finding(
            rule="job-policy",
            weight=Weight.LOW,
            path=pod.owner.path,
            line=line_of(spec, "backoffLimit"),
            what=f"{pod.owner.title} is tried {tries} times more, with its accelerators each time, and has no deadline",
            fix="Set backoffLimit to 6 and a podFailurePolicy that ignores DisruptionTarget, or activeDeadlineSeconds.",
        )


def _gives_up(pod: Pod) -> Iterator[Finding]:
    """A Job on spot machines whose first lost pod is its last."""
    spec = look(pod.owner.body, "spec")
    restarts = look(spec, "failurePolicy", "maxRestarts")
    if pod.owner.kind == "JobSet" and is_spot(pod.spec) and str(restarts) == "0" and not look(spec, "failurePolicy", "rules"):
        yield Finding(
            rule="job-policy",
            weight=Weight.MEDIUM,
            path=pod.owner.path,
            line=line_of(spec, "failurePolicy", "maxRestarts"),
            what=f"{pod.owner.title} runs on spot machines and gives up with the first that is taken away",
            fix="Set maxRestarts to 6 or more, or a rule that restarts without counting (RestartJobSetAndIgnoreMaxRestarts).",
        )
    spec = look(spec, "jobTargetRef") if pod.owner.kind == "ScaledJob" else spec
    if pod.owner.kind not in ("Job", "ScaledJob") or not is_spot(pod.spec) or look(spec, "podFailurePolicy"):
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


def _elastic(pod: Pod) -> Iterator[Finding]:
    """An elastic job on spot machines that starts no group again: the first machine that is taken away ends it."""
    policy = look(pod.owner.body, "spec", "elasticPolicy")
    if str(look(policy, "maxRestarts")) == "0" and is_spot(pod.spec):
        yield Finding(
            rule="job-policy",
            weight=Weight.MEDIUM,
            path=pod.owner.path,
            line=line_of(policy, "maxRestarts"),
            what=f"{pod.owner.title} is elastic, runs on spot machines, and starts its group no second time",
            fix="Set maxRestarts to 10 or more.",
        )


def _tried_again(pod: Pod) -> Iterator[Finding]:
    """Argo gives a step up that lost its machine, unless a strategy says otherwise."""
    if pod.owner.kind not in WORKFLOWS or not is_spot(pod.spec):
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
