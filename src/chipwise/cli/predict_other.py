"""How `chipwise predict` shows what is not a language model, and what a workload file adds: job time, goals, data.

Nothing here is computed but shares of a sum: every number is in the view that --json prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chipwise.cli import text
from chipwise.text import decimal_size, duration, gib, plural, size
from chipwise.views.words import PROVENANCE

View = dict[str, Any]
Pairs = list[tuple[str, str]]
_UNITS = ((1e-3, 1e-6, "us"), (1.0, 1e-3, "ms"), (180.0, 1.0, "s"), (3 * 3600.0, 60.0, "min"), (3 * 86400.0, 3600.0, "h"))
_TIERS = {"object-store": "an object store", "nfs": "a network file system", "local-nvme": "a local disk"}
_TIERS |= {"parallel-file-system": "a parallel file system"}


def show_other(view: View) -> None:
    if view["task"] == "pipeline":
        _show_pipeline(view)
        return
    _, head, pairs = _VIEWS[view["task"]]
    text.show_title(f"{view['model'] if view['task'] == 'samples' else view['name']} on {_chips(view)}: {head(view)}")
    text.show_pairs(pairs(view))
    if view["terms_s"]:
        _show_terms(view["terms_s"], _VIEWS[view["task"]][0] if view["task"] != "samples" else _pass(view))
    if view["task"] == "samples":
        _show_memory(view)
    show_extra(view)
    _show_notes(view)


def show_extra(view: View) -> None:
    """What follows for the whole job, its goals and its data; nothing where the view says nothing of them."""
    lines: Pairs = []
    if view.get("job_time_s") and view["task"] in ("train", "serve", "samples", "pipeline"):
        energy = f"; {text.number(view['energy_kwh'], 3)} kWh" if view.get("energy_kwh") is not None else ""
        lines.append(("whole job", f"{span(view['job_time_s'])}{energy}; starting machines is not counted"))
        lines += _for_deadline(view)
    if view.get("feeding"):
        lines += _feeding(view["feeding"])
    if "highest_rate_per_s" in view and view["task"] != "serve":  # of a server it is said first
        lines.append(("highest rate", highest(view)))
    if view.get("steadiness") and view["task"] != "pipeline":
        steady = view["steadiness"]
        lines.append(
            ("run to run", f"{100 * steady['relative_sd']:.2g}% standard deviation ({steady['kind'].replace('-', ' ')})")
        )
    if lines:
        text.show_lines("")
        text.show_pairs(lines)
    if view.get("goals"):
        _show_goals(view["goals"])


def _show_notes(view: View) -> None:
    if view["notes"]:
        text.show_lines("", *view["notes"])


def _feeding(fed: View) -> Pairs:
    place = _TIERS.get(fed["tier"], fed["tier"])
    if fed["place_of_later_epochs"] not in (None, fed["tier"]):
        place = f"{_TIERS.get(fed['place_of_later_epochs'], fed['place_of_later_epochs'])} (the first epoch: {place})"
    if fed["bottleneck"] == "compute":
        summary = f"comes as fast as it is taken, from {place}; {fed['workers_per_machine']:g} vCPUs prepare it"
        slow = f"the first epoch waits for it: {fed['bottleneck_of_first_epoch']} is the bottleneck"
        return [("data", summary), *([("", slow)] if fed["bottleneck_of_first_epoch"] != "compute" else [])]
    summary = f"{fed['bottleneck']} is the bottleneck: chips wait {fed['waiting_share']:.0%} of a step for data from {place}"
    needed = {
        "preprocess": f"{fed['workers_needed']:g} vCPUs per machine would do, {fed['workers_per_machine']:g} are assumed",
        "read": f"a machine must read {decimal_size(fed['read_needed_bytes_per_s'])}/s, "
        "with more reads at once or larger files",
    }
    return [("data", summary), ("", needed.get(fed["bottleneck"], "the link to the chip is too slow"))]


def highest(view: View) -> str:
    rate, needs = view["highest_rate_per_s"], view.get("needs") or {}
    if not rate:
        return "none: the goals are missed however few requests come"
    replicas = needs.get("replicas")
    return f"{text.number(rate, 3)} requests/s within the goals" + (
        "" if replicas is None else f"; {text.plural(int(replicas), 'replica')} for the load"
    )


def _show_goals(goals: list[View]) -> None:
    rows = []
    for goal in goals:
        percentile = "" if goal["percentile"] is None else f" p{goal['percentile']:g}"
        predicted = "never" if goal["predicted_s"] is None else duration(goal["predicted_s"])
        limit = duration(goal["limit_s"]) if goal["limit_s"] > 0 else "past"
        rows.append([f"{goal['goal']}{percentile}", limit, predicted, "met" if goal["met"] else "missed"])
    columns = [text.Column("goal"), text.Column("limit", right=True), text.Column("predicted", right=True), text.Column("")]
    text.show_lines("")
    text.show_table(columns, rows)


def _unit(seconds: float) -> tuple[float, str]:
    return next(((size, unit) for most, size, unit in _UNITS if abs(seconds) < most), (86400.0, "days"))


def span(interval: View) -> str:
    """A time with its interval, all in one unit."""
    size, unit = _unit(interval["value"])
    return _amount({name: interval[name] / size for name in ("value", "low", "high")}, f" {unit}")


def _amount(one: View, unit: str = "") -> str:
    shown = [text.number(float(f"{one[name]:.3g}"), 3) for name in ("value", "low", "high")]
    return f"{shown[0]}{unit} ({shown[1]} to {shown[2]})"


def _show_terms(terms: dict[str, float], subject: str) -> None:
    total = sum(terms.values())
    rows = [
        [name, duration(value), f"{value / total:.0%}", "#" * round(30 * value / total)]
        for name, value in sorted(terms.items(), key=lambda item: -item[1])
        if value > 0.002 * total
    ]
    columns = [
        text.Column(f"where {subject} goes", flexible=True),
        *(text.Column("", right=right) for right in (True, True, False)),
    ]
    text.show_lines("")
    text.show_table(columns, rows)


def _show_memory(view: View) -> None:
    fit, memory = view["fit"], view["memory"]
    lines = ", ".join(f"{name} {value / 2**30:.3g}" for name, value in memory["lines_bytes"].items())
    verdict = "fits" if fit["fits"] else "does not fit"
    line = f"Memory per chip: {memory['total_bytes'] / 2**30:.3g} of {gib(fit['capacity_bytes'])}, it {verdict} ({lines})."
    if fit["capacity_bytes"] < 2**30:  # what is on the chip alone; the note says what comes from the host
        needed, held = decimal_size(memory["total_bytes"]), decimal_size(fit["capacity_bytes"])
        line = f"Memory: {needed} needed, {held} on the chip."
    text.show_lines("", line)
    drawn = view["power_per_chip"]
    energy = text.number(view["energy_per_million_samples_kwh"], 3)
    text.show_lines(
        f"Power: about {drawn['chip_w']:.3g} W per chip, {drawn['with_cooling_w']:.3g} W with host and cooling; "
        f"{energy} kWh per million samples."
    )


def _chips(view: View) -> str:
    return f"{view['chips']:,g}x {view['chip']}"


def _for_deadline(view: View) -> Pairs:
    needs = view.get("needs") or {}
    if needs.get("chips_for_deadline") is None:
        return []
    return [("needs", f"{plural(needs['chips_for_deadline'], 'chip')} to be done in time")]


def _time(view: View, label: str = "time") -> Pairs:
    return [(label, f"{span(view['time_s'])}, {PROVENANCE[view['provenance']]}"), ("bottleneck", view["bottleneck"])]


# --- one pair of functions per task: what its title says, and its lines


def _pass(view: View) -> str:
    return "a step" if view["doing"] == "train" else "a pass"


def _head_samples(view: View) -> str:
    doing = "training" if view["doing"] == "train" else "inference"
    return f"{doing}, {view['engine']}, {view['precision']}, batch {view['batch']:g}"


def _samples(view: View) -> Pairs:
    words = {
        "side": "{0:g} x {0:g} pixels",
        "tokens": "{:g} tokens",
        "generated": "{:g} generated",
        "steps": "{:g} denoising steps",
        "rows_read": "{:g} rows of tables",
        "seconds": "{:g} s of sound",
    }
    sample = ", ".join(words[name].format(value) for name, value in view["sample"].items())
    unit = " per device" if view.get("devices") else ""
    pairs = [("samples/s", f"{_amount(view['samples_per_s'], unit)}, {PROVENANCE[view['provenance']]}")]
    latency = span({name: view["latency_ms"][name] / 1e3 for name in ("value", "low", "high")})
    pairs.append(("step", latency) if view["doing"] == "train" else ("latency", f"{latency}, one pass"))
    pairs.append(("utilisation", f"{view['utilisation']:.0%} of the {view['precision']} peak"))
    pairs.append(("a sample", f"{sample or 'one input'}; {text.number(view['flop_per_sample'] / 1e9, 3)} GFLOP"))
    if view["copies"] > 1:
        pairs.append(("copies", f"{view['copies']:g} side by side"))
    if view.get("percentiles"):
        percentiles = view["percentiles"]["latency_s"]
        figures = ", ".join(f"{name} {'never' if one is None else duration(one)}" for name, one in percentiles.items())
        pairs.append((f"at {text.number(view['rate_per_s'], 3)}/s", f"{figures}; {view['busy_share']:.0%} of the most"))
    if view.get("devices"):
        pairs.append(("needs", plural(view["needs"]["devices"], "device")))
    return pairs


def _hpc(view: View) -> Pairs:
    pairs = [*_time(view), ("as run", f"{plural(view['steps'], 'step')}, {plural(view['runs'], 'run')} one after the other")]
    if view["working_set_bytes"]:
        chips = view["needs"]["chips_for_memory"]
        pairs.append(("memory", f"{decimal_size(view['working_set_bytes'])} need {plural(chips, 'chip')}"))
    return pairs + _for_deadline(view)


def _unknown(view: View) -> Pairs:
    pairs = _time(view)[:1]
    if view["requests_per_s"]:
        pairs.append(("requests/s", _amount(view["requests_per_s"])))
    verdict = "fits" if view["fits"] else "has too little memory"
    pairs.append(("memory", f"{gib(view['memory_bytes'])} on each chip; it {verdict}"))
    return pairs + _for_deadline(view)


def _render(view: View) -> Pairs:
    known = f"from a frame timed on {view['measured_on']}" if view["measured_on"] else "by a usual cost per sample"
    pairs = [*_time(view), ("a frame", f"{duration(view['frame_s'])} on one chip, {known}")]
    pairs.append(("as run", f"{plural(view['frames'], 'frame')} over {plural(view['chips'], 'chip')}"))
    return pairs + _for_deadline(view)


def _head_transcode(view: View) -> str:
    return f"transcoding, {plural(view['streams'], 'live stream')}" if view["streams"] else "transcoding, an archive"


def _transcode(view: View) -> Pairs:
    if not view["streams"]:
        played = f"{duration(view['duration_s'])} of video, {view['duration_s'] / view['time_s']['value']:.3g} times real time"
        return [*_time(view), ("as run", played), *_for_deadline(view)]
    pairs = _time(view, "one stream-s")
    pairs.append(("one chip", f"carries {plural(view['streams_per_chip'], 'stream')}"))
    pairs.append(("needs", f"{plural(view['needs']['chips'], 'chip')}, {plural(view['needs']['encoders'], 'encoder')}"))
    pairs.append(("busy", f"{view['busy_share']:.0%} of {plural(view['chips'], 'chip')}"))
    return pairs


def _stream(view: View) -> Pairs:
    shares = ", ".join(
        f"{name} {'none there' if share is None else f'{share:.0%}'}" for name, share in view["share_of_device"].items()
    )
    return [
        ("latency", f"{span(view['time_s'])}, {PROVENANCE[view['provenance']]}"),
        ("messages/s", _amount(view["messages_per_s"])),
        ("bottleneck", view["bottleneck"]),
        ("of the device", f"{shares}; it {'fits' if view['fits'] else 'does not fit'}"),
        ("needs", plural(view["needs"]["devices"], "device")),
    ]


def _hybrid(view: View) -> Pairs:
    location = f"on {view['device']} ({view['technology']})" if view["device"] else f"simulated on {_chips(view)}"
    pairs = [*_time(view), ("circuits", f"{view['circuits']:,g} of {view['shots']:,g} shots per iteration, {location}")]
    pairs.append(("as run", plural(view["iterations"], "iteration")))
    if view["needs"].get("chips_for_state"):
        pairs.append(("needs", f"{plural(view['needs']['chips_for_state'], 'chip')} to hold the state"))
    if view["price_usd"] is None:
        pairs.append(("price", "of the circuits not known" if view["device"] else "that of the machine"))
    else:
        lines = ", ".join(f"{name} {text.money(usd)}" for name, usd in view["price_lines_usd"].items())
        pairs.append(("price", f"{text.money(view['price_usd'])} USD for the circuits ({lines})"))
    return pairs


def _interactive(view: View) -> Pairs:
    people = view["people_per_chip"]
    cut = f"slices {view['profile']}" if view["profile"] else "in turns" if view["sharing"] == "time" else "whole"
    pairs = [
        ("needs", f"{plural(view['needs']['chips'], 'chip')} for {view['at_once']:g} of {view['people']:g} people at once"),
        (
            "one chip",
            f"{'1 person' if people == 1 else f'{people:g} people'}, {cut}, {size(view['memory_bytes'])} each",
        ),
    ]
    if view["slower_by"] > 1:
        pairs.append(
            (
                "in turns",
                f"work takes {view['slower_by']:.2g} times as long, each computing {view['busy_share']:.0%} of the time",
            )
        )
    return pairs


def _edge(view: View) -> Pairs:
    lengths = f"{view['input_tokens']:g} tokens in, {view['output_tokens']:g} out"
    return [
        *_time(view, "one answer"),
        ("first token", duration(view["first_token_s"])),
        ("tokens/s", text.number(view["tokens_per_s"], 3)),
        ("as run", f"{lengths}; it {'fits' if view['fits'] else 'does not fit'}"),
        ("needs", plural(view["needs"]["devices"], "device")),
    ]


# Task -> what the terms are of, what the title says, the lines below it.
_VIEWS: dict[str, tuple[str, Callable[[View], str], Callable[[View], Pairs]]] = {
    "samples": ("", _head_samples, _samples),
    "hpc": ("the time", lambda view: f"numerical work, {view['precision']}", _hpc),
    "unknown": ("the time", lambda view: f"{view['kind']}, known by a run alone", _unknown),
    "render": ("the time", lambda view: f"rendering, {view['engine']}", _render),
    "transcode": ("the time", _head_transcode, _transcode),
    "stream": ("the latency", lambda view: f"stream of {plural(len(view['operations']), 'operation')}", _stream),
    "hybrid": ("the time", lambda view: "quantum and classical work in turns", _hybrid),
    "interactive": ("", lambda view: "interactive work", _interactive),
    "edge": ("an answer", lambda view: f"{view['model']}, {view['precision']}", _edge),
}


def show_stage(stage: View) -> None:
    """The line between the stages of a pipeline; each is then shown as if it were alone."""
    text.show_title(f"--- {stage['name']}")


def _show_pipeline(view: View) -> None:
    """What holds for all stages together."""
    text.show_title(f"--- {view['name']}: {plural(len(view['stages']), 'stage')} together")
    if view["price_usd"] is not None:
        text.show_pairs([("price", f"{text.money(view['price_usd'])} USD for quantum circuits")])
    show_extra(view)
    _show_notes(view)
