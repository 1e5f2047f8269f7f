"""Several zones: the one where the rest of the work would cost least, and waiting for it while there is time.

Waiting costs slack and nothing else, so a zone that was lost is waited for as long as the time left beside the work is at least
a fifth of the work left, the published threshold of a single zone (`slack`). From then on the zones are tried in the order of
what the rest would cost in each: its spot price, a restart, and moving the checkpoint. Looks at a zone that has nothing cost
money too: the time between them doubles, up to an hour. Once an hour it looks whether it can go back to a cheaper zone.
"""

from __future__ import annotations

from chipwise.scale.zones import ZonesDecide, ZonesJob, ZonesState

KIND = "zones"
SUMMARY = "Several zones: wait for the cheapest while there is time, then the next cheapest."
NEEDS = "work left, restart time, prices of zones, cost of moving a checkpoint"

PATIENCE = 0.2  # of the work left
ALIKE = 0.01  # zones whose rest costs so little more are as good
LONGEST_GAP_H = 1.0


def begin(job: ZonesJob) -> ZonesDecide:
    longest_gap = max(round(LONGEST_GAP_H / job.tick_h), 1)

    def decide(state: ZonesState) -> tuple[str, ...]:
        zones = sorted(state.spot_usd, key=lambda zone: (state.finish_usd(zone), zone))
        if state.zone:
            cheaper = zones[: zones.index(state.zone)]
            return (*(zone for zone in cheaper if state.tick - state.looked.get(zone, -longest_gap) >= longest_gap), state.zone)
        first = zones[0]
        slack_h = state.time_left_h - state.work_left_h - job.restart_h
        if slack_h < PATIENCE * state.work_left_h:
            return tuple(zones)
        gap = min(max(state.waited // 2, 1), longest_gap)
        most_usd = (1.0 + ALIKE) * state.finish_usd(first)
        return tuple(
            zone
            for zone in zones
            if state.finish_usd(zone) <= most_usd and state.tick - state.looked.get(zone, -longest_gap) >= gap
        )

    return decide
