#!/bin/bash
# archive-summaries: batch on 4 x g2-standard-48 (gcp us-central1, spot). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: 9 d (7 d to 12 d), $3,120.00, 480.0 kg CO2e.
# Terraform writes IMAGE and the other settings in capitals before this.
set -euo pipefail
mkdir -p /var/log/chipwise
exec > >(tee -a /var/log/chipwise/start.log) 2>&1

metadata() { # fails where the path is not there
  curl -sf -H 'Metadata-Flavor: Google' "http://metadata.google.internal/computeMetadata/v1/instance/$1"
}

save() {
  if [ -e /run/chipwise-fetched ]; then # not before: half a checkpoint must not go over a whole one
    gcloud storage rsync --recursive --no-user-output-enabled /var/lib/chipwise/checkpoints "$BUCKET/checkpoints" || true
    gcloud storage rsync --recursive --no-user-output-enabled /var/lib/chipwise/data gs://archive/documents/ || true
  fi
  gcloud storage rsync --recursive --no-user-output-enabled /var/log/chipwise "$BUCKET/logs/${RANK:-unknown}" || true
  true
}
finish() {
  echo "ended with status $?"
  save
  # Its group does not replace it.
  gcloud compute instance-groups managed delete-instances "$NAME" --zone "$ZONE" --instances "$(metadata name)" --quiet
}
# A machine that does nothing is paid for like one that works: it ends itself, whether all went well or not.
trap finish EXIT
# Taken away or shut down by others: save, and leave it to them whether another takes its place.
trap 'trap - EXIT; save; exit 143' TERM

# Which machine this is, from 0. A machine that stands in for a lost one has its number.
RANK=$(metadata attributes/chipwise-rank)

# The deadline of the workload, from the start of this machine: nothing that hangs runs for longer.
(
  sleep 1209600
  echo 'the deadline has come'
  touch /run/chipwise-taken
  docker ps -q | xargs -r docker stop -t 60 > /dev/null || true
  finish
) &
shutdown -h +20177 # should saving or leaving hang as well

mkdir -p /var/lib/chipwise/data /var/lib/chipwise/models /var/lib/chipwise/checkpoints
chown 10001:10001 /var/lib/chipwise/data /var/lib/chipwise/models /var/lib/chipwise/checkpoints # the program is not root
fetch() { # SOURCE TARGET; an empty source is no failure, as at the first start
  local said
  if said=$(gcloud storage rsync --recursive "$1" "$2" 2>&1); then return; fi
  echo "$said"
  case "$said" in
    *'Did not find existing container'*) echo 'nothing there yet' ;;
    *) return 1 ;;
  esac
}
gcloud storage rsync --recursive --no-user-output-enabled gs://archive/documents/ /var/lib/chipwise/data
fetch "$BUCKET/checkpoints" /var/lib/chipwise/checkpoints
chown -R 10001:10001 /var/lib/chipwise/data /var/lib/chipwise/models /var/lib/chipwise/checkpoints
touch /run/chipwise-fetched

command -v docker > /dev/null || { apt-get update -q && apt-get install -y -q docker.io; }
systemctl enable --now docker
if command -v nvidia-smi > /dev/null && ! command -v nvidia-ctk > /dev/null; then
  curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | gpg --dearmor -o /usr/share/keyrings/nvidia.gpg
  from=https://nvidia.github.io/libnvidia-container/stable/deb
  echo "deb [signed-by=/usr/share/keyrings/nvidia.gpg] $from/$(dpkg --print-architecture) /" \
    > /etc/apt/sources.list.d/nvidia.list
  apt-get update -q && apt-get install -y -q nvidia-container-toolkit
  nvidia-ctk runtime configure --runtime=docker && systemctl restart docker
fi
case "$IMAGE" in
  *-docker.pkg.dev/*) gcloud auth configure-docker --quiet "${IMAGE%%/*}" ;;
esac
docker pull -q "$IMAGE"

# The cloud tells 30 s before it takes the machine: stop the program, so that it can save.
(
  while sleep 5; do
    if [ "$(metadata preempted)" = TRUE ]; then
      touch /run/chipwise-taken
      docker ps -q | xargs -r docker stop -t 18
      break
    fi
  done
) &
(while sleep 300; do save; done) & # a lost machine loses no more than this

# 16 replicas answer 6,912 shards of about 30 min, dealt out like cards; each starts the engine again (about 68 s).
# Answered shards are skipped: a lost machine costs the one in work. `cat answers/*.jsonl` is the result.
# Cut them once, in the data directory, before the start:
#   mkdir requests && split -n r/6912 -e -d -a 5 --additional-suffix=.jsonl requests.jsonl requests/
run() {
  local started=()
  for ((copy = 0; copy < 4; copy++)); do
    chips=$(seq -s, $((copy * 1)) $(((copy + 1) * 1 - 1)))
    docker run \
      --init --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges \
      --shm-size 6g \
      --gpus "\"device=$chips\"" \
      --log-driver gcplogs \
      --env PART="$((RANK * 4 + copy))" --env PARTS=16 --env SHARD="$(printf %05d $((RANK * 4 + copy)))" \
      --volume /var/lib/chipwise/data:/data \
      --volume /var/lib/chipwise/models:/models \
      --volume /var/lib/chipwise/checkpoints:/checkpoints \
      --env HOME=/tmp \
      --env HF_HOME=/models/hub \
      --rm \
      --entrypoint sh \
      "$IMAGE" -c 'set -u
from=$1 to=$2 cut=$3 part=${PART:-0} parts=${PARTS:-1} now="" failed=0 status=0
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
  sync "$now/$name" && mv "$now/$name" "$to/$name"
}
mkdir -p "$to" || exit 1
rm -rf "$to/.now-$part-"* # of a run that was lost
if [ "$parts" -eq 1 ] && [ ! -d "$from" ] && [ -e "$from.jsonl" ]; then
  now=$(mktemp -d "$from.XXXXXX") || exit 1
  split -n "r/$cut" -e -d -a 5 --additional-suffix=.jsonl "$from.jsonl" "$now/" && mv "$now" "$from" || exit 1
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
  if [ ! -s "$requests" ] || [ -e "$to/$name" ]; then continue; fi
  try=1
  until answer "$@"; do
    code=$?
    rm -rf "$now"
    echo "$requests: try $try ended with $code" >&2
    if [ "$try" -ge 3 ]; then break; fi
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
  if [ "$failed" -ge 3 ]; then break; fi # one after the other: it is not the shards
done
exit "$status"
' batch /data/requests /data/answers 6912 vllm run-batch --model Qwen/Qwen2.5-7B --quantization fp8 &
    started+=($!)
  done
  local status=0
  for one in "${started[@]}"; do wait "$one" || status=$?; done
  return "$status"
}

for ((try = 1; try <= 3; try++)); do # what it saved is still there
  if run; then exit 0; fi
  if [ -e /run/chipwise-taken ]; then save; sleep infinity; fi # the end comes by itself; the work goes on elsewhere
  echo "try $try failed"
  docker ps -aq | xargs -r docker rm -f > /dev/null
  sleep 15
done
exit 1
