#!/usr/bin/env bash
# tag-api: serve on c7i.large (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Run it in nvcr.io/nvidia/tritonserver:25.08-py3, beside model_repository/.
# Expected: $62.00 and 4 kg CO2e a month.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# --strict-readiness=true: ready when every model is: the balancer sends nothing before
# --exit-on-error=true: a model that does not load is a failed start, not an empty server
# --exit-timeout-secs=19: requests in work are answered before it ends
exec tritonserver \
  --model-repository="$here/model_repository" \
  --http-port=8000 --grpc-port=8001 --metrics-port=8002 \
  --strict-readiness=true \
  --exit-on-error=true \
  --exit-timeout-secs=19 \
  "$@"
