"""A job that may run in some hours only: at closing it saves, and Slurm itself holds it until the next opening.

A reservation would say the same, and only an administrator may make one. A requeued job keeps its number, so that jobs which
depend on it still wait for its end, and takes a start time from its owner.
"""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.renderer.open_hours import OpenHours, Weekly
from chipwise.renderer.quoting import one_line, shell


def waits(hours: OpenHours, notice_s: int) -> Iterator[str]:
    """Functions `left` and `queue`, and what is done with them before the work begins."""
    opens, closes = _moment(hours.opens), _moment(hours.closes)
    minimum_s = 2 * notice_s
    yield f"# By the plan it runs in some hours only ({one_line(hours.time_zone)}): outside them it waits in the queue."
    yield "next_time() {  # hour and minute, days of the week (0: Sunday): the next such moment, in seconds"
    yield "  local day when"
    yield "  for day in {0..7}; do"
    yield f'    when="$(TZ={shell([hours.time_zone])} date -d "+$day day $1" "+%s %w")"'
    yield '    if [ "${when% *}" -gt "$(date +%s)" ] && [[ ",$2," == *",${when#* },"* ]]; then'
    yield '      echo "${when% *}"'
    yield "      return"
    yield "    fi"
    yield "  done"
    yield "}"
    yield "left() {  # seconds until it closes; 0 while it is closed"
    yield "  local opening closing"
    yield f'  opening="$(next_time {opens})"'
    yield f'  closing="$(next_time {closes})"'
    yield '  if [ "$closing" -gt "$opening" ]; then echo 0; else echo "$((closing - $(date +%s)))"; fi'
    yield "}"
    yield "queue() {  # again: at once, or at the next opening where too little is left of this one"
    yield "  local opening=now"
    yield f'  if [ "$(left)" -le {minimum_s} ]; then'
    yield f'    opening="$(date -d "@$(next_time {opens})" +%Y-%m-%dT%H:%M:%S)"'
    yield "  fi"
    yield "  trap '' TERM  # the requeue ends this script, which has one more thing to say"
    yield '  scontrol requeue "$SLURM_JOB_ID"'
    yield '  [ "$opening" = now ] || scontrol update JobId="$SLURM_JOB_ID" StartTime="$opening"'
    yield "  exit 0"
    yield "}"
    yield f'if [ "$(left)" -le {minimum_s} ]; then queue; fi'
    yield f'(sleep "$(($(left) - {notice_s}))" && kill -USR1 $$) &'


def _moment(weekly: Weekly) -> str:
    return f"{weekly.moment:%H:%M} {weekly.day_list}"
