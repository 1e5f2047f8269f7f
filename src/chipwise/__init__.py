"""chipwise: pick the right accelerator for a workload, and know why.

    import chipwise as cw

    plan = cw.plan("llama-3.1-70b", serve=True, rps=10, input=1000, output=300, ttft="800ms")
    if plan:
        print(plan.best.machine, plan.best.cost.usd, plan.best.speed.low)
    estimate = cw.predict("llama-3.1-8b", train=True, on="h100", chips=8, seq=4096)

Every command has its function here; `cw.open(...)` gives a session with the same functions and its own directories and day.
Workloads are the kinds (`cw.Serve(...)`), files, YAML text or dictionaries. Nothing is printed, and every error that is meant
for the reader is a `cw.ChipwiseError`. All of it is imported when it is first used. See docs/python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.auditor.finding import Finding
    from chipwise.catalog.catalog import Catalog
    from chipwise.catalog.chip import Chip, ChipKind, Precision
    from chipwise.catalog.machine import Machine
    from chipwise.catalog.offer import Offer, Purchase
    from chipwise.catalog.region import Region
    from chipwise.errors import (
        BadInput,
        CannotRender,
        ChipwiseError,
        InvalidFile,
        InvalidSettings,
        MissingExtra,
        NoResult,
        NotAllowed,
        NotFound,
        OutsideFailed,
        Problem,
        TryLater,
        UnknownName,
        UnknownOption,
    )
    from chipwise.money.cost import Cost, Line
    from chipwise.public.choices import Choice, Loser, Missing, StagePlan
    from chipwise.public.deploying import Audited
    from chipwise.public.estimates import Estimate, MemoryFit
    from chipwise.public.files import Files, RenderedFile
    from chipwise.public.intervals import Interval
    from chipwise.public.jobs import Job
    from chipwise.public.kinds import (
        Batch,
        Finetune,
        Hpc,
        Hybrid,
        Interactive,
        Pipeline,
        Render,
        Serve,
        Stream,
        Train,
        Transcode,
    )
    from chipwise.public.plans import NoPlan, Plan
    from chipwise.public.records import Record, Table
    from chipwise.public.serving import RunningService
    from chipwise.public.session import DEFAULT as _DEFAULT
    from chipwise.public.session import Session
    from chipwise.public.session import open_session as open
    from chipwise.workload.common import Common as Workload
    from chipwise.workload.model.registry import Model

    chips = _DEFAULT.chips
    machines = _DEFAULT.machines
    offers = _DEFAULT.offers
    regions = _DEFAULT.regions
    models = _DEFAULT.models
    explain = _DEFAULT.explain
    catalog_refresh = _DEFAULT.catalog_refresh
    catalog_import = _DEFAULT.catalog_import
    catalog_forget = _DEFAULT.catalog_forget
    catalog_status = _DEFAULT.catalog_status
    catalog_show = _DEFAULT.catalog_show
    check = _DEFAULT.check
    plan = _DEFAULT.plan
    compare = _DEFAULT.compare
    rate = _DEFAULT.rate
    pack = _DEFAULT.pack
    tco = _DEFAULT.tco
    init = _DEFAULT.init
    predict = _DEFAULT.predict
    fits = _DEFAULT.fits
    render = _DEFAULT.render
    targets = _DEFAULT.targets
    audit = _DEFAULT.audit
    run = _DEFAULT.run
    simulate = _DEFAULT.simulate
    serve = _DEFAULT.serve
    serve_key = _DEFAULT.serve_key
    serve_rollout = _DEFAULT.serve_rollout
    serve_scale = _DEFAULT.serve_scale
    serve_status = _DEFAULT.serve_status
    serve_stop = _DEFAULT.serve_stop
    ps = _DEFAULT.ps
    jobs = _DEFAULT.jobs
    find_job = _DEFAULT.find_job
    logs = _DEFAULT.logs
    describe = _DEFAULT.describe
    stop = _DEFAULT.stop
    resume = _DEFAULT.resume
    retry = _DEFAULT.retry
    attach = _DEFAULT.attach
    top = _DEFAULT.top
    watch = _DEFAULT.watch
    forget = _DEFAULT.forget
    prepare = _DEFAULT.prepare
    reap = _DEFAULT.reap
    members = _DEFAULT.members
    members_add = _DEFAULT.members_add
    members_remove = _DEFAULT.members_remove
    members_protect = _DEFAULT.members_protect
    places = _DEFAULT.places
    places_allow = _DEFAULT.places_allow
    places_refuse = _DEFAULT.places_refuse
    characterize = _DEFAULT.characterize
    policies = _DEFAULT.policies
    simulate_queue = _DEFAULT.simulate_queue
    simulate_serve = _DEFAULT.simulate_serve
    simulate_spot = _DEFAULT.simulate_spot
    bench = _DEFAULT.bench
    load = _DEFAULT.load
    profile = _DEFAULT.profile
    calibrate = _DEFAULT.calibrate
    score = _DEFAULT.score
    accuracy = _DEFAULT.accuracy
    doctor = _DEFAULT.doctor
    health = _DEFAULT.health

__version__ = "0.1.0"

_VERBS = (
    # What there is
    "chips",
    "machines",
    "offers",
    "regions",
    "models",
    "explain",
    "catalog_refresh",
    "catalog_import",
    "catalog_forget",
    "catalog_status",
    "catalog_show",
    # What to take
    "init",
    "check",
    "plan",
    "compare",
    "rate",
    "pack",
    "tco",
    "predict",
    "fits",
    # Deploy
    "render",
    "targets",
    "audit",
    # Run
    "run",
    "simulate",
    "ps",
    "jobs",
    "find_job",
    "logs",
    "describe",
    "stop",
    "resume",
    "retry",
    "attach",
    "top",
    "watch",
    "forget",
    "prepare",
    "reap",
    "members",
    "members_add",
    "members_remove",
    "members_protect",
    "places",
    "places_allow",
    "places_refuse",
    # Serve
    "serve",
    "serve_key",
    "serve_rollout",
    "serve_scale",
    "serve_status",
    "serve_stop",
    # Compare rules
    "policies",
    "simulate_queue",
    "simulate_serve",
    "simulate_spot",
    # Measure
    "characterize",
    "bench",
    "load",
    "profile",
    "calibrate",
    "score",
    "accuracy",
    # Look at what runs
    "doctor",
    "health",
)
_HOMES = {
    "chipwise.workload.kinds": ("Workload",),
    "chipwise.auditor.finding": ("Finding",),
    "chipwise.catalog.catalog": ("Catalog",),
    "chipwise.catalog.chip": ("Chip", "ChipKind", "Precision"),
    "chipwise.catalog.machine": ("Machine",),
    "chipwise.catalog.offer": ("Offer", "Purchase"),
    "chipwise.catalog.region": ("Region",),
    "chipwise.errors": (
        "BadInput",
        "CannotRender",
        "ChipwiseError",
        "InvalidFile",
        "InvalidSettings",
        "MissingExtra",
        "NoResult",
        "NotAllowed",
        "NotFound",
        "OutsideFailed",
        "Problem",
        "TryLater",
        "UnknownName",
        "UnknownOption",
    ),
    "chipwise.money.cost": ("Cost", "Line"),
    "chipwise.public.deploying": ("Audited",),
    "chipwise.public.estimates": ("Estimate", "MemoryFit"),
    "chipwise.public.intervals": ("Interval",),
    "chipwise.public.files": ("Files", "RenderedFile"),
    "chipwise.public.jobs": ("Job",),
    "chipwise.public.kinds": (
        "Batch",
        "Finetune",
        "Hpc",
        "Hybrid",
        "Interactive",
        "Pipeline",
        "Render",
        "Serve",
        "Stream",
        "Train",
        "Transcode",
    ),
    "chipwise.public.choices": ("Choice", "Loser", "Missing", "StagePlan"),
    "chipwise.public.plans": ("NoPlan", "Plan"),
    "chipwise.public.records": ("Record", "Table"),
    "chipwise.public.serving": ("RunningService",),
    "chipwise.public.session": ("Session",),
    "chipwise.workload.model.registry": ("Model",),
}
_NAMES = {"Workload": "Common"}  # where the type has another name at home: what all kinds of workload have in common

__all__ = [
    "Audited",
    "BadInput",
    "Batch",
    "CannotRender",
    "Catalog",
    "Chip",
    "ChipKind",
    "ChipwiseError",
    "Choice",
    "Cost",
    "Estimate",
    "Interval",
    "Files",
    "Finding",
    "Finetune",
    "MemoryFit",
    "Hpc",
    "Hybrid",
    "Interactive",
    "InvalidFile",
    "InvalidSettings",
    "Job",
    "Line",
    "Loser",
    "Machine",
    "Missing",
    "MissingExtra",
    "Model",
    "NoPlan",
    "NoResult",
    "NotAllowed",
    "NotFound",
    "Offer",
    "OutsideFailed",
    "Pipeline",
    "Plan",
    "Precision",
    "Problem",
    "Purchase",
    "Record",
    "Region",
    "Render",
    "RenderedFile",
    "RunningService",
    "Serve",
    "Session",
    "StagePlan",
    "Stream",
    "Table",
    "Train",
    "Transcode",
    "TryLater",
    "UnknownName",
    "UnknownOption",
    "Workload",
    "accuracy",
    "attach",
    "audit",
    "bench",
    "calibrate",
    "catalog_forget",
    "catalog_import",
    "catalog_refresh",
    "catalog_show",
    "catalog_status",
    "characterize",
    "check",
    "chips",
    "compare",
    "describe",
    "doctor",
    "explain",
    "find_job",
    "fits",
    "forget",
    "health",
    "init",
    "jobs",
    "load",
    "logs",
    "machines",
    "members",
    "members_add",
    "members_remove",
    "members_protect",
    "models",
    "offers",
    "open",
    "pack",
    "places",
    "places_allow",
    "places_refuse",
    "plan",
    "policies",
    "predict",
    "prepare",
    "profile",
    "ps",
    "rate",
    "reap",
    "regions",
    "render",
    "resume",
    "retry",
    "run",
    "score",
    "serve",
    "serve_key",
    "serve_rollout",
    "serve_scale",
    "serve_status",
    "serve_stop",
    "simulate",
    "simulate_queue",
    "simulate_serve",
    "simulate_spot",
    "stop",
    "targets",
    "tco",
    "top",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Imported when it is first asked for, and kept."""
    from importlib import import_module

    if name in _VERBS:
        value = getattr(import_module("chipwise.public.session").DEFAULT, name)
    elif name == "open":
        value = import_module("chipwise.public.session").open_session
    else:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'chipwise' has no attribute {name!r}")
        value = getattr(import_module(home), _NAMES.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
