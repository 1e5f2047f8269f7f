"""What a browser would see of a page."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "input"}


class Read(HTMLParser):
    """What a browser would see: elements with their attributes, scripts, and whether every element is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append((self.elements[-1][1], data))
        elif not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def shown(self) -> str:
        return " ".join(self.texts)

    def ids(self) -> set[str]:
        return {found["id"] or "" for _, found in self.elements if "id" in found}
