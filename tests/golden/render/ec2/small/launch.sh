#!/bin/bash
# tag-api: serve on c7i.large (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Machines stay until --down. Nothing balances or scales them: take --to ecs or kubernetes for that.
# Expected: $62.00 and 4 kg CO2e a month.
# What launch.py does, with the AWS CLI. What the plan says is in launch-settings.sh beside this file.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
image='' REGION='' NAME='' ROOT_GIB=100 MACHINES=1 TOGETHER='' PORTS='' KEEPS='' NEEDS_ROLE='' IMAGE_PARAMETER=''
TAGS='' GROUP_TAGS=''
ATTEMPTS=() # machine, how it is bought, EFA interfaces, first network card with EFA; tried in this order
# shellcheck source=/dev/null
. "$here/launch-settings.sh"
export AWS_DEFAULT_REGION="$REGION" AWS_PAGER=''

usage() {
  cat << 'END'
launch.sh check|up|down [option=value ...]
  image=URL  ami=ID  subnet=ID  profile=NAME
  keep=s3://bucket/prefix (where the work of a job outlives its machines)  loses_work=yes (start it without)
  open_to=CIDR (who may reach a service)  or_on_demand=yes (the full price, where a plan counts on spot)
check makes a dry run, up starts the machines (all or none), down ends everything with this deployment's tag.
Nothing here replaces a machine that is lost: launch.py --watch does, for these machines too.
END
  exit 64
}

action=${1:-check}
[ $# -eq 0 ] || shift
ami='' subnet='' profile='' keep='' loses_work='' open_to='' or_on_demand=''
for option in "$@"; do
  case "$option" in
    image=* | ami=* | subnet=* | profile=* | keep=* | loses_work=yes | open_to=* | or_on_demand=yes)
      printf -v "${option%%=*}" '%s' "${option#*=}"
      ;;
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
  [ -z "$TOGETHER" ] || aws ec2 delete-placement-group --group-name "chipwise-$NAME" 2> /dev/null || true
}

fail() {
  echo "$1" >&2
  exit 1
}

find_subnet() {
  local attempt interfaces
  [ -z "$subnet" ] || return 0
  for attempt in "${ATTEMPTS[@]}"; do
    read -r _ _ interfaces _ <<< "$attempt"
    [ "$interfaces" -eq 0 ] || fail 'machines with several network interfaces get no public address: give a private subnet='
  done
  subnet=$(aws ec2 describe-subnets --output text --query 'Subnets[0].SubnetId' --filters 'Name=default-for-az,Values=true')
}

find_image() {
  [ -z "$ami" ] || return 0
  [ -n "$IMAGE_PARAMETER" ] || fail 'no public image with drivers for this chip is known: give ami='
  ami=$(aws ssm get-parameter --query Parameter.Value --output text --name "$IMAGE_PARAMETER")
}

prepare() { # what every attempt has in common
  [ -n "$image" ] || fail 'push the image and give image='
  [ -z "$KEEPS" ] || [ -n "$keep$loses_work" ] ||
    fail "$KEEPS would be lost with the machine: give keep=s3://bucket/prefix, or accept it with loses_work=yes"
  [ -z "$NEEDS_ROLE$keep" ] || [ -n "$profile" ] || fail 'machines read S3 or secrets: give profile= with the right to do it'
  find_image
  find_subnet
  root=$(aws ec2 describe-images --image-ids "$ami" --query 'Images[0].RootDeviceName' --output text)
  data=$(mktemp)
  trap 'rm -f "$data"' EXIT
  {
    head -n 1 "$here/start.sh"
    printf 'IMAGE=%q\nKEEP=%q\n' "$image" "${keep%/}"
    tail -n +2 "$here/start.sh"
  } | gzip -9 > "$data" # EC2 takes 16 KiB, and unpacks it
  common=(
    --image-id "$ami" --user-data "fileb://$data" --instance-initiated-shutdown-behavior terminate
    --metadata-options 'HttpTokens=required,HttpPutResponseHopLimit=1,InstanceMetadataTags=enabled'
    --block-device-mappings
    "DeviceName=$root,Ebs={VolumeType=gp3,VolumeSize=$ROOT_GIB,Throughput=500,Encrypted=true,DeleteOnTermination=true}"
    --tag-specifications "$TAGS"
  )
  [ -z "$profile" ] || common+=(--iam-instance-profile "Name=$profile")
}

make_group() {
  local vpc among
  vpc=$(aws ec2 describe-subnets --subnet-ids "$subnet" --query 'Subnets[0].VpcId' --output text)
  group=$(aws ec2 create-security-group --group-name "chipwise-$NAME" --vpc-id "$vpc" --output text --query GroupId \
    --description 'Machines of one chipwise deployment' --tag-specifications "$GROUP_TAGS")
  if [ -n "$TOGETHER" ]; then # EFA needs both directions by name, even where everything may go out
    among="[{\"IpProtocol\": \"-1\", \"UserIdGroupPairs\": [{\"GroupId\": \"$group\"}]}]"
    aws ec2 authorize-security-group-ingress --group-id "$group" --ip-permissions "$among" > /dev/null
    aws ec2 authorize-security-group-egress --group-id "$group" --ip-permissions "$among" > /dev/null
    aws ec2 create-placement-group --group-name "chipwise-$NAME" --strategy cluster
  fi
  if [ -n "$PORTS" ] && [ -n "$open_to" ]; then
    aws ec2 authorize-security-group-ingress --group-id "$group" --protocol tcp --port "$PORTS" --cidr "$open_to" > /dev/null
  fi
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

try() {
  local told
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

start() { # the first attempt that finds all machines; a plan that counts on spot pays more only if somebody said so
  local one words first=''
  for one in "${ATTEMPTS[@]}"; do
    read -ra words <<< "$one"
    first=${first:-${words[1]}}
    if [ "${words[1]}" != "$first" ] && [ -z "$or_on_demand" ]; then
      echo 'No spot machines are available; or_on_demand=yes takes them at the full price.' >&2
      return 1
    fi
    if try "${words[@]}"; then return; fi
  done
  echo 'No attempt found all machines.' >&2
  return 1
}

tell_head() { # the first machine's address, for the others to meet at: each reads it from its own tags
  local head
  # shellcheck disable=SC2016 # backticks are of the query
  head=$(aws ec2 describe-instances --output text --filters "Name=tag:chipwise-deployment,Values=$NAME" \
    'Name=instance-state-name,Values=pending,running' \
    --query 'Reservations[].Instances[?AmiLaunchIndex==`0`].PrivateIpAddress')
  # shellcheck disable=SC2046
  aws ec2 create-tags --resources $(running) --tags "Key=chipwise-head,Value=$head"
}

up() {
  local there ids
  there=$(running)
  [ -z "$there" ] || fail "It runs already: $there. End it first: $0 down"
  trap 'rm -f "$data"; echo "did not succeed: ending what was started" >&2; down' EXIT
  trap 'exit 130' INT TERM
  [ -z "$TOGETHER" ] || placement="chipwise-$NAME"
  make_group
  start
  [ -z "$TOGETHER" ] || tell_head
  ids=$(running)
  # shellcheck disable=SC2086
  aws ec2 wait instance-running --instance-ids $ids
  trap 'rm -f "$data"' EXIT
  echo "running: $ids"
}

check() {
  local told words
  read -ra words <<< "${ATTEMPTS[0]}"
  told=$(attempt "${words[@]}" --count 1 --dry-run 2>&1) || true
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
