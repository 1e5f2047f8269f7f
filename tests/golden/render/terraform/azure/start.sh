#!/bin/bash
# embed-api: serve on 2 x Standard_NC24ads_A100_v4 (azure westeurope, spot). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Terraform writes IMAGE and the other settings in capitals before this.
# Expected: $1,534 and 55 kg CO2e a month.
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
CHIPS=nvidia
EACH=1
OWNER=10001:10001
PUBLISH=8000
VOLUMES=(models)
MOUNTS=(/models)
FETCHES=('')
SAVES=('')
SECRETS=(HF_TOKEN hub-token token)
DOCKER=(
  --init --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges --shm-size 27g --env HOME=/tmp --env
  HF_HOME=/models/hub --stop-timeout 76 --detach --restart unless-stopped
)
COMMAND=(
  vllm serve meta-llama/Llama-3.1-8B --served-model-name llama-3-1-8b --host 0.0.0.0 --port 8000 --quantization fp8
  --max-model-len 8192 --max-num-seqs 128 --shutdown-timeout 46
)

# What boot.sh asks of its cloud, on Azure.
# shellcheck disable=SC2034 # variables are read by boot.sh
WARNING_S=30 # between the notice and the end of a spot machine

metadata() {
  curl -sf -H 'Metadata: true' --noproxy '*' "http://169.254.169.254/metadata/$1"
}

token() { # for an API of Azure, as the machine's own identity
  metadata "identity/oauth2/token?api-version=2018-02-01&resource=$1&client_id=$IDENTITY" | json_value access_token
}

machine_id() { echo "$HOSTNAME"; }
connect() { export AZCOPY_AUTO_LOGIN_TYPE=MSI AZCOPY_MSI_CLIENT_ID="$IDENTITY"; }
find_rank() { RANK="${HOSTNAME##*-}"; }

find_head() { # machine 0 by its name, once it answers to it
  HEAD="$NAME-0"
  until getent hosts "$HEAD" > /dev/null; do sleep 5; done
}

scratch() { :; }
sync() { azcopy sync --recursive --log-level ERROR "$1" "$2"; } # SOURCE TARGET

fetch() { # SOURCE TARGET; where it may be empty, that nothing lies there yet is no failure, as at the first start
  local said
  if said=$(azcopy sync --recursive "$1" "$2" 2>&1); then return; fi
  echo "$said"
  case "$3 $said" in # a folder, from what is none yet
    empty*'sync must happen between source and destination of the same type'*) echo 'nothing there yet' ;;
    *) return 1 ;;
  esac
}

secret_text() {
  curl -sf -H "Authorization: Bearer $(token https://vault.azure.net)" \
    "https://$VAULT.vault.azure.net/secrets/$1?api-version=7.4" | json_value value
}

taken() { metadata "scheduledevents?api-version=2020-07-01" | grep -q Preempt; }

pull() { # the image, with docker to run it
  command -v docker > /dev/null || { apt-get update -q && apt-get install -y -q docker.io; }
  systemctl enable --now docker
  container_toolkit
  docker pull -q "$IMAGE"
}

log_options() { LOG_OPTIONS=(--log-driver journald); }

leave() { # a machine that is only shut down is paid for: it lets go of its hardware
  local id
  id=$(metadata "instance/compute/resourceId?api-version=2021-02-01&format=text")
  curl -sf -X POST -H "Authorization: Bearer $(token https://management.azure.com/)" -H 'Content-Length: 0' \
    "https://management.azure.com$id/deallocate?api-version=2024-07-01"
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
