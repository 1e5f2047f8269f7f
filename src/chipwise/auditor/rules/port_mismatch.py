"""A port on which nobody listens: probes fail and restart the pod forever, and a service answers with connection refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from chipwise.auditor.commands import PORT, Number, number_of, value_of, words_of_container, words_of_text
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, pods_of, title_of, variables
from chipwise.auditor.source import (
    Instruction,
    Located,
    LocatedList,
    Manifest,
    Sources,
    line_of,
    listed,
    look,
    mapped,
    walk,
    whole_number,
)
from chipwise.auditor.tasks import Task, tasks_of
from chipwise.auditor.terraform import inner, text_of
from chipwise.auditor.workloads import LabelledPods, same_space

ABOUT = "probes, services and routes use ports that are listened on"
_LOCAL_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):(\d{2,5})")
_ADDRESS = re.compile(r"https?://([A-Za-z][\w-]*):(\d{2,5})")
_SERVICE_ADDRESS = re.compile(
    r"https?://(?P<name>[a-z][\w-]*)\.(?P<space>[a-z][\w-]*)\.svc(?:\.cluster\.local)?:(?P<port>\d{2,5})"
)
_LOCAL_BY_DEFAULT = ("sglang.launch_server", "llama-server")
_USUAL = {"vllm/vllm-openai": 8000, "lmsysorg/sglang": 30000, "ollama/ollama": 11434}
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_METHODS = ("httpGet", "tcpSocket", "grpc")
_SERVERS = (
    "vllm",
    "text-generation",
    "sglang",
    "text-embeddings",
    "tritonserver",
    "huggingfaceserver",
    "llama-server",
    "llama.cpp",
)


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        yield from _own(pod)
        yield from _local(pod)
    yield from _addresses(sources)
    for file in sources.dockerfiles:
        yield from _image(file)
    for compose in sources.compose:
        yield from _compose(compose)
    for task in tasks_of(sources):
        yield from _task(task)
    pods = LabelledPods(sources)
    for service in (one for one in sources.manifests if one.kind == "Service"):
        yield from _service(service, pods)
    services = {one.name: one for one in sources.manifests if one.kind == "Service"}
    for route in (one for one in sources.manifests if one.kind in ("Ingress", "HTTPRoute", "GRPCRoute")):
        yield from _route(route, services)
    for block in sources.blocks:
        if block.labels[:1] == ("aws_lb_target_group",):
            port = text_of(block.body.get("port"))
            for health in inner(block.body, "health_check"):
                health_port = text_of(health.get("port"))
                if port.isdecimal() and health_port.isdecimal() and port != health_port:
                    message = f"{block.title} sends requests to port {port} and asks port {health_port} for health"
                    yield _finding(block.path, block.line, message, 'Use port = "traffic-port".', Weight.LOW)


def _own(pod: Pod) -> Iterator[Finding]:
    numbers, names = _declared([pod]), _names([pod])
    for container in pod.mains:
        ports = [one for one in listed(container.get("ports")) if isinstance(one, Located)]
        words = words_of_container(container)
        flag = number_of(words, PORT)
        own = {whole_number(one.get("containerPort")) for one in ports}
        if flag and own and flag.value not in own and _is_server([str(container.get("image")), *(word.text for word in words)]):
            message = f"{title_of(pod, container)} listens on {flag.value} and declares {_list(own)}"
            yield _finding(pod.owner.path, flag.line, message, f"Declare containerPort {flag.value}, or change the flag.")
        probed_ports = {
            (probe, method): port
            for probe, method in product(_PROBES, _METHODS)
            if ports and (port := look(container, probe, method, "port")) is not None
        }
        if (
            len(probed_ports) > 1
            and len(set(map(str, probed_ports.values()))) == 1
            and flag is None
            and whole_number(next(iter(probed_ports.values())))
        ):
            continue  # all of them ask one port that is not declared: declaring ports is a habit, and no condition
        for (probe, method), port in probed_ports.items():
            if not _is_open(port, numbers, names):
                line = line_of(container, probe, method, "port")
                message = f"{title_of(pod, container)}: {probe} asks port {port}, and {_list(numbers)} are declared"
                weight = Weight.MEDIUM if len(probed_ports) > 1 or flag or not whole_number(port) else Weight.LOW
                yield _finding(pod.owner.path, line, message, "Ask the port that the program listens on.", weight)


def _local(pod: Pod) -> Iterator[Finding]:
    """A server that listens on 127.0.0.1, by its flag or by default: probes and services do not reach it."""
    for container in pod.mains:
        words = words_of_container(container)
        texts = [word.text.rpartition("/")[2] for word in words]
        host = value_of(words, ("--host", "--hostname"))
        server = next((word for word, text in zip(words, texts, strict=True) if text in _LOCAL_BY_DEFAULT), None)
        local = host.text in ("127.0.0.1", "localhost") if host else server is not None
        if local and listed(container.get("ports")) and not any("HOST" in name for name, _, _ in variables(container)):
            place = host or server
            message = f"{title_of(pod, container)} listens on 127.0.0.1 alone, where no probe and no service reaches it"
            yield _finding(pod.owner.path, place.line if place else 1, message, "Add --host 0.0.0.0.", Weight.HIGH)


def _addresses(sources: Sources) -> Iterator[Finding]:
    """Addresses of services that are here, in settings and files of others, with a port that the service does not have."""
    ports = {
        (one.name, one.namespace): {str(look(port, "port")) for port in listed(look(one.body, "spec", "ports"))}
        for one in sources.manifests
        if one.kind == "Service" and look(one.body, "spec", "type") != "ExternalName"
    }
    for path, text in sources.texts if ports else ():
        for match in _SERVICE_ADDRESS.finditer(text):
            open_ports = ports.get((match["name"], match["space"]))
            if open_ports and match["port"] not in open_ports:
                line = text.count("\n", 0, match.start()) + 1
                stated = ", ".join(sorted(open_ports))
                message = f"an address leads to port {match['port']} of Service {match['name']}, which has {stated}"
                yield _finding(path, line, message, "Name a port of the Service.", Weight.HIGH)


def _image(file: tuple[Instruction, ...]) -> Iterator[Finding]:
    """An image whose health check asks another port than its command opens."""
    command = next((one for one in reversed(file) if one.word in ("CMD", "ENTRYPOINT")), None)
    flag = number_of(words_of_text(re.sub(r'[\[\],"]+', " ", command.rest), command.line), PORT) if command else None
    exposed = {whole_number(port.partition("/")[0]) for one in file if one.word == "EXPOSE" for port in one.rest.split()} - {0}
    if flag and exposed and flag.value not in exposed and _is_server([command.rest if command else ""]):
        place = next(one for one in file if one.word == "EXPOSE")
        message = f"the command listens on {flag.value}, and {_list(exposed)} is exposed"
        yield _finding(place.path, place.line, message, f"Write EXPOSE {flag.value}.", Weight.LOW)
    ports = {flag.value} if flag else exposed
    for health in (one for one in file if one.word == "HEALTHCHECK"):
        checked_ports = {int(port) for port in _LOCAL_PORT.findall(health.rest)}
        if checked_ports and ports and not checked_ports & ports:
            message = f"the health check asks port {_list(checked_ports)}, and the command listens on {_list(ports)}"
            yield _finding(health.path, health.line, message, "Ask the port that the program listens on.")


def _compose(compose: Manifest) -> Iterator[Finding]:
    """Published ports, and addresses that services have of each other."""
    services = {str(name): one for name, one in mapped(compose.body.get("services")).items() if isinstance(one, Located)}
    listening = {name: number.value for name, one in services.items() if (number := _opened(one))}
    for name, service in services.items():
        for index, port in enumerate(listed(service.get("ports"))):
            inside = whole_number(str(port).rpartition(":")[2].partition("/")[0]) if isinstance(port, str) else 0
            if name in listening and inside and inside != listening[name]:
                message = f"service {name} listens on {listening[name]}, and its port {inside} is published"
                ports = service["ports"]
                line = ports.lines[index] if isinstance(ports, LocatedList) else line_of(service, "ports")
                yield _finding(compose.path, line, message, f"Publish {listening[name]}.", Weight.HIGH)
        settings = service.get("environment")
        for key, value in mapped(settings).items():
            line = line_of(settings, key)
            for host, port in _ADDRESS.findall(str(value)):
                if host in listening and int(port) != listening[host]:
                    message = f"service {name}: {key} leads to port {port} of {host}, which listens on {listening[host]}"
                    yield _finding(compose.path, line, message, f"Use {host}:{listening[host]}.", Weight.HIGH)


def _opened(service: Located) -> Number | None:
    """By its flag, or as its engine does without one."""
    words, image = words_of_container(service), str(service.get("image") or "")
    usual = next((port for sign, port in _USUAL.items() if sign in image), 0)
    return number_of(words, PORT) or (Number(usual, line_of(service)) if usual and "PORT" not in str(service) else None)


def _task(task: Task) -> Iterator[Finding]:
    """A service of SkyPilot, which asks its replicas on the port of its resources."""
    resources, flag = task.manifest.body.get("resources"), number_of(task.words, PORT)
    port = whole_number(look(resources, "ports"))
    if "service" in task.manifest.body and flag and port and port != flag.value:
        message = f"the service asks replicas on port {port}, and they listen on {flag.value}"
        yield _finding(task.path, line_of(resources, "ports"), message, f"Set ports: {flag.value}.", Weight.HIGH)


def _is_server(texts: list[str]) -> bool:
    return any(sign in text for text in texts for sign in _SERVERS)


def _is_open(port: object, numbers: set[int], names: set[str]) -> bool:
    return whole_number(port) in numbers if whole_number(port) else str(port) in names


def _names(pods: list[Pod]) -> set[str]:
    return {str(look(one, "name")) for pod in pods for main in pod.containers for one in listed(main.get("ports"))}


def _declared(pods: list[Pod]) -> set[int]:
    """Ports of containers, those that flags name with them."""
    numbers: set[int] = set()
    for container in (container for pod in pods for container in pod.containers):
        numbers |= {whole_number(look(one, "containerPort")) for one in listed(container.get("ports"))}
        flag = number_of(words_of_container(container), PORT)
        if flag and container.get("ports"):
            numbers.add(flag.value)
    return numbers - {0}


def _service(service: Manifest, pods: LabelledPods) -> Iterator[Finding]:
    selector = mapped(look(service.body, "spec", "selector"))
    chosen = pods.selected({"matchLabels": selector}, service) if selector else []
    numbers, names = _declared(chosen), _names(chosen)
    for port in listed(look(service.body, "spec", "ports")) if numbers else ():
        target = look(port, "targetPort") or look(port, "port")
        if not _is_open(target, numbers, names):
            line = line_of(port, "targetPort" if look(port, "targetPort") else "port")
            message = f"{service.title} sends to port {target}, and its pods listen on {_list(numbers)}"
            yield _finding(service.path, line, message, "Set targetPort to the port of the container.", Weight.HIGH)


def _route(route: Manifest, services: Mapping[str, Manifest]) -> Iterator[Finding]:
    for mapping in walk(route.body):
        if route.kind == "Ingress":
            place = mapping.get("service")
            name, port = look(place, "name"), look(place, "port", "number") or look(place, "port", "name")
        else:
            place, name, port = mapping, mapping.get("name"), mapping.get("port")
        service = services.get(str(name))
        if service is None or port is None or not same_space(route, service) or not isinstance(place, Located):
            continue
        ports = [one for one in listed(look(service.body, "spec", "ports")) if isinstance(one, Located)]
        open_ports: set[Any] = {str(one.get("port")) for one in ports} | {str(one.get("name")) for one in ports}
        if ports and str(port) not in open_ports:
            stated = ", ".join(str(one.get("port")) for one in ports)
            message = f"{route.title} leads to port {port} of Service {name}, which has {stated}"
            yield _finding(route.path, line_of(place, "port"), message, "Name a port of the Service.", Weight.HIGH)


def _list(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers - {0}))) or "no ports"


def _finding(path: str, line: int, message: str, fix: str, weight: Weight = Weight.MEDIUM) -> Finding:
    return Finding(rule="port-mismatch", weight=weight, path=path, line=line, what=message, fix=fix)
