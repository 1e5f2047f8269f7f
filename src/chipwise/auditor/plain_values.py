"""Values of a chart that stands elsewhere, as people keep them: what most charts call image, resources and service is read."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from chipwise.auditor.source import Located, LocatedList, Manifest, line_of, look, walk

_FLAGS = {
    **dict.fromkeys(("numShard", "tensorParallelSize", "tensor_parallel_size"), "--tensor-parallel-size"),
    **dict.fromkeys(("quantize", "quantization"), "--quantization"),
    **dict.fromkeys(("maxModelLen", "max_model_len"), "--max-model-len"),
    "dtype": "--dtype",
}
_OF_PODS = ("nodeSelector", "tolerations", "affinity", "volumes")
_OF_CONTAINERS = ("resources", "securityContext", "env", "livenessProbe", "readinessProbe", "startupProbe")


def is_plain(manifest: Manifest) -> bool:
    image = manifest.body.get("image")
    return not manifest.kind and isinstance(image, Located) and "repository" in image and "services" not in manifest.body


def read_plain(manifest: Manifest) -> Iterator[Manifest]:
    """The file itself, whose names of secrets and bounds are read as they are, and the objects that a chart makes of it."""
    yield manifest
    body = manifest.body
    name = posixpath.basename(posixpath.dirname(manifest.path)) or "values"
    container, pod = Located(), Located()
    image = body["image"]
    place = "tag" if "tag" in image else "repository"
    _put(container, "image", f"{image['repository']}:{image.get('tag') or ''}".rstrip(":"), line_of(image, place))
    _put(container, "args", _words(body), line_of(body, "image"))
    for key in _OF_CONTAINERS:
        if key in body:
            _put(container, key, body[key], line_of(body, key))
    containers = LocatedList()
    containers.append(container)
    containers.lines.append(line_of(body, "image"))
    _put(pod, "containers", containers, line_of(body, "image"))
    for key in _OF_PODS:
        if key in body:
            _put(pod, key, body[key], line_of(body, key))
    spec = _holding("template", _holding("spec", pod, 1), 1)
    yield _object(manifest.path, "ChartValues", name, spec)
    service = body.get("service")
    if isinstance(service, Located) and "type" in service:
        yield _object(manifest.path, "Service", name, service)
    scaling = body.get("autoscaling")
    percent = "targetCPUUtilizationPercentage"
    if look(scaling, "enabled") is True and isinstance(scaling, Located) and percent in scaling:
        autoscaler = _holding("scaleTargetRef", _holding("name", name, 1), line_of(scaling))
        _put(autoscaler, percent, scaling[percent], line_of(scaling, percent))
        yield _object(manifest.path, "HorizontalPodAutoscaler", name, autoscaler)


def _words(body: Located) -> LocatedList:
    words = LocatedList()
    for mapping in walk(body):
        for key, flag in _FLAGS.items():
            if isinstance(mapping.get(key), str | int):
                words += [flag, str(mapping[key])]
                words.lines += [line_of(mapping, key)] * 2
    return words


def _object(path: str, kind: str, name: str, spec: Located) -> Manifest:
    body = _holding("kind", kind, spec.line)
    _put(body, "metadata", _holding("name", name, spec.line), spec.line)
    _put(body, "spec", spec, spec.line)
    return Manifest(path, body)


def _holding(key: str, value: Any, line: int) -> Located:
    mapping = Located()
    mapping.line = line
    _put(mapping, key, value, line)
    return mapping


def _put(mapping: Located, key: str, value: Any, line: int) -> None:
    mapping[key], mapping.lines[key] = value, line
