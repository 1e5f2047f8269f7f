"""Services on mixed machines and spot zones, in dollars: scaling policies with rules of purchase.

python benchmarks/mixed_fleets.py             prints the tables; $CHIPWISE_TRACES names the folder of traces
python benchmarks/mixed_fleets.py docs        writes the part on machines of docs/policies-serving.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from chipwise.scale.fleet import ReplicaMachine
from chipwise.scale.questions.mixed import MixedQuestion, simulate_mixed
from chipwise.scale.questions.scaling import ServeQuestion
from chipwise.scale.simulator.compared import MixedAnswer
from policies import TRACES

BEGIN, END = "<!-- machines -->", "<!-- end of machines -->"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "policies-serving.md"
GOAL = 0.99
POLICIES = ("hpa:50", "hpa:60", "hpa:70", "hpa:80", "hpa:85", "learned-headroom")
PURCHASES = ("on-demand-fleet", "spot-fleet", "spot-hedge", "spot-hedge:20", "spot-spread")
ZONES = "spot_traces/availability/1-node/aws-02-15-2023"
FIGURES = ((1.0, 1.0, 0.32), (4.1, 4.0, 1.6))  # of the two machine types, the first at the speed of a unit


@dataclass(frozen=True, slots=True)
class MixedCase:
    title: str
    per_s: float  # of the small machine
    trace: str | None = None
    synthetic: str | None = None

    @property
    def command(self) -> str:
        load = f"--synthetic {self.synthetic}" if self.trace is None else f"--trace $CHIPWISE_TRACES/{self.trace}"
        types = " ".join(
            f"--machine {name}={speed * self.per_s:g},{usd:g},{spot_usd:g}"
            for name, (speed, usd, spot_usd) in zip(("small", "big"), FIGURES, strict=True)
        )
        return (
            f"chipwise simulate serve {load} \\\n  {types} \\\n  --spot $CHIPWISE_TRACES/{ZONES} \\\n"
            f"  --policy {','.join(POLICIES)} --purchase {','.join(PURCHASES)}"
        )


CASES = (
    MixedCase("A synthetic day of 20 requests per second", 1.0, synthetic="hours=24,rate=20"),
    MixedCase("Azure conversation, 1 hour", 0.2689, trace="load_azure_llm_2023"),
)


def answers_of(case: MixedCase) -> list[MixedAnswer]:
    machines = tuple(
        ReplicaMachine(name=name, per_s=speed * case.per_s, on_demand_usd=usd, spot_usd=spot_usd)
        for name, (speed, usd, spot_usd) in zip(("small", "big"), FIGURES, strict=True)
    )
    serve = ServeQuestion(
        policies=POLICIES,
        trace=None if case.trace is None else TRACES / case.trace,
        synthetic=case.synthetic,
        replica_rate=machines[0].per_s,
    )
    question = MixedQuestion(serve=serve, machines=machines, spot=str(TRACES / ZONES), purchases=PURCHASES)
    return simulate_mixed(question, lambda done, total, what: None)[0]


def section() -> str:
    intro = """## Mixed machines and spot replicas

Written by `python benchmarks/mixed_fleets.py docs`; do not edit. A small machine for $1 an hour ($0.32 on spot) and one 4.1
times as fast for $4 ($1.60), in the six zones of `aws-02-15-2023`. A zone has any number of machines or none, and takes all
back at once; a machine is paid for from its order and answers after 180 s. The bound knows the whole load and buys what is
cheapest at each moment, in fractions of machines. How zones are tried and `spot-hedge:20` were chosen while the synthetic day
was looked at, so that its table is no evidence for other loads; in the hour of the Azure load no zone is lost.
"""
    return "\n".join([intro, *(_case(case, answers_of(case)) for case in CASES)])


def _case(case: MixedCase, answers: Sequence[MixedAnswer]) -> str:
    lines = [f"### {case.title}", "", "```", case.command, "```", ""]
    lines += [_best(answers), ""]
    lines += ["| policy | purchase | within the goal | cost | lost | to the bound |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{answer.policy}` | `{answer.purchase}` "
        f"| {answer.within_goal:.2%}{'' if answer.within_goal >= GOAL else ', missed'} "
        f"| ${answer.usd:,.2f} | {answer.lost:,} | {answer.ratio_to_bound:.3f} |"
        for answer in answers
    ]
    return "\n".join([*lines, ""])


def _best(answers: Sequence[MixedAnswer]) -> str:
    """The cheapest that reach the goal: ours, and the HPA target and purchase that are best in hindsight."""
    punctual = [answer for answer in answers if answer.within_goal >= GOAL]
    ours = _cheapest(answer for answer in punctual if not answer.policy.startswith("hpa"))
    others = _cheapest(answer for answer in punctual if answer.policy.startswith("hpa"))
    if others is None:
        return "No HPA target reaches the goal."
    best = f"`{others.policy}` with `{others.purchase}` at ${others.usd:,.2f}"
    if ours is None:
        return f"`learned-headroom` misses the goal with every purchase; the HPA in hindsight reaches it, {best}."
    return (
        f"Cheapest that reach the goal: `{ours.policy}` with `{ours.purchase}` at ${ours.usd:,.2f}, "
        f"{ours.usd / others.usd:.3f} times the HPA in hindsight ({best})."
    )


def _cheapest(answers: Iterable[MixedAnswer]) -> MixedAnswer | None:
    return min(answers, key=lambda answer: answer.usd, default=None)


def machines_part(page: str) -> str:
    """The part of a page that this writes."""
    _, begin, rest = page.partition(BEGIN)
    return f"\n{begin}{rest.partition(END)[0]}{END}\n" if begin else ""


if __name__ == "__main__":
    written = section()
    if sys.argv[1:] == ["docs"]:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before.rstrip()}\n\n{BEGIN}\n{written}{END}{after or chr(10)}", encoding="utf-8")
    else:
        print(written)
