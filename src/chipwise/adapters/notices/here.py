"""Which cloud this machine is of, from what its firmware says: files, so that it takes no time where there is none.

$CHIPWISE_CLOUD (ec2, google, azure, none) says it where the firmware does not, as in some containers; $CHIPWISE_METADATA_URL is
another address of the metadata.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path

from chipwise.adapters.notices.notice import Cloud

DMI = Path("/sys/class/dmi/id")
AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"  # that of every machine of Azure; other Hyper-V machines have the same vendor
CLOUDS = ("ec2", "google", "azure")


def cloud_name(dmi: Path = DMI) -> str:
    """Empty: of no cloud that gives notices."""
    fields = {name: _read(dmi / name) for name in ("sys_vendor", "product_name", "bios_version", "chassis_asset_tag")}
    if fields["sys_vendor"] == "Amazon EC2" or "amazon" in fields["bios_version"].lower():  # the latter on machines under Xen
        return "ec2"
    if fields["product_name"] == "Google Compute Engine":
        return "google"
    return "azure" if fields["chassis_asset_tag"] == AZURE_TAG else ""


def connect(env: Mapping[str, str] = os.environ, dmi: Path = DMI) -> Cloud | None:
    """None: nobody is asked."""
    name = env.get("CHIPWISE_CLOUD", "").strip().lower() or cloud_name(dmi)
    if name not in CLOUDS:
        return None
    cloud = importlib.import_module(f"chipwise.adapters.notices.{name}")
    connection: Cloud = cloud.connect((env.get("CHIPWISE_METADATA_URL") or cloud.BASE).rstrip("/"))
    return connection


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
