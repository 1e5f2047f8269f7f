"""Queue policies on public traces of GPU jobs, and how fast the simulator is beside a SimPy model of the same queue.

python benchmarks/run.py queues           about two minutes of one core; $CHIPWISE_TRACES names the folder of traces
python benchmarks/queues.py docs          writes the part on queues of docs/policies.md
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from chipwise.scale.policy_files import queue_policy
from chipwise.scale.questions.queue import QueueQuestion, play, queue_scene, simulate_queue
from chipwise.scale.simulator.queue_compared import QueueAnswer
from figure import ROOT, Figure

TRACES = Path(os.environ.get("CHIPWISE_TRACES", ROOT / "build" / "traces"))
PHILLY = "queue_philly"
POLICIES = (
    "fifo",
    "backfill",
    "shortest-estimate",
    "shortest-remaining",
    "least-attained",
    "fair-share",
    "heterogeneity",
    "deadline",
)
GAVEL_SEEDS = range(3)
BEGIN, END = "<!-- queues -->", "<!-- end of queues -->"
PAGE = ROOT / "docs" / "policies.md"


@dataclass(frozen=True, slots=True)
class QueueCase:
    folder: str
    words: str
    question: QueueQuestion

    @property
    def command(self) -> str:
        flags = f" --estimate-error {self.question.estimate_error:g}" if self.question.estimate_error else ""
        flags += f" --seed {self.question.seed}" if self.question.seed else ""
        flags += f" --gpus {self.question.gpus}" if self.question.gpus else ""
        return f"chipwise simulate queue --trace $CHIPWISE_TRACES/{self.folder}{flags} \\\n  --policy {','.join(POLICIES)}"


def case(folder: str, words: str, **settings: Any) -> QueueCase:
    return QueueCase(folder, words, QueueQuestion(policies=POLICIES, trace=TRACES / folder, **settings))


def cases() -> list[QueueCase]:
    return [
        case(
            "queue_sia/newtrace",
            "The four newest job sets of Sia, one after the other, on the 64 GPUs of the paper. They have no durations: the "
            "middle of the GPU time of each application's category is taken (Pollux paper).",
        ),
        case(
            "queue_alibaba_gpu_v2023",
            "6,203 pods with GPUs of Alibaba's 2023 trace on 128 GPUs; a share of a GPU counts as one. On the trace's own "
            "machines nothing ever waits.",
            gpus=128,
        ),
        *(
            case(
                "queue_gavel",
                f"Jobs of Gavel's 26 types at their published speeds on 36 V100, 36 P100 and 36 K80, drawn as in the paper; "
                f"seed {seed}.",
                seed=seed,
            )
            for seed in GAVEL_SEEDS
        ),
        case(
            PHILLY,
            "72,176 jobs of Microsoft's Philly cluster (three virtual clusters of the 82,247 jobs are not in the table), on as "
            "many machines of 8 GPUs as make a load of 80%; estimates are exact.",
        ),
    ]


def figures() -> Iterator[Figure]:
    if not (TRACES / PHILLY).is_dir():
        print(f"queues: left out, since {PHILLY} is not in {TRACES.name}", file=sys.stderr)
        return
    scene = queue_scene(QueueQuestion(trace=TRACES / PHILLY))
    for name in POLICIES:
        begin = process_time()
        outcome = play(scene, queue_policy(name), QueueQuestion())
        yield Figure(f"queue_philly_{len(scene.jobs)}_jobs_{name}_cpu", process_time() - begin, "s", {"max": 10.0})
        yield Figure(f"queue_philly_{name}_mean_completion", float(outcome.completion_s.mean()), "s", {})
        if name == "fifo":
            yield from beside_simpy([(job.arrival_s, job.gpus, job.work_s) for job in scene.jobs], scene.cluster.gpus)


def beside_simpy(jobs: list[tuple[float, int, float]], gpus: int) -> Iterator[Figure]:
    """First come, first served on pooled GPUs: the plain SimPy model, and that both agree."""
    try:
        import simpy
    except ImportError:
        print("queues: the SimPy model is left out, since simpy is not installed", file=sys.stderr)
        return
    question = QueueQuestion(placement="pooled", trace=TRACES / PHILLY)
    begin = process_time()
    ours = play(queue_scene(question), queue_policy("fifo"), question)
    yield Figure("queue_philly_fifo_pooled_cpu", process_time() - begin, "s", {"max": 10.0})
    begin = process_time()
    environment = simpy.Environment()
    pool = simpy.Container(environment, capacity=gpus, init=gpus)
    ends: dict[int, float] = {}

    def run(number: int, size: int, work_s: float) -> Generator[Any, Any, None]:
        yield pool.get(size)
        yield environment.timeout(work_s)
        ends[number] = environment.now
        yield pool.put(size)

    def arrive() -> Generator[Any, Any, None]:
        for number, (arrival_s, size, work_s) in sorted(enumerate(jobs), key=lambda entry: (entry[1][0], entry[0])):
            yield environment.timeout(max(arrival_s - environment.now, 0.0))
            environment.process(run(number, size, work_s))

    environment.process(arrive())
    environment.run()
    yield Figure("queue_philly_fifo_pooled_simpy_cpu", process_time() - begin, "s", {})
    difference = max(abs(ours.end_s[number] - end) for number, end in ends.items())
    yield Figure("queue_philly_fifo_pooled_largest_difference_to_simpy", float(difference), "s", {"max": 1e-3})


HEAD = """## Queues

Written by `python benchmarks/queues.py docs`; do not edit. Jobs ask for GPUs and wait for them; a gang gets all of its GPUs
or none, on one machine where it fits on one, on the fullest that will do. Each further start of a job costs 60 s. The bound is
a mean completion time that no order of the jobs can fall below: the largest of the mean duration, of the least work left
first on one server as fast as all GPUs together, and of a bound on when jobs are worked on
(`src/chipwise/scale/simulator/queue_bound.py`). It may not be reachable. Fairness is Jain's index over jobs of the share of
its time that each worked; deadlines are five times the duration of a job. The threshold of `least-attained` is that of the
Tiresias paper. `heterogeneity` is the third rule that was tried on Gavel's jobs, and `fair-share` was changed after its
first figures on synthetic jobs: of these two the figures are not of unseen traces.

What runs in our own queue (`queue.yaml`: `policy: NAME`) follows the same ranks, without preemption.
"""


def section(queued: QueueCase) -> str:
    answers = simulate_queue(queued.question, _quiet)
    print(f"{queued.folder}: done", file=sys.stderr)
    lines = [f"### {queued.folder}", "", queued.words, "", "```", queued.command, "```", ""]
    lines += ["| policy | mean | p99 | makespan | fairness | utilisation | preempted | late | to the bound |", "|---" * 9 + "|"]
    return "\n".join([*lines, *(_row(answer) for answer in answers), ""])


def _row(answer: QueueAnswer) -> str:
    hours = (f"{seconds / 3600:,.1f} h" for seconds in (answer.mean_jct_s, answer.p99_jct_s, answer.makespan_s))
    figures = (f"{answer.fairness:.2f}", f"{answer.utilisation:.0%}", f"{answer.preemptions:,}", f"{answer.late:,}")
    return f"| `{answer.policy}` | {' | '.join((*hours, *figures))} | {answer.ratio_to_bound:.3f} |"


def _quiet(done: int, total: int | None, what: str) -> None:
    """A table is its own line."""


def write_page() -> None:
    """The part between the marks, in the page as it is; after each table, since the largest trace takes long."""
    sections: list[str] = []
    for queued in cases():
        sections.append(section(queued))
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        body = "\n".join(sections)
        PAGE.write_text(f"{before.rstrip()}\n\n{BEGIN}\n{HEAD}\n{body}{END}\n{after.lstrip()}", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["docs"]:
        write_page()
    else:
        for figure in figures():
            print(figure.line())
