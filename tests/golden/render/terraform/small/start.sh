#!/bin/bash
# tag-api: serve on c7i.large (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Terraform writes IMAGE and the other settings in capitals before this.
# Expected: $62.00 and 4 kg CO2e a month.
# Settings of this plan; what follows them is the same for every plan.
# shellcheck disable=SC2016 # words of a command may be text for a shell in the container
FORM=service
GROUPED=yes
TAKEN_WAIT=infinity
TRIES=3
MACHINES=1
COPIES=1
PARTS=1
NODES=1
MEETING_PORT=29500
OWNER=10001:10001
PUBLISH=8000
VOLUMES=(models)
MOUNTS=(/models)
FETCHES=('')
SAVES=('')
DOCKER=(
  --init --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges --shm-size 1g --env HOME=/tmp --stop-timeout
  49 --detach --restart unless-stopped
)
COMMAND=(python serve.py)

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

# What a machine does when it comes up: fetch, run the containers, save, and end itself. The same text for every plan and every
# cloud. Settings stand before it; a file cloud_*.sh says what its cloud calls the rest; `boot`, the last line, runs it.
set -euo pipefail

# Settings, and what holds without them. IMAGE has no default.
FORM=${FORM-job}              # job: the machine ends with its program; service: it stays
NAME=${NAME-}                 # of the deployment
KEEP=${KEEP-}                 # a place in the object store where checkpoints and logs outlive the machine; empty: nowhere
GROUPED=${GROUPED-}           # not empty: a group would replace the machine unless it is told
SPOT=${SPOT-}                 # not empty: the machine may be taken away
TAKEN_WAIT=${TAKEN_WAIT-300}  # how long a machine that has its notice waits to be taken, before it ends itself
DEADLINE_S=${DEADLINE_S-}     # from the start of this machine: nothing that hangs runs for longer
TRIES=${TRIES-1}              # of the program; what it saved is still there
MACHINES=${MACHINES-1}
COPIES=${COPIES-1}            # containers on one machine at a time
PARTS=${PARTS-1}              # containers in all
COUNTED=${COUNTED-}           # PART or RUN: in which setting a container finds its number, from 0
MEETS=${MEETS-}               # tag or name: one program over all machines, and how they find the first of them
NODES=${NODES-1}              # machines of one program
MEETING_PORT=${MEETING_PORT-29500}
CHIPS=${CHIPS-}               # nvidia or neuron
EACH=${EACH-1}                # chips of one container
OWNER=${OWNER-}               # user and group of the containers' folders; empty: everybody may write
PUBLISH=${PUBLISH-}           # the port of a service, in its container; copies follow one another outside
MOVED_PORT=${MOVED_PORT-}     # the same where containers share the machine's network: the port that copies count from ...
MOVED_AT=${MOVED_AT-}         # ... and which word of the command carries it
[ -n "${VOLUMES+x}" ] || VOLUMES=() # names of folders; MOUNTS, FETCHES and SAVES go with them, one by one
[ -n "${MOUNTS+x}" ] || MOUNTS=()   # where each is inside a container
[ -n "${FETCHES+x}" ] || FETCHES=() # where each comes from: a place, `keep` for one in KEEP, or empty
[ -n "${SAVES+x}" ] || SAVES=()     # and where it goes
[ -n "${SECRETS+x}" ] || SECRETS=() # three words each: setting, name of the secret, its key
[ -n "${DOCKER+x}" ] || DOCKER=()   # options of every container
[ -n "${COMMAND+x}" ] || COMMAND=()

# Where things are; tests put them elsewhere.
SCRATCH=${CHIPWISE_ROOT:-/var/lib/chipwise}
LOGS=${CHIPWISE_LOGS:-/var/log/chipwise}
STATE=${CHIPWISE_STATE:-/run}
SHUTDOWN=${CHIPWISE_SHUTDOWN:-shutdown}
TAKEN=$STATE/chipwise-taken     # there once the machine is to go: no new try
FETCHED=$STATE/chipwise-fetched # there once everything is
SAVE_EVERY_S=300                # a lost machine loses no more than this
GRACE_S=60                      # to a program that is stopped at the deadline
RANK='' HEAD='' LOG_OPTIONS=()

json_value() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; } # of standard input, by its key

container_toolkit() { # NVIDIA's own packages, for images that have the driver alone
  if ! command -v nvidia-smi > /dev/null || command -v nvidia-ctk > /dev/null; then return; fi
  local from=https://nvidia.github.io/libnvidia-container/stable/deb
  curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | gpg --dearmor -o /usr/share/keyrings/nvidia.gpg
  echo "deb [signed-by=/usr/share/keyrings/nvidia.gpg] $from/$(dpkg --print-architecture) /" \
    > /etc/apt/sources.list.d/nvidia.list
  apt-get update -q && apt-get install -y -q nvidia-container-toolkit
  nvidia-ctk runtime configure --runtime=docker && systemctl restart docker
}

place() { # what FETCHES or SAVES say of a folder, into REPLY
  REPLY=$1
  [ "$1" != keep ] || REPLY=${KEEP:+$KEEP/$2}
}

save() {
  local at
  if [ -e "$FETCHED" ]; then # not before: half a checkpoint must not go over a whole one
    for at in "${!VOLUMES[@]}"; do
      place "${SAVES[at]}" "${VOLUMES[at]}"
      [ -z "$REPLY" ] || sync "$SCRATCH/${VOLUMES[at]}" "$REPLY" || true
    done
  fi
  [ -z "$KEEP" ] || sync "$LOGS" "$KEEP/logs/machine-${RANK:-unknown}" || true
}

finish() { # status
  trap - EXIT TERM
  echo "ended with status $1"
  echo "$(machine_id || true) $1" > "$LOGS/status"
  save
  leave
}

begin() {
  mkdir -p "$LOGS"
  exec > >(tee -a "$LOGS/start.log") 2>&1
  [ "$FORM" = job ] || return 0
  # A machine that does nothing is paid for like one that works: it ends itself, whether all went well or not.
  trap 'finish "$?"' EXIT
  # Taken away or shut down by others: save, and leave it to them whether another takes its place.
  trap 'trap - EXIT; save; exit 143' TERM
}

prepare_docker() { pull; }

locate() { # which machine this is, from 0; one that stands in for a lost one has its number
  if [ "$MACHINES" -gt 1 ]; then find_rank; else RANK=0; fi
}

set_deadline() { # a shutdown alone would be made good by a group: the machine ends as it does when it is done
  [ -n "$DEADLINE_S" ] && [ "$FORM" = job ] || return 0
  (
    sleep "$DEADLINE_S"
    echo 'the deadline has come'
    touch "$TAKEN"
    docker ps -q | xargs -r docker stop -t "$GRACE_S" > /dev/null || true
    finish 124
  ) &
  "$SHUTDOWN" -h "+$(((DEADLINE_S + 2 * GRACE_S + 59) / 60 + 15))" # should saving or leaving hang as well
}

own() {
  if [ -n "$OWNER" ]; then chown -R "$OWNER" "$1"; else chmod 0777 "$1"; fi # programs of images are not root
}

fetch_all() {
  local at folder empty
  [ "${#VOLUMES[@]}" -eq 0 ] || scratch
  for at in "${!VOLUMES[@]}"; do
    folder=$SCRATCH/${VOLUMES[at]}
    mkdir -p "$folder"
    own "$folder"
    place "${FETCHES[at]}" "${VOLUMES[at]}"
    [ -n "$REPLY" ] || continue
    empty='' # at the first start nothing is kept yet; data that the workload names must be there
    if [ "${FETCHES[at]}" = keep ] || [ "${VOLUMES[at]}" = checkpoints ]; then empty=empty; fi
    fetch "$REPLY" "$folder" "$empty"
    if [ -z "$empty" ] && [ -z "$(ls -A "$folder")" ]; then # stores copy an empty place without a word
      echo "nothing lies at $REPLY, where the workload has its ${VOLUMES[at]}: name a folder with files in data.place"
      return 1
    fi
    own "$folder"
  done
  touch "$FETCHED"
}

read_secrets() { # at the start; docker takes them from this shell by name, so that they stand on no disk
  local at value
  for ((at = 0; at < ${#SECRETS[@]}; at += 3)); do
    value=$(secret_text "${SECRETS[at + 1]}" | json_value "${SECRETS[at + 2]}")
    export "${SECRETS[at]}=$value"
  done
}

watch() { # in the background: a notice, and what is saved now and then
  if [ -n "$SPOT" ]; then
    (
      while sleep 5; do
        if taken; then # stop the program, so that it can save, and send what it saved
          touch "$TAKEN"
          docker ps -q | xargs -r docker stop -t "$((WARNING_S * 5 / 8))"
          save
          break
        fi
      done
    ) &
  fi
  if [[ -n "${SAVES[*]-}" ]]; then
    (while sleep "$SAVE_EVERY_S"; do save; done) &
  fi
}

container() { # its place among those on this machine, and its number among all
  local copy=$1 number=$2 at options=("${DOCKER[@]}" "${LOG_OPTIONS[@]}") words=("${COMMAND[@]}")
  for at in "${!VOLUMES[@]}"; do options+=(--volume "$SCRATCH/${VOLUMES[at]}:${MOUNTS[at]}"); done
  for ((at = 0; at < ${#SECRETS[@]}; at += 3)); do options+=(--env "${SECRETS[at]}"); done
  case $CHIPS in
    nvidia)
      if [ "$COPIES" = 1 ]; then
        options+=(--gpus all)
      else
        options+=(--gpus "\"device=$(seq -s, $((copy * EACH)) $(((copy + 1) * EACH - 1)))\"")
      fi
      ;;
    neuron)
      for ((at = copy * EACH; at < (copy + 1) * EACH; at++)); do options+=(--device "/dev/neuron$at"); done
      ;;
  esac
  case $COUNTED in
    PART) options+=(--env "PART=$number" --env "PARTS=$PARTS" --env "SHARD=$(printf %05d "$number")") ;;
    RUN) options+=(--env "RUN=$number") ;;
  esac
  if [ -n "$MEETS" ]; then # torchrun reads what begins with PET_
    options+=(--env "NODE_RANK=$RANK" --env "NODES=$NODES" --env "HEAD_ADDRESS=$HEAD")
    options+=(--env "GPUS_PER_NODE=$EACH")
    options+=(--env "PET_NODE_RANK=$RANK" --env "PET_RDZV_ENDPOINT=$HEAD:$MEETING_PORT")
  fi
  [ -z "$PUBLISH" ] || options+=(--publish "$((PUBLISH + copy)):$PUBLISH")
  [ -z "$MOVED_AT" ] || words[MOVED_AT]=${words[MOVED_AT]/%$MOVED_PORT/$((MOVED_PORT + copy))}
  docker run "${options[@]}" --name "main-$number" --entrypoint "${words[0]}" "$IMAGE" "${words[@]:1}"
}

work() { # of one copy: its part, or its runs one after the other; one that fails stops no other
  local copy=$1 number status=0
  for ((number = RANK * COPIES + copy; number < PARTS; number += MACHINES * COPIES)); do
    container "$copy" "$number" || status=$?
  done
  return "$status"
}

run() { # all copies; the machine waits for the last, whatever one says
  local copy one status=0 started=()
  [ -z "$MEETS" ] || find_head
  if [ "$COPIES" = 1 ]; then
    work 0
    return
  fi
  for ((copy = 0; copy < COPIES; copy++)); do
    work "$copy" &
    started+=($!)
  done
  for one in "${started[@]}"; do wait "$one" || status=$?; done
  return "$status"
}

run_job() {
  local try status=0
  for ((try = 1; try <= TRIES; try++)); do # machines that lost one of theirs meet again
    if run; then status=0; else status=$?; fi
    if [ -e "$TAKEN" ]; then # the end comes by itself; the work goes on elsewhere
      save
      sleep "$TAKEN_WAIT"
      exit "$status"
    fi
    [ "$status" != 0 ] || exit 0
    echo "try $try of $TRIES ended with $status"
    docker ps -aq | xargs -r docker rm -f > /dev/null
    [ "$try" = "$TRIES" ] || sleep 15
  done
  exit "$status"
}

run_service() {
  local copy
  for ((copy = 0; copy < COPIES; copy++)); do container "$copy" "$copy"; done
}

boot() {
  begin
  connect
  locate
  set_deadline
  fetch_all
  read_secrets
  prepare_docker
  log_options
  if [ "$FORM" = service ]; then
    run_service
  else
    watch
    run_job
  fi
}

boot
