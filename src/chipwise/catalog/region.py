"""A region: where machines stand, on which grid, under which country's law.

Where no source states a region's country, its name may tell it (`country_in`): "Sichuan, CN, AS", oslo-norway-3, us-east-2.
Only what can mean nothing else counts, since rules on countries rely on it: FRA may be an airport, Georgia a state, "in-house"
no place in India. Countries in which a provider has machines at all (RunPod) are not those of a listing: its country is not
known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from chipwise.catalog.fact import UNKNOWN, Fact
from chipwise.countries import GROUPS, country_name, country_of, place_name

UNSTATED = "region not stated"
ON_SITE = "on site"  # of devices that stand where they are used
_CONTINENTS = ("AF", "AS", "EU", "NA", "OC", "SA")
_ANYWHERE = ("*", "default", "")  # how sources write that they do not say
_COMPASS = "(?:north|south|east|west|central|mid)"
_NUMBERED = re.compile(rf"([a-z]{{2}})[-_](?:gov[-_]|iso[a-z]?[-_])?{_COMPASS}+[-_]?\d[a-z0-9_-]*", re.IGNORECASE)
_NO_COUNTRY = {"af", "ap", "as", "eu", "la", "me", "na", "oc", "sa"}  # parts of the world that regions begin with
_OTHER_WORD = {"ai", "hr", "it", "ml", "pr", "qa", "tv"}  # what a room may be called too
# Codes that are no English word and no state of the US: a name that begins with one is of that country.
_CODE = re.compile(
    "au|bg|br|ch|cl|cn|cz|dk|ee|es|fi|fr|gb|gr|hk|hu|ie|jp|kr|lt|lu|lv|mx|nl|nz|pl|pt|ro|ru|se|sg|th|tw|ua|uk|us|vn"
)
_SHORT = {"us": "USA", "usa": "USA", "uk": "GBR", "uae": "ARE", "korea": "KOR"}  # as words of a name
# Countries whose names are also those of a state, a town or a person.
_NAMESAKES = {
    "chad",
    "cuba",
    "dominica",
    "georgia",
    "guinea",
    "jamaica",
    "jersey",
    "jordan",
    "lebanon",
    "panama",
    "peru",
    "samoa",
}
_STATE = re.compile("al|ar|az|ca|co|de|ga|id|il|in|ky|la|ma|md|me|mn|mo|ms|mt|nc|ne|pa|sc|sd|tn|va")  # of the US, and ISO codes


def readable(name: str) -> str:
    """A region's name for people: "Sichuan, CN, AS" is Sichuan, China; some sources state a country only (", CN, AS"), and some
    nothing ("*", "default")."""
    if name.strip(" ,") in _ANYWHERE:
        return UNSTATED
    town, *codes = (part.strip() for part in name.split(","))
    if len(codes) != 2 or codes[1] not in _CONTINENTS:
        return name.strip(" ,")
    country = country_name(codes[0]) or codes[0]
    return ", ".join(dict.fromkeys(part for part in (town.removeprefix("The "), country) if part))


def ordered_place(name: str, country: str | None) -> str:
    """A region for people; where there is none to choose, the country to order it in, if one is asked for."""
    place = readable(name)
    return place_name(country) if place == UNSTATED and country else place


def region_phrase(name: str, country: str | None = None) -> str:
    """In a sentence: in us-west1, in Czechia, on site, (region not stated)."""
    place = ordered_place(name, country)
    if place == UNSTATED:
        return f"({UNSTATED})"
    return place if place == ON_SITE else f"in {place}"


@dataclass(frozen=True, slots=True)
class Region:
    provider: str
    name: str
    location: str | None = None
    country: str | None = None  # ISO 3166 alpha-3
    latitude: float | None = None
    longitude: float | None = None
    grid_g_per_kwh: float | None = None  # location-based annual average, consumption
    grid_year: int | None = None
    marginal_g_per_kwh: float | None = None
    second_opinion_g_per_kwh: float | None = None  # Cloud Carbon Footprint's figure, where it has one
    pue: float | None = None
    pue_basis: str | None = None  # measured for the region, or the provider's average
    fact: Fact = UNKNOWN
    grid_of_country: bool = False  # the figure of the grid is its country's, for want of its own

    @property
    def key(self) -> tuple[str, str]:
        return (self.provider, self.name)

    @property
    def on_site(self) -> bool:
        """It stands where its owner puts it."""
        return self.name == ON_SITE


def located(region: Region) -> Region:
    """With the country that its name or location tells, marked as inferred, where no source states one."""
    if region.country is not None:
        return region
    country = country_in(region.name) or country_in(region.location or "")
    if country is None:
        return region
    inferred = tuple(dict.fromkeys((*region.fact.inferred, "country")))
    return replace(region, country=country, fact=replace(region.fact, inferred=inferred))


def country_in(name: str) -> str | None:
    """The country that a region's name tells; None where it tells none, or may mean something else."""
    text = name.strip()
    rest = [piece.strip() for piece in text.split(",")][1:]
    if len(rest) == 2 and rest[1] in _CONTINENTS:  # place, country, part of the world
        return _single(rest[0])
    if rest and (len(rest[-1]) > 2 or not _STATE.fullmatch(rest[-1].lower())):
        return _single(rest[-1])
    if re.fullmatch("[A-Z]{2}", text):
        return None if text.lower() in _NO_COUNTRY | _OTHER_WORD else _single(text)
    if (code := _NUMBERED.fullmatch(text)) and code[1].lower() not in _NO_COUNTRY:
        return _single(code[1])
    first = re.match("([A-Za-z]{2})[-_]", text)
    if first and _CODE.fullmatch(first[1].lower()):
        return _single(first[1])
    countries = set(_countries_in(re.findall("[a-z]+", text.lower())))
    return countries.pop() if len(countries) == 1 else None


def _countries_in(words: list[str]) -> Iterator[str]:
    """Countries whose names stand in a name: south korea, oslo-norway-3, swedencentral, eastus2."""
    position = 0
    while position < len(words):
        pair = "".join(words[position : position + 2])
        if len(pair) > max(6, len(words[position])) and (country := _single(pair)):
            yield country
            position += 2
            continue
        before = words[position - 1] if position else ""
        if before != "new" and (country := _of_word(words[position])):  # New Mexico is not Mexico
            yield "GBR" if (before, country) == ("northern", "IRL") else country
        position += 1


def _of_word(word: str) -> str | None:
    bare = (word, re.sub(f"{_COMPASS}+$", "", word), re.sub(f"^{_COMPASS}+", "", word))
    for spelling in bare:
        if spelling in _SHORT:
            return _SHORT[spelling]
        if len(spelling) > 3 and spelling not in _NAMESAKES and (country := _single(spelling)):
            return country
    return None


def _single(text: str) -> str | None:
    country = country_of(text) if text else None
    return None if country in GROUPS else country
