#!/bin/sh
# Samples of NVIDIA devices by nvidia-smi, and the summary of a run that they add up to. Both do nothing where there are none.
sample_devices() { # file: gets a line for each device
  timeout 20 nvidia-smi --format=csv,noheader,nounits \
    --query-gpu=index,name,driver_version,utilization.gpu,memory.used,power.draw,temperature.gpu >>"$1" 2>/dev/null
}
summarise_devices() { # file, seconds that it covers: JSON
  LC_ALL=C awk -F ', *' -v seconds="$2" '
    function share(gpu, part, at, seen) {
      for (at = 0; at < 100 && seen + bins[gpu, at] < part * known[gpu]; at++) seen += bins[gpu, at]
      return at / 100
    }
    NF == 7 && $1 ~ /^[0-9]+$/ && $1 < 64 {
      if (!($1 in count)) { order[++n] = $1; name[$1] = $2; driver = $3 }
      count[$1]++
      if ($4 ~ /^[0-9]+$/ && $4 <= 100) { bins[$1, $4 + 0]++; known[$1]++; busy[$1] += $4 }
      if ($5 > memory[$1] + 0) memory[$1] = $5 + 0
      if ($6 + 0 > 0) { drawn[$1] += $6; drew[$1]++ }
      if ($7 > heat[$1] + 0) heat[$1] = $7 + 0
    }
    END {
      if (!n) exit
      gsub(/[^A-Za-z0-9 ._-]/, "", driver)
      printf "{\"seconds\": %d, \"conditions\": {\"driver\": \"%s\"}, \"devices\": {", seconds, driver
      for (i = 1; i <= n; i++) {
        gpu = order[i]
        gsub(/[^A-Za-z0-9 ._-]/, "", name[gpu])
        printf "%s\"nvidia:%d\": {\"name\": \"%s\"", (i > 1 ? ", " : ""), gpu, name[gpu]
        if (known[gpu]) printf ", \"busy\": {\"mean\": %.4f, \"p10\": %s, \"p50\": %s, \"p90\": %s}", \
          busy[gpu] / known[gpu] / 100, share(gpu, 0.1), share(gpu, 0.5), share(gpu, 0.9)
        if (drew[gpu]) { joules = drawn[gpu] / drew[gpu] * seconds; total += joules; printf ", \"energy_j\": %.1f", joules }
        printf ", \"memory_peak_bytes\": %.0f, \"temperature_max_c\": %d}", memory[gpu] * 1048576, heat[gpu]
      }
      printf "}%s}\n", (total ? sprintf(", \"energy_kwh\": %.6f", total / 3600000) : "")
    }' "$1" 2>/dev/null
}
