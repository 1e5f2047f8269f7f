"""How a container tells that it is well: the same question in images, in Compose and on devices."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Model
from chipwise.units import GIB

FETCH_BYTES_PER_S = 150e6  # of weights that come from a hub the first time
LOAD_BYTES_PER_S = 1e9  # from disk to the chips
MACHINE_S = 600  # until a machine has come to a cluster and pulled an image of some ten GB
WARM_S = 300  # engines compile kernels and capture graphs before they answer
# Those that compile whole graphs, one for each shape, take longer with nothing kept. Nobody measured these for us: the most
# that the makers' guides state (Neuron: 1,200 s for a model of 20B; vLLM 0.6 on TPUs: 20 to 30 minutes, 5 with kept graphs).
COMPILING_S = {"neuron": 1200, "tpu": 1800}
_COMPILING_WORDS = {
    "neuron": "Assumed for the compiler: 20 minutes, as Neuron's guide has it of 20B parameters; less with a kept cache.",
    "tpu": "Assumed for the compiler: 20 to 30 minutes, as vLLM's guide for TPUs has it; about 5 with kept graphs.",
}
EVERY_S = 15
LONGEST_S = 5
TRIES = 4


def listens(deployment: Deployment) -> bool:
    """What has a port is called. Encoders of video, for one, take streams and give streams: `software` gives them none."""
    return deployment.software.port is not None


def check_words(deployment: Deployment) -> tuple[str, ...] | None:
    """By Python, which every image here but TEI's has: not all of them have curl. None: nothing answers."""
    software = deployment.software
    if not listens(deployment) or software.health is None:
        return None
    if software.engine == "tei":  # on a plain Debian or Ubuntu
        ask = rf"exec 3<>/dev/tcp/127.0.0.1/{software.port} && printf 'GET {software.health} HTTP/1.0\r\n\r\n' >&3"
        return ("bash", "-c", f"{ask} && grep -q '^HTTP/[0-9.]* 200' <&3")
    address = f"http://127.0.0.1:{software.port}{software.health}"
    return ("python3", "-c", f"import urllib.request; urllib.request.urlopen({address!r}, timeout={LONGEST_S - 1})")


def start_seconds(deployment: Deployment) -> int:
    """Until failures count: the time to fetch the weights as the hub has them, to load them, and to compile and warm up."""
    return loading_seconds(deployment.model, deployment.node.kind)


def waited_for(kind: str) -> str:
    """What `start_seconds` is made of on this kind of device, for readers of a probe."""
    return "\n".join(filter(None, ("Weights come at 150 MB/s at first, then load.", _COMPILING_WORDS.get(kind, ""))))


def loading_seconds(model: Model | None, kind: str) -> int:
    """On a device of this kind."""
    size = (model.fetched_bytes or model.weight_bytes if model is not None else None) or 2 * GIB
    return int(size / FETCH_BYTES_PER_S + size / LOAD_BYTES_PER_S) + COMPILING_S.get(kind, WARM_S)
