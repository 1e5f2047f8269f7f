#!/bin/bash
# llama-8b-legal: train on 2 x p5.48xlarge (aws eu-north-1, spot). Written by chipwise from the plan.
# Run by root on each node as it joins.
# Expected: 40 h (35 h to 52 h), $2,481.50, 210.0 kg CO2e.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

# Apptainer starts the plan's container without root and without a daemon.
add-apt-repository --yes ppa:apptainer/ppa
apt-get update
apt-get install --yes apptainer
