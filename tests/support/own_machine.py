"""The chip of this machine as its owner might describe it, with a price: a catalog file, for measuring beside a prediction."""

from __future__ import annotations

import os

CPUS = os.cpu_count() or 1
OWN = f"""
chips:
  - {{name: this-box, like: Xeon-Sapphire-Rapids}}
machines:
  - {{name: rack, chip: this-box, chips: 1, vcpus: {CPUS}, price_per_hour: 0.36}}
"""
