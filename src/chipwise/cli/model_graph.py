"""What `chipwise models FILE.onnx` shows: the network that prediction takes, and its operators by kind."""

from __future__ import annotations

from typing import Any

from chipwise.text import parameters, percent, plural, size

_SIZES = {"batch": "batch", "image_size": "image size", "sequence": "tokens", "channels": "channels"}


def show_graph(view: dict[str, Any]) -> None:
    from chipwise.cli import text

    graph, shape = view["graph"], view["shape"]
    text.show_title(f"{view['name']}: network from its graph, {plural(graph['total']['count'], 'operator')}")
    tables = f"; {parameters(graph['table_parameters'])} of them in tables" if graph["table_parameters"] else ""
    pairs = [("parameters", f"{view['parameters']:,}, {size(graph['weight_bytes'])} in the file{tables}")]
    if shape is None:
        pairs.append(("prediction", graph["refused"]))
    else:
        products = f"{_billions(shape['macs'])} multiply-accumulates ({_billions(2 * shape['macs'])} FLOP)"
        pairs.append(("per sample", f"{products}, {shape['activations'] / 1e6:,.3g} M activations"))
        pairs.append(("layers", f"{shape['layers']}, {plural(shape['products'], 'product')} one after the other"))
    pairs.append(("sample", _sample(graph)))
    text.show_pairs(pairs)
    columns = [text.Column("operators of", flexible=True), *(text.Column(title, True) for title in ("count", "GMAC", "share"))]
    columns += [*(text.Column(title, True) for title in ("GFLOP", "read", "written")), text.Column("precision", flexible=True)]
    total = graph["total"]["macs"]
    text.show_table(
        columns, [_row(line["kind"], line, total) for line in graph["kinds"]] + [_row("all", graph["total"], total)]
    )
    if graph["batch"] > 1:
        text.show_lines(f"The table counts all {graph['batch']:,} samples of the batch.")
    text.show_lines(*graph["notes"])


def _sample(graph: dict[str, Any]) -> str:
    stated = [f"{_SIZES[name]} {graph[name]:,}" for name in ("batch", "image_size", "sequence") if graph[name]]
    if not graph["assumed"]:
        return ", ".join(stated) + ", as the file says"
    assumed = [
        _SIZES[name] if name in _SIZES and graph.get(name) == value else f"{_SIZES.get(name, name[:30])} (taken as {value:,})"
        for name, value in graph["assumed"].items()
    ]
    return f"{', '.join(stated)}; the file leaves open: {', '.join(assumed)}"


def _row(kind: str, line: dict[str, Any], total: int) -> list[str]:
    macs = line["macs"]
    return [
        kind,
        f"{line['count']:,}",
        _giga(macs),
        percent(macs / total) if macs and total else "",
        _giga(line["flop"]),
        size(line["read_bytes"]),
        size(line["written_bytes"]),
        ", ".join(line["precisions"][:3]),
    ]


def _giga(value: float) -> str:
    return f"{value / 1e9:,.3g}" if value else ""


def _billions(value: float) -> str:
    return f"{value / 1e9:,.3g} G"
