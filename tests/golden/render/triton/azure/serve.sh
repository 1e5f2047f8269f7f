#!/usr/bin/env bash
# embed-api: serve on 2 x Standard_NC24ads_A100_v4 (azure westeurope, spot). Written by chipwise from the plan.
# Run it in nvcr.io/nvidia/tritonserver:25.08-vllm-python-py3, beside model_repository/.
# Expected: $1,534 and 55 kg CO2e a month.
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
