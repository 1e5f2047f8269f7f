"""Options that several commands share, and what they mean in the catalog's words."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON array of all matches.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV with a header line.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="Rows to show in a table; 0 shows all.")]
Providers = Annotated[list[str] | None, typer.Option("--provider", "-p", help="Cloud or provider; repeat for several.")]
ChipNames = Annotated[list[str] | None, typer.Option("--chip", "-c", help="Chip or family (h100); repeat for several.")]
