"""The verbs about what there is: chips, machines, prices, regions, models, and the data behind them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput, UnknownName
from chipwise.public.calling import verbs
from chipwise.public.opened import Opened
from chipwise.public.records import Meanings, Record, Table, with_plain_names
from chipwise.public.workloads import Names
from chipwise.spelling import fold, nearest

if TYPE_CHECKING:
    from chipwise.api.catalog.feeds import RefreshResult

_CHIPS = ("name", "kind", "vendor", "year", "memory_gb", "power_w")
_MACHINES = ("provider", "name", "chip", "chips", "vcpus")
_OFFERS = ("provider", "machine", "chip", "chips", "region", "purchase", "usd_per_hour", "usd_per_chip_hour", "age_days")
_REGIONS = ("provider", "name", "location", "country", "grid_g_per_kwh", "pue")
_MODELS = ("name", "family", "shape_kind", "year", "parameters", "active_parameters", "context")


def _as_tuple(value: Names | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _brought_view(refreshed: RefreshResult) -> dict[str, Any]:
    snapshot = refreshed.snapshot
    return {
        "provider": snapshot.provider,
        "taken": snapshot.day.isoformat(),
        "machines": len(snapshot.machines),
        "offers": len(snapshot.offers),
        "skipped": list(snapshot.skipped),
        "refused": [str(complaint) for complaint in refreshed.refused],
        "path": str(refreshed.path),
    }


def _quiet(done: int, total: int | None, what: str) -> None:
    """The library prints nothing."""


@verbs
class CatalogVerbs(Opened):
    """What there is."""

    __slots__ = ()

    def chips(
        self,
        *names: str,
        kind: str | None = None,
        vendor: str | None = None,
        can: Names | None = None,
        limit: int | None = None,
    ) -> Table:
        """List chips, all or those of these names or families, with rates in FLOP/s, bytes and watts.

        >>> cw.chips("h100"), cw.chips(kind="tpu"), cw.chips(can="fp8")
        """
        from chipwise.api import able_chips
        from chipwise.catalog.chip import ChipKind
        from chipwise.views.catalog import chip_view

        session = self.api
        catalog = session.catalog
        if kind is not None and kind not in list(ChipKind):
            raise UnknownName("kind of chip", kind, nearest(kind, list(ChipKind)), remedy=f"Known: {', '.join(ChipKind)}.")
        listed = [chip for name in names for chip in session.names.chips(name)] if names else list(catalog.chips.values())
        chips = {chip.name: chip for chip in listed}
        rows = [
            chip_view(chip, catalog)
            for chip in able_chips(chips.values(), _as_tuple(can), catalog.data)
            if (kind is None or chip.kind == kind) and (vendor is None or chip.vendor.casefold() == vendor.casefold())
        ]
        return Table(rows[:limit], _CHIPS)

    def machines(
        self,
        *names: str,
        chip: Names | None = None,
        provider: Names | None = None,
        kind: Names | None = None,
        memory: str | None = None,
        total_memory: str | None = None,
        host_memory: str | None = None,
        min_chips: float | None = None,
        max_chips: float | None = None,
        vcpus: float | None = None,
        retired: bool = False,
        limit: int | None = None,
    ) -> Table:
        """List machines by name or family, chip, provider and memory (`memory="80GB"` on each chip).

        >>> cw.machines("p5"), cw.machines(chip="h100", provider="gcp")
        """
        from chipwise.api import machine_query
        from chipwise.catalog.query import find_machines
        from chipwise.views.catalog import machine_view

        session = self.api
        query = machine_query(
            session.names,
            machines=names,
            chips=_as_tuple(chip),
            providers=_as_tuple(provider),
            kinds=_as_tuple(kind),
            chip_memory=memory,
            total_memory=total_memory,
            host_memory=host_memory,
            min_chips=min_chips,
            max_chips=max_chips,
            vcpus=vcpus,
            retired=retired or bool(names),
        )
        listed = [session.catalog.machines[index] for index in find_machines(session.catalog, query)]
        listed.sort(key=lambda machine: (machine.provider, machine.chip or "", machine.chips or 0.0, machine.vcpus or 0.0))
        return Table((machine_view(machine, session.catalog) for machine in listed[:limit]), _MACHINES)

    def offers(
        self,
        *machines: str,
        chip: Names | None = None,
        provider: Names | None = None,
        kind: Names | None = None,
        region: Names | None = None,
        purchase: Names | None = None,
        spot: bool = False,
        on_demand: bool = False,
        memory: str | None = None,
        total_memory: str | None = None,
        min_chips: float | None = None,
        max_chips: float | None = None,
        max_price: str | float | None = None,
        max_chip_price: str | float | None = None,
        max_age: str | None = None,
        real: bool = False,
        sort: str = "price",
        descending: bool = False,
        limit: int | None = None,
    ) -> Table:
        """List prices, the cheapest first, with the age of each. `region` is a region, a country or EU.

        `purchase` is on-demand, spot, reserved, ...; `real=True` leaves out what is not a real offer; `max_age` is as `"90d"`.

        >>> cw.offers(chip="h100", region="EU", sort="price-per-chip", limit=10)
        """
        from chipwise.api import age_limit, machine_query, price_limit, purchases, region_keys
        from chipwise.catalog.query import OfferOrder, OfferQuery, find_offers
        from chipwise.views.catalog import offer_views

        if sort not in list(OfferOrder):
            raise UnknownName("order", sort, nearest(sort, list(OfferOrder)), remedy=f"Known: {', '.join(OfferOrder)}.")
        session = self.api
        query = OfferQuery(
            machines=machine_query(
                session.names,
                machines=machines,
                chips=_as_tuple(chip),
                providers=_as_tuple(provider),
                kinds=_as_tuple(kind),
                chip_memory=memory,
                total_memory=total_memory,
                min_chips=min_chips,
                max_chips=max_chips,
            ),
            regions=region_keys(session.names, _as_tuple(region)),
            purchases=purchases((*_as_tuple(purchase), *("spot",) * bool(spot), *("on-demand",) * bool(on_demand))),
            max_usd_per_hour=price_limit(None if max_price is None else str(max_price), "max_price"),
            max_usd_per_chip_hour=price_limit(None if max_chip_price is None else str(max_chip_price), "max_chip_price"),
            oldest=age_limit(max_age, session.today),
            real_only=real,
            order=OfferOrder(sort),
            descending=descending,
        )
        indices = find_offers(session.catalog, query)
        return Table(offer_views(session.catalog, indices[:limit], session.today), _OFFERS)

    def regions(
        self,
        *names: str,
        provider: Names | None = None,
        country: Names | None = None,
        max_carbon: float | None = None,
        sort: str = "name",
        limit: int | None = None,
    ) -> Table:
        """List regions with place, country, carbon of the grid and PUE; `sort` is name, carbon or country.

        >>> cw.regions(provider="aws", max_carbon=100, sort="carbon")
        """
        from chipwise.views.catalog import region_view

        orders = {"name": ("provider", "name"), "carbon": ("grid_g_per_kwh",), "country": ("country", "provider", "name")}
        if sort not in orders:
            raise UnknownName("order", sort, nearest(sort, orders), remedy=f"Known: {', '.join(orders)}.")
        session = self.api
        listed = list(session.catalog.regions)
        for texts in (names, _as_tuple(country)):
            keys = {region.key for text in texts for region in session.names.regions(text)}
            listed = [region for region in listed if not texts or region.key in keys]
        if provider:
            wanted = {session.names.provider(name) for name in _as_tuple(provider)}
            listed = [region for region in listed if region.provider in wanted]
        if max_carbon is not None:
            listed = [region for region in listed if region.grid_g_per_kwh is not None and region.grid_g_per_kwh <= max_carbon]
        rows = sorted(map(region_view, listed), key=lambda row: [(row[key] is None, row[key] or 0) for key in orders[sort]])
        return Table(rows[:limit], _REGIONS)

    def models(
        self,
        name: str | Path | None = None,
        *,
        family: str | None = None,
        offline: bool = False,
        batch: int | None = None,
        image_size: int | None = None,
        input: int | None = None,
        limit: int | None = None,
    ) -> Table:
        """List known models, or those of a name: whole or a part, a path of a config.json, or a hub id unless `offline`.

        A network in an ONNX file has its operators in `graph`; `batch`, `image_size` and `input` (tokens) are taken for the
        dimensions that it leaves open.

        >>> cw.models(family="llama"), cw.models("llama-3.1-8b")[0].parameters
        """
        from chipwise.api.session.graph import Sizes, names_graph
        from chipwise.views.catalog import model_view

        name = None if name is None else str(name)
        sizes = Sizes(batch, image_size, input)
        if name is not None and names_graph(name):
            from chipwise.api.session.graph import read_view

            return Table([read_view(name, sizes)], _MODELS)
        if sizes != Sizes():
            raise BadInput("batch, image_size and input are of a graph.", remedy="Name an ONNX file: cw.models('net.onnx')")
        session = self.api
        listed = list(session.models) if name is None else session.models_called(name, online=not offline)
        if family is not None:
            listed = [model for model in listed if fold(model.family).startswith(fold(family))]
        listed.sort(key=lambda model: (model.shape.kind != "decoder", model.shape.kind, model.family, model.shape.parameters))
        return Table(map(model_view, listed[:limit]), _MODELS)

    def explain(self, name: str, *, components: Mapping[str, str] | None = None) -> Table:
        """Say what a name means: a chip, machine, region, provider, model or sharing mode; a row for each meaning.

        `components` asks whether software runs on it: `{"cuda": "11.6"}`; the answers stand in `compatibility`.

        >>> cw.explain("h100", components={"flash-attention": "3"})[0].compatibility
        """
        from chipwise.api.catalog.explain import explain as ask
        from chipwise.views.explain import meaning_view

        session = self.api
        meanings = ask(session, name, dict(components or {}))
        views = (with_plain_names(meaning_view(session.catalog, session.today, meaning)) for meaning in meanings)
        return Meanings(views, ("meaning", "name", "title", "provider"))

    def catalog_refresh(
        self, provider: str, *, region: Names | None = None, options: Mapping[str, str] | None = None
    ) -> Record:
        """Fetch fresh machines and prices of aws, azure or gcp through the provider's own API.

        >>> cw.catalog_refresh("aws", region="us-east-1", options={"profile": "work"}).offers
        """
        from chipwise.api.catalog.feeds import refresh

        refreshed = refresh(self.api, provider, _as_tuple(region), dict(options or {}), _quiet)
        self.reload()
        return Record(_brought_view(refreshed))

    def catalog_import(self, path: str | Path, *, kind: str | None = None, options: Mapping[str, str] | None = None) -> Table:
        """Import a SkyPilot catalog directory (kind skypilot) or a CSV of own machines (kind inventory); guessed unless given.

        >>> cw.catalog_import("servers.csv", options={"usd_per_kwh": "0.19"})
        """
        from chipwise.api.catalog.feeds import import_file

        path = Path(path)
        kind = kind or ("skypilot" if path.is_dir() else "inventory")
        if kind not in ("skypilot", "inventory"):
            raise BadInput(f"{kind!r} cannot be imported.", remedy="Use skypilot or inventory.")
        refreshed = import_file(self.api, kind, path, dict(options or {}), _quiet)
        self.reload()
        return Table(map(_brought_view, refreshed))

    def catalog_forget(self, provider: str) -> None:
        """Remove what a refresh or an import of a provider brought; the packaged facts count again.

        >>> cw.catalog_forget("aws")
        """
        from chipwise.api.catalog.feeds import forget

        forget(self.api, provider)
        self.reload()

    def catalog_status(self) -> Record:
        """What the catalog holds and how old it is, provider by provider.

        >>> cw.catalog_status().totals.offers
        """
        from chipwise.api.catalog.status import status

        return Record(status(self.api))

    def catalog_show(self, table: str | None = None, *words: str) -> Table:
        """The rows of a table that hold all words; without a table the list of tables.

        >>> cw.catalog_show("tokens", "llama", "bedrock")
        """
        from chipwise.views.holdings import table_names, table_rows

        if table is None:
            return Table({"table": name, "rows": count, "holds": holds} for name, count, holds in table_names(self.api.catalog))
        return Table(table_rows(self.api.catalog, table, words))
