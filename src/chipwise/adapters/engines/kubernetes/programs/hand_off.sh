#!/bin/sh
# Runs a command as the first process of a container and, once it has ended well, looks for what it was to leave behind.
# Words: `first` where only the first of several pods looks, or `each`; how many paths; the paths; the command.
# What is missing is the last line of the termination message, and exit code 66 says so.
who=$1 many=$2 told="" child=""
shift 2
# The first process of a container gets no signal that it does not catch, and its program would get none at all: so what asks
# it to leave is passed on. `wait` comes back early then, and is called until the program is over.
trap 'told=yes; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM INT QUIT HUP
(
  shift "$many"
  exec "$@"
) &
child=$!
[ -z "$told" ] || kill "$child" 2>/dev/null
while
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null
do :; done
[ "$code" = 0 ] || exit "$code"
[ "$who" != first ] || [ "${JOB_COMPLETION_INDEX:-0}" = 0 ] || exit 0
holds() { # anything at all, hidden or not
  for one in "$1"/* "$1"/.[!.]*; do
    [ ! -e "$one" ] || return 0
  done
  return 1
}
while [ "$many" -gt 0 ]; do
  lacks=""
  if [ ! -e "$1" ]; then
    lacks="$1 is not there"
  elif [ -f "$1" ] && [ ! -s "$1" ]; then
    lacks="$1 is empty"
  elif [ -d "$1" ] && ! holds "$1"; then
    lacks="$1 is empty"
  fi
  if [ -n "$lacks" ]; then
    echo "it ended well, but $lacks" >&2
    printf '\nchipwise: %s\n' "$lacks" >>"${CHIPWISE_TERMINATION_MESSAGE:-/dev/termination-log}"
    exit 66
  fi
  shift
  many=$((many - 1))
done
