#!/bin/bash
# wing-cfd: hpc on 4 x hpc7a.96xlarge (aws us-east-2, on-demand). Written by chipwise from the plan.
# Run by root on each node as it joins.
# Expected: 60 h (40 h to 3.75 d), $1,728.00, 95.0 kg CO2e.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

# Apptainer starts the plan's container without root and without a daemon.
add-apt-repository --yes ppa:apptainer/ppa
apt-get update
apt-get install --yes apptainer
