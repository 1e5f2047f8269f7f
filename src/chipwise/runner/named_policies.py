"""The policy of each job by its name. Those compute with arrays, and are imported when a job first needs one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chipwise.runner.policy import Decision, NeverLate, Policy, Standing

if TYPE_CHECKING:
    from chipwise.runner.spot_choices import Situation
    from chipwise.scale.spot import Begin


@dataclass(slots=True)
class NamedPolicies:
    """The policy of each job that names one, by `lookup`; the plain rule for the others, and where a policy lacks what it
    needs. It is asked anew where something changed, or a tick has passed."""

    lookup: Callable[[str], Begin]
    plain: Policy = field(default_factory=NeverLate)
    _answers: dict[str, tuple[Situation, Decision]] = field(default_factory=dict)

    def decide(self, state: Standing) -> Decision:
        job = state.job
        if job is None or not job.spec.policy:
            return self.plain.decide(state)
        from chipwise.runner import spot_choices

        situation = spot_choices.situation(state)
        if situation is None:
            return self.plain.decide(state)
        last = self._answers.get(job.id)
        if last is None or last[0] != situation:
            last = self._answers[job.id] = situation, spot_choices.decide(self.lookup(job.spec.policy), state)
        return last[1]
