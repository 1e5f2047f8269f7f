"""HTML from text that nobody vouches for: everything is escaped here, once.

Names come from workload files, provider feeds and imports. What HTML cannot hold or would show misleadingly (control
characters, lone surrogates, marks that turn the direction of writing) becomes a space.
"""

from __future__ import annotations

from html import escape


def plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def text(value: object) -> str:
    return escape(plain(str(value)))


def label(value: object) -> str:
    """For a chart, whose texts are markup."""
    return escape(plain(str(value)), quote=False)


def tag(name: str, *inside: str, **attributes: object) -> str:
    """`inside` is markup already; attributes are escaped. `class_` is class, `data_key` is data-key; None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>"
