#!/bin/bash
# wing-cfd: hpc on 4 x hpc7a.96xlarge (aws us-east-2, on-demand). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: 60 h (40 h to 3.75 d), $1,728.00, 95.0 kg CO2e.
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

save() {
  true
}
finish() {
  echo "ended with status $?"
  save
  shutdown -h now # the launch template makes that the end of the machine
}
# A machine that does nothing is paid for like one that works: it ends itself, whether all went well or not.
trap finish EXIT
# Taken away or shut down by others: save, and leave it to them whether another takes its place.
trap 'trap - EXIT; save; exit 143' TERM

# Which machine this is, from 0. A machine that stands in for a lost one has its number.
RANK=$(metadata tags/instance/chipwise-rank)

# The deadline of the workload, from the start of this machine: nothing that hangs runs for longer.
(
  sleep 259200
  echo 'the deadline has come'
  touch /run/chipwise-taken
  docker ps -q | xargs -r docker stop -t 60 > /dev/null || true
  finish
) &
shutdown -h +4337 # should saving or leaving hang as well

command -v docker > /dev/null || dnf install -y -q docker
systemctl enable --now docker
case "$IMAGE" in
  *.dkr.ecr.*.amazonaws.com*/*)
    aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
    ;;
esac
docker pull -q "$IMAGE"

# The program starts on every machine with NODE_RANK, NODES and HEAD_ADDRESS. If mpirun must start it from
# the first one, take `--to slurm` or parallelcluster: they bring the launcher that reaches the others.
run() {
  # Where all meet: the address of machine 0, once it runs.
  until HEAD=$(aws ec2 describe-instances --output text --query 'Reservations[0].Instances[0].PrivateIpAddress' \
    --filters "Name=tag:chipwise-deployment,Values=$NAME" Name=tag:chipwise-rank,Values=0 \
    Name=instance-state-name,Values=running) && [ -n "$HEAD" ] && [ "$HEAD" != None ]; do sleep 5; done
  docker run \
    --init --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges \
    --shm-size 96g \
    --log-driver awslogs --log-opt awslogs-region="$AWS_DEFAULT_REGION" --log-opt awslogs-group="$LOG_GROUP" \
    --network host --ulimit memlock=-1 \
    --env NODE_RANK="$RANK" --env NODES=4 --env HEAD_ADDRESS="$HEAD" \
    --env HOME=/tmp \
    --rm \
    --entrypoint ./solver \
    "$IMAGE" --case wing
}

for ((try = 1; try <= 3; try++)); do # machines that lost one of theirs meet again
  if run; then exit 0; fi
  if [ -e /run/chipwise-taken ]; then save; sleep infinity; fi # the end comes by itself; the work goes on elsewhere
  echo "try $try failed"
  docker ps -aq | xargs -r docker rm -f > /dev/null
  sleep 15
done
exit 1
