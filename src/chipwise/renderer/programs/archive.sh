#!/bin/sh
# shellcheck disable=SC2329 # a trap calls stop
# The items of one part of an archive, one after the other; see the module of the same name. No quote is single: it stands between two.
# Words: folder of the sources, folder of the results, how many results of each, their ending, command. The command finds its
# source in SOURCE and the names that it writes as its last words.
set -u
from=$1 to=$2 many=$3 ending=$4 tries=3 part=${PART:-0} parts=${PARTS:-1} now="" status=0
shift 4
stop() { # told to end: pass it on, and leave nothing half-done
  trap "" TERM INT
  if [ -n "${!:-}" ]; then kill "$!" 2> /dev/null; fi
  wait
  rm -rf "$now"
  exit 143
}
trap stop TERM INT
have() { # all results of the item are there
  index=0
  while [ "$index" -lt "$many" ]; do
    [ -e "$to/$item/$index.$ending" ] || return 1
    index=$((index + 1))
  done
}
encode() { # results get their names when all of them are whole and on the disk
  now="$to/.now-$part-$$"
  rm -rf "$now" && mkdir -p "$now" "$to/$item" || return 1
  for index in $(seq 0 $((many - 1))); do set -- "$@" "$now/$index.$ending"; done
  SOURCE="$from/$item" "$@" &
  wait "$!" || return "$?"
  for index in $(seq 0 $((many - 1))); do
    [ -s "$now/$index.$ending" ] || return 1
    sync "$now/$index.$ending" && mv "$now/$index.$ending" "$to/$item/$index.$ending" || return 1
  done
}
mkdir -p "$to" || exit 1
rm -rf "$to/.now-$part-"* # of a run that was lost
list=$(cd "$from" && find . -type f ! -name ".*" | sed "s|^\./||" | LC_ALL=C sort) || exit 2
if [ -z "$list" ]; then echo "$from: no items" >&2; exit 2; fi
number=0
while IFS= read -r item <&3; do
  mine=$((number % parts)) number=$((number + 1))
  if [ "$mine" -ne "$part" ] || have; then continue; fi
  try=1
  until encode "$@"; do
    code=$?
    rm -rf "$now"
    echo "$item: try $try ended with $code" >&2
    if [ "$try" -ge "$tries" ]; then status=1; break; fi
    sleep "$((${RETRY_SECONDS:-10} * try))" &
    wait "$!"
    try=$((try + 1))
  done
  rm -rf "$now"
done 3<<END
$list
END
exit "$status"
