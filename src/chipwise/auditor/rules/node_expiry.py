"""Karpenter ends machines that are expired whatever budgets say: each time, a service or a training is interrupted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import pools
from chipwise.auditor.source import Sources, line_of, listed, look

DAYS_HOURS = 48  # so soon, work is interrupted whoever keeps budgets
SHORT_HOURS = 14 * 24  # beyond it, expiry is how machines are kept fresh
_SECONDS = re.compile(r"\d{1,2}s|[01]m")
_HOURS = re.compile(r"(\d{1,6})h(?:\d+[ms])*")
ABOUT = "machines with accelerators do not expire against their budgets"


def check(sources: Sources) -> Iterator[Finding]:
    for manifest, spec in pools(sources):
        disruption = look(manifest.body, "spec", "disruption")
        patience = str(look(disruption, "consolidateAfter") or "")
        if look(disruption, "consolidationPolicy") == "WhenEmptyOrUnderutilized" and _SECONDS.fullmatch(patience):
            yield Finding(
                rule="node-expiry",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(disruption, "consolidationPolicy"),
                what=f"{manifest.title} moves running pods to fewer machines after {patience}: models load again",
                fix="Set consolidationPolicy: WhenEmpty, or consolidateAfter to the time that a pod should be left alone.",
            )
        age = look(spec, "expireAfter")
        hours = _HOURS.fullmatch(str(age))
        budgets = listed(look(manifest.body, "spec", "disruption", "budgets"))
        if hours and int(hours[1]) < (SHORT_HOURS if budgets else DAYS_HOURS):
            yield Finding(
                rule="node-expiry",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(spec, "expireAfter"),
                what=f"{manifest.title} ends machines after {age}, and {'its' if budgets else 'no'} budgets hold that up",
                fix="Set expireAfter: Never, and let drift replace machines, which keeps to the budgets.",
            )
