#!/bin/bash
# wing-cfd: hpc on 4 x hpc7a.96xlarge (aws us-east-2, on-demand). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: 2.5 days (40.0 h to 3.8 days), $1,728.00, 95.0 kg CO2e.
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

save() {
  [ -z "$KEEP" ] || aws s3 cp --only-show-errors /var/log/chipwise.log "$KEEP/logs/machine-$RANK.log" || true
}
finish() {
  echo "ended with status $?"
  save
  shutdown -h now # ends the machine: it was started so that a shutdown terminates it
}
trap finish EXIT
shutdown -h +4320 # the deadline: nothing that hangs runs for longer

command -v docker > /dev/null || dnf install -y -q docker
systemctl enable --now docker
case "$IMAGE" in
  *.dkr.ecr.*.amazonaws.com/*)
    aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
    ;;
esac
docker pull -q "$IMAGE"

PART=$RANK
docker run --init --name main \
  --network host \
  --shm-size 96g \
  --env "PART=$PART" --env PARTS=4 \
  --entrypoint ./solver \
  "$IMAGE" --case wing
