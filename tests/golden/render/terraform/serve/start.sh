#!/bin/bash
# chat-api: serve on 2 x g6e.xlarge (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: $1,534 and 55 kg CO2e a month.
# Terraform writes IMAGE and the other settings in capitals before this.
set -euo pipefail
mkdir -p /var/log/chipwise
exec > >(tee -a /var/log/chipwise/start.log) 2>&1

metadata() { # IMDSv2; fails where the path is not there
  local token
  token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' http://169.254.169.254/latest/api/token)
  curl -sf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}
AWS_DEFAULT_REGION=$(metadata placement/region)
export AWS_DEFAULT_REGION

mkdir -p /var/lib/chipwise/models
chown 10001:10001 /var/lib/chipwise/models # the program is not root

# Read at start, and passed on by name: they are neither in this script nor on a disk.
HF_TOKEN=$(aws secretsmanager get-secret-value --secret-id hub-token --query SecretString --output text |
  python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' token)
export HF_TOKEN

command -v docker > /dev/null || dnf install -y -q docker
systemctl enable --now docker
case "$IMAGE" in
  *.dkr.ecr.*.amazonaws.com*/*)
    aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
    ;;
esac
docker pull -q "$IMAGE"

docker run \
  --init --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges \
  --shm-size 4g \
  --gpus all \
  --log-driver awslogs --log-opt awslogs-region="$AWS_DEFAULT_REGION" --log-opt awslogs-group="$LOG_GROUP" \
  --publish 8000:8000 \
  --volume /var/lib/chipwise/models:/models \
  --env HOME=/tmp \
  --env HF_HOME=/models/hub \
  --env HF_TOKEN \
  --detach --restart unless-stopped \
  --entrypoint vllm \
  "$IMAGE" serve meta-llama/Llama-3.1-8B --host 0.0.0.0 --port 8000 --quantization fp8 --max-model-len 8192 --max-num-seqs 128
