"""What Google Cloud and Azure call what a machine needs: the image it boots from, its accelerators, the hosts of a TPU slice.

Rows of the catalog's table `runtimes`; targets read them from `Deployment.platforms` under `Machine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chipwise.catalog.tables import RuntimeFact
from chipwise.renderer.deployment import Node
from chipwise.renderer.platforms import OPEN_DRIVER
from chipwise.renderer.software import device_of


def boot_images(rows: Iterable[RuntimeFact], node: Node) -> dict[str, Mapping[str, str]]:
    """`image`: what carries the driver; `accelerator`: as Compute Engine names it; `host`: of a TPU slice. What is not known
    is not there."""
    found = {(row.component, row.version): row.value for row in rows if row.requires in ("image", "type")}
    device = device_of(node) if node.accelerated else "cpu"
    made = {}
    # The images carry NVIDIA's open driver, which does not know chips before Turing.
    old = device == "nvidia" and node.capability is not None and node.capability < OPEN_DRIVER
    image = found.get((f"Machine image {node.provider}", f"{device} {node.arch}"))
    if image is not None and not old:
        made["image"] = image
    if node.provider == "gcp":
        named = found.get(("GCE accelerator", node.machine)) or found.get(("GCE accelerator", node.chip))
        family = next(
            (name for name in ("TPU-v4", "TPU-v5e", "TPU-v5p", "TPU-v6e", "TPU-v7") if node.chip.startswith(name)), ""
        )
        host = found.get(("GKE TPU machine", family))
        made |= {"accelerator": named} if named else {}
        made |= {"host": host} if host else {}
    return {"Machine": made} if made else {}
