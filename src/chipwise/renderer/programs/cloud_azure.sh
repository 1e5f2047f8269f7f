#!/bin/bash
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
