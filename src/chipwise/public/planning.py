"""The verbs that choose and predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from chipwise.errors import BadInput, InvalidFile
from chipwise.public.calling import spoken
from chipwise.public.calling import verbs as verb_methods
from chipwise.public.command_words import GIVEN
from chipwise.public.estimates import Estimate, MemoryFit
from chipwise.public.making import Request, plan_view, planned
from chipwise.public.opened import Opened
from chipwise.public.plan_options import FitsOptions, PredictOptions, TcoOptions
from chipwise.public.plans import NoPlan, Plan
from chipwise.public.records import Checked, Ownership, Record, Table, with_plain_names
from chipwise.public.workloads import (
    CompareOptions,
    LimitOptions,
    Names,
    Runs,
    WorkloadOptions,
    measured_in,
    read_workload,
    runs_of,
    stated,
    with_counts,
    within,
)

if TYPE_CHECKING:
    from chipwise.workload.common import Common

_ALL_CHOICES = 1_000_000_000  # more choices than any catalog has


_OTHER_NAMES = {"input": "input_tokens", "output": "output_tokens", "clip": "clip_s"}


def _apart(options: CompareOptions) -> tuple[dict[str, Any], LimitOptions]:
    """What is done with a model, and the limits."""
    narrowing = {name: value for name, value in options.items() if name in LimitOptions.__annotations__}
    described = {name: value for name, value in options.items() if name not in narrowing}
    return described, cast(LimitOptions, narrowing)


def _stars(family: Mapping[str, Any]) -> dict[str, int]:
    return {name: figure["stars"] for name, figure in family.items() if isinstance(figure, Mapping) and "stars" in figure}


@verb_methods
class PlanVerbs(Opened):
    """What to take."""

    __slots__ = ()

    def plan(
        self,
        workload: str | Path | Mapping[str, Any] | Common | Plan | NoPlan,
        *,
        objective: str | None = None,
        environment: str | None = None,
        top: int | None = 5,
        cloud: Names | None = None,
        region: Names | None = None,
        country: Names | None = None,
        chip: Names | None = None,
        on_demand: bool | None = None,
        spot: bool | None = None,
        market: str | None = None,
        commit: str | None = None,
        max_price_age: str | None = None,
        large: bool | None = None,
        limits: Mapping[str, Any] | None = None,
        measured: Runs | None = None,
        mix: bool = False,
        **options: Unpack[WorkloadOptions],
    ) -> Plan | NoPlan:
        """Choose hardware for a workload: every machine, region, split and purchase option, ranked by cost, time or carbon.

        `workload` is a file, YAML text, a dictionary, a workload such as `cw.Serve(...)`, or the name of a model with options
        that say what is done with it (`serve=True, rps=10, input=1000, output=300, ttft="800ms"`, or
        `peak=9, low=0.5, shape="office-hours"` in place of `rps`; `train=True, tokens="2B"`;
        `finetune="lora", samples="50k"`; `batch=True, samples="50k"`). `cloud`, `region`, `country`, `chip`, `on_demand`,
        `spot` (True: only, False: none), `market="any"` (marketplaces too), `commit="1y"`, `max_price_age`, `large`, `limits`
        (fields as in a file) override the workload's own limits. `measured` is a run of yours that speeds follow from, as
        `"rtx-4090=6h/epoch"` or `{"on": "l4", "rate": "1200 images/s"}`, or several. `top=None` gives every choice that keeps
        the goals. Where
        nothing fits, a `NoPlan` says what was missing; it is false.

        >>> plan = cw.plan("llama-3.1-8b", serve=True, rps=5, input=1000, output=300, cloud=["aws", "gcp"])
        >>> plan.best.machine, plan.best.cost.usd, plan.best.speed.low
        """
        narrowing = LimitOptions(
            cloud=cloud,
            region=region,
            country=country,
            chip=chip,
            on_demand=on_demand,
            spot=spot,
            market=market,
            commit=commit,
            max_price_age=max_price_age,
            large=large,
            limits=limits,
        )
        source = within(self, measured_in(read_workload(workload, options), measured), narrowing)
        request = Request(
            path=str(source),
            text=source.text,
            environment=environment,
            objective=objective,
            top=_ALL_CHOICES if top is None else top,
            mix=mix,
        )
        checked, full_plan = planned(self, request)
        view, work = Record(plan_view(full_plan)), Record(checked.workload.model_dump(mode="json", by_alias=True))
        return Plan(view, work, request, self) if view["fits"] else NoPlan(view, work, request, self)

    def predict(
        self,
        workload: str | Path | Mapping[str, Any] | Common | Plan | NoPlan,
        *,
        on: str,
        train: bool = False,
        serve: bool = False,
        environment: str | None = None,
        measured: Runs | None = None,
        **setup: Unpack[PredictOptions],
    ) -> Estimate:
        """Predict one configuration: time, memory and power, where the time goes, and how sure that is.

        `workload` is a model (`"llama-3.1-8b"`) or a workload as `cw.plan` takes it, whose own settings count unless an
        option says otherwise. `on` is a chip; of a pipeline `"h100,inspect=jetson-orin-nano"` gives stages their own.
        `measured` is a run of yours on another chip, as `"rtx-4090=6h/epoch"`, that the speed follows from, or several.

        >>> estimate = cw.predict("llama-3.1-8b", train=True, on="h100", chips=8, seq=4096)
        >>> estimate.value, estimate.low, estimate.high, estimate.unit, estimate.terms
        """
        from chipwise.api import verbs
        from chipwise.public.workloads import is_file, is_text
        from chipwise.units import parse_bandwidth, parse_goal

        if train and serve:
            raise BadInput("train and serve cannot be combined.", remedy="Leave out the one that is not meant.")
        task = "train" if train else "serve" if serve else None
        settings: dict[str, Any] = {_OTHER_NAMES.get(key, key): value for key, value in stated(setup).items()}
        settings = with_counts(settings)
        if "network" in settings:
            settings["network"] = parse_bandwidth(settings["network"])
        settings |= {key: parse_goal(settings[key], key) for key in ("ttft", "tpot", "latency", "clip_s") if key in settings}
        is_model = isinstance(workload, str) and not is_text(workload) and not is_file(workload)
        source = str(workload) if is_model else read_workload(workload)
        if isinstance(workload, Plan | NoPlan):
            environment = environment or workload.request.environment
        return Estimate(Record(verbs.predict(self.api, source, on, task, settings, environment, runs_of(measured))))

    def fits(self, model: str, *, on: str, **setup: Unpack[FitsOptions]) -> MemoryFit:
        """Say whether a model fits a chip, by how much, and what would help; for serving unless `train=True`.

        >>> fit = cw.fits("llama-3.1-70b", on="l40s", chips=4)
        >>> bool(fit), fit.spare_bytes, fit.change
        """
        from chipwise.api import verbs

        settings: dict[str, Any] = {"train": False, **with_counts(stated(setup))}
        return MemoryFit(Record(verbs.fits(self.api, model, on, settings)))

    def compare(
        self,
        workload: str | Path | Mapping[str, Any] | Common | Plan | NoPlan,
        *,
        by: str = "provider",
        vendor: str | None = None,
        environment: str | None = None,
        **options: Unpack[CompareOptions],
    ) -> Table:
        """Compare providers, regions or generations: what the cheapest plan of each costs.

        `by` is provider, region or generation; `vendor` keeps one vendor's generations. The cheapest stands first; a row has
        `fits`, `why`, `usd`, `doubt` (about the price; None: there is none) and `choice`.

        >>> cw.compare("llama-3.1-8b", serve=True, rps=5, input=1000, output=300).to_pandas()
        """
        from chipwise.api import verbs
        from chipwise.views.compare import KEYS, comparison_view

        if by not in KEYS:
            raise BadInput(f"There is no comparison by {by!r}.", remedy=f"Use {', '.join(KEYS)}.")
        if vendor and by != "generation":
            raise BadInput(f"vendor does not go with by={by!r}.", remedy="Use by='generation', or limits={'chips': [...]}.")
        described, narrowing = _apart(options)
        source = within(self, read_workload(workload, described), narrowing)
        view = comparison_view(verbs.compare(self.api, source, by, vendor, environment))
        rows = [{**cell["key"], **{name: value for name, value in cell.items() if name != "key"}} for cell in view["cells"]]
        rows.sort(key=lambda row: (not row["fits"], row["usd"] is None, row["usd"] or 0.0))
        doubt = ("doubt",) if any(row["doubt"] for row in rows) else ()
        missing = [f"{lack['what']}: {lack['how_much']}. Would help: {lack['remedy']}." for lack in view["missing"]]
        time = () if view["per"] == "month" else ("seconds",)  # of a service the seconds of a month
        return Table(rows, (*KEYS[by], "fits", "usd", *doubt, *time, "co2e_kg"), spoken([*missing, *view["notes"]]))

    def rate(
        self,
        *workloads: str | Path | Mapping[str, Any] | Common | Plan | NoPlan,
        environment: str | None = None,
        **limits: Unpack[LimitOptions],
    ) -> Table:
        """Rate hardware families for workloads, one to five stars: speed, cost, energy, software, ease of use.

        >>> cw.rate("workload.yaml")[0].cost.stars
        """
        from chipwise.api import verbs
        from chipwise.views.rate import rated_view

        if not workloads:
            raise BadInput("rate needs a workload.", remedy='For example: cw.rate("workload.yaml")')
        rows: list[dict[str, Any]] = []
        notes: list[str] = []
        for workload in workloads:
            view = with_plain_names(
                rated_view(verbs.rate(self.api, within(self, read_workload(workload), limits), environment))
            )
            rows += [{"workload": view["workload"], **family, "stars": _stars(family)} for family in view["families"]]
            notes += [f"{family['family']} is not rated: {family['why']}." for family in view["unrated"]]
            notes += [f"{lack['what']}: {lack['how_much']}. Would help: {lack['remedy']}." for lack in view["missing"]]
            notes += view["notes"]
        return Table(rows, ("workload", "family", "stars", "missed"), spoken(notes))

    def pack(
        self,
        workloads: Sequence[str | Path | Mapping[str, Any] | Common | Plan | NoPlan],
        *,
        environment: str | None = None,
        **limits: Unpack[LimitOptions],
    ) -> Record:
        """Pack several small models onto shared GPUs: which go together, and at what cost a month.

        >>> packed = cw.pack(["chat.yaml", "summaries.yaml"])
        >>> packed.usd, packed.apart_usd, packed.machines
        """
        from chipwise.api import verbs
        from chipwise.views.pack import packed_view

        if not isinstance(workloads, Sequence) or isinstance(workloads, str):
            raise BadInput("pack takes a list of workloads.", remedy='Write it like cw.pack(["chat.yaml", "summaries.yaml"]).')
        paths = [
            within(self, read_workload(workload, noun=f"{GIVEN}-{number}"), limits)
            for number, workload in enumerate(workloads, start=1)
        ]
        return Record(packed_view(verbs.pack(self.api, paths, environment)))

    def tco(self, chip: str, **ownership: Unpack[TcoOptions]) -> Ownership:
        """Compare owning machines and renting them: yearly cost, break-even, what would turn the answer.

        Shares are numbers or texts such as `"60%"`, money `"$300k"`, power `"10.2kW"`. `rent` is what you were offered, of
        a chip (`"1.85/h"`) or a machine (`"14.80/machine-h"`), bound for `term` ("none", "1y", "3y"); rents fall by `decline`
        a year, as was observed unless given.

        >>> found = cw.tco("h100", machines=4, years=3, utilisation="60%", country="DEU")
        >>> found.own.usd_per_year, found.cloud[0].break_even_month
        """
        from chipwise.api.verbs import tco as ask
        from chipwise.money.tco_values import OPTION_FIELDS, TcoRequest
        from chipwise.planner.owning.rents import parse_decline, parse_rent
        from chipwise.units import parse_share, parse_usd, parse_watts
        from chipwise.views.tco import tco_view

        readers: dict[str, Callable[[str | float], Any]] = {"rent": parse_rent, "decline": parse_decline}
        readers |= dict.fromkeys(("purchase", "power_price", "staff", "space"), parse_usd) | {"power": parse_watts}
        readers |= dict.fromkeys(("utilisation", "interest", "residual", "maintenance", "network"), parse_share)
        settings: dict[str, Any] = {}
        for name, value in stated(ownership).items():
            if name in ("against", "provider", "region"):
                value = (value,) if isinstance(value, str) else tuple(value)
            settings[OPTION_FIELDS.get(name, name)] = readers[name](value) if name in readers else value
        return Ownership(tco_view(ask(self.api, TcoRequest(chip, **settings))))

    def check(
        self,
        workload: str | Path | Mapping[str, Any] | Common | Plan | NoPlan,
        *,
        environment: str | None = None,
        online: bool = False,
    ) -> Checked:
        """Check a workload: what it says with everything filled in, or all of its problems with line and field.

        >>> checked = cw.check("workload.yaml")
        >>> checked.valid, checked.problems
        """
        from chipwise.api.catalog.check import check as ask

        source = read_workload(workload)
        try:
            checked = ask(self.api, source, environment, online)
        except InvalidFile as error:
            problems = [
                {name: getattr(problem, name) for name in ("line", "field", "message", "allowed", "nearest")}
                for problem in error.problems
            ]
            return Checked({"path": str(source), "valid": False, "problems": problems})
        return Checked(
            {
                "path": str(source),
                "valid": True,
                "problems": [],
                "environment": environment,
                "environments": list(checked.parsed.environments),
                "models": checked.parameters,
                "notes": list(checked.notes),
                "workload": checked.workload.model_dump(mode="json", by_alias=True),
            }
        )
