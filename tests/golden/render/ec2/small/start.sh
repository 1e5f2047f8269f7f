#!/bin/bash
# tag-api: serve on c7i.large (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: $62 and 4 kg CO2e a month.
set -euo pipefail
exec > >(tee -a /var/log/chipwise.log) 2>&1

metadata() { # IMDSv2; fails where the path is not there
  local token
  token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' http://169.254.169.254/latest/api/token)
  curl -sf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}
REGION=$(metadata placement/region)
export AWS_DEFAULT_REGION="$REGION"

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
mkdir -p "$SCRATCH"/models
chmod 0777 "$SCRATCH"/models # programs of images that are not root

command -v docker > /dev/null || dnf install -y -q docker
systemctl enable --now docker
case "$IMAGE" in
  *.dkr.ecr.*.amazonaws.com*/*)
    aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
    ;;
esac
docker pull -q "$IMAGE"

docker run --init --name main \
  --network host \
  --shm-size 1g \
  --volume "$SCRATCH"/models:/models \
  --restart unless-stopped --detach \
  --entrypoint python \
  "$IMAGE" serve.py
