"""Text Generation Inference: a script that starts the launcher with the flags the plan chose, and why each has its value."""

from __future__ import annotations

from chipwise.planner.values.split import model_ways
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.quoting import shell
from chipwise.renderer.serving import script
from chipwise.renderer.serving.flags import TGI_NUMBERS
from chipwise.renderer.serving.settings import generating, promised, weights

FITS = "models that generate text, served on NVIDIA GPUs of one machine"
EXPRESSES = frozenset({"layers", "regions"})  # one machine serves alike however it is bought, and wherever
WRITES = ("serve.sh",)
PORT = 8080
Word = tuple[str, str | None, str]


def render(deployment: Deployment) -> list[File]:
    generating(deployment, "TGI")
    _can(deployment)
    software = deployment.software
    if software.is_custom and software.engine == "tgi":
        head = "\n".join([heading(deployment, "The command is the workload's own (program.command)."), *promised(deployment)])
        body = [*script.surroundings(deployment), f"exec {shell(software.command)}"]
        return [File("serve.sh", script.script(head, body), executable=True)]
    image = deployment.platforms.get("Images", {}).get("tgi")
    place = f"Run it in {image}" if image else "Run it in TGI's own image"
    about = f"{place}, {_times(deployment)}; words after it go to the launcher and win."
    head = "\n".join([heading(deployment, about), *promised(deployment)])
    body = [*script.surroundings(deployment), *_apart(deployment), *script.command(_words(deployment))]
    return [File("serve.sh", script.script(head, body), executable=True)]


def _can(deployment: Deployment) -> None:
    node = deployment.node
    if deployment.form is not Form.SERVICE:
        raise CannotRender("TGI answers requests and reads no batch files.", remedy="Use --to vllm, which does.")
    if "tgi" not in deployment.platforms.get("Images", {}):
        raise CannotRender(
            f"TGI's image has code for NVIDIA GPUs of compute capability 8.0 to 9.0, and the plan has {node.chip}.",
            remedy="Use --to vllm, or plan for another chip with --chip CHIP.",
        )
    if model_ways(deployment.split)[1] > 1:
        raise CannotRender(
            "TGI splits a model by layers' width alone; the plan puts layers on different chips.",
            remedy="Use --to vllm or ray.",
        )


def _times(deployment: Deployment) -> str:
    per_machine = deployment.per_machine
    place = f"each of {deployment.machines} machines" if deployment.machines > 1 else "the machine"
    return f"{per_machine} times on {place} (INDEX=0 to {per_machine - 1})" if per_machine > 1 else f"once on {place}"


def _apart(deployment: Deployment) -> list[str]:
    """Several launchers on one machine: chips, ports and sockets of their own."""
    if deployment.per_machine == 1:
        return []
    chips = max(deployment.chips_each, 1)
    return [
        f'index="${{INDEX:?which of the {deployment.per_machine} replicas of this machine}}"',
        f'export CUDA_VISIBLE_DEVICES="$(seq -s, $(( index * {chips} )) $(( index * {chips} + {chips - 1} )))"',
        "",
    ]


def _words(deployment: Deployment) -> list[Word]:
    model, scaling = deployment.model, deployment.scaling
    assert model is not None
    shared = deployment.per_machine > 1
    port = deployment.software.port if deployment.software.engine == "tgi" and deployment.software.port else PORT
    words: list[Word] = [
        ("text-generation-launcher", None, ""),
        ("--model-id", weights(model), "fetched from the hub into HF_HOME" if model.hub else "put the weights there"),
    ]
    if shared:
        words += [
            (f'--port "$(( {port} + index ))" --master-port "$(( 29500 + index ))"', None, ""),
            ('--shard-uds-path "/tmp/text-generation-$index"', None, ""),
        ]
    else:
        words.append(("--port", str(port), ""))
    words.append(
        ("--num-shard", str(model_ways(deployment.split)[0]), "chips that share every layer; left out, it takes all it sees")
    )
    if model.precision in TGI_NUMBERS:
        flag, value = TGI_NUMBERS[model.precision]
        words.append((flag, value, f"the plan counts on {model.precision}"))
    if model.context is not None:
        words.append(("--max-total-tokens", str(model.context), "the longest request with its answer"))
        words.append(
            ("--max-input-tokens", str(model.context - 1), "what a request may take of it: the launcher's own is less")
        )
    if scaling is not None and scaling.slots is not None:
        reason = f"requests in work at a time: rate times answer time, with room for bursts ({scaling.slots})"
        words.append(("--max-batch-size", str(scaling.slots), reason))
        reason = "as many may wait again; beyond that the balancer gets a 429 and goes elsewhere"
        words.append(("--max-concurrent-requests", str(2 * scaling.slots), reason))
    return words
