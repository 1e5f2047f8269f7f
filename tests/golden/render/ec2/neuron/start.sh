#!/bin/bash
# neuron-pretrain: train on 4 x trn1.32xlarge (aws us-east-1, on-demand). Written by chipwise from the plan.
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
finish() {
  status=$?
  echo "ended with status $status"
  save
  [ -z "$KEEP" ] || echo "$(metadata instance-id) $status" | aws s3 cp --only-show-errors - \
    "$KEEP/logs/machine-$RANK.status" || true
  shutdown -h now # ends the machine: it was started so that a shutdown terminates it
}
trap finish EXIT
shutdown -h +7200 # the deadline: nothing that hangs runs for longer

command -v docker > /dev/null || dnf install -y -q docker
systemctl enable --now docker
case "$IMAGE" in
  *.dkr.ecr.*.amazonaws.com*/*)
    aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
    ;;
esac
docker pull -q "$IMAGE"

(while sleep 300; do save; done) & # a lost machine loses no more than this and the last checkpoint

docker run --init --name main \
  --network host \
  --shm-size 64g \
  --device /dev/neuron0 --device /dev/neuron1 --device /dev/neuron2 --device /dev/neuron3 --device /dev/neuron4 --device /dev/neuron5 --device /dev/neuron6 --device /dev/neuron7 --device /dev/neuron8 --device /dev/neuron9 --device /dev/neuron10 --device /dev/neuron11 --device /dev/neuron12 --device /dev/neuron13 --device /dev/neuron14 --device /dev/neuron15 \
  --device /dev/infiniband --ulimit memlock=-1 \
  --volume "$SCRATCH"/data:/data \
  --volume "$SCRATCH"/models:/models \
  --volume "$SCRATCH"/checkpoints:/checkpoints \
  --env FI_EFA_FORK_SAFE=1 \
  --env FI_EFA_USE_DEVICE_RDMA=1 \
  --env FI_PROVIDER=efa \
  --env "NODE_RANK=$RANK" --env NODES=4 --env "HEAD_ADDRESS=$HEAD" \
  --entrypoint torchrun \
  "$IMAGE" --node-rank="$RANK" --nnodes=4 --nproc-per-node=32 --rdzv-backend=c10d --rdzv-endpoint="$HEAD":29500 --rdzv-id=neuron-pretrain train.py --config legal.yaml
