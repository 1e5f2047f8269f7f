"""`chipwise models`: the models we know by name, and the shape of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chipwise.cli.options import CatalogName, listing
from chipwise.cli.parameter_types import WholeNumber
from chipwise.text import parameters

if TYPE_CHECKING:
    from chipwise.views.catalog import Model


@click.command()
@click.argument("name", nargs=-1, metavar="[NAME]", type=CatalogName("model"))
@click.option("--family", help="Only this family: llama, qwen, ...")
@click.option("--offline", is_flag=True, help="Do not look up models on the hub that are not in the registry.")
@click.option("--batch", type=WholeNumber(), default=None, help="Batch size of a graph that does not fix it; default: 1.")
@click.option(
    "--image-size",
    type=WholeNumber(),
    default=None,
    help="Image width and height of a graph that does not fix them; default: 224.",
)
@click.option(
    "--input",
    "sequence",
    type=WholeNumber(),
    default=None,
    help="Input tokens of a graph that does not fix them; default: 128.",
)
@listing(limit=0)
def models(
    name: tuple[str, ...],
    family: str | None,
    offline: bool,
    batch: int | None,
    image_size: int | None,
    sequence: int | None,
    as_json: bool,
    as_csv: bool,
    limit: int,
) -> None:
    """List known models, or show one model's shape.

    NAME is a registry name (llama-3.1-8b), the form people paste (meta-llama/Llama-3.1-8B-Instruct), a config.json or a network
    in ONNX (net.onnx) on disk, or any hub id when online; a part of a name (llama) lists the models that have it.

    \b
    Examples:
      chipwise models
      chipwise models llama
      chipwise models meta-llama/Llama-3.1-8B-Instruct
      chipwise models ./my-model/config.json --json
      chipwise models net.onnx --image-size 384
    """
    from chipwise.api.session.graph import Sizes, names_graph, read_view
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.model_graph import show_graph
    from chipwise.errors import BadInput, NoResult
    from chipwise.spelling import fold
    from chipwise.views.catalog import model_view

    if names_graph(" ".join(name)):
        view = read_view(" ".join(name), Sizes(batch, image_size, sequence))
        if as_json:
            text.show_json([view])
        elif as_csv:
            text.show_csv(view["graph"]["operators"])
        else:
            show_graph(view)
        return
    if any(size is not None for size in (batch, image_size, sequence)):
        raise BadInput(
            "--batch, --image-size and --input are of a graph.", remedy="Name an ONNX file: chipwise models net.onnx"
        )
    session = open_session()
    selected = sorted(
        session.models_called(" ".join(name), online=not offline) if name else session.models,
        key=lambda model: (_kind(model) != "decoder", _kind(model), model.family, model.shape.parameters),
    )
    if family is not None:
        selected = [model for model in selected if fold(model.family).startswith(fold(family))]
    if as_json:
        text.show_json([model_view(model) for model in selected])
    elif as_csv:
        text.show_csv([{key: value for key, value in model_view(model).items() if key != "shape"} for model in selected])
    elif name and len(selected) == 1:
        show_model(selected[0])
    elif selected:
        columns = [
            text.Column("model", flexible=True, fold=True),
            text.Column("family", flexible=True),
            text.Column("kind"),
            text.Column("year", True),
        ]
        columns += [text.Column("parameters", True), text.Column("active", True), text.Column("context", True)]
        rows = [
            [
                m.name,
                m.family,
                _kind(m),
                str(m.year or "-"),
                parameters(m.shape.parameters),
                parameters(m.shape.active_parameters) if m.shape.active_parameters != m.shape.parameters else "",
                text.number(m.context, 6),
            ]
            for m in selected[: limit or None]
        ]
        text.show_table(columns, rows)
    if not selected:
        families = ", ".join(sorted({model.family for model in session.models}))
        raise NoResult(f"No model of the family {family!r}.", remedy=f"Known families: {families}.")


def show_model(model: Model) -> None:
    from chipwise.cli import text
    from chipwise.views.catalog import model_view

    view = model_view(model)
    text.show_title(f"{model.name}: {_kind(model)} model of the {model.family} family{f', {model.year}' if model.year else ''}")
    computed, published = model.shape.parameters, model.published_parameters
    summary = f"{computed:,} computed from the shape"
    if published:
        summary += f"; {published:,} published ({(computed - published) / published:+.2%})"
    pairs = [("parameters", summary)]
    if model.shape.active_parameters != computed:
        pairs.append(("active", f"{model.shape.active_parameters:,} per token"))
    if model.context:
        pairs.append(("context", f"{model.context:,} tokens"))
    kv = getattr(model.shape, "kv_bytes_per_token", None)
    if kv is not None:
        pairs.append(("KV cache", f"{text.number(kv(2.0) / 1024)} KiB per token in 16 bit"))
    pairs.append(
        ("shape", ", ".join(f"{key} {value}" for key, value in _flat(view["shape"]) if value not in (None, False, "", "none")))
    )
    if model.aliases:
        pairs.append(("also", ", ".join(model.aliases)))
    text.show_pairs([*pairs, ("source", model.source + (f" ({model.as_of})" if model.as_of else ""))])


def _flat(shape: object, prefix: str = "") -> list[tuple[str, object]]:
    if isinstance(shape, dict):
        return [pair for key, value in shape.items() for pair in _flat(value, f"{prefix}.{key}".lstrip("."))]
    if isinstance(shape, list | tuple) and any(isinstance(item, dict) for item in shape):
        return [pair for i, item in enumerate(shape) for pair in _flat(item, f"{prefix}[{i}]")]
    if isinstance(shape, list | tuple):
        return [(prefix, "/".join(map(str, shape)))]
    return [(prefix, "yes" if shape is True else shape)]


def _kind(model: Model) -> str:
    return model.shape.kind
