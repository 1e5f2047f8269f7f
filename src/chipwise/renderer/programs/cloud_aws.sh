#!/bin/bash
# What boot.sh asks of its cloud, on AWS. `launch.py`, Terraform and the engine `ec2` start machines with it.
# shellcheck disable=SC2034 # variables are read by boot.sh
METADATA=${CHIPWISE_METADATA:-http://169.254.169.254}
WARNING_S=120 # between the notice and the end of a spot machine

metadata() { # IMDSv2; fails where the path is not there
  local token
  token=$(curl -sf -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$METADATA/latest/api/token") || return 1
  curl -sf -m 5 -H "X-aws-ec2-metadata-token: $token" "$METADATA/latest/meta-data/$1"
}

machine_id() { metadata instance-id; }

connect() {
  AWS_DEFAULT_REGION=$(metadata placement/region)
  export AWS_DEFAULT_REGION
}

find_rank() { # a tag says how many machines came before its request, EC2 counts within one
  local first index
  first=$(metadata tags/instance/chipwise-first-rank)
  index=$(metadata ami-launch-index)
  RANK=$((first + index))
}

find_head() { # the first machine's address: from a tag that the launcher writes, or by its rank once it runs
  if [ "$MEETS" = tag ]; then
    until HEAD=$(metadata tags/instance/chipwise-head); do sleep 3; done
    return
  fi
  until HEAD=$(aws ec2 describe-instances --output text --query 'Reservations[0].Instances[0].PrivateIpAddress' \
    --filters "Name=tag:chipwise-deployment,Values=$NAME" Name=tag:chipwise-first-rank,Values=0 \
    Name=instance-state-name,Values=running) && [ -n "$HEAD" ] && [ "$HEAD" != None ]; do sleep 5; done
}

scratch() { # the fast local disks, where there are any; the deep learning images mount them already
  local disk disks
  if mountpoint -q /opt/dlami/nvme; then
    SCRATCH=/opt/dlami/nvme
    return
  fi
  mapfile -t disks < <(lsblk -dpno NAME,MODEL | awk '/Instance Storage/ { print $1 }')
  [ "${#disks[@]}" -gt 0 ] || return 0
  mkdir -p "$SCRATCH"
  disk=${disks[0]}
  if [ "${#disks[@]}" -gt 1 ]; then
    command -v mdadm > /dev/null || dnf install -y -q mdadm
    mdadm --create /dev/md0 --run --level=0 --raid-devices="${#disks[@]}" "${disks[@]}"
    disk=/dev/md0
  fi
  mkfs.xfs -q -f "$disk"
  mount "$disk" "$SCRATCH"
}

sync() { aws s3 sync --only-show-errors "$1" "$2"; } # SOURCE TARGET; an empty place is no failure
fetch() { sync "$1" "$2"; } # where it must not be empty, boot.sh looks
secret_text() { aws secretsmanager get-secret-value --secret-id "$1" --query SecretString --output text; }
taken() { metadata spot/instance-action > /dev/null; }

pull() { # the image, with docker to run it
  command -v docker > /dev/null || dnf install -y -q docker
  systemctl enable --now docker
  case "$IMAGE" in
    *.dkr.ecr.*.amazonaws.com*/*)
      aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
      ;;
  esac
  docker pull -q "$IMAGE"
}

log_options() {
  [ -z "${LOG_GROUP-}" ] || LOG_OPTIONS=(
    --log-driver awslogs --log-opt "awslogs-region=$AWS_DEFAULT_REGION" --log-opt "awslogs-group=$LOG_GROUP"
  )
}

leave() { # the end of the machine: it was started so that a shutdown terminates it
  if [ -n "$GROUPED" ]; then # its group is told not to replace it
    aws autoscaling terminate-instance-in-auto-scaling-group --instance-id "$(metadata instance-id)" \
      --should-decrement-desired-capacity
  else
    "$SHUTDOWN" -h now
  fi
}
