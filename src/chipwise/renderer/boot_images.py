"""What Google Cloud and Azure call what a machine needs: the image it boots from, its accelerators, the hosts of a TPU slice.

Rows of the catalog's table `runtimes`; targets read them from `Deployment.platforms` under `Machine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chipwise.catalog.tables import RuntimeFact
from chipwise.renderer.deployment import Node
from chipwise.renderer.images import device_of
from chipwise.renderer.platforms import OPEN_DRIVER


def boot_images(rows: Iterable[RuntimeFact], node: Node) -> dict[str, Mapping[str, str]]:
    """`image`: what carries the driver; `accelerator`: as Compute Engine names it; `host`: of a TPU slice. What is not known
    is not there."""
    facts = {(row.component, row.version): row.value for row in rows if row.requires in ("image", "type")}
    device = device_of(node)
    values = {}
    # The images carry NVIDIA's open driver, which does not know chips before Turing.
    old = device == "nvidia" and node.capability is not None and node.capability < OPEN_DRIVER
    image = facts.get((f"Machine image {node.provider}", f"{device} {node.arch}"))
    if image is not None and not old:
        values["image"] = image
    if node.provider == "gcp":
        accelerator = facts.get(("GCE accelerator", node.machine)) or facts.get(("GCE accelerator", node.chip))
        family = next(
            (name for name in ("TPU-v4", "TPU-v5e", "TPU-v5p", "TPU-v6e", "TPU-v7") if node.chip.startswith(name)), ""
        )
        host = facts.get(("GKE TPU machine", family))
        values |= {"accelerator": accelerator} if accelerator else {}
        values |= {"host": host} if host else {}
    return {"Machine": values} if values else {}
