"""How a container tells that it is well: the same question in images, in Compose and on devices."""

from __future__ import annotations

from chipwise.render.deployment import Deployment
from chipwise.units import GIB

FETCH_BYTES_PER_S = 150e6  # of weights that come from a hub the first time
EVERY_S = 15
LONGEST_S = 5
TRIES = 4


def listens(deployment: Deployment) -> bool:
    """Encoders of video take streams and give streams; nobody calls them."""
    return deployment.software.port is not None and deployment.software.purpose != "ffmpeg"


def check_words(deployment: Deployment) -> tuple[str, ...] | None:
    """By Python, which every image here has: not all of them have curl. None: nothing answers."""
    software = deployment.software
    if not listens(deployment) or software.health is None:
        return None
    address = f"http://127.0.0.1:{software.port}{software.health}"
    return ("python3", "-c", f"import urllib.request; urllib.request.urlopen({address!r}, timeout={LONGEST_S - 1})")


def start_seconds(deployment: Deployment) -> int:
    """Until failures count: the time to fetch the weights, and a minute to load them."""
    model = deployment.model
    size = model.weight_bytes if model is not None and model.weight_bytes else 2 * GIB
    return int(size / FETCH_BYTES_PER_S) + 60
