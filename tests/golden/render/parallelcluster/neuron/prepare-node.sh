#!/bin/bash
# neuron-pretrain: train on 4 x trn1.32xlarge (aws us-east-1, on-demand). Written by chipwise from the plan.
# Run by root on each node as it joins.
# Expected: 40 h (35 h to 52 h), $2,481.50, 210.0 kg CO2e.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

# Apptainer starts the plan's container without root and without a daemon.
add-apt-repository --yes ppa:apptainer/ppa
apt-get update
apt-get install --yes apptainer

# The system image has no driver for Neuron chips; compiler and runtime are in the container.
install --directory --mode=0755 /etc/apt/keyrings
curl --fail --silent --show-error https://apt.repos.neuron.amazonaws.com/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB \
  | gpg --dearmor --output /etc/apt/keyrings/neuron.gpg
. /etc/os-release
where="https://apt.repos.neuron.amazonaws.com $VERSION_CODENAME main"
echo "deb [signed-by=/etc/apt/keyrings/neuron.gpg] $where" > /etc/apt/sources.list.d/neuron.list
apt-get update
apt-get install --yes "linux-headers-$(uname -r)" aws-neuronx-dkms aws-neuronx-tools
