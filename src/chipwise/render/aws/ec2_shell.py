"""`launch.sh`: what `launch.py` does, with the AWS CLI, for those who read a shell script faster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from chipwise.render.quoting import one_line, shell

Attempt = tuple[str, str, int, int]  # machine, how it is bought, EFA interfaces, first card with EFA

_OPTIONS = """
usage() {
  cat << 'END'
launch.sh check|up|down [option=value ...]
  image=URL  ami=ID  subnet=ID  profile=NAME  keep=s3://bucket/prefix@OPTIONS@
check makes a dry run, up starts the machines (all or none), down ends everything with this deployment's tag.
Nothing here replaces a machine that is lost: launch.py --watch does, for these machines too.
END
  exit 64
}

action=${1:-check}
[ $# -eq 0 ] || shift
ami='' subnet='' profile='' keep=''@EMPTY@
for option in "$@"; do
  case "$option" in
    image=* | ami=* | subnet=* | profile=* | keep=*@CASE@) printf -v "${option%%=*}" '%s' "${option#*=}" ;;
    *) usage ;;
  esac
done
"""

_FIND = """
running() {
  aws ec2 describe-instances --output text --query 'Reservations[].Instances[].InstanceId' \\
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
  for group in $(aws ec2 describe-security-groups --output text --query 'SecurityGroups[].GroupId' \\
    --filters "Name=tag:chipwise-deployment,Values=$NAME"); do
    aws ec2 delete-security-group --group-id "$group"
  done
@DROP@}
"""

_DROP = '  aws ec2 delete-placement-group --group-name "chipwise-$NAME" 2> /dev/null || true\n'

_PREPARE = """
prepare() { # what every attempt has in common
  [ -n "$image" ] || { echo 'push the image and give image=' >&2; exit 1; }
@KEEP@@AMI@@SUBNET@  root=$(aws ec2 describe-images --image-ids "$ami" --query 'Images[0].RootDeviceName' --output text)
  data=$(mktemp)
  trap 'rm -f "$data"' EXIT
  {
    head -n 1 "$here/start.sh"
    printf 'IMAGE=%q\\nKEEP=%q\\n' "$image" "${keep%/}"
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
"""

_ANY_SUBNET = """\
  [ -n "$subnet" ] || subnet=$(aws ec2 describe-subnets --output text --query 'Subnets[0].SubnetId' \\
    --filters 'Name=default-for-az,Values=true')
"""

_OWN_SUBNET = """\
  [ -n "$subnet" ] || {
    echo 'machines with several network interfaces get no public address: give a private subnet=' >&2
    exit 1
  }
"""

_GROUP = """
make_group() {
  local vpc
  vpc=$(aws ec2 describe-subnets --subnet-ids "$subnet" --query 'Subnets[0].VpcId' --output text)
  group=$(aws ec2 create-security-group --group-name "chipwise-$NAME" --vpc-id "$vpc" --output text --query GroupId \\
    --description 'Machines of one chipwise deployment' --tag-specifications "$GROUP_TAGS")
@RULES@}
"""

_AMONG = """\
  # EFA needs both directions by name, even where everything may go out.
  local among="[{\\"IpProtocol\\": \\"-1\\", \\"UserIdGroupPairs\\": [{\\"GroupId\\": \\"$group\\"}]}]"
  aws ec2 authorize-security-group-ingress --group-id "$group" --ip-permissions "$among" > /dev/null
  aws ec2 authorize-security-group-egress --group-id "$group" --ip-permissions "$among" > /dev/null
  aws ec2 create-placement-group --group-name "chipwise-$NAME" --strategy cluster
"""

_OPEN = """\
  [ -z "$open_to" ] || aws ec2 authorize-security-group-ingress --group-id "$group" --protocol tcp \\
    --port @PORTS@ --cidr "$open_to" > /dev/null
"""

_ATTEMPT = """
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
"""

_UP = """
start() { # the first attempt that finds all machines
@TRIES@  echo 'No attempt found all machines.' >&2
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
@HEAD@  ids=$(running)
  # shellcheck disable=SC2086
  aws ec2 wait instance-running --instance-ids $ids
  trap 'rm -f "$data"' EXIT
  echo "running: $ids"
}

check() {
  local told
  told=$(attempt @FIRST@ --count 1 --dry-run 2>&1) || true
  case "$told" in
    *DryRunOperation*) echo "dry run: fine. Start it: $0 up" ;;
    *)
      echo "$told" >&2
      exit 2
      ;;
  esac
}

group='' placement=@PLACEMENT@
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
"""

_META = """\
  # The first machine's address, for the others to meet at: each reads it from its own tags.
  local head
  # shellcheck disable=SC2016 # backticks are of the query
  head=$(aws ec2 describe-instances --output text --filters "Name=tag:chipwise-deployment,Values=$NAME" \\
    'Name=instance-state-name,Values=pending,running' \\
    --query 'Reservations[].Instances[?AmiLaunchIndex==`0`].PrivateIpAddress')
  # shellcheck disable=SC2046
  aws ec2 create-tags --resources $(running) --tags "Key=chipwise-head,Value=$head"
"""


def launch_shell(
    heading: str, constants: Mapping[str, object], tags: Mapping[str, str], attempts: Sequence[Attempt], together: bool
) -> str:
    """`constants`: NAME, REGION, MACHINES, ROOT_GIB, IMAGE (or None), PARAMETER (or None), PORTS (or None), KEEPS."""
    head = "".join(f"# {one_line(line)}\n" for line in heading.splitlines())
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    on_machines = json.dumps(
        [
            {"ResourceType": kind, "Tags": [*pairs, {"Key": "chipwise-first-rank", "Value": "0"}]}
            for kind in ("instance", "volume")
        ]
    )
    text = f'#!/bin/bash\n{head}set -euo pipefail\n\nhere=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)\n'
    text += f"export AWS_DEFAULT_REGION={shell([str(constants['REGION'])])} AWS_PAGER=''\n"
    text += f"NAME={shell([str(constants['NAME'])])}\nROOT_GIB={constants['ROOT_GIB']}\nMACHINES={constants['MACHINES']}\n"
    text += f"image={shell([str(constants['IMAGE'] or '')])}\n"
    text += (
        f"TAGS={shell([on_machines])}\nGROUP_TAGS={shell([json.dumps([{'ResourceType': 'security-group', 'Tags': pairs}])])}\n"
    )
    told, empty, case = ("  open_to=CIDR", " open_to=''", " | open_to=*") if constants["PORTS"] else ("", "", "")
    if len({purchase for _, purchase, _, _ in attempts}) > 1:
        told, empty, case = f"{told}  or_on_demand=yes", f"{empty} or_on_demand=''", f"{case} | or_on_demand=yes"
    text += _OPTIONS.replace("@OPTIONS@", told).replace("@EMPTY@", empty).replace("@CASE@", case)
    text += _FIND.replace("@DROP@", _DROP if together else "")
    text += (
        _PREPARE.replace("@KEEP@", _keep(constants["KEEPS"]))
        .replace("@AMI@", _ami(constants["PARAMETER"]))
        .replace("@SUBNET@", _OWN_SUBNET if any(interfaces for _, _, interfaces, _ in attempts) else _ANY_SUBNET)
    )
    rules = (_AMONG if together else "") + (_OPEN.replace("@PORTS@", str(constants["PORTS"])) if constants["PORTS"] else "")
    text += _GROUP.replace("@RULES@", rules) + _ATTEMPT
    tries = "  local told\n" + _TRY + _tries(attempts)
    first = " ".join(shell([str(part)]) for part in attempts[0])
    placement = '\'\'\n[ "$action" != up ] || placement="chipwise-$NAME"' if together else "''"
    text += (
        _UP.replace("@TRIES@", tries)
        .replace("@HEAD@", _META if together else "")
        .replace("@FIRST@", first)
        .replace("@PLACEMENT@", placement)
    )
    return text


_TRY = """\
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
"""


def _tries(attempts: Sequence[Attempt]) -> str:
    text, first = "", attempts[0][1]
    for at, one in enumerate(attempts):
        if one[1] != first and attempts[at - 1][1] == first:  # a plan that counts on spot pays more only if somebody said so
            text += (
                '  [ -n "$or_on_demand" ] || {\n'
                "    echo 'No spot machines are to be had; or_on_demand=yes takes them at the full price.' >&2\n"
                "    return 1\n  }\n"
            )
        text += f"  try {' '.join(shell([str(part)]) for part in one)} && return\n"
    return text


def _keep(lost: object) -> str:
    return f'  [ -n "$keep" ] || echo {shell([f"{lost} will be lost with the machine: give keep="])} >&2\n' if lost else ""


def _ami(parameter: object) -> str:
    if parameter is None:
        return "  [ -n \"$ami\" ] || { echo 'no public image with drivers for this chip is known: give ami=' >&2; exit 1; }\n"
    return (
        f'  [ -n "$ami" ] || ami=$(aws ssm get-parameter --query Parameter.Value --output text \\\n'
        f"    --name {shell([str(parameter)])})\n"
    )
