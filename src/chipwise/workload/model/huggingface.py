"""A shape from a Hugging Face config.json, for models the registry does not know.

`model_type` decides how the fields are named and which details (biases, norms, ties) the architecture has; the defaults
are those of the configuration classes in the transformers library. A model with text and vision parts is read as its
text part where the text part decides the cost (Gemma 3, Llama 4). Only what the file says is used: weights are never
looked at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.files.handed import read_bytes
from chipwise.spelling import nearest
from chipwise.workload.model.config_decoders import DECODERS
from chipwise.workload.model.config_encoders import ENCODERS
from chipwise.workload.model.fields import Fields
from chipwise.workload.model.inline import shape_from_mapping

if TYPE_CHECKING:
    from chipwise.workload.model.shape import Shape

LARGEST = 5_000_000
REMEDY = "Fix the file, or describe the model with an inline shape (kind, layers, hidden, heads, ffn, vocab)."

READERS = DECODERS | ENCODERS


def shape_from_config(config: Mapping[str, object]) -> Shape:
    """The shape of the model that `config` describes; BadInput names every field that is missing or makes no sense."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise BadInput(
            "The config has no model_type, which says how to read it.",
            remedy=f"Known are {', '.join(sorted(READERS))}. " + REMEDY,
        )
    reader = READERS.get(kind)
    if reader is None:
        near = nearest(kind, READERS)
        hint = f"Did you mean {', '.join(near)}? " if near else ""
        raise BadInput(
            f"The architecture {kind[:60]!r} is not known: nothing says which biases, norms and ties it has.",
            remedy=f"{hint}Known are {', '.join(sorted(READERS))}. For others give an inline shape.",
        )
    fields = Fields(config)
    form = reader(fields)
    fields.finish("config.json", REMEDY)
    return shape_from_mapping(form, f"config.json ({kind})")


def read_config(path: Path) -> dict[str, object]:
    """The config in `path`, a file or a folder that holds config.json; at most 5 MB of JSON."""
    file = path / "config.json" if path.is_dir() else path
    try:
        content = read_bytes(file, LARGEST)
        if len(content) > LARGEST:
            raise BadInput(
                f"{file} holds more than 5 MB, a config.json holds a few kB.", remedy="Give the config, not the weights."
            )
        text = content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise BadInput(f"There is no {file}.", remedy="Give a config.json or the folder that holds it.") from error
    except OSError as error:
        raise BadInput(
            f"Cannot read {file}: {error.strerror or error}.", remedy="Check the path and its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is binary, not JSON text.", remedy="Give the config, not the weights.") from error
    return parse_config(text, str(file))


def parse_config(text: str, title: str) -> dict[str, object]:
    """JSON text to a config; `title` is what messages call it."""
    if not text.strip():
        raise BadInput(f"{title} is empty.", remedy="Download the model's config.json again.")
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f", line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadInput(f"{title} is not JSON{place}.", remedy="Download the model's config.json again.") from error
    if not isinstance(loaded, dict):
        raise BadInput(f"{title} holds a JSON {type(loaded).__name__}, not an object.", remedy="A config looks like {...}.")
    return loaded
