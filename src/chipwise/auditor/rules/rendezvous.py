"""Machines of a group find each other by one address: where it is each machine's own, or no name at all, each waits alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chipwise.auditor.commands import NODES, Word, number_of, value_of, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, pods_of, variables
from chipwise.auditor.source import Manifest, Sources, line_of, look, mapped
from chipwise.auditor.tasks import exported, settings_of, tasks_of
from chipwise.auditor.workloads import same_space, spans_machines

ABOUT = "machines of a group find each other"
_FLAGS = (
    *("--master-addr", "--master_addr", "--rdzv-endpoint", "--rdzv_endpoint", "--dist-init-addr", "--dist_init_addr"),
    *("--main_process_ip", "--main-process-ip", "--head-address", "--data-parallel-address"),
)
_NAMES = ("MASTER_ADDR", "HEAD_ADDRESS", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT", "VLLM_HOST_IP")
_OWN = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1\]?)(?::\S+)?")
_HOST = re.compile(r"([a-z0-9][a-z0-9.-]*[a-z0-9])(?::\S+)?")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        counted = [number_of(words_of_container(one), NODES) for one in pod.mains]
        if not spans_machines(pod.owner) and not any(one and one.value > 1 for one in counted):
            continue
        places = list(_addresses(pod))
        for place in places:
            if _OWN.fullmatch(place.text):
                yield _own(pod.owner.path, pod.owner.title, place)
        outside = pod.spec.get("hostNetwork") is True and pod.spec.get("dnsPolicy") != "ClusterFirstWithHostNet"
        if outside and any(_is_name(place.text) for place in places):
            yield _finding(
                pod.owner.path,
                line_of(pod.spec, "hostNetwork"),
                f"{pod.owner.title} is on its machines' network, where names of the cluster mean nothing",
                "Set dnsPolicy: ClusterFirstWithHostNet.",
            )
        yield from _service(pod, sources)
        yield from _governed(pod, sources)
    for task in tasks_of(sources):
        if task.nodes > 1:
            places = [Word(value, line) for name, value, line in settings_of(task) if name in _NAMES]
            places += _given(task.words)
            for place in places:
                if _OWN.fullmatch(place.text):
                    yield _own(task.path, "the task", place)


def _addresses(pod: Pod) -> Iterator[Word]:
    for container in pod.mains:
        yield from (Word(value, line) for name, value, line in variables(container) if name in _NAMES)
        words = words_of_container(container)
        yield from _given(words)
        yield from (Word(value, line) for name, value, line in exported(words) if name in _NAMES)


def _given(words: Sequence[Word]) -> list[Word]:
    return [word for flag in _FLAGS if (word := value_of(words, (flag,)))]


def _is_name(text: str) -> bool:
    """A name of the cluster's own, or one that a variable will hold; an address of numbers is none."""
    return "$" in text or bool(_HOST.fullmatch(text) and re.search(r"[a-z]", text))


def _service(pod: Pod, sources: Sources) -> Iterator[Finding]:
    """Pods of a Job have names under a service without an address of its own, which they name as their subdomain."""
    subdomain = pod.spec.get("subdomain")
    services = [
        manifest
        for manifest in sources.manifests
        if manifest.kind == "Service" and look(manifest.body, "spec", "clusterIP") == "None" and same_space(manifest, pod.owner)
    ]
    if pod.owner.kind != "Job" or not isinstance(subdomain, str) or any(one.name == subdomain for one in services):
        return
    chosen = [one for one in services if _selects_job(one, pod)]
    if chosen:
        yield Finding(
            rule="rendezvous",
            weight=Weight.HIGH,
            path=pod.owner.path,
            line=line_of(pod.spec, "subdomain"),
            what=f"{pod.owner.title} has the subdomain {subdomain}, and {chosen[0].title} has another name",
            fix=f"Set subdomain: {chosen[0].name}, or give the Service that name.",
            also=((chosen[0].path, line_of(chosen[0].body, "metadata", "name")),),
        )


def _governed(pod: Pod, sources: Sources) -> Iterator[Finding]:
    """Pods of a StatefulSet have names under the service that it names, and under no other."""
    stated = look(pod.owner.body, "spec", "serviceName")
    if pod.owner.kind != "StatefulSet" or not stated:
        return
    services = [one for one in sources.manifests if one.kind == "Service" and same_space(one, pod.owner)]
    headless = [one for one in services if look(one.body, "spec", "clusterIP") == "None" and _selects_job(one, pod)]
    if headless and not any(one.name == stated for one in services):
        yield Finding(
            rule="rendezvous",
            weight=Weight.HIGH,
            path=pod.owner.path,
            line=line_of(pod.owner.body, "spec", "serviceName"),
            what=f"{pod.owner.title} is governed by the Service {stated}, and {headless[0].title} has another name",
            fix=f"Set serviceName: {headless[0].name}, or give the Service that name.",
            also=((headless[0].path, line_of(headless[0].body, "metadata", "name")),),
        )


def _selects_job(service: Manifest, pod: Pod) -> bool:
    selector = mapped(look(service.body, "spec", "selector"))
    names = {selector.get("job-name"), selector.get("batch.kubernetes.io/job-name")}
    return pod.owner.name in names or (bool(selector) and selector.items() <= mapped(pod.labels).items())


def _own(path: str, title: str, place: Word) -> Finding:
    message = f"{title} has several machines, and each looks for the first at its own address ({place.text})"
    fix = "Give the address of the first machine: the operator's variable, the leader's name, or the first of the node list."
    return _finding(path, place.line, message, fix)


def _finding(path: str, line: int, message: str, fix: str) -> Finding:
    return Finding(rule="rendezvous", weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)
