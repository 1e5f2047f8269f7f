#!/bin/bash
# How a machine of the engine `ec2` is led: after boot.sh and cloud_aws.sh, some of whose steps it takes over. It meets the other
# machines of its attempt, runs the command, passes on every notice (of AWS, of the controller, of a machine beside it), tells
# how it ended, and ends the machine. Whatever goes wrong, the machine ends: by the last step, by a timer for the start and by
# one for the money, when its attempt was given up, and when nobody has led it for long. Settings stand before all of it.
# shellcheck disable=SC2034,SC2154 # variables of boot.sh, cloud_aws.sh and the settings
set +e +o pipefail

# Settings of an attempt, and what holds without them.
JOB=${JOB-} ATTEMPT=${ATTEMPT-1} PROCESSES=${PROCESSES-1} GPUS=${GPUS-0} GRACE=${GRACE-60} PORT=${PORT-29500}
IDLE_S=${IDLE_S-0} ORPHAN_S=${ORPHAN_S-0} START_MINUTES=${START_MINUTES-60} HARD_MINUTES=${HARD_MINUTES-0} # 0: never
REBALANCE=${REBALANCE-no} WATCHES=${WATCHES-yes} IMAGE=${IMAGE-} FOLDER=${FOLDER-}
[ -n "${ENVIRONMENT+x}" ] || ENVIRONMENT=() # settings of the command: NAME=value
[ -n "${PRODUCES+x}" ] || PRODUCES=()       # what it must leave behind

# Variables with a default are for tests, in which the metadata, the shutdown and the AWS CLI are stand-ins.
ROOT=${CHIPWISE_ROOT:-/var/lib/chipwise}
EVERY=${CHIPWISE_EVERY:-2}       # seconds between two looks at the processes
NOTICE_S=${CHIPWISE_NOTICE_S:-5} # at the metadata
ASK_S=${CHIPWISE_ASK_S:-10}      # at S3; a call of the AWS CLI takes half a second of a processor
UPLOAD_S=${CHIPWISE_UPLOAD_S:-60}
LOAD=${CHIPWISE_LOADAVG:-/proc/loadavg}
UPTIME=${CHIPWISE_UPTIME:-/proc/uptime}
DMESG=${CHIPWISE_DMESG:-dmesg}
LIVE=$KEEP/live/$JOB/$ATTEMPT
RUN=$ROOT/run
LOG=$ROOT/log
RANK=0 HEAD=127.0.0.1 TOLD='' UNTIL=0 WHY='' NOTICED=null OURS=''
BEGUN='' HEARD='' HEARD_AT=0 IDLED='' SICK='' SAMPLED=0

put() { aws s3 cp --only-show-errors - "$LIVE/$1"; } # what comes in, by this name
get() { aws s3 cp --only-show-errors "$LIVE/$1" -; }
names() { aws s3 ls "$LIVE/" | awk '{ print $4 }'; }
plain() { printf '%s' "$1" | tr -c 'A-Za-z0-9 .,:;/_=()-' ' ' | cut -c 1-300; } # fit for JSON
now() { date +%s; } # the time of day, which may be set: for what is told, and never for how long something takes
up() { awk '{ print int($1) }' "$UPTIME"; } # seconds that the machine is up
BEGIN=$(up)

blot() { # values of secrets, line by line and the longest first; one of less than 6 only where it stands alone
  if [ ! -s "$ROOT/hidden" ]; then
    cat
    return
  fi
  # The x shows whether the last line has an end.
  { cat && printf x; } | LC_ALL=C awk '
    function word(text) { return text ~ /^[A-Za-z0-9_]$/ }
    NR == FNR {
      if (length($0) < 4) next
      for (i = ++n; i > 1 && length($0) > length(hidden[i - 1]); i--) hidden[i] = hidden[i - 1]
      hidden[i] = $0
      next
    }
    FNR > 1 { print line }
    {
      line = $0
      for (i = 1; i <= n; i++) {
        value = hidden[i]
        size = length(value)
        done = last = ""
        while (at = index(line, value)) {
          if (at > 1) last = substr(line, at - 1, 1)
          inside = word(last) && word(substr(value, 1, 1)) || word(substr(value, size)) && word(substr(line, at + size, 1))
          if (size < 6 && inside) {
            done = done substr(line, 1, at)
            line = substr(line, at + 1)
            last = substr(value, 1, 1)
          } else {
            done = done substr(line, 1, at - 1) "[secret]"
            line = substr(line, at + size)
            last = ""
          }
        }
        line = done line
      }
    }
    END { printf "%s", substr(line, 1, length(line) - 1) }' "$ROOT/hidden" -
}

upload() { tail -c 67108864 "$LOG" | blot | aws s3 cp --only-show-errors - "$KEEP/logs/$JOB/$ATTEMPT/rank-$RANK.log"; }

signal_all() { # to every process group of the command that lives; docker passes on all but KILL
  local_rank=0
  while [ "$local_rank" -lt "$PROCESSES" ]; do
    if [ -s "$RUN/pid-$local_rank" ] && [ ! -e "$RUN/code-$local_rank" ]; then
      [ "$1" != KILL ] || [ -z "$IMAGE" ] || docker kill "chipwise-$local_rank" >/dev/null 2>&1
      kill -s "$1" -- "-$(cat "$RUN/pid-$local_rank")" 2>/dev/null
    fi
    local_rank=$((local_rank + 1))
  done
}

sweep() { # what the command left behind in its groups
  for one in "$RUN"/pid-*; do
    [ ! -s "$one" ] || kill -s KILL -- "-$(cat "$one")" 2>/dev/null
  done
}

tell_health() { # what the kernel says of devices, once it says something else; the controller judges it
  said=$("$DMESG" 2>/dev/null | grep -E 'NVRM: (Xid|GPU)|SXid|NEURON_HW_ERR' | tail -n 20)
  if [ -z "$said" ] || [ "$said" = "$SICK" ]; then return; fi
  SICK=$said
  {
    printf '{"lines": [""'
    printf '%s\n' "$said" | while IFS= read -r line; do printf ', "%s"' "$(plain "$line")"; done
    printf ']}\n'
  } | put "health-$RANK"
}

tell_samples() { # what the devices did, in all
  [ ! -s "$ROOT/samples" ] || summarise_devices "$ROOT/samples" "$(($(up) - SAMPLED))" | put "watched-$RANK"
}

quit() { # code, reason: the last thing that happens on this machine
  trap '' EXIT TERM INT HUP
  signal_all KILL
  sweep
  [ ! -s "$RUN/progress.json" ] || put progress <"$RUN/progress.json"
  tell_health
  tell_samples
  upload
  text=$(printf '{"at": %s, "reason": "%s", "noticed": %s}' "$(now)" "$(plain "$2")" "$NOTICED")
  tries=0
  until printf '%s\n' "$text" | put "ended-$RANK-$1" || [ "$tries" -ge 5 ]; do
    tries=$((tries + 1))
    sleep "$EVERY"
  done
  "$SHUTDOWN" -h now
  exit 0
}

break_off() { # reason: not the job's fault, so that it counts as lost
  trap '' EXIT TERM INT HUP
  signal_all KILL
  sweep
  upload
  printf '{"reason": "%s"}\n' "$(plain "$1")" | put "broken-${ID:-0}"
  "$SHUTDOWN" -h now
  exit 0
}

given_up() { aws s3 ls "$KEEP/over/$JOB/$ATTEMPT" | grep -q " $ATTEMPT\$"; }

abandon() { # its controller wants nothing of it any more, not even its word
  trap '' EXIT TERM INT HUP
  signal_all KILL
  sweep
  [ ! -s "$LOG" ] || upload
  "$SHUTDOWN" -h now
  exit 0
}

gone() { # somebody shuts the machine down: EC2 says so, and no word of ours may hide it
  trap '' EXIT TERM INT HUP
  signal_all TERM
  sleep "$EVERY"
  upload
  exit 0
}

tell() { # reason, until (the time of day): save and exit; once
  [ -z "$TOLD" ] || return 0
  TOLD=yes WHY=$1 UNTIL=$(($(up) + $2 - $(now)))
  printf '{"reason": "%s", "until": %s, "boottime": %s}\n' "$(plain "$1")" "$2" "$UNTIL" >"$RUN/notice.new"
  mv "$RUN/notice.new" "$RUN/notice.json"
  signal_all TERM
}

tell_by_ourselves() { # reason: nobody asked for it, so the job's own word does not say whether its work is done
  [ -n "$TOLD" ] || OURS=yes
  tell "$1" "$(($(now) + GRACE))"
}

notice() { # reason, until: AWS wants the machine back; who watches is told too
  NOTICED=$(printf '{"by": %s, "reason": "%s"}' "$2" "$(plain "$1")")
  tell "$1" "$(($2 - 10))"
  printf '%s\n' "$NOTICED" | put "notice-$ID"
}

take_notice() {
  if said=$(metadata spot/instance-action); then
    at=$(printf '%s' "$said" | sed -n 's/.*"time"[^"]*"\([^"]*\)".*/\1/p')
    notice "AWS is reclaiming the spot machine" "$(date -d "$at" +%s 2>/dev/null || echo $(($(now) + 120)))"
  elif [ "$REBALANCE" = yes ] && metadata events/recommendations/rebalance >/dev/null; then
    notice "AWS sent a rebalance recommendation" "$(($(now) + (GRACE > 120 ? GRACE : 120)))"
  fi
}

take_wishes() { # of the controller, and what became of the machines beside this one
  there=$(names)
  if printf '%s\n' "$there" | grep -qx end; then abandon; fi
  if ! printf '%s\n' "$there" | grep -qx -e "begun-$RANK"; then # cleared, or it could not be written then
    if given_up; then abandon; fi
    echo "$BEGUN" | put "begun-$RANK"
  fi
  [ -z "$TOLD" ] || return 0
  if printf '%s\n' "$there" | grep -qx leave; then
    wish=$(get leave) || return 0
    by=$(printf '%s' "$wish" | sed -n 's/.*"by": *\([0-9]*\).*/\1/p')
    tell "$(printf '%s' "$wish" | sed -n 's/.*"reason": *"\([^"]*\)".*/\1/p')" "${by:-$(now)}"
  elif other=$(printf '%s\n' "$there" | grep -E '^ended-[0-9]+-' | grep -v -e '-0$' | grep -v -e "^ended-$RANK-" | head -n 1) &&
    [ -n "$other" ]; then
    code=${other##*-} rank=${other#ended-}
    tell "machine ${rank%%-*} of $MACHINES ended with $code" "$(($(now) + GRACE))"
  fi
}

hear() { # seconds up: the controller writes the time every minute; which clock it has does not matter, only that it goes on
  said=$(aws s3 cp --only-show-errors "$KEEP/controller" -) || said=$HEARD
  [ "$said" = "$HEARD" ] || HEARD=$said HEARD_AT=$1
  [ "$ORPHAN_S" = 0 ] || [ "$(($1 - HEARD_AT))" -lt "$ORPHAN_S" ] ||
    tell_by_ourselves "nobody has led this job for $((ORPHAN_S / 60)) minutes"
}

meet() { # each machine writes that it is here; the order of their names gives the ranks
  metadata local-ipv4 | put "here-$ID" || break_off "S3 does not take what a machine writes"
  while :; do
    here=$(names | grep '^here-' | sort)
    [ "$(printf '%s\n' "$here" | grep -c .)" -lt "$MACHINES" ] || break
    sleep "$EVERY"
  done
  RANK=$(($(printf '%s\n' "$here" | grep -nx -e "here-$ID" | cut -d : -f 1) - 1))
  HEAD=$(get "$(printf '%s\n' "$here" | head -n 1)")
}

secret() { # by name, from SSM or Secrets Manager; name/key is a value of a secret that is JSON
  case $1 in
    ssm:*) aws ssm get-parameter --with-decryption --name "${1#ssm:}" --query Parameter.Value --output text ;;
    *) secret_text "$1" 2>/dev/null || secret_text "${1%/*}" | json_value "${1##*/}" ;;
  esac
}

export_secrets() { # their values are blotted out in what the machine uploads
  local at value
  for ((at = 0; at < ${#SECRETS[@]}; at += 3)); do
    value=$(secret "${SECRETS[at + 1]}") || return 1
    case $value in ? | ?? | ???) return 2 ;; esac # could not be hidden in a log
    export "${SECRETS[at]}=$value"
    printf '%s\n' "$value" >>"$ROOT/hidden"
  done
}

missing() { # what the job was to leave behind and is not there, or empty
  local path name found
  for path in "${PRODUCES[@]}"; do
    case $path in
      s3://*/) aws s3 ls "$path" >/dev/null ;;
      s3://*) # a listing has all keys that begin so: what is named must be one of them, and not be empty, or be a folder
        name=$(printf '%s' "${path##*/}" | sed 's/[][\\.^$*+?(){}|]/\\&/g')
        aws s3 ls "$path" | grep -Eq "^ +PRE $name/\$|^[^ ]+ [^ ]+ +[1-9][0-9]* $name\$"
        ;;
      *)
        found=$(cd "${FOLDER:-/}" && realpath -m "$path") && [ -s "$found" ] &&
          [ -n "$(find "$found" ! -type d | head -n 1)" ]
        ;;
    esac || printf '%s ' "$path"
  done
}

ranks() { # of each process, as torchrun names them; torchrun itself reads PET_*, and ranks its own processes anew
  export CHIPWISE_JOB="$JOB" CHIPWISE_ATTEMPT="$ATTEMPT" CHIPWISE_RUN_DIR="$RUN" CHIPWISE_GRACE_SECONDS="$GRACE"
  export NNODES="$MACHINES" NODE_RANK="$RANK" HEAD_ADDRESS="$HEAD"
  told='CHIPWISE_JOB CHIPWISE_ATTEMPT CHIPWISE_RUN_DIR CHIPWISE_GRACE_SECONDS NNODES NODE_RANK HEAD_ADDRESS'
  [ "$MACHINES" -gt 1 ] || [ "$PROCESSES" -gt 1 ] || return 0
  export RANK="$((RANK * PROCESSES + $1))" LOCAL_RANK="$1" WORLD_SIZE="$((MACHINES * PROCESSES))"
  export LOCAL_WORLD_SIZE="$PROCESSES" MASTER_ADDR="$HEAD" MASTER_PORT="$PORT"
  told="$told RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT"
  [ "$PROCESSES" = 1 ] || return 0
  export PET_NNODES="$MACHINES" PET_NODE_RANK="$NODE_RANK" PET_RDZV_BACKEND=c10d
  export PET_RDZV_ENDPOINT="$HEAD:$PORT" PET_RDZV_ID="$JOB-$ATTEMPT"
  told="$told PET_NNODES PET_NODE_RANK PET_RDZV_BACKEND PET_RDZV_ENDPOINT PET_RDZV_ID"
}

launch() { # local rank, command
  own=$1
  shift
  (
    trap - EXIT TERM INT HUP
    [ "${#ENVIRONMENT[@]}" = 0 ] || export "${ENVIRONMENT[@]}"
    ranks "$own"
    if ! export_secrets; then
      echo 'a secret could not be read, or has fewer than 4 characters and could not be hidden' >"$RUN/reason"
      echo 126 >"$RUN/code-$own"
      exit
    fi
    if [ -n "$IMAGE" ]; then
      program=$1
      shift
      set -- --entrypoint "$program" "$IMAGE" "$@"
      for one in "${ENVIRONMENT[@]%%=*}" $told; do set -- --env "$one" "$@"; done
      for ((at = 0; at < ${#SECRETS[@]}; at += 3)); do set -- --env "${SECRETS[at]}" "$@"; done
      for one in /dev/neuron*; do [ ! -e "$one" ] || set -- --device "$one" "$@"; done
      [ "$GPUS" = 0 ] || set -- --gpus all "$@"
      [ -z "$FOLDER" ] || set -- --workdir "$FOLDER" "$@"
      [ "$FOLDER" != "$ROOT/work" ] || set -- --volume "$FOLDER:$FOLDER" "$@"
      set -- docker run --init --rm --name "chipwise-$own" --network host --ipc host --volume "$RUN:$RUN" "$@"
    elif [ -n "$FOLDER" ] && ! cd "$FOLDER"; then
      echo "the folder $FOLDER is not there" >"$RUN/reason"
      echo 126 >"$RUN/code-$own"
      exit
    elif ! command -v "$1" >/dev/null; then
      echo "the command $1 was not found" >"$RUN/reason"
      echo 127 >"$RUN/code-$own"
      exit
    fi
    # A session of its own, so that a signal reaches all that it starts.
    # shellcheck disable=SC2016 # the inner shell expands it
    setsid sh -c 'echo "$$" >"$0"; exec "$@"' "$RUN/pid-$own" "$@"
    echo "$?" >"$RUN/code.$own"
    mv "$RUN/code.$own" "$RUN/code-$own"
  ) >>"$LOG" 2>&1 </dev/null &
}

idle() { # nothing computes and nothing is said
  size=$(wc -c <"$LOG")
  [ "$size" = "${SIZE:-}" ] || { SIZE=$size && return 1; }
  read -r _ load _ <"$LOAD"
  case $load in 0.[0-4]*) ;; *) return 1 ;; esac
  [ "$GPUS" = 0 ] || ! nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits 2>/dev/null | grep -qv '^0$'
}

code_of_all() { # of the first process that failed, else 0
  worst=0
  for one in "$RUN"/code-*; do
    [ -e "$one" ] || continue
    code=$(cat "$one")
    [ "$worst" != 0 ] || worst=$code
  done
  echo "$worst"
}

look_after() { # until every process has ended
  noticed=0 asked=$(up) uploaded=$asked active=$asked step='' HEARD_AT=$asked SAMPLED=$asked
  while [ "$(find "$RUN" -name 'code-*' | wc -l)" -lt "$PROCESSES" ]; do
    sleep "$EVERY"
    time=$(up)
    if [ -z "$TOLD" ] && [ "$((time - noticed))" -ge "$NOTICE_S" ]; then
      noticed=$time
      take_notice
    fi
    if [ "$((time - asked))" -ge "$ASK_S" ]; then
      asked=$time
      take_wishes
      [ "$GPUS" = 0 ] || [ "$WATCHES" = no ] || sample_devices "$ROOT/samples"
      tell_health
      if [ -s "$RUN/progress.json" ] && [ "$(cat "$RUN/progress.json")" != "$step" ]; then
        step=$(cat "$RUN/progress.json") active=$time
        printf '%s\n' "$step" | put progress
      fi
      idle || active=$time
    fi
    if [ "$((time - uploaded))" -ge "$UPLOAD_S" ]; then
      uploaded=$time
      upload
      hear "$time"
    fi
    if [ "$(code_of_all)" -gt 0 ]; then
      tell "a process of $PROCESSES ended with $(code_of_all)" "$(($(now) + GRACE))"
    fi
    if [ "$IDLE_S" -gt 0 ] && [ "$((time - active))" -ge "$IDLE_S" ]; then
      [ -n "$TOLD" ] || IDLED=yes
      tell_by_ourselves "idle for $((IDLE_S / 60)) minutes"
    fi
    # In time to save, and to say so before the timer of the money ends the machine.
    if [ "$HARD_MINUTES" != 0 ] && [ "$((time - BEGIN))" -ge "$((HARD_MINUTES * 60 - GRACE - 20))" ]; then
      tell_by_ourselves "its time or money is used up"
    fi
    [ -z "$TOLD" ] || [ "$time" -lt "$UNTIL" ] || signal_all KILL
  done
}

begin() {
  mkdir -p "$RUN"
  [ -z "$IMAGE" ] || chmod 1777 "$RUN" # in a container a job may be another user
  : >>"$LOG"
  (umask 077 && : >>"$ROOT/hidden")
  [ -n "${CHIPWISE_ROOT:-}" ] || exec >>/var/log/chipwise.log 2>&1
  trap 'break_off "the program of the machine failed"' EXIT
  trap gone TERM INT HUP
  FIRST=$START_MINUTES
  [ "$HARD_MINUTES" = 0 ] || [ "$HARD_MINUTES" -ge "$FIRST" ] || FIRST=$HARD_MINUTES
  "$SHUTDOWN" -h "+$FIRST" # whatever hangs before the command runs
}

connect() {
  export AWS_DEFAULT_REGION # of the place in S3, which may be another than the machine's
  ID=$(metadata instance-id) || break_off "a machine does not hear its own metadata"
  if given_up; then abandon; fi # before it came
}

locate() { [ "$MACHINES" = 1 ] || meet; }
set_deadline() { :; }  # look_after keeps it
read_secrets() { :; }  # each process has them, and nothing else
log_options() { :; }   # upload sends what is said
watch() { :; }         # so does look_after

fetch_all() {
  case $FOLDER in
    s3://*) mkdir -p "$ROOT/work" ;;
    *) return ;;
  esac
  case $FOLDER in
    *.tar.gz) aws s3 cp --only-show-errors "$FOLDER" - | tar -xz -C "$ROOT/work" ;;
    *) sync "$FOLDER" "$ROOT/work" ;;
  esac || quit 126 "the folder $FOLDER could not be read"
  FOLDER=$ROOT/work
}

prepare_docker() {
  [ -n "$IMAGE" ] || return 0
  tries=0
  until pull >>"$LOG" 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 3 ] || quit 126 "the image $IMAGE could not be pulled"
    sleep "$EVERY"
  done
}

run_job() {
  local process result reason lacks
  for ((process = 0; process < PROCESSES; process++)); do launch "$process" "${COMMAND[@]}"; done
  BEGUN=$(now)
  echo "$BEGUN" | put "begun-$RANK"
  "$SHUTDOWN" -c
  if [ "$HARD_MINUTES" != 0 ]; then # the money, which counts since the machine came: a second belt, under the controller's
    LEFT=$((HARD_MINUTES - ($(up) - BEGIN) / 60))
    "$SHUTDOWN" -h "+$((LEFT > 0 ? LEFT : 0))"
  fi
  look_after
  result=$(code_of_all)
  reason=$(cat "$RUN/reason" 2>/dev/null)
  if [ -z "$reason" ] && [ "$result" != 0 ]; then
    if [ "$NOTICED" != null ] || [ "$MACHINES" -gt 1 ] || [ "$PROCESSES" -gt 1 ]; then reason=$WHY; fi
  fi
  if [ -n "$OURS" ]; then # left, whatever its code says; one that idled would idle again, and counts as failed
    reason=$WHY
    [ "$result" != 0 ] || result=75
    [ -z "$IDLED" ] || result=124
  fi
  if [ "$result" = 0 ] && lacks=$(missing) && [ -n "$lacks" ]; then
    result=66 reason="it ended well, but $lacks is not there or empty"
  fi
  quit "$result" "$reason"
}
