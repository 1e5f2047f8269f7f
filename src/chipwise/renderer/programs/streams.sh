#!/bin/sh
# The streams of one chip, each started again when it ends; see the module of the same name. No quote is single.
# Words: the list, streams of a group, streams in all, and the command of one.
set -u
list=$1 each=$2 total=$3 longest=60 first=$((${GROUP:-0} * $2)) running="" child=""
shift 3
stop() { # told to end: pass it on, and wait for what is still written
  trap "" TERM INT
  for one in $running $child; do kill "$one" 2> /dev/null; done
  wait
  exit 0
}
trap stop TERM INT
keep() { # one stream, started again whenever it ends; the wait grows while that happens at once
  trap stop TERM INT # a new shell has none of it
  running="" pause=1
  while :; do
    began=$(date +%s)
    line=$(sed -n "$((STREAM + 1)){/^\* /!p;}" "$list") # read anew: a changed line holds from the next start on
    if [ -z "$line" ]; then # no line of its own: by the pattern, with its number
      line=$(sed -n "/^\* /{s///;s/{STREAM}/$STREAM/g;p;q;}" "$list")
    fi
    read -r SOURCE TARGETS << end
$line
end
    export STREAM SOURCE TARGETS
    if [ -n "$SOURCE" ]; then
      echo "stream $STREAM: starts" >&2
      "$@" &
      child=$!
      wait "$child" && code=0 || code=$?
      echo "stream $STREAM: ended with $code" >&2
    else
      echo "stream $STREAM: $list has no line for it" >&2
    fi
    if [ "$(($(date +%s) - began))" -ge "$longest" ]; then pause=1; fi
    sleep "$pause" &
    child=$!
    wait "$child"
    pause=$((pause * 2 < longest ? pause * 2 : longest))
  done
}
STREAM=$first
while [ "$STREAM" -lt "$((first + each))" ] && [ "$STREAM" -lt "$total" ]; do
  keep "$@" &
  running="$running $!"
  STREAM=$((STREAM + 1))
done
wait
