#!/usr/bin/env bash
# archive-summaries: batch on 4 x g2-standard-48 (gcp us-central1, spot). Written by chipwise from the plan.
# Run it in vllm/vllm-openai:v0.32.0, once for each of 16 replicas; words after it go to vLLM and win.
# Expected: 9 d (7 d to 12 d), $3,120.00, 480.0 kg CO2e.
#
set -euo pipefail

export HF_HOME=/models/hub

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

: "${PART:?number of this replica, from 0 to 15}"
export PART PARTS=16

# g2-standard-48 holds 4 replicas; each sees its own chips.
first=$(( PART % 4 * 1 ))
export CUDA_VISIBLE_DEVICES="$(seq -s, "$first" $(( first + 0 )))"

# 16 replicas answer 6,912 shards of about 30 min, dealt out like cards; each starts the engine again (about 68 s).
# Answered shards are skipped: a lost machine costs the one in work. `cat answers/*.jsonl` is the result.
# Cut them once, in the data directory, before the start:
#   mkdir requests && split -n r/6912 -e -d -a 5 --additional-suffix=.jsonl requests.jsonl requests/
exec sh -c 'set -u
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
' batch /data/requests /data/answers 6912 \
  vllm run-batch --config "$here/config.yaml" "$@"
