#!/bin/bash
# chat-api: serve on 2 x g6e.xlarge (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Machines stay until --down. Nothing balances or scales them: take --to ecs or kubernetes for that.
# Expected: $1,534 and 55 kg CO2e a month.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export AWS_DEFAULT_REGION=eu-central-1 AWS_PAGER=''
NAME=chat-api
ROOT_GIB=100
MACHINES=2
image=vllm/vllm-openai:v0.32.0
TAGS='[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "chat-api"}, {"Key": "chipwise-deployment", "Value": "chat-api"}, {"Key": "owner", "Value": "priya.raman"}, {"Key": "team", "Value": "assistants"}, {"Key": "project", "Value": "shop-chat"}, {"Key": "chipwise-first-rank", "Value": "0"}]}, {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "chat-api"}, {"Key": "chipwise-deployment", "Value": "chat-api"}, {"Key": "owner", "Value": "priya.raman"}, {"Key": "team", "Value": "assistants"}, {"Key": "project", "Value": "shop-chat"}, {"Key": "chipwise-first-rank", "Value": "0"}]}]'
GROUP_TAGS='[{"ResourceType": "security-group", "Tags": [{"Key": "Name", "Value": "chat-api"}, {"Key": "chipwise-deployment", "Value": "chat-api"}, {"Key": "owner", "Value": "priya.raman"}, {"Key": "team", "Value": "assistants"}, {"Key": "project", "Value": "shop-chat"}]}]'

usage() {
  cat << 'END'
launch.sh check|up|down [option=value ...]
  image=URL  ami=ID  subnet=ID  profile=NAME  keep=s3://bucket/prefix  open_to=CIDR
check makes a dry run, up starts the machines (all or none), down ends everything with this deployment's tag.
Nothing here replaces a machine that is lost: launch.py --watch does, for these machines too.
END
  exit 64
}

action=${1:-check}
[ $# -eq 0 ] || shift
ami='' subnet='' profile='' keep='' open_to=''
for option in "$@"; do
  case "$option" in
    image=* | ami=* | subnet=* | profile=* | keep=* | open_to=*) printf -v "${option%%=*}" '%s' "${option#*=}" ;;
    *) usage ;;
  esac
done

running() {
  aws ec2 describe-instances --output text --query 'Reservations[].Instances[].InstanceId' \
    --filters "Name=tag:chipwise-deployment,Values=$NAME" 'Name=instance-state-name,Values=pending,running,stopping,stopped'
}

down() {
  local ids
  ids=$(running)
  if [ -n "$ids" ]; then
    # shellcheck disable=SC2086 # one word per machine; the tag tells a `launch.py --watch` elsewhere that this is no loss
    aws ec2 create-tags --resources $ids --tags 'Key=chipwise-ended,Value=by down' || true
    # shellcheck disable=SC2086
    aws ec2 terminate-instances --instance-ids $ids > /dev/null
    # shellcheck disable=SC2086
    aws ec2 wait instance-terminated --instance-ids $ids
    echo "ended: $ids"
  fi
  for group in $(aws ec2 describe-security-groups --output text --query 'SecurityGroups[].GroupId' \
    --filters "Name=tag:chipwise-deployment,Values=$NAME"); do
    aws ec2 delete-security-group --group-id "$group"
  done
}

prepare() { # what every attempt has in common
  [ -n "$image" ] || { echo 'push the image and give image=' >&2; exit 1; }
  [ -n "$ami" ] || ami=$(aws ssm get-parameter --query Parameter.Value --output text \
    --name /aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id)
  [ -n "$subnet" ] || subnet=$(aws ec2 describe-subnets --output text --query 'Subnets[0].SubnetId' \
    --filters 'Name=default-for-az,Values=true')
  root=$(aws ec2 describe-images --image-ids "$ami" --query 'Images[0].RootDeviceName' --output text)
  data=$(mktemp)
  trap 'rm -f "$data"' EXIT
  {
    head -n 1 "$here/start.sh"
    printf 'IMAGE=%q\nKEEP=%q\n' "$image" "${keep%/}"
    tail -n +2 "$here/start.sh"
  } > "$data"
  common=(
    --image-id "$ami" --user-data "file://$data" --instance-initiated-shutdown-behavior terminate
    --metadata-options 'HttpTokens=required,HttpPutResponseHopLimit=1,InstanceMetadataTags=enabled'
    --block-device-mappings
    "DeviceName=$root,Ebs={VolumeType=gp3,VolumeSize=$ROOT_GIB,Throughput=500,Encrypted=true,DeleteOnTermination=true}"
    --tag-specifications "$TAGS"
  )
  [ -z "$profile" ] || common+=(--iam-instance-profile "Name=$profile")
}

make_group() {
  local vpc
  vpc=$(aws ec2 describe-subnets --subnet-ids "$subnet" --query 'Subnets[0].VpcId' --output text)
  group=$(aws ec2 create-security-group --group-name "chipwise-$NAME" --vpc-id "$vpc" --output text --query GroupId \
    --description 'Machines of one chipwise deployment' --tag-specifications "$GROUP_TAGS")
  [ -z "$open_to" ] || aws ec2 authorize-security-group-ingress --group-id "$group" --protocol tcp \
    --port 8000-8000 --cidr "$open_to" > /dev/null
}

attempt() { # machine, how it is bought, interfaces, first card with EFA; then options
  local machine=$1 purchase=$2 interfaces=$3 first=$4 at where cards
  shift 4
  local wanted=(--instance-type "$machine" "${common[@]}")
  if [ "$interfaces" -gt 0 ]; then
    where="SubnetId=$subnet${group:+,Groups=$group},DeleteOnTermination=true"
    cards=("NetworkCardIndex=0,DeviceIndex=0,InterfaceType=interface,$where")
    for ((at = first; at < first + interfaces; at++)); do
      cards+=("NetworkCardIndex=$at,DeviceIndex=$((at == 0)),InterfaceType=efa-only,$where")
    done
    wanted+=(--network-interfaces "${cards[@]}")
  else
    wanted+=(--subnet-id "$subnet")
    [ -z "$group" ] || wanted+=(--security-group-ids "$group")
  fi
  if [ "$purchase" = spot ]; then
    wanted+=(--instance-market-options)
    wanted+=('MarketType=spot,SpotOptions={SpotInstanceType=one-time,InstanceInterruptionBehavior=terminate}')
  fi
  [ -z "$placement" ] || wanted+=(--placement "GroupName=$placement")
  aws ec2 run-instances "${wanted[@]}" "$@"
}

start() { # the first attempt that finds all machines
  local told
  try() {
    if told=$(attempt "$@" --count "$MACHINES" 2>&1 > /dev/null); then
      echo "started $MACHINES x $1 ($2)"
    elif grep -qE 'Insufficient|LimitExceeded|SpotMaxPrice|MaxSpot|Unsupported|Unfulfillable' <<< "$told"; then
      echo "no: $1 ($2): $told" >&2
      return 1
    else
      echo "$told" >&2
      exit 2
    fi
  }
  try g6e.xlarge on-demand 0 0 && return
  echo 'No attempt found all machines.' >&2
  return 1
}

up() {
  local there ids
  there=$(running)
  [ -z "$there" ] || { echo "It runs already: $there. End it first: $0 down" >&2; exit 1; }
  trap 'rm -f "$data"; echo "did not succeed: ending what was started" >&2; down' EXIT
  trap 'exit 130' INT TERM
  make_group
  start
  ids=$(running)
  # shellcheck disable=SC2086
  aws ec2 wait instance-running --instance-ids $ids
  trap 'rm -f "$data"' EXIT
  echo "running: $ids"
}

check() {
  local told
  told=$(attempt g6e.xlarge on-demand 0 0 --count 1 --dry-run 2>&1) || true
  case "$told" in
    *DryRunOperation*) echo "dry run: fine. Start it: $0 up" ;;
    *)
      echo "$told" >&2
      exit 2
      ;;
  esac
}

group='' placement=''
case "$action" in
  check)
    prepare
    check
    ;;
  up)
    prepare
    up
    ;;
  down) down ;;
  *) usage ;;
esac
