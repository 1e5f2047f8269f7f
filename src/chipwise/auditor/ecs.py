"""Task definitions of ECS, by themselves or in a template: what their containers ask for, in the words of Compose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chipwise.auditor.cloudformation import resources_of
from chipwise.auditor.source import Located, LocatedList, Manifest, Sources, line_of, listed, look, whole_number

_KEYS = {"image": "Image", "command": "Command", "user": "User", "privileged": "Privileged", "environment": "Environment"}


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    path: str
    body: Located
    capital: bool = False  # keys as CloudFormation writes them

    def get(self, mapping: Any, key: str) -> Any:
        return look(mapping, key[0].upper() + key[1:] if self.capital else key)

    @property
    def title(self) -> str:
        return f"task {self.get(self.body, 'family') or '?'}"

    @property
    def containers(self) -> list[Located]:
        single = self.body.get("ContainerProperties")  # a job definition of AWS Batch has one container in the same words
        if isinstance(single, Located):
            return [single]
        return [one for one in listed(self.get(self.body, "containerDefinitions")) if isinstance(one, Located)]

    @property
    def is_fargate(self) -> bool:
        return "FARGATE" in map(str, listed(self.get(self.body, "requiresCompatibilities")))

    @property
    def line(self) -> int:
        return line_of(self.body, "RequiresCompatibilities" if self.capital else "requiresCompatibilities")

    @property
    def gpus(self) -> int:
        return sum(self.gpus_of(one) for one in self.containers)

    def gpus_of(self, container: Located) -> int:
        wanted = listed(self.get(container, "resourceRequirements"))
        return sum(whole_number(self.get(one, "value")) for one in wanted if self.get(one, "type") == "GPU")


def task_definitions(sources: Sources) -> Iterator[TaskDefinition]:
    for manifest in sources.manifests:
        if not manifest.kind and "containerDefinitions" in manifest.body:
            yield TaskDefinition(manifest.path, manifest.body)
    for resource in resources_of(sources, "AWS::ECS::TaskDefinition", "AWS::Batch::JobDefinition"):
        yield TaskDefinition(resource.path, resource.properties, capital=True)


def as_compose(sources: Sources) -> Iterator[Manifest]:
    """Each as services, so that rules of containers read them, at the lines of the definition."""
    for task in task_definitions(sources):
        services, body = Located(), Located()
        for container in task.containers:
            name = str(task.get(container, "name") or task.get(task.body, "jobDefinitionName") or "main")
            services[name], services.lines[name] = _service(task, container), line_of(container)
        body["services"], body.lines["services"] = services, line_of(task.body)
        yield Manifest(task.path, body)


def _service(task: TaskDefinition, container: Located) -> Located:
    service = Located()
    service.line = container.line
    for key, capital in _KEYS.items():
        value, line = task.get(container, key), line_of(container, capital if task.capital else key)
        if value is not None:
            service[key], service.lines[key] = _pairs(task, value) if key == "environment" else value, line
    service.setdefault("user", "of the image")  # which may name its own
    size = look(task.get(container, "linuxParameters"), "SharedMemorySize" if task.capital else "sharedMemorySize")
    if size:
        service["shm_size"] = f"{size}m"
    if gpus := task.gpus_of(container):
        service["deploy"] = _reservation(
            gpus, line_of(container, "ResourceRequirements" if task.capital else "resourceRequirements")
        )
    return service


def _pairs(task: TaskDefinition, environment: Any) -> Located:
    pairs = Located()
    for variable in listed(environment):
        name = str(task.get(variable, "name"))
        pairs[name], pairs.lines[name] = task.get(variable, "value"), line_of(variable)
    return pairs


def _reservation(gpus: int, line: int) -> Located:
    """What Compose writes as deploy.resources.reservations.devices."""
    device, devices, capabilities = Located(), LocatedList(), LocatedList()
    capabilities.append("gpu")
    device["count"], device["capabilities"], device.line = gpus, capabilities, line
    devices.append(device)
    devices.lines.append(line)
    inside: Any = devices
    for key in ("devices", "reservations", "resources"):
        mapping = Located()
        mapping[key], mapping.lines[key], mapping.line = inside, line, line
        inside = mapping
    reservation: Located = inside
    return reservation
