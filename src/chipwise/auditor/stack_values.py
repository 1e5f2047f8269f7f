"""Values of the chart of vLLM's production stack, which people keep without the chart: each model as the pods it becomes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chipwise.auditor.source import Located, LocatedList, Manifest, line_of, listed, look

_ENGINE = "servingEngineSpec"
_SPLITS = (("tensorParallelSize", "--tensor-parallel-size"), ("pipelineParallelSize", "--pipeline-parallel-size"))
_FURTHER = (("maxModelLen", "--max-model-len"), ("gpuMemoryUtilization", "--gpu-memory-utilization"), ("dtype", "--dtype"))


def is_stack(body: Located) -> bool:
    return isinstance(look(body, _ENGINE, "modelSpec"), list)


def read_stack(path: str, body: Located) -> Iterator[Manifest]:
    """A Deployment and a claim for each model; what a chart adds (probes, users) is not there to be missed."""
    for model in listed(look(body, _ENGINE, "modelSpec")):
        if isinstance(model, Located):
            name = str(model.get("name") or "model")
            pod, spec = Located(), Located()
            _put(pod, "containers", _listed(_container(model), line_of(model)), line_of(model))
            if model.get("pvcStorage"):
                yield _claim(path, name, model)
                _put(pod, "volumes", _listed(_mapping(model, "pvcStorage", persistentVolumeClaim=_named(model, name))), 1)
            _put(spec, "replicas", model.get("replicaCount", 1), line_of(model, "replicaCount"))
            _put(spec, "template", _mapping(model, "name", spec=pod), line_of(model))
            yield _object(path, "StackModel", name, spec, model)


def _container(model: Located) -> Located:
    container, limits = Located(), Located()
    image = f"{model.get('repository')}:{model.get('tag')}"
    _put(container, "image", image, line_of(model, "tag"))
    words, lines = LocatedList(), list[int]()
    settings = model.get("vllmConfig")
    flags = [("--model", model.get("modelURL"), line_of(model, "modelURL"))]
    flags += [(flag, look(settings, key), line_of(settings, key)) for key, flag in (*_SPLITS, *_FURTHER)]
    for flag, value, line in flags:
        if value is not None:
            words += [flag, str(value)]
            lines += [line, line]
    for extra in listed(look(settings, "extraArgs")):
        words.append(str(extra))
        lines.append(line_of(settings, "extraArgs"))
    words.lines = lines
    _put(container, "args", words, line_of(model, "vllmConfig"))
    kind = str(model.get("requestGPUType") or "nvidia.com/gpu")
    if model.get("requestGPU"):
        _put(limits, kind, model["requestGPU"], line_of(model, "requestGPU"))
    _put(container, "resources", _mapping(model, "requestGPU", limits=limits), line_of(model, "requestGPU"))
    return container


def _claim(path: str, name: str, model: Located) -> Manifest:
    spec = Located()
    modes = model.get("pvcAccessMode") or ["ReadWriteOnce"]
    _put(spec, "accessModes", modes, line_of(model, "pvcAccessMode" if "pvcAccessMode" in model else "pvcStorage"))
    _put(spec, "storageClassName", model.get("storageClass", ""), line_of(model, "storageClass"))
    return _object(path, "PersistentVolumeClaim", name, spec, model)


def _object(path: str, kind: str, name: str, spec: Located, model: Located) -> Manifest:
    body = Located()
    body.line = model.line
    _put(body, "kind", kind, model.line)
    _put(body, "metadata", _mapping(model, "name", name=name), model.line)
    _put(body, "spec", spec, model.line)
    return Manifest(path, body)


def _named(model: Located, name: str) -> Located:
    return _mapping(model, "pvcAccessMode" if "pvcAccessMode" in model else "pvcStorage", claimName=name)


def _mapping(model: Located, place: str, **items: Any) -> Located:
    """A mapping whose keys all stand at one line of the model."""
    mapping = Located()
    mapping.line = line_of(model, place)
    for key, value in items.items():
        _put(mapping, key, value, line_of(model, place))
    return mapping


def _listed(item: Located, line: int = 1) -> LocatedList:
    items = LocatedList()
    items.append(item)
    items.lines.append(line)
    return items


def _put(mapping: Located, key: str, value: Any, line: int) -> None:
    mapping[key], mapping.lines[key] = value, line
