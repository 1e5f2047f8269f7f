"""The nearest known names to one that was mistyped, and the options that answer to a word that people guess. Case, blanks, `-`
and `_` do not count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_NOISE = re.compile(r"[\s_\-./:]+")


@lru_cache(maxsize=2**14)  # a catalog has thousands of names, and every look at it folds them all
def fold(name: str) -> str:
    """The form in which two spellings of one name are equal: lower case, without separators."""
    return _NOISE.sub("", name.casefold())


def nearest(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Up to `count` known names, the most similar first; none when nothing is similar."""
    from difflib import get_close_matches  # only a typo pays for this import

    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(fold(candidate), candidate)
    wanted = fold(name[:200])  # a pasted document is not a name
    starts = [folded[k] for k in folded if wanted and len(wanted) >= 2 and k.startswith(wanted)]
    close = [folded[k] for k in get_close_matches(wanted, list(folded), n=count, cutoff=0.6)]
    return tuple(dict.fromkeys(close + sorted(starts, key=len)))[:count]


_OBJECTIVES = {
    "time": ("speed", "fast", "fastest", "performance", "latency", "duration", "throughput"),
    "cost": ("price", "money", "usd", "cheap", "cheapest", "budget"),
    "carbon": ("co2", "co2e", "green", "emissions", "energy", "power"),
    "balanced": ("balance", "all", "both", "tradeoff"),
}


def objective_hint(word: str) -> str:
    """` Did you mean time?` of a word for an objective that goes by another name."""
    name = next((name for name, words in _OBJECTIVES.items() if fold(word) in words), None)
    near = (name,) if name else nearest(word, _OBJECTIVES, 1)
    return f" Did you mean {near[0]}?" if near else ""


OTHER_NAMES = {
    "provider": "cloud",
    "cloud": "provider",
    "rate": "rps",
    "rps": "rate",
}  # of one thing: each is taken for the other
# What people write where an option has another name: the options that answer, each with a value where it needs one.
_GUESSES: dict[tuple[str, ...], tuple[tuple[str, str | None], ...]] = {
    ("gpu", "accelerator", "hardware", "gputype", "device"): (("chip", None), ("on", None), ("gpus", None)),
    ("gpus", "chips", "numgpus", "numchips", "gpucount", "count", "nodes", "maxgpus", "maxchips"): (
        ("chips", None),
        ("limit", "chip_count.max=8"),
        ("limits", None),
        ("chip", None),
    ),
    ("chip",): (("on", None),),
    ("cloud", "provider"): (("cloud", None), ("provider", None)),
    ("vendor", "maker", "manufacturer", "architecture", "arch", "family", "generation"): (("chip", None), ("cloud", None)),
    ("exclude", "avoid", "without", "not", "excludecloud", "avoidcloud"): (("limit", "avoid.clouds=aws"), ("limits", None)),
    ("instance", "instancetype", "machinetype", "sku"): (("machine", None), ("chip", None), ("on", None)),
    ("zone", "location", "geo", "country", "datacenter", "residency"): (("region", None), ("country", None)),
    ("lora",): (("finetune", "lora"), ("method", "lora")),
    ("qlora",): (("finetune", "qlora"), ("method", "qlora")),
    ("reserved", "commitment", "savingsplan"): (("purchase", "reserved"), ("limit", "purchase=reserved"), ("limits", None)),
    ("preemptible", "interruptible", "spotonly", "usespot"): (("spot", None),),
    ("nospot", "withoutspot", "notspot", "ondemandonly", "noninterruptible", "uninterruptible"): (("on-demand", None),),
    ("peakrps", "maxrps", "peakqps", "peakrate"): (("peak", None),),
    ("lowrps", "minrps", "lowrate"): (("low", None),),
    ("users", "traffic", "userlocation", "userregion", "audience"): (("users-in", None), ("traffic", None), ("rps", None)),
    ("qps", "requests", "throughput", "load"): (("rps", None), ("rate", None), ("concurrency", None)),
    ("requestsperday", "perday", "dailyrequests", "rpd", "requestspermonth"): (("rps", "100k/day"), ("rate", None)),
    ("requestspersecond", "reqs", "tps"): (("rps", None), ("rate", None)),
    ("inference", "infer", "serving", "chat", "online"): (("serve", None),),
    ("training", "pretrain", "pretraining"): (("train", None),),
    ("finetuning", "tune", "sft", "adapt"): (("finetune", None),),
    ("p50", "p90", "p95", "p99", "sla", "slo"): (("latency", None), ("ttft", None)),
    ("firsttoken", "timetofirsttoken"): (("ttft", None),),
    ("itl", "tbt", "intertokenlatency", "timepertoken"): (("tpot", None),),
    ("hours", "days", "within", "maxtime", "timelimit", "walltime", "duration"): (("deadline", None), ("for", None)),
    ("prompt", "inputtokens", "inputlen", "promptlen"): (("input", None),),
    ("outputtokens", "outputlen", "maxtokens", "generate"): (("output", None),),
    ("context", "contextlength", "sequencelength", "seqlen", "maxlen"): (("seq", None), ("context", None), ("input", None)),
    ("dtype", "quantization", "quantize", "quant", "weights", "bits"): (("precision", None),),
    **{(name,): (("precision", name),) for name in ("fp8", "fp4", "int8", "int4", "nf4", "bf16", "fp16", "fp32")},
    ("batchsize",): (("batch", None), ("micro-batch", None), ("global-batch", None)),
    ("dataset", "epochs", "examples", "items"): (("samples", None), ("tokens", None)),
    ("cost", "maxcost", "price", "maxprice"): (("budget", None), ("max-price", None)),
    ("optimize", "minimize", "goal", "by"): (("objective", None), ("sort", None), ("by", None)),
    ("carbon", "co2", "co2e", "green", "greenest"): (("objective", "carbon"), ("sort", "carbon")),
    ("fast", "fastest"): (("objective", "time"),),
    ("cheap", "cheapest"): (("objective", "cost"), ("sort", "price")),
    ("format", "outputformat", "o"): (("json", None), ("out", None)),
    ("target", "targets"): (("to", None), ("render", None)),
    ("file", "dir", "directory", "output", "write"): (("out", None), ("folder", None)),
    ("verbose", "details", "long"): (("full", None), ("why", None)),
    ("explain",): (("why", None), ("full", None)),
    ("env",): (("environment", None),),
}


def suggested_options(name: str, known: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Options that were probably meant, each with a value where it needs one: known by what people guess, else by spelling."""
    folded = {fold(option): option for option in known}
    answers = next((options for words, options in _GUESSES.items() if fold(name) in words), ())
    guesses = tuple((folded[fold(option)], value) for option, value in answers if fold(option) in folded)
    return guesses[:2] or tuple((option, None) for option in nearest(name, known))
