"""Memory that a program may lock, on nodes with EFA: without it, libfabric cannot register its buffers.

Kubernetes has no field for it, and our programs are not root, so the node allows it to all containers: `nodeadm`, which starts
nodes of EKS's AL2023 images, merges this into what it tells containerd.
"""

from __future__ import annotations

from chipwise.renderer.cluster.pod import Object
from chipwise.renderer.yaml_text import Noted, document

# nodeadm reads numbers as floats: the true "unlimited" (2^64 - 1) would come out larger than containerd takes. This is 1 PiB.
UNLIMITED = 2**50
REASON = "EFA locks the memory that it sends from, which a program that is not root may do with this alone."
_FILES = (65536, 1048576)  # nodeadm's own; the list is replaced as a whole


def node_config() -> str:
    """By itself, as Karpenter and eksctl take it."""
    limits = [
        {
            "type": "RLIMIT_NOFILE",
            "soft": Noted(_FILES[0], "As it was: this list replaces the node image's."),
            "hard": _FILES[1],
        },
        {
            "type": "RLIMIT_MEMLOCK",
            "soft": Noted(UNLIMITED, "As good as unlimited: no number beyond 2^53 survives nodeadm."),
            "hard": UNLIMITED,
        },
    ]
    config: Object = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {"containerd": {"baseRuntimeSpec": {"process": {"rlimits": [*limits]}}}},
    }
    return document(config)


def user_data() -> str:
    """The same as one part of several, for a launch template: EKS adds its own."""
    return (
        "MIME-Version: 1.0\n"
        'Content-Type: multipart/mixed; boundary="//"\n'
        "\n"
        "--//\n"
        "Content-Type: application/node.eks.aws\n"
        "\n"
        f"{node_config()}\n"
        "--//--\n"
    )
