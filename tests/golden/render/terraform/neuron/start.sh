#!/bin/bash
# neuron-pretrain: train on 4 x trn1.32xlarge (aws us-east-1, on-demand). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: 40 h (35 h to 52 h), $2,481.50, 210.0 kg CO2e.
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
  if [ -e /run/chipwise-fetched ]; then # not before: half a checkpoint must not go over a whole one
    aws s3 sync --only-show-errors /var/lib/chipwise/checkpoints "$BUCKET/checkpoints" || true
  fi
  aws s3 sync --only-show-errors /var/log/chipwise "$BUCKET/logs/${RANK:-unknown}" || true
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
  sleep 432000
  echo 'the deadline has come'
  touch /run/chipwise-taken
  docker ps -q | xargs -r docker stop -t 60 > /dev/null || true
  finish
) &
shutdown -h +7217 # should saving or leaving hang as well

mkdir -p /var/lib/chipwise/data /var/lib/chipwise/models /var/lib/chipwise/checkpoints
chown 10001:10001 /var/lib/chipwise/data /var/lib/chipwise/models /var/lib/chipwise/checkpoints # the program is not root
aws s3 sync --only-show-errors s3://legal-text/tokens/ /var/lib/chipwise/data
aws s3 sync --only-show-errors "$BUCKET/checkpoints" /var/lib/chipwise/checkpoints
chown -R 10001:10001 /var/lib/chipwise/data /var/lib/chipwise/models /var/lib/chipwise/checkpoints
touch /run/chipwise-fetched

command -v docker > /dev/null || dnf install -y -q docker
systemctl enable --now docker
case "$IMAGE" in
  *.dkr.ecr.*.amazonaws.com*/*)
    aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"
    ;;
esac
docker pull -q "$IMAGE"
(while sleep 300; do save; done) & # a lost machine loses no more than this

run() {
  # Where all meet: the address of machine 0, once it runs.
  until HEAD=$(aws ec2 describe-instances --output text --query 'Reservations[0].Instances[0].PrivateIpAddress' \
    --filters "Name=tag:chipwise-deployment,Values=$NAME" Name=tag:chipwise-rank,Values=0 \
    Name=instance-state-name,Values=running) && [ -n "$HEAD" ] && [ "$HEAD" != None ]; do sleep 5; done
  docker run \
    --init --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges \
    --shm-size 64g \
    --device /dev/neuron0 --device /dev/neuron1 --device /dev/neuron2 --device /dev/neuron3 --device /dev/neuron4 --device /dev/neuron5 --device /dev/neuron6 --device /dev/neuron7 --device /dev/neuron8 --device /dev/neuron9 --device /dev/neuron10 --device /dev/neuron11 --device /dev/neuron12 --device /dev/neuron13 --device /dev/neuron14 --device /dev/neuron15 \
    --device /dev/infiniband \
    --log-driver awslogs --log-opt awslogs-region="$AWS_DEFAULT_REGION" --log-opt awslogs-group="$LOG_GROUP" \
    --network host --ulimit memlock=-1 \
    --env NODE_RANK="$RANK" --env NODES=4 --env HEAD_ADDRESS="$HEAD" \
    --volume /var/lib/chipwise/data:/data \
    --volume /var/lib/chipwise/models:/models \
    --volume /var/lib/chipwise/checkpoints:/checkpoints \
    --env HOME=/tmp \
    --env FI_EFA_FORK_SAFE=1 \
    --env FI_EFA_USE_DEVICE_RDMA=1 \
    --env FI_PROVIDER=efa \
    --rm \
    --entrypoint torchrun \
    "$IMAGE" --nnodes=4 --nproc-per-node=32 --node-rank="$RANK" --rdzv-backend=c10d --rdzv-endpoint="$HEAD":29500 --rdzv-id=neuron-pretrain train.py --config legal.yaml
}

for ((try = 1; try <= 3; try++)); do # machines that lost one of theirs meet again
  if run; then exit 0; fi
  if [ -e /run/chipwise-taken ]; then save; sleep infinity; fi # the end comes by itself; the work goes on elsewhere
  echo "try $try failed"
  docker ps -aq | xargs -r docker rm -f > /dev/null
  sleep 15
done
exit 1
