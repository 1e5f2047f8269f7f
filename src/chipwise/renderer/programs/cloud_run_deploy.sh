#!/bin/bash
# Deploys what lies beside this file on Cloud Run. Needs gcloud, signed in, with a project: gcloud config set project ...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
NAME=${NAME-}
REGION=${REGION-}
KIND=${KIND-service}       # job, service, or pushed: a service that is called for each object that arrives
BUCKET=${BUCKET-}          # of those objects
PREFIX=${PREFIX-}

job() {
  gcloud run jobs replace job.yaml --region "$REGION"
  gcloud run jobs execute "$NAME" --region "$REGION" --wait
}

url() { gcloud run services describe "$NAME" --region "$REGION" --format 'value(status.url)'; }

service() {
  gcloud run services replace service.yaml --region "$REGION"
  url
}

pushed() {
  local project number target caller
  project=$(gcloud config get-value project)
  number=$(gcloud projects describe "$project" --format 'value(projectNumber)')
  gcloud builds submit --tag "$REGION-docker.pkg.dev/$project/chipwise/$NAME:1" .
  sed -e "s|REGION-docker.pkg.dev/PROJECT|$REGION-docker.pkg.dev/$project|" service.yaml |
    gcloud run services replace - --region "$REGION"
  target=$(url)

  # A caller of its own, which may call this service and nothing else.
  gcloud iam service-accounts create "$NAME" --display-name "calls $NAME" || true
  caller="$NAME@$project.iam.gserviceaccount.com"
  gcloud run services add-iam-policy-binding "$NAME" --region "$REGION" --member "serviceAccount:$caller" \
    --role roles/run.invoker

  # Object created -> topic -> push. Six attempts, then the message is put aside.
  gcloud pubsub topics create "$NAME" "$NAME-failed"
  gcloud pubsub topics add-iam-policy-binding "$NAME" \
    --member "serviceAccount:service-$number@gs-project-accounts.iam.gserviceaccount.com" --role roles/pubsub.publisher
  gcloud storage buckets notifications create "gs://$BUCKET" --topic "$NAME" --event-types OBJECT_FINALIZE \
    --object-prefix "$PREFIX" --payload-format json
  gcloud pubsub subscriptions create "$NAME" --topic "$NAME" --push-endpoint "$target" --push-auth-service-account "$caller" \
    --ack-deadline 600 --dead-letter-topic "$NAME-failed" --max-delivery-attempts 6
}

case $KIND in
  job) job ;;
  pushed) pushed ;;
  *) service ;;
esac
