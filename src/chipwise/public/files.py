"""Deployment files that a plan was rendered to, before they are written anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.public.calling import verbs
from chipwise.public.layout import LINES, html_table
from chipwise.text import plural, size


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """One file."""

    target: str
    path: str  # within the folder that is written to
    text: str
    executable: bool = False


@verbs
@dataclass(frozen=True, slots=True, repr=False)
class Files(Mapping[str, str]):
    """Texts by path; several targets have a folder each. `notes`: what is cheaper than what is written."""

    files: tuple[RenderedFile, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, path: str) -> str:
        text = next((file.text for file in self.files if file.path == path), None)
        if text is None:
            raise KeyError(path)
        return text

    def __iter__(self) -> Iterator[str]:
        return (file.path for file in self.files)

    def __len__(self) -> int:
        return len(self.files)

    def write(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """All files or none, into a folder; files that are there stay unless `force`."""
        from chipwise.api.render import write
        from chipwise.renderer.file import File

        files = [File(file.path, file.text, file.executable) for file in self.files]
        try:
            return [Path(folder) / path for path in write(Path(folder), {"": files}, force)]
        except BadInput as error:
            in_the_way = not force and any((Path(folder) / path).is_file() for path in self)
            remedy = "Write to another folder, or write(folder, force=True)." if in_the_way else "Write to another folder."
            raise BadInput(error.message, remedy=remedy) from error

    def __repr__(self) -> str:
        lines = [f"  {file.path} ({size(len(file.text.encode()))})" for file in self.files]
        room = LINES - 2
        rest = [f"  ... {len(lines) - room} more"] if len(lines) > room else []
        return "\n".join([plural(len(lines), "file"), *lines[:room], *rest])

    def _repr_html_(self) -> str:
        return html_table(("target", "file"), [[file.target, file.path] for file in self.files], notes=self.notes)
