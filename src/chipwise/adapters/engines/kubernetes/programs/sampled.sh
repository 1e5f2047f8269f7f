#!/bin/sh
# Runs a command as the first process of a container, samples the container's devices meanwhile, and adds what they did to the
# message that the container leaves. The functions of device_samples.sh stand before it. The command's own end is the end.
told="" child="" samples=""
for folder in /tmp /dev/shm "${TMPDIR:-/tmp}"; do
  samples=$folder/chipwise-samples-$$
  if (: >"$samples") 2>/dev/null; then break; fi
  samples=""
done
# The first process of a container gets no signal that it does not catch: so what asks it to leave is passed on. `wait` comes back
# early then, and is called until the program is over.
trap 'told=yes; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM INT QUIT HUP
(exec "$@") &
child=$!
[ -z "$told" ] || kill "$child" 2>/dev/null
begun=$(date +%s)
# One process of its own, which ends with this one.
while [ -n "$samples" ] && sleep "${CHIPWISE_SAMPLE_S:-10}" && kill -0 $$; do sample_devices "$samples"; done >/dev/null 2>&1 &
sampler=$!
while
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null
do :; done
kill "$sampler" 2>/dev/null
summary=""
[ -z "$samples" ] || summary=$(summarise_devices "$samples" "$(($(date +%s) - begun))")
# A kubelet reads the last 4096 bytes of it, and the program's own word stands before.
if [ -n "$summary" ] && [ "${#summary}" -lt 2800 ]; then
  printf '\nchipwise-watched: %s\n' "$summary" >>"${CHIPWISE_TERMINATION_MESSAGE:-/dev/termination-log}" 2>/dev/null
fi
exit "$code"
