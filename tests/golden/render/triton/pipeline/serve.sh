#!/usr/bin/env bash
# serve: serve on 2 x g6e.xlarge (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Run it in nvcr.io/nvidia/tritonserver:25.08-vllm-python-py3, beside model_repository/.
# Expected: $2,863 a month around the clock, as these files run it; $1,534 and 55 kg CO2e in the plan's hours.
# Note: The plan pays for its hours only (cron: 0 7 * * 1,2,3,4,5,6 to 0 22 * * 1,2,3,4,5,6, Europe/Berlin). These files
# keep no clock: machines run on outside them, and are paid for, until they are ended. --to kubernetes, or terraform on
# AWS, keeps hours that begin and end at a stated time.
set -euo pipefail

export HF_HOME=/models/hub
: "${HF_TOKEN:?HF_TOKEN must be set to token of the secret hub-token}"

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# --strict-readiness=true: ready when every model is: the balancer sends nothing before
# --exit-on-error=true: a model that does not load is a failed start, not an empty server
# --exit-timeout-secs=46: requests in work are answered before it ends
exec tritonserver \
  --model-repository="$here/model_repository" \
  --http-port=8000 --grpc-port=8001 --metrics-port=8002 \
  --strict-readiness=true \
  --exit-on-error=true \
  --exit-timeout-secs=46 \
  "$@"
