"""`chipwise fits`: whether a model fits a chip, by how much, and what would make it fit."""

from __future__ import annotations

from typing import Any

import click

from chipwise.cli.options import CatalogName
from chipwise.cli.parameter_types import WholeNumber
from chipwise.text import gib


@click.command()
@click.argument("model", type=CatalogName("model"))
@click.option("--on", required=True, metavar="CHIP", type=CatalogName("chip"), help="The chip.")
@click.option("--train", is_flag=True, help="Ask for training; without it, for serving.")
@click.option("--chips", type=WholeNumber(), default=None, help="Chips in all.")
@click.option("--tp", type=WholeNumber(), default=None, help="Tensor parallel; 1 unless given.")
@click.option("--pp", type=WholeNumber(), default=None, help="Pipeline parallel; 1 unless given.")
@click.option("--precision", default=None, help="Of the weights (serving) or of the arithmetic (training).")
@click.option("--kv", default=None, help="Serving: precision of the cache.")
@click.option("--batch", type=WholeNumber(), default=None, help="Serving: sequences at once; training: per micro-batch.")
@click.option("--context", type=WholeNumber(), default=None, help="Tokens per sequence.")
@click.option("--method", type=click.Choice(["full", "lora", "qlora"]), default=None, help="Training: what is trained.")
@click.option("--optimizer", default=None, help="Training: adamw, adamw-16bit, adamw-8bit, adafactor, lion, muon, sgd.")
@click.option("--recompute", type=click.Choice(["none", "selective", "full"]), default=None, help="Training.")
@click.option("--zero", type=WholeNumber(0, 3), default=None, help="Training: ZeRO stage 0-3.")
@click.option("--engine", default=None, help="Serving: vllm, tensorrt-llm, ...")
@click.option("--json", "as_json", is_flag=True, help="JSON.")
def fits(model: str, on: str, as_json: bool, **settings: Any) -> None:
    """Say whether a model fits a chip: lines of memory, what is left or missing, and the smallest change that helps.

    \b
    Examples:
      chipwise fits llama-3.1-70b --on l40s
      chipwise fits llama-3.1-8b --on h100 --train --context 8192
      chipwise fits qwen3-30b-a3b --on rtx-4090 --precision int4
    """
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import fits as ask
    from chipwise.cli import text
    from chipwise.cli.predict import show_memory

    view = ask(open_session(), model, on, {name: value for name, value in settings.items() if value is not None})
    if as_json:
        text.show_json(view)
        return
    text.show_title(view["title"])
    show_memory(view)
    units = {
        "most sequences": f" of {view['tokens']:,.0f} tokens each",
        "largest micro-batch": f" of {view['tokens']:,.0f} tokens each",
    }
    pairs = [(name, f"{value:,.0f}{units.get(name, ' tokens') if value else ''}") for name, value in view["largest"].items()]
    text.show_lines("")
    text.show_pairs(pairs)
    failed = [one for one in view["fit"]["tried"] if one["fits"]]
    if not view["fit"]["fits"] and len(failed) > 1:
        rows = [[one["change"], gib(one["bytes_per_chip"])] for one in failed[:8]]
        text.show_lines("")
        text.show_table(
            [text.Column("changes that would fit, the smallest first", flexible=True), text.Column("per chip", right=True)],
            rows,
        )
    if view["notes"]:
        text.show_lines("", *view["notes"])
