#!/bin/bash
# archive-summaries: batch on 4 x g2-standard-48 (gcp us-central1, spot). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Terraform writes IMAGE and the other settings in capitals before this.
# Expected: 9 d (7 d to 12 d), $3,120.00, 480.0 kg CO2e.
# Settings of this plan; what follows them is the same for every plan.
# shellcheck disable=SC2016 # words of a command may be text for a shell in the container
FORM=job
GROUPED=yes
SPOT=yes
TAKEN_WAIT=infinity
TRIES=3
MACHINES=4
COPIES=4
PARTS=16
COUNTED=PART
NODES=1
MEETING_PORT=29500
CHIPS=nvidia
EACH=1
OWNER=10001:10001
DEADLINE_S=1209600
VOLUMES=(data models checkpoints)
MOUNTS=(/data /models /checkpoints)
FETCHES=(gs://archive/documents/ '' keep)
SAVES=(gs://archive/documents/ '' keep)
DOCKER=(
  --init --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges --shm-size 6g --env HOME=/tmp --env
  HF_HOME=/models/hub --rm
)
# 16 replicas answer 6,912 shards of about 30 min, dealt out like cards; each starts the engine again (about 68 s).
# Answered shards are skipped: a lost machine costs the one in work. `cat answers/*.jsonl` is the result.
# Cut them once, in the data directory, before the start:
# mkdir requests && split -n r/6912 -e -d -a 5 --additional-suffix=.jsonl requests.jsonl requests/
COMMAND=(
  sh -c
  'set -u
from=$1 to=$2 cut=$3 digits=5 tries=3 part=${PART:-0} parts=${PARTS:-1} now="" failed=0 status=0
shift 3
stop() { # told to end: pass it on, and leave nothing half-done
  trap "" TERM INT
  if [ -n "${!:-}" ]; then kill "$!" 2> /dev/null; fi
  wait
  rm -rf "$now"
  exit 143
}
trap stop TERM INT
answer() { # answers get their name when they are whole, counted, and on the disk
  now=$(mktemp -d "$to/.now-$part-XXXXXX") || return 1
  "$@" --input-file "$requests" --output-file "$now/$name" &
  wait "$!" || return "$?"
  asked=$(grep -c "[^[:space:]]" "$requests") told=$(grep -c "[^[:space:]]" "$now/$name")
  if [ "$asked" != "$told" ]; then
    echo "$requests: $told answers to $asked requests" >&2
    return 1
  fi
  sync "$now/$name" && mv "$now/$name" "$to/$name" && echo "$sum" > "$to/.$name.sum"
}
mkdir -p "$to" || exit 1
rm -rf "$to/.now-$part-"* # of a run that was lost
if [ "$parts" -eq 1 ] && [ -e "$from.jsonl" ] && { [ ! -d "$from" ] || [ -e "$from/.cut" ]; }; then # else who cut them knows
  sum=$(cksum < "$from.jsonl") || exit 1
  if [ "$sum" != "$(cat "$from/.cut" 2> /dev/null)" ]; then # the first time, or other requests than in the last run
    now=$(mktemp -d "$from.XXXXXX") || exit 1
    split -n "r/$cut" -e -d -a "$digits" --additional-suffix=.jsonl "$from.jsonl" "$now/" || exit 1
    echo "$sum" > "$now/.cut" || exit 1
    if [ -d "$from" ]; then # the answers of the last run are kept, those of the one before are not
      mv "$from" "$now.old" && rm -rf "$to.before" && mv "$to" "$to.before" && mkdir "$to" || exit 1
    fi
    mv "$now" "$from" && rm -rf "$now.old" || exit 1
  fi
fi
for requests in "$from"/*.jsonl; do
  name=${requests##*/}
  number=${name%.jsonl}
  case $number in
    "*") echo "$from: no shards" >&2; exit 2 ;;
    *[!0-9]*) echo "$requests: shards have numbers" >&2; exit 2 ;;
  esac
  number=${number#"${number%%[!0]*}"} # zeros before it would make it octal
  [ "$((${number:-0} % parts))" -eq "$part" ] || continue
  [ -s "$requests" ] || continue
  sum=$(cksum < "$requests")
  if [ -e "$to/$name" ] && [ "$sum" = "$(cat "$to/.$name.sum" 2> /dev/null || echo "$sum")" ]; then continue; fi
  rm -f "$to/$name" # answers to other requests
  try=1
  until answer "$@"; do
    code=$?
    rm -rf "$now"
    echo "$requests: try $try ended with $code" >&2
    if [ "$try" -ge "$tries" ]; then break; fi
    sleep "$((10 * try))" &
    wait "$!"
    try=$((try + 1))
  done
  if [ -e "$to/$name" ]; then
    rm -rf "$now"
    failed=0
    continue
  fi
  status=$code failed=$((failed + 1))
  if [ "$failed" -ge "$tries" ]; then break; fi # one after the other: it is not the shards
done
exit "$status"
'
  batch /data/requests /data/answers 6912 vllm run-batch --model Qwen/Qwen2.5-7B --quantization fp8
)

# What boot.sh asks of its cloud, on Google Cloud.
# shellcheck disable=SC2034 # variables are read by boot.sh
WARNING_S=30 # between the notice and the end of a spot machine

metadata() { # fails where the path is not there
  curl -sf -H 'Metadata-Flavor: Google' "http://metadata.google.internal/computeMetadata/v1/instance/$1"
}

machine_id() { metadata id; }
connect() { :; }
find_rank() { RANK=$(metadata attributes/chipwise-rank); }

find_head() { # machine 0 by its name, once it answers to it
  HEAD="$NAME-0"
  until getent hosts "$HEAD" > /dev/null; do sleep 5; done
}

scratch() { :; }
sync() { gcloud storage rsync --recursive --no-user-output-enabled "$1" "$2"; } # SOURCE TARGET

fetch() { # SOURCE TARGET; where it may be empty, that nothing lies there yet is no failure, as at the first start
  local said
  if said=$(gcloud storage rsync --recursive "$1" "$2" 2>&1); then return; fi
  echo "$said"
  case "$3 $said" in
    empty*'Did not find existing container'*) echo 'nothing there yet' ;;
    *) return 1 ;;
  esac
}

secret_text() { gcloud secrets versions access latest --secret "$1"; }
taken() { [ "$(metadata preempted)" = TRUE ]; }

pull() { # the image, with docker to run it
  command -v docker > /dev/null || { apt-get update -q && apt-get install -y -q docker.io; }
  systemctl enable --now docker
  container_toolkit
  case "$IMAGE" in
    *-docker.pkg.dev/*) gcloud auth configure-docker --quiet "${IMAGE%%/*}" ;;
  esac
  docker pull -q "$IMAGE"
}

log_options() { LOG_OPTIONS=(--log-driver gcplogs); }

leave() {
  if [ -n "$GROUPED" ]; then # its group is told not to replace it
    gcloud compute instance-groups managed delete-instances "$NAME" --zone "$ZONE" --instances "$(metadata name)" --quiet
  else
    "$SHUTDOWN" -h now # a stopped machine costs its disk only; destroy when you are done
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
