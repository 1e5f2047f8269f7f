#!/bin/bash
# embed-api: serve on 2 x Standard_NC24ads_A100_v4 (azure westeurope, spot). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: $1,534 and 55 kg CO2e a month.
# Terraform writes IMAGE and the other settings in capitals before this.
set -euo pipefail
mkdir -p /var/log/chipwise
exec > >(tee -a /var/log/chipwise/start.log) 2>&1

metadata() {
  curl -sf -H 'Metadata: true' --noproxy '*' "http://169.254.169.254/metadata/$1"
}
token() { # for an API of Azure, as the machine's own identity
  metadata "identity/oauth2/token?api-version=2018-02-01&resource=$1&client_id=$IDENTITY" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])'
}
export AZCOPY_AUTO_LOGIN_TYPE=MSI AZCOPY_MSI_CLIENT_ID="$IDENTITY"

mkdir -p /var/lib/chipwise/models
chown 10001:10001 /var/lib/chipwise/models # the program is not root

# Read at start, and passed on by name: they are neither in this script nor on a disk.
HF_TOKEN=$(curl -sf -H "Authorization: Bearer $(token https://vault.azure.net)" "https://$VAULT.vault.azure.net/secrets/"hub-token"?api-version=7.4" | python3 -c 'import json, sys; print(json.load(sys.stdin)["value"])' |
  python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' token)
export HF_TOKEN

command -v docker > /dev/null || { apt-get update -q && apt-get install -y -q docker.io; }
systemctl enable --now docker
if command -v nvidia-smi > /dev/null && ! command -v nvidia-ctk > /dev/null; then
  curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | gpg --dearmor -o /usr/share/keyrings/nvidia.gpg
  from=https://nvidia.github.io/libnvidia-container/stable/deb
  echo "deb [signed-by=/usr/share/keyrings/nvidia.gpg] $from/$(dpkg --print-architecture) /" \
    > /etc/apt/sources.list.d/nvidia.list
  apt-get update -q && apt-get install -y -q nvidia-container-toolkit
  nvidia-ctk runtime configure --runtime=docker && systemctl restart docker
fi
docker pull -q "$IMAGE"

docker run \
  --init --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges \
  --shm-size 27g \
  --gpus all \
  --log-driver journald \
  --publish 8000:8000 \
  --volume /var/lib/chipwise/models:/models \
  --env HOME=/tmp \
  --env HF_HOME=/models/hub \
  --env HF_TOKEN \
  --detach --restart unless-stopped \
  --entrypoint vllm \
  "$IMAGE" serve meta-llama/Llama-3.1-8B --host 0.0.0.0 --port 8000 --quantization fp8 --max-model-len 8192 --max-num-seqs 128
