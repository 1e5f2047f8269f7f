"""`explain` as a verb: everything a name can mean, of the catalog or, where it is none of those, a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from chipwise.catalog import sharing
from chipwise.catalog.meaning import ChipMeaning, MachineMeaning, meanings
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import nearest
from chipwise.views.explain import Meaning

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def explain(session: Session, text: str, wanted: Mapping[str, str]) -> list[Meaning]:
    """All meanings of a name; UnknownName with the nearest of every sort when there is none."""
    if not text.strip():
        raise BadInput("The name is empty.", remedy="Try: chipwise explain h100")
    all_meanings: list[Meaning] = [*meanings(session.names, text, wanted, session.year_ago)]
    if not all_meanings:
        try:
            all_meanings.append(session.models.find(text))
        except UnknownName:
            raise UnknownName("chip, machine, region, provider or model", text, nearest(text, _known(session))) from None
    if wanted and not any(isinstance(meaning, ChipMeaning | MachineMeaning) for meaning in all_meanings):
        raise BadInput(
            f"--with asks about a chip or a machine, and {text!r} is neither.", remedy="Try: explain h100 --with cuda=12.4"
        )
    return all_meanings


def _known(session: Session) -> tuple[str, ...]:
    catalog = session.catalog
    known = (*catalog.chips, *(machine.name for machine in catalog.machines), *catalog.providers)
    modes = (mode.mode for mode in sharing.modes(catalog.data))
    return (*known, *(region.name for region in catalog.regions), *modes, *session.models.names)
