"""Tags: by `chipwise-deployment` a script finds again what it started; the others say who pays."""

from __future__ import annotations

import re

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.quoting import tag_value

OWNER_TAG = "chipwise-deployment"
MAX_TAGS = 40  # of 50 that a resource may have; services add some of their own


def tags(deployment: Deployment) -> dict[str, str]:
    """Keys only of signs that instance metadata takes, because machines read their own tags there."""
    pairs = {"Name": deployment.name, OWNER_TAG: deployment.name}
    for key, value in deployment.labels.items():
        name, text = re.sub(r"[^A-Za-z0-9_.+=@-]+", "-", key)[:120].strip("-."), tag_value(value)
        if name and text and name not in pairs and len(pairs) < MAX_TAGS:
            pairs[f"x-{name}" if name.lower().startswith("aws") else name] = text
    return pairs
