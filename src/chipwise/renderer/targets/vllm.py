"""vLLM: a script that starts it with the flags the plan chose, and the same as a configuration file with the reasons."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.encoders import VLLM
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.shards import PROGRAM, shard_reason, shards
from chipwise.renderer.launch.starting import apart, parts
from chipwise.renderer.launch.timing import drain_seconds, drains
from chipwise.renderer.launch.whole_machines import refuse_copies
from chipwise.renderer.quoting import shell
from chipwise.renderer.serving import script
from chipwise.renderer.serving.settings import Setting, engine_settings, generating, promised, weights
from chipwise.renderer.yaml_text import Noted, document

FITS = "models that generate text, or pool it into embeddings and rankings, served or in a batch, on one machine each"
EXPRESSES = frozenset({"layers", "regions"})  # one machine serves alike however it is bought, and wherever
WRITES = ("config.yaml",)
PORT = 8000


def render(deployment: Deployment) -> list[File]:
    model = generating(deployment, "vLLM", VLLM)
    if deployment.node.kind not in ("gpu", "neuron", "tpu", "cpu"):
        raise CannotRender(
            f"vLLM has no build for {deployment.node.chip}.", remedy="Plan with --chip CHIP of GPUs, TPUs or Neuron."
        )
    if not model.generates and deployment.node.kind not in ("gpu", "cpu"):
        raise CannotRender(
            f"vLLM's build for {deployment.node.chip} generates text, and {model.name} generates none here.",
            remedy="Plan with --chip CHIP of GPUs, or take --to kubernetes with a program of your own.",
        )
    software = deployment.software
    if software.is_custom and software.engine == "vllm":
        about = "The command is the workload's own (program.command)."
        body = [*script.surroundings(deployment), f"exec {shell(software.command)}"]
        return [File("serve.sh", script.script(_head(deployment, about), body), executable=True)]
    batch = deployment.form is not Form.SERVICE
    settings = [
        Setting("model", weights(model), "Fetched from the hub into HF_HOME." if model.hub else "Put the weights there.")
    ]
    if not batch:
        settings += _answering(deployment, model.served)
    settings += engine_settings(deployment)
    if deployment.per_machine > 1 and not batch:
        refuse_copies(deployment)
        reason = f"{deployment.node.machine} holds {deployment.per_machine} replicas: one address, requests spread over all."
        settings.append(Setting("data-parallel-size", deployment.per_machine, reason))
    config = {one.name: Noted(one.value, one.reason) for one in settings}
    name = "batch.sh" if batch else "serve.sh"
    return [
        File("config.yaml", document(config, title=_head(deployment, f"Settings of vLLM, read by {name}."))),
        File(
            name,
            script.script(_head(deployment, _run(deployment) + _left_out(deployment)), _body(deployment, batch)),
            executable=True,
        ),
    ]


def _head(deployment: Deployment, about: str) -> str:
    return "\n".join([heading(deployment, about), *promised(deployment), "", ""])


def _left_out(deployment: Deployment) -> str:
    """A command that starts something else has no place in files of vLLM."""
    software = deployment.software
    return "\nThe workload's own command (program.command) is not used here: vLLM starts its own." if software.is_custom else ""


def _answering(deployment: Deployment, name: str) -> list[Setting]:
    return [
        Setting("served-model-name", name, "What clients ask for: it stays when the weights move."),
        Setting("host", "0.0.0.0", "For the balancer or gateway before it; sign-in and TLS are theirs."),
        Setting("port", deployment.software.port or PORT, ""),
        *_ending(deployment),
    ]


def _ending(deployment: Deployment) -> list[Setting]:
    tag = deployment.platforms.get("Images", {}).get("vllm", "").rpartition(":")[2]
    software = deployment.software
    if not drains("vllm", software.version if software.engine == "vllm" else tag.removeprefix("v")):
        return []
    reason = "Seconds to end the answers that were begun; without it they are dropped."
    return [Setting("shutdown-timeout", drain_seconds(deployment.predicted.longest_s), reason)]


def _run(deployment: Deployment) -> str:
    image = deployment.platforms.get("Images", {}).get("vllm") or deployment.software.image
    if apart(deployment):
        return f"Run it in {image}, once for each of {parts(deployment)} replicas; words after it go to vLLM and win."
    place = f"once on each of {deployment.machines} machines" if deployment.machines > 1 else "on the machine"
    return f"Run it in {image}, {place}; words after it go to vLLM and win."


def _body(deployment: Deployment, batch: bool) -> list[str]:
    lines = [*script.surroundings(deployment), 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"']
    if not batch:
        return [*lines, 'exec vllm serve --config "$here/config.yaml" "$@"']
    if parts(deployment) == 1:
        return [*lines, *_shards(deployment)]
    per_replica, replicas = max(deployment.chips_each, 1), deployment.per_machine
    pinned = [
        "",
        f"# {deployment.node.machine} holds {replicas} replicas; each sees its own chips.",
        f"first=$(( PART % {replicas} * {per_replica} ))",
        f'export CUDA_VISIBLE_DEVICES="$(seq -s, "$first" $(( first + {per_replica - 1} )))"',
    ]
    return [
        *lines,
        "",
        f': "${{PART:?number of this replica, from 0 to {parts(deployment) - 1}}}"',
        f"export PART PARTS={parts(deployment)}",
        *(pinned if replicas > 1 else []),
        *_shards(deployment),
    ]


def _shards(deployment: Deployment) -> list[str]:
    """One request a line, in the format of OpenAI's batch files; the program of the shards with the settings of the file."""
    folder = next((one.path for one in deployment.volumes if one.name == "data"), "/data")
    words = shell([f"{folder}/requests", f"{folder}/answers", str(shards(deployment))])
    return [
        "",
        *(f"# {line}" for line in shard_reason(deployment)),
        f"exec sh -c {shell([PROGRAM])} batch {words} \\",
        '  vllm run-batch --config "$here/config.yaml" "$@"',
    ]
