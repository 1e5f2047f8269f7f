#!/usr/bin/env bash
# archive-summaries: batch on 4 x g2-standard-48 (gcp us-central1, spot). Written by chipwise from the plan.
# Run it in vllm/vllm-openai:v0.32.0, once for each of 16 replicas; words after it go to vLLM and win.
# Expected: 9.0 days (7.0 days to 12.0 days), $3,120.00, 480.0 kg CO2e.
#
set -euo pipefail

export HF_HOME=/models/hub

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

# Each of 16 replicas answers a file of its own. Split the requests once, in the data directory:
#   split -n r/16 -d -a 5 --additional-suffix=.jsonl requests.jsonl requests-
: "${PART:?number of this replica, from 0 to 15}"
shard="$(printf %05d "$PART")"

# g2-standard-48 holds 4 replicas; each sees its own chips.
first=$(( PART % 4 * 1 ))
export CUDA_VISIBLE_DEVICES="$(seq -s, "$first" $(( first + 0 )))"

# One request a line, in the format of OpenAI's batch files; answers go beside it.
exec vllm run-batch --input-file "/data/requests-$shard.jsonl" --output-file "/data/answers-$shard.jsonl" --config "$here/config.yaml" "$@"
