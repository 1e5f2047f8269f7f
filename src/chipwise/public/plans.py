"""A plan as a program sees it: choices with their numbers, why everything else lost, and what can be done with it.

Made from the view that `chipwise plan --json` prints: `to_dict()` is that view, and a plan can be pickled. Two plans are equal
when their views and their workloads are, whatever the workload was written as (a file, text, fields, options). Whatever needs
more than the view (deployment files, the report, a run) plans the same text again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Never

from chipwise.errors import BadInput, ChipwiseError, NoResult
from chipwise.files.source import NamedText
from chipwise.money.cost import Cost, Line
from chipwise.public.calling import as_keywords, in_python, spoken, verbs
from chipwise.public.choices import Choice, Loser, Missing, StagePlan, cells_of, choice_of, row_of
from chipwise.public.files import Files
from chipwise.public.intervals import Interval
from chipwise.public.layout import LINES, data_frame, folded, html_table, text_table
from chipwise.public.making import Request, rendered, why_view, write_report
from chipwise.public.opened import Opened
from chipwise.public.records import Record, Sentences, Table, Why, plain, with_plain_names
from chipwise.public.workloads import Names
from chipwise.text import usd
from chipwise.views.words import objective_words

RENDER_OPTIONS = ("to", "stage", "choice", "objective", "environment", "layout")  # of `cw.render`, which targets' messages name
_DATA = "compliance data"  # what is missing where a plan stopped although something may fit
_COLUMNS = ("where", "chips", "buy", "speed", "time", "cost", "CO2e")


@dataclass(frozen=True, slots=True, repr=False)
class _Answer:
    """What a plan and the lack of one say of their workload."""

    data: Record
    work: Record  # every field of the workload, with its environment and the limits that were given beside it
    request: Request = field(compare=False)
    session: Opened = field(compare=False)

    @property
    def workload(self) -> str:
        """Its name."""
        return str(self.data["workload"])

    @property
    def kind(self) -> str:
        return str(self.data["kind"])

    @property
    def objective(self) -> str:
        return str(self.data["objective"])

    @property
    def source(self) -> NamedText:
        """The workload as text."""
        return self.request.source


@verbs
@dataclass(frozen=True, slots=True, repr=False)
class Plan(_Answer):
    """What to run a workload on: `best` first, `choices` ranked, `losers` with the reason. A pipeline has `stages` instead."""

    def __bool__(self) -> bool:
        return True

    @property
    def per(self) -> str:
        """`job` or `month`: what money, time and carbon are of; of a pipeline `pipeline`."""
        return str(self.data.get("per", "pipeline"))

    @property
    def missing(self) -> tuple[Missing, ...]:
        """Nothing: as `NoPlan.missing`, so that both can be asked."""
        return ()

    @property
    def best(self) -> Choice:
        """The first choice. A pipeline has none: look at `stages`."""
        if self.stages:
            raise BadInput(f"{self.workload} is a pipeline.", remedy="Look at plan.stages: each has its own choice.")
        return choice_of(self.data["winner"], self.kind, self.per)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The best first; of a pipeline those of its stages."""
        if self.stages:
            return tuple(stage.choice for stage in self.stages)
        return tuple(choice_of(view, self.kind, self.per) for view in self.data["choices"])

    @property
    def stages(self) -> tuple[StagePlan, ...]:
        """Of a pipeline, in the order of hand-offs; of any other workload empty."""
        return tuple(
            StagePlan(
                name=view["name"],
                kind=view["kind"],
                after=view["after"],
                choice=choice_of(view["choice"], view["kind"], view["per"]),
                starts_s=view["starts_s"],
                ready_s=view["ready_s"],
            )
            for view in self.data.get("stages", ())
        )

    @property
    def losers(self) -> tuple[Loser, ...]:
        """The best of every other family, and why it lost."""
        return tuple(
            Loser(view["family"], view["why"], view["choice"] and choice_of(view["choice"], self.kind, self.per))
            for view in self.data.get("losses", ())
        )

    @property
    def cost(self) -> Cost:
        """Of the best choice, by line; of a pipeline of all stages, with one month of its services."""
        if not self.stages:
            return self.best.cost
        totals = self.data["totals"]
        lines = (Line(line["name"], line["usd"], line["how"]) for part in ("once", "monthly") for line in totals[part])
        return Cost.of(lines)

    @property
    def speed(self) -> Interval | None:
        """Of the best choice."""
        return None if self.stages else self.best.speed

    @property
    def services(self) -> Table:
        """What is paid per use instead of per machine, the cheapest allowed first."""
        return Table(self.data.get("services", ()), ("provider", "name", "hardware", "usd", "refused"))

    @property
    def service(self) -> Record | None:
        """The service that costs less than the best machines, where there is one and cost is the objective."""
        leading = self.data.get("service")
        return None if leading is None else Record(leading)

    @property
    def answers(self) -> Table:
        """Questions that decide between kinds of hardware, and what the numbers say."""
        return Sentences(spoken(with_plain_names(self.data.get("answers", ()))))

    @property
    def turns(self) -> Table:
        """What would change the answer."""
        return Sentences(spoken(with_plain_names(self.data.get("turns", ()))))

    @property
    def headline(self) -> str:
        """The answer in words, as `chipwise plan` begins: a service that is paid per use where it costs less than machines."""
        return as_keywords(str(self.data.get("headline") or self.data.get("why") or ""))

    @property
    def risks(self) -> str:
        """What may go wrong with the answer, in a line; empty: nothing that is known."""
        return as_keywords(str(self.data.get("risks") or ""))

    @property
    def load(self) -> Record | None:
        """What carries the load over a month, where the load varies."""
        return self.data.get("load")

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(map(spoken, self.data["notes"]))

    def why(self, name: Names) -> Why:
        """The best that a machine, chip, provider or region could do, and what it lost by: `plan.why("h100")`."""
        return why_view(self.session, self.request, name)

    def render(self, *targets: str, to: Names = (), stage: str | None = None, choice: int | None = None) -> Files:
        """Deployment files of the best choice, or of one stage of a pipeline: `plan.render("kubernetes").write("deploy")`."""
        try:
            return rendered(
                self.session,
                self.source,
                (*targets, *((to,) if isinstance(to, str) else to)),
                environment=self.request.environment,
                objective=self.request.objective,
                stage=stage,
                choice=choice,
            )
        except ChipwiseError as error:
            raise in_python(error, ("limits", *RENDER_OPTIONS)) from error.__cause__

    def report(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the plan as one HTML page that opens offline, as `chipwise plan --html` does; a file that is there stays unless
        `force`."""
        return write_report(self.session, self.request, Path(path), force)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as `chipwise plan --json` prints it."""
        return self.data.to_dict()

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each choice, or for each stage of a pipeline."""
        return data_frame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        names: list[dict[str, Any]] = [{"stage": stage.name} for stage in self.stages]
        names = names or [{"rank": rank} for rank in range(1, len(self.choices) + 1)]
        return [{**name, **row_of(choice)} for name, choice in zip(names, self.choices, strict=True)]

    def _table(self) -> tuple[list[str], list[list[object]]]:
        names: list[object] = [stage.name for stage in self.stages] or list(range(1, len(self.choices) + 1))
        pers = [view["per"] for view in self.data["stages"]] if self.stages else [self.per] * len(names)
        rows: list[list[object]] = [
            [name, *cells_of(choice, per)] for name, choice, per in zip(names, self.choices, pers, strict=True)
        ]
        head = ["stage" if self.stages else "#", *_COLUMNS]
        used = [place for place in range(len(head)) if any(row[place] not in (None, "") for row in rows)]
        return [head[place] for place in used], [[row[place] for place in used] for row in rows]

    @property
    def _title(self) -> str:
        if self.stages:
            return f"Plan of {self.workload}: pipeline, by {self.objective}"
        cost = usd(self.cost.usd if self.service is None else self.service["usd"])
        return f"Plan of {self.workload}: {self.kind}, {objective_words(self.objective)}, {cost} per {self.per}"

    def __repr__(self) -> str:
        head, rows = self._table()
        first = [self._title, *folded(*filter(None, (self.headline, self.risks)))]
        room = max(LINES - len(first) - 2, 1)
        return "\n".join([*first, *text_table(head, rows[:room], max(len(rows) - room, 0))])

    def _repr_html_(self) -> str:
        first = "".join(f"<p>{escape(line)}</p>" for line in (self.headline, self.risks) if line)
        return f"{first}{html_table(*self._table(), title=self._title, notes=self.notes)}"


@verbs
@dataclass(frozen=True, slots=True, repr=False)
class NoPlan(_Answer):
    """Nothing fits: what stood in the way and the smallest change that would help. It is false."""

    def __bool__(self) -> bool:
        return False

    @property
    def missing(self) -> tuple[Missing, ...]:
        """What stood in the way of everything, and the smallest change that would help."""
        return tuple(
            Missing(view["what"], spoken(view["how_much"]), spoken(view["remedy"]), view.get("stage"))
            for view in self.data["missing"]
        )

    @property
    def refused(self) -> tuple[Any, ...]:
        """Rules that left offers out: with their number and an example; of a pipeline sentences."""
        return tuple(self.data["refused"])

    @property
    def losers(self) -> tuple[Loser, ...]:
        """Families, and why none of them can do it."""
        return tuple(Loser(view["family"], view["why"], None) for view in self.data.get("losses", ()))

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(map(spoken, self.data["notes"]))

    def _nothing(self) -> NoResult:
        remedy = " ".join(map(str, self.missing)) or "See `refused`."
        return NoResult(self._headline, remedy=remedy)

    @property
    def headline(self) -> str:
        """What does it instead of machines, as `chipwise plan` begins: a service that is paid per use; empty: nothing does."""
        return as_keywords(str(self.data.get("headline") or ""))

    @property
    def _headline(self) -> str:
        if any(one.what == _DATA for one in self.missing):
            return f"{self.workload}: stopped, because data on compliance is missing."
        return f"Nothing fits {self.workload}."

    @property
    def best(self) -> Never:
        """Raises `NoResult` with what was missing: check `if plan:` first."""
        raise self._nothing()

    @property
    def cost(self) -> Never:
        """Raises `NoResult`, as `best` does."""
        raise self._nothing()

    @property
    def speed(self) -> Never:
        """Raises `NoResult`, as `best` does."""
        raise self._nothing()

    @property
    def choices(self) -> tuple[Choice, ...]:
        return ()

    @property
    def stages(self) -> tuple[StagePlan, ...]:
        return ()

    def why(self, name: Names) -> Why:
        """The best that a machine, chip, provider or region could do, and what stood in its way."""
        return why_view(self.session, self.request, name)

    def render(self, *targets: str, to: Names = (), stage: str | None = None, choice: int | None = None) -> Never:
        """Raises `NoResult`, as `best` does."""
        raise self._nothing()

    def report(self, path: str | Path, *, force: bool = False) -> Path:
        """Write what was missing as one HTML page; a file that is there stays unless `force`."""
        return write_report(self.session, self.request, Path(path), force)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as `chipwise plan --json` prints it."""
        return self.data.to_dict()

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each thing that was missing."""
        return data_frame([plain(view) for view in self.data["missing"]])

    def __repr__(self) -> str:
        lines = [self._headline, *filter(None, [self.headline])]
        return "\n".join([*lines, *(f"  {line}" for line in map(str, self.missing[: LINES - 2]))])

    def _repr_html_(self) -> str:
        rows = [[one.what, one.how_much, one.remedy] for one in self.missing]
        return html_table(("what is missing", "how much", "would help"), rows, title=self._headline)
