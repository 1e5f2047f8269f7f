#!/bin/bash
# archive-summaries: batch on 4 x g2-standard-48 (gcp us-central1, spot). Written by chipwise from the plan.
# Runs on each machine when it starts.
# Expected: 9.0 days (7.0 days to 12.0 days), $3,120.00, 480.0 kg CO2e.
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
  # Its group is told not to replace it.
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
fetch() { # SOURCE TARGET; that nothing lies there yet is no failure, as at the first start
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

# Each of 16 replicas answers a file of its own. Split the requests once, in the data directory:
#   split -n r/16 -d -a 5 --additional-suffix=.jsonl requests.jsonl requests-
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
      "$IMAGE" -c 'vllm run-batch --input-file "/data/requests-$SHARD.jsonl" --output-file "/data/answers-$SHARD.jsonl" --model Qwen/Qwen2.5-7B --quantization fp8' &
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
