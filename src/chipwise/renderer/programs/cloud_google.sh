#!/bin/bash
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
