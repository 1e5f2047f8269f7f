#!/bin/bash
# llama-8b-legal: train on 2 x p5.48xlarge (aws eu-north-1, spot). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: 40 h (35 h to 52 h), $2,481.50, 210.0 kg CO2e.
set -euo pipefail
exec > >(tee -a /var/log/chipwise.log) 2>&1

metadata() { # IMDSv2; fails where the path is not there
  local token
  token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' http://169.254.169.254/latest/api/token)
  curl -sf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}
REGION=$(metadata placement/region)
export AWS_DEFAULT_REGION="$REGION"
trap 'shutdown -h now' EXIT # whatever goes wrong from here on, the machine ends

# Which machine this is: the launcher tags how many came before, EC2 counts within one request.
RANK=$(($(metadata tags/instance/chipwise-first-rank) + $(metadata ami-launch-index)))
# Where all meet: the address of the first, which the launcher writes into a tag once it is known.
until HEAD=$(metadata tags/instance/chipwise-head); do sleep 3; done

# The fast local disks, where there are any; the deep learning images mount them already.
SCRATCH=/var/lib/chipwise
if mountpoint -q /opt/dlami/nvme; then
  SCRATCH=/opt/dlami/nvme
else
  mapfile -t disks < <(lsblk -dpno NAME,MODEL | awk '/Instance Storage/ { print $1 }')
  if [ "${#disks[@]}" -gt 0 ]; then
    mkdir -p "$SCRATCH"
    disk=${disks[0]}
    if [ "${#disks[@]}" -gt 1 ]; then
      command -v mdadm > /dev/null || dnf install -y -q mdadm
      mdadm --create /dev/md0 --run --level=0 --raid-devices="${#disks[@]}" "${disks[@]}"
      disk=/dev/md0
    fi
    mkfs.xfs -q -f "$disk"
    mount "$disk" "$SCRATCH"
  fi
fi
mkdir -p "$SCRATCH"/data "$SCRATCH"/models "$SCRATCH"/checkpoints
chmod 0777 "$SCRATCH"/data "$SCRATCH"/models "$SCRATCH"/checkpoints # programs of images that are not root
aws s3 sync --only-show-errors s3://legal-text/tokens "$SCRATCH"/data
[ -z "$KEEP" ] || aws s3 sync --only-show-errors "$KEEP"/checkpoints "$SCRATCH"/checkpoints # what an earlier run left

save() {
  [ -z "$KEEP" ] || aws s3 cp --only-show-errors /var/log/chipwise.log "$KEEP/logs/machine-$RANK.log" || true
  [ -z "$KEEP" ] || aws s3 sync --only-show-errors "$SCRATCH"/checkpoints "$KEEP"/checkpoints || true
}
TAKEN=/run/chipwise-taken # there once AWS wants the machine back
finish() {
  status=$?
  echo "ended with status $status"
  save
  [ ! -e "$TAKEN" ] || sleep 300 # until it is taken: who watches sees a loss then, and not the end of the job
  [ -z "$KEEP" ] || echo "$(metadata instance-id) $status" | aws s3 cp --only-show-errors - \
    "$KEEP/logs/machine-$RANK.status" || true
  shutdown -h now # ends the machine: it was started so that a shutdown terminates it
}
trap finish EXIT
shutdown -h +7200 # the deadline: nothing that hangs runs for longer

# Read at start from Secrets Manager; docker takes them from this shell, so they stand on no disk.
HF_TOKEN=$(aws secretsmanager get-secret-value --secret-id hub-token \
  --query SecretString --output text | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' token)
export HF_TOKEN

command -v docker > /dev/null || dnf install -y -q docker
systemctl enable --now docker
case "$IMAGE" in
  *.dkr.ecr.*.amazonaws.com*/*)
    aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
    ;;
esac
docker pull -q "$IMAGE"

# A spot machine is told two minutes before it is taken: stop the program so that it can save, and send what it saved.
(
  while sleep 5; do
    if metadata spot/instance-action > /dev/null; then
      touch "$TAKEN"
      docker ps -q | xargs -r docker stop -t 75
      save
      break
    fi
  done
) &

(while sleep 300; do save; done) & # a lost machine loses no more than this and the last checkpoint

docker run --init --name main \
  --network host \
  --shm-size 256g \
  --gpus all \
  --device /dev/infiniband --ulimit memlock=-1 \
  --volume "$SCRATCH"/data:/data \
  --volume "$SCRATCH"/models:/models \
  --volume "$SCRATCH"/checkpoints:/checkpoints \
  --env FI_PROVIDER=efa \
  --env HF_HOME=/models/hub \
  --env NCCL_DEBUG=WARN \
  --env HF_TOKEN \
  --env "NODE_RANK=$RANK" --env NODES=2 --env "HEAD_ADDRESS=$HEAD" \
  --entrypoint torchrun \
  "$IMAGE" --node-rank="$RANK" --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint="$HEAD":29500 --rdzv-id=llama-8b-legal train.py --config legal.yaml
