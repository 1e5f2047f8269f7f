#!/bin/bash
# Deploys what lies beside this file on Azure Container Apps. Needs az, signed in: az login.
# Usage: GROUP=resource-group ./deploy.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
NAME=${NAME-}
REGION=${REGION-}
KIND=${KIND-app}       # app or job: which file is sent
PROFILE=${PROFILE-}    # of machines with a GPU
SECRETS=${SECRETS-}    # not empty: they are in a key vault
STARTS=${STARTS-}      # not empty: something else starts the job
CONTAINER=${CONTAINER-} # whose new objects start it
PREFIX=${PREFIX-}
: "${GROUP:?}"
ENVIRONMENT="$NAME-env"
fill=()

environment() {
  az containerapp env create --name "$ENVIRONMENT" --resource-group "$GROUP" --location "$REGION"
  if [ -n "$PROFILE" ]; then
    az containerapp env workload-profile add --name "$ENVIRONMENT" --resource-group "$GROUP" \
      --workload-profile-name gpu --workload-profile-type "$PROFILE"
  fi
  local id
  id=$(az containerapp env show --name "$ENVIRONMENT" --resource-group "$GROUP" --query id --output tsv)
  fill+=(-e "s|ENVIRONMENT_ID|$id|")
}

create() {
  local verb=(containerapp)
  [ "$KIND" != job ] || verb+=(job)
  if [ -n "$SECRETS" ]; then
    : "${VAULT:?the key vault that holds the secrets}"
    fill+=(-e "s|//VAULT\\.|//$VAULT.|")
  fi
  if [ -n "$CONTAINER" ]; then
    : "${STORAGE_ACCOUNT:?the account of the container}"
    fill+=(-e "s|STORAGE_ACCOUNT|$STORAGE_ACCOUNT|")
  fi
  filled=$(mktemp --suffix .yaml)
  trap 'rm -f "$filled"' EXIT
  sed "${fill[@]}" "$KIND.yaml" > "$filled"
  az "${verb[@]}" create --name "$NAME" --resource-group "$GROUP" --yaml "$filled"
}

trigger() { # object created -> Event Grid -> queue -> job
  local store who role
  store=$(az storage account show --name "$STORAGE_ACCOUNT" --query id --output tsv)
  az storage queue create --name "$NAME" --account-name "$STORAGE_ACCOUNT" --auth-mode login
  az eventgrid event-subscription create --name "$NAME" --source-resource-id "$store" \
    --endpoint-type storagequeue --endpoint "$store/queueservices/default/queues/$NAME" \
    --included-event-types Microsoft.Storage.BlobCreated \
    --subject-begins-with "/blobServices/default/containers/$CONTAINER/blobs/$PREFIX"
  # The job reads the queue as itself, and nothing else.
  who=$(az containerapp job show --name "$NAME" --resource-group "$GROUP" --query identity.principalId --output tsv)
  for role in 'Storage Queue Data Message Processor' 'Storage Blob Data Reader'; do
    az role assignment create --assignee-object-id "$who" --assignee-principal-type ServicePrincipal \
      --role "$role" --scope "$store"
  done
}

environment
create
if [ -n "$CONTAINER" ]; then
  trigger
elif [ "$KIND" = job ] && [ -z "$STARTS" ]; then
  az containerapp job start --name "$NAME" --resource-group "$GROUP"
fi
