"""`chipwise predict`: how fast, how large, how hot, with the terms and the uncertainty."""

from __future__ import annotations

from typing import Any

import click

from chipwise.cli.options import CatalogName, measured_option
from chipwise.cli.parameter_types import AboveZero, Bandwidth, Duration, WholeNumber
from chipwise.text import duration, gib


@click.command()
@click.argument("model", metavar="MODEL|WORKLOAD.yaml", type=CatalogName("model"))
@click.option("--on", required=True, metavar="CHIP", type=CatalogName("chip"), help="The chip; stages: CHIP,STAGE=CHIP.")
@click.option("--train", is_flag=True, help="Training (or fine-tuning with --method).")
@click.option("--serve", is_flag=True, help="Serving: generated text, or one answer per request.")
@click.option("--chips", type=WholeNumber(), default=None, help="Chips in all; training: tp x pp x cp x data parallel.")
@click.option("--tp", type=WholeNumber(), default=None, help="Tensor parallel.")
@click.option("--pp", type=WholeNumber(), default=None, help="Pipeline parallel.")
@click.option("--cp", type=WholeNumber(), default=None, help="Training: context parallel.")
@click.option(
    "--ep", type=WholeNumber(), default=None, help="Expert parallel; serving: above --tp, over copies of the attention."
)
@click.option("--precision", default=None, help="bf16, fp16, fp8, fp4, tf32, fp32; serving: of the weights, also int8, int4.")
@click.option(
    "--seq", type=WholeNumber(), default=None, help="Training: tokens per sequence; of an encoder-decoder, of the input."
)
@click.option("--target", type=WholeNumber(), default=None, help="Training of an encoder-decoder: tokens of a target.")
@click.option("--micro-batch", type=WholeNumber(), default=None, help="Training: sequences per replica at once.")
@click.option("--global-batch", type=WholeNumber(), default=None, help="Training: sequences per optimiser step.")
@click.option("--zero", type=WholeNumber(0, 3), default=None, help="Training: ZeRO stage 0-3; 3 is FSDP.")
@click.option("--interleave", type=WholeNumber(), default=None, help="Training: pieces of the model per pipeline stage.")
@click.option(
    "--recompute", type=click.Choice(["none", "selective", "full"]), default=None, help="Training: recompute activations."
)
@click.option("--method", type=click.Choice(["full", "lora", "qlora"]), default=None, help="Training: what is trained.")
@click.option("--optimizer", default=None, help="Training: adamw, adamw-16bit, adamw-8bit, adafactor, lion, muon, sgd.")
@click.option("--framework", default=None, help="Training: the software; what is usual unless given.")
@click.option("--chips-per-node", type=WholeNumber(), default=None, help="Chips in one machine.")
@click.option("--network", type=Bandwidth(), default=None, help="Network of one machine, such as 3200Gbps.")
@click.option("--engine", default=None, help="Serving: vllm, tensorrt-llm, sglang, llama.cpp, neuron, pytorch, ...")
@click.option("--concurrency", type=WholeNumber(), default=None, help="Serving: requests always in flight, over all copies.")
@click.option("--rate", type=AboveZero(), default=None, help="Serving: requests per second.")
@click.option("--batch", type=WholeNumber(), default=None, help="Serving: one static batch of this size.")
@click.option("--input", "input_tokens", type=WholeNumber(), default=None, help="Serving: tokens of a prompt.")
@click.option("--output", "output_tokens", type=WholeNumber(0), default=None, help="Serving: tokens of an answer.")
@click.option("--prefix", type=WholeNumber(0), default=None, help="Serving: tokens all prompts begin with.")
@click.option("--kv", default=None, help="Serving: precision of the cache: bf16, fp8, int8.")
@click.option("--replicas", type=WholeNumber(), default=None, help="Serving: copies of the model; 1 unless the file says.")
@click.option("--cuda-graphs/--no-cuda-graphs", default=None, help="Serving: decode steps as CUDA graphs; yes unless given.")
@click.option("--ttft", type=Duration(), default=None, help="Serving: goal for the first token, such as 800ms.")
@click.option("--tpot", type=Duration(), default=None, help="Serving: goal for each further token.")
@click.option("--latency", type=Duration(), default=None, help="Serving: goal for the whole answer.")
@click.option(
    "--percentile", type=AboveZero(100), default=None, help="Serving: share of requests in % that must keep the goals; 90."
)
@measured_option
@click.option("--image-size", type=WholeNumber(), default=None, help="Pixels a side; the network's own unless given.")
@click.option("--steps", type=WholeNumber(), default=None, help="Diffusion: denoising steps; 30 unless given.")
@click.option(
    "--guidance/--no-guidance", default=None, help="Diffusion: two passes a step, or one; what is usual unless given."
)
@click.option("--clip", "clip_s", type=Duration(), default=None, help="Speech: length of a clip, such as 10s.")
@click.option("--compiled/--eager", default=None, help="Networks in PyTorch: torch.compile, or eager mode.")
@click.option("--environment", "-e", default=None, help="Use this environment of the file: prod.")
@click.option("--json", "as_json", is_flag=True, help="JSON, all terms and lines.")
@click.pass_context
def predict(
    ctx: click.Context,
    /,
    model: str,
    on: str,
    train: bool,
    serve: bool,
    environment: str | None,
    measured: tuple[str, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Predict one configuration: time, memory and power, where the time goes, and the uncertainty.

    MODEL is a name such as llama-3.1-8b, or a workload file, whose own settings count unless an option says otherwise.
    The interval is from the 10th to the 90th percentile. With goals (--ttft, --tpot, --latency) it finds the highest rate.
    Chips that serve are split as `plan` would, and training over several machines too, unless --tp, --pp, --cp, --ep or
    --zero is given. Exits with 1 where the model does not fit.

    \b
    Examples:
      chipwise predict llama-3.1-8b --train --on h100 --chips 8 --seq 4096 --micro-batch 2
      chipwise predict llama-3.1-70b --serve --on h200 --tp 4 --concurrency 64 --input 1024 --output 256
      chipwise predict llama-3.1-70b --serve --on h200 --tp 4 --ttft 800ms --tpot 50ms
      chipwise predict examples/serve/workload.yaml --on l40s
      chipwise predict workload.yaml --on h100 --measured rtx-4090=6h/epoch
    """
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import predict as ask
    from chipwise.cli import text
    from chipwise.errors import BadInput
    from chipwise.views.predict import has_room

    if train and serve:
        raise BadInput("--train and --serve cannot be combined.", remedy="Leave out the one that is not meant.")
    task = "train" if train else "serve" if serve else None
    stated = {name: value for name, value in settings.items() if value is not None}
    view = ask(open_session(), model, on, task, stated, environment, measured)
    if as_json:
        text.show_json(view)
    else:
        show(view)
    if not has_room(view):
        ctx.exit(1)


def show(view: dict[str, Any]) -> None:
    from chipwise.cli import text
    from chipwise.cli.predict_other import show_extra, show_other, show_stage
    from chipwise.views.predict import has_room

    for stage in view.get("stages", ()):
        show_stage(stage)
        show(stage)
        text.show_lines("")
    if not view.get("stages") and not has_room(view):
        show_no_room(view)
        return
    if view["task"] == "train":
        _show_training(view)
    elif view["task"] == "serve":
        _show_serving(view)
    else:
        show_other(view)
        return
    show_extra(view)


def show_no_room(view: dict[str, Any]) -> None:
    """A speed would be of something that cannot run."""
    from chipwise.cli import text

    setup = view.get("setup") or view
    ways = ", ".join(f"{name} {setup[name]:g}" for name in ("tp", "pp") if setup.get(name, 1) > 1)
    doing = "training" if view["task"] == "train" or view.get("doing") == "train" else "serving"
    precision = setup.get("weights") or setup["precision"]
    text.show_title(f"{view['model']} on {view['chips']:g}x {view['chip']}: {doing}, {precision}{f', {ways}' if ways else ''}")
    show_memory(view)
    text.show_lines("", *view["notes"])


def _show_training(view: dict[str, Any]) -> None:
    from chipwise.cli import text
    from chipwise.views.words import PROVENANCE

    setup, step = view["setup"], view["step_time"]
    split = ", ".join(f"{name} {setup[name]:g}" for name in ("tp", "pp", "cp", "ep", "dp") if setup[name] > 1)
    text.show_title(f"{view['model']} on {view['chips']:g}x {view['chip']}: training, {setup['method']}, {setup['precision']}")
    speed, low, high = (text.number(view["tokens_per_s"][name]) for name in ("value", "low", "high"))
    scaling = f"scaling {min(view['scaling_efficiency'], 1):.0%}"
    if setup["pp"] > 1:
        bubble = step["terms_s"].get("bubble", 0.0) / sum(step["terms_s"].values())
        scaling = f"{scaling} over replicas, each of which waits {bubble:.0%} of a step for its pipeline"
    batch = f"{setup['global_batch']:g} sequences of {setup['seq']:g} per step, {setup['micro_batch']:g} at once"
    text.show_pairs(
        [
            ("step", f"{span(step, 's')}, {PROVENANCE[step['provenance']]}"),
            ("tokens/s", f"{speed} ({low} to {high}); per chip {text.number(view['tokens_per_s_per_chip'])}"),
            ("utilisation", f"{view['mfu']:.0%} of the dense 16-bit peak (model FLOP); {scaling}"),
            ("as run", f"{batch}; {split or 'no split'}"),
            ("", f"ZeRO stage {setup['zero_stage']:g}, recompute {setup['recompute']}, {view['framework']}"),
        ]
    )
    show_terms(step["terms_s"], "step")
    show_memory(view)
    _show_end(view)


def _show_serving(view: dict[str, Any]) -> None:
    from chipwise.cli import text
    from chipwise.cli.predict_other import highest
    from chipwise.views.words import PROVENANCE

    setup = view["setup"]
    mode = {
        "closed": f"{setup['batch'] * view['replicas']:g} requests in flight",
        "open": "requests at a rate",
        "full": "fully loaded",
        "static": f"one batch of {setup['batch']:g}",
    }.get(view["scenario"], view["scenario"])
    chips = f"{view['chips']:g} of {view['chips'] + idle:g}" if (idle := view.get("idle_chips")) else f"{view['chips']:g}x"
    text.show_title(f"{view['model']} on {chips} {view['chip']}: {view['engine']}, weights {setup['weights']}, {mode}")
    pairs = [("highest rate", highest(view))] if "highest_rate_per_s" in view else []
    for name, label in (("ttft_ms", "first token"), ("tpot_ms", "per token"), ("latency_ms", "whole answer")):
        if name in view and view["scenario"] != "full":
            pairs.append((label, span(view[name], "ms")))
    for name, label in (("output_tokens_per_s", "tokens/s out"), ("requests_per_s", "requests/s")):
        if name in view:
            pairs.append((label, span(view[name], "")))
    pairs.append(("provenance", PROVENANCE[view["output_tokens_per_s"]["provenance"]]))
    lengths = f"{setup['input_tokens']:g} tokens in, {setup['output_tokens']:g} out"
    pairs.append(("as run", f"{lengths}; {_copies(view)}{_ways(setup)}; cache {setup['kv_cache']}"))
    pairs.append(("", f"memory holds {text.plural(view['most_sequences'], 'such sequence')} at once"))
    text.show_pairs(pairs)
    if view["percentiles"]:
        columns = [
            text.Column("percentile"),
            *(text.Column(name, right=True) for name in ("first token s", "per token ms", "answer s")),
        ]
        percentiles = view["percentiles"]
        rows = [
            [
                share,
                text.number(percentiles["ttft_s"][share], 3),
                text.number(percentiles["tpot_s"][share] * 1e3, 3),
                text.number(percentiles["latency_s"][share], 3),
            ]
            for share in percentiles["ttft_s"]
        ]
        text.show_lines("")
        text.show_table(columns, rows)
    metric = "tpot_ms" if "tpot_ms" in view and view["scenario"] not in ("full",) else "output_tokens_per_s"
    show_terms(view[metric]["terms_s"], "time per token" if metric == "tpot_ms" else "time per request")
    show_memory(view)
    _show_end(view)


def _ways(setup: dict[str, Any]) -> str:
    if setup["attention_dp"] > 1:
        groups, chips = setup["attention_dp"], setup["tp"]
        return f"tp {chips / groups:g}, attention dp {groups:g}, experts over {chips:g}"
    return f"tp {setup['tp']:g}, pp {setup['pp']:g}"


def _copies(view: dict[str, Any]) -> str:
    return f"{view['replicas']:g} copies, each " if view["replicas"] > 1 else ""


def span(interval: dict[str, Any], unit: str) -> str:
    from chipwise.cli import text

    numbers = [text.number(interval[name], 3) for name in ("value", "low", "high")]
    return f"{numbers[0]} {unit} ({numbers[1]} to {numbers[2]})".replace("  ", " ").replace(" (", " (")


def show_terms(terms: dict[str, float], subject: str) -> None:
    from chipwise.cli import text

    total = sum(terms.values())
    ordered = sorted(terms.items(), key=lambda item: -item[1])
    rows = [
        [name, duration(value), f"{value / total:.0%}", "#" * round(30 * value / total)]
        for name, value in ordered
        if value > 0.002 * total
    ]
    text.show_lines("")
    text.show_table(
        [text.Column(f"where the {subject} goes"), text.Column("", right=True), text.Column("", right=True), text.Column("")],
        rows,
    )


def show_memory(view: dict[str, Any]) -> None:
    from chipwise.cli import text

    memory, fit = view.get("memory"), view.get("fit")
    if not memory:
        return
    capacity = fit["capacity_bytes"] if fit else None
    rows = [
        [name.replace("_", " "), gib(value, 2), f"{value / memory['total_bytes']:.0%}"]
        for name, value in sorted(memory["lines_bytes"].items(), key=lambda item: -item[1])
        if value > 0.003 * memory["total_bytes"]
    ]
    rows.append(["in all", gib(memory["total_bytes"], 2), ""])
    if fit and capacity and (reserve := capacity - memory["total_bytes"] - fit["spare_bytes"]) > 0.003 * capacity:
        rows.append(["left free by the engine", gib(reserve, 2), ""])
    text.show_lines("")
    # Under a load the cache grows with what is in flight, up to what memory holds; the lines are of so many as they say.
    loaded = view.get("scenario") in ("open", "full")
    title = f"memory per chip, with {text.plural(view['setup']['batch'], 'sequence')}" if loaded else "memory per chip"
    text.show_table([text.Column(title), text.Column("", right=True), text.Column("", right=True)], rows)
    if fit and capacity:
        show_fit(fit)


def show_fit(fit: dict[str, Any]) -> None:
    from chipwise.cli import text

    spare, capacity = fit["spare_bytes"], fit["capacity_bytes"]
    if fit["fits"]:
        text.show_lines(f"Fits: {gib(spare)} of {gib(capacity)} are left.")
        return
    text.show_lines(f"Does not fit: {gib(-spare)} are missing on a chip of {gib(capacity)}.")
    if fit["smallest_change"] and fit["smallest_change"] != "nothing tried helps":
        text.show_lines(
            f"The smallest change that helps: {fit['smallest_change']} ({gib(fit['bytes_after_change'])} per chip)."
        )
    elif fit["tried"]:
        text.show_lines("Nothing tried helps: smaller batches, narrower formats and more chips were all too little.")


def _energy(view: dict[str, Any], kwh: float) -> str:
    """Of serving per token that is written, and, as a plan counts, per token of prompts and answers together."""
    from chipwise.cli import text

    setup = view.get("setup") or {}
    prompt, answer = setup.get("input_tokens") or 0.0, setup.get("output_tokens") or 0.0
    if view["task"] != "serve" or not prompt or not answer:
        return f"{text.number(kwh, 3)} kWh per million tokens"
    of_both = text.number(kwh * answer / (prompt + answer), 3)
    return f"{text.number(kwh, 3)} kWh per million tokens of answers, {of_both} per million of prompts and answers"


def _show_end(view: dict[str, Any]) -> None:
    from chipwise.cli import text

    drawn = view["power_per_chip"]
    energy = view.get("energy_per_million_tokens_kwh")
    summary = f"Power: about {drawn['chip_w']:.0f} W per chip, {drawn['with_cooling_w']:.0f} W with host and cooling"
    text.show_lines("", f"{summary}; {_energy(view, energy)}." if energy else f"{summary}.")
    for note in view["notes"]:
        text.show_lines(note)
