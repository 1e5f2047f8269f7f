#!/bin/bash
# archive-summaries: batch on 4 x g2-standard-48 (gcp us-central1, spot). Written by chipwise from the plan.
# Expected: 9 d (7 d to 12 d), $3,120.00, 480.0 kg CO2e.
set -euo pipefail

for at in $(seq 0 3); do
  sky jobs launch --yes --detach-run --name archive-summaries-"$at" --env MACHINE="$at" task.yaml
done
