"""Weights and compiled kernels outlive a restart, on storage of all machines or on the machine's own disk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.errors import InvalidFile
from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.caching import KERNELS, cache_notes, fetch_seconds, kernel_settings, with_cache
from chipwise.renderer.targets import kubernetes, kueue
from chipwise.units import GB, GIB
from chipwise.workload.parse import parse
from deployments import on_few_offers
from fixed_deployments import CASES

SERVE = CASES["serve"]


def kept(**fields: Any) -> Deployment:
    [models] = [one for one in SERVE.volumes if one.name == "models"]
    return replace(SERVE, volumes=(replace(models, **fields),))


OWN = kept(on_machine=True, shared=False)


def every(planned: Deployment, target: Any = kubernetes) -> list[dict[str, Any]]:
    return [one for file in target.render(planned) for one in yaml.safe_load_all(file.text)]


def pod(planned: Deployment) -> dict[str, Any]:
    [service] = [one for one in every(planned) if one["kind"] == "Deployment"]
    return dict(service["spec"]["template"]["spec"])


def test_an_engine_compiles_into_what_is_kept() -> None:
    planned = on_few_offers("serve", "clouds=[aws]")
    settings = dict(planned.software.env)
    assert settings["VLLM_CACHE_ROOT"] == f"{KERNELS}/vllm"
    models = planned.volume("models")
    assert models is not None
    assert all(settings[name].startswith(models.path) for name in ("VLLM_CACHE_ROOT", "HF_HOME"))
    assert models.shared, "the careful choice: the second machine finds what the first fetched"


def test_neuron_keeps_what_it_compiled() -> None:
    assert "NEURON_COMPILE_CACHE_URL" in kernel_settings("vllm", CASES["neuron"].node)
    assert "NEURON_COMPILE_CACHE_URL" in kernel_settings("pytorch", CASES["neuron"].node)
    assert kernel_settings("vllm", CASES["tpu"].node)["VLLM_XLA_CACHE_PATH"].startswith(KERNELS), "else in the user's home"
    assert not kernel_settings("pytorch", SERVE.node)


def test_a_cache_on_the_machine_claims_nothing_and_asks_for_its_room() -> None:
    objects = every(OWN)
    assert not [one for one in objects if one["kind"] in ("PersistentVolumeClaim", "StorageClass")]
    [quota] = [one for one in objects if one["kind"] == "ResourceQuota"]
    assert "requests.storage" not in quota["spec"]["hard"]
    made = pod(OWN)
    [volume] = [one for one in made["volumes"] if one["name"] == "models"]
    room = int(volume["emptyDir"]["sizeLimit"].removesuffix("Gi"))
    assert room * GIB >= OWN.volumes[0].size_bytes
    asked = made["containers"][0]["resources"]["requests"]["ephemeral-storage"]
    assert int(asked.removesuffix("Gi")) > room
    assert {"name": "models", "mountPath": "/models"} in made["containers"][0]["volumeMounts"]
    [queue] = [one for one in every(OWN, kueue) if one["kind"] == "ClusterQueue"]
    assert "ephemeral-storage" in queue["spec"]["resourceGroups"][0]["coveredResources"], "Kueue counts whatever pods name"


def test_a_class_of_the_users_own_is_claimed_and_not_written() -> None:
    objects = every(kept(storage_class="fsx-lustre"))
    [claim] = [one for one in objects if one["kind"] == "PersistentVolumeClaim"]
    assert claim["spec"]["storageClassName"] == "fsx-lustre"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert not [one for one in objects if one["kind"] == "StorageClass"]


def test_what_the_disk_cannot_hold_is_refused() -> None:
    assert with_cache(OWN) is OWN
    small = replace(OWN, node=replace(OWN.node, disk_bytes=10 * GB))
    for planned in (small, replace(OWN, node=replace(OWN.node, disk_bytes=None))):
        with pytest.raises(CannotRender, match="weights and kernels") as refused:
            with_cache(planned)
        assert "program.cache" in str(refused.value.remedy)
    assert with_cache(replace(small, volumes=(Volume("models", "/models", 18 * GB, True),)))


def test_fetching_takes_longer_the_larger_the_weights() -> None:
    assert SERVE.model is not None
    small, large = (fetch_seconds(replace(SERVE.model, fetched_bytes=size)) for size in (16e9, 140e9))
    assert small is not None
    assert large is not None
    assert all(one < other for one, other in zip(small, large, strict=True))
    assert large[0] == pytest.approx(206, rel=0.01), "as measured"


def test_a_chosen_place_is_noted_with_what_it_saves() -> None:
    def notes(planned: Deployment) -> tuple[str, ...]:
        return cache_notes(planned.software.engine, planned.model, planned.form, planned.volumes)

    assert not notes(SERVE), "the usual place needs no word"
    [own] = notes(OWN)
    assert "machine's own disk" in own
    assert "57 s" in own
    assert "fsx-lustre" in notes(kept(storage_class="fsx-lustre"))[0]
    assert not notes(replace(OWN, form=Form.JOB))


TEXT = """kind: serve
name: chat
model: llama-3.1-8b
arrival: {rate: 2 req/s}
input_tokens: 500
output_tokens: 200
program: {%s}
"""


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ("cache: machine", ""),
        ("cache: nvme", ""),
        ("cache: shared, cache_class: fsx-lustre", ""),
        ("cache: machine, cache_class: fsx-lustre", "cache_class"),
        ("cache: everywhere", "cache"),
        ("cache_class: 'a b'", "cache_class"),
    ],
)
def test_the_workload_says_where(fields: str, wrong: str) -> None:
    if not wrong:
        assert parse(TEXT % fields)
        return
    with pytest.raises(InvalidFile, match=wrong):
        parse(TEXT % fields)
