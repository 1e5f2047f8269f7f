"""Packings against every partition tried one by one, slices against NVIDIA's placements, and laws that any packing keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import pack as pack_files
from chipwise.catalog.sharing import mig_profiles
from chipwise.errors import BadInput, NoResult
from chipwise.planner.several.pack import Shared
from chipwise.planner.several.packing import (
    ALONE,
    EXACT,
    IN_SLICES,
    IN_TURNS,
    MOST_MEMORY,
    MOST_SHARE,
    Host,
    Item,
    Packing,
    Prices,
    Profile,
    apart,
    pack,
    placed,
)
from chipwise.planner.several.sharing import profiles_of
from chipwise.units import GIB
from effort import seeds

SEVENTHS = (
    Profile("1g.10gb", 1, 1, tuple(range(7))),
    Profile("1g.20gb", 1, 2, (0, 2, 4, 6)),
    Profile("2g.20gb", 2, 2, (0, 2, 4)),
    Profile("3g.40gb", 3, 4, (0, 4)),
    Profile("4g.40gb", 4, 4, (0,)),
    Profile("7g.80gb", 7, 8, (0,)),
)
CHAT = """kind: serve
name: {name}
model: {model}
arrival: {{rate: {rate} req/s}}
input_tokens: {{mean: 600}}
output_tokens: {{mean: 120}}
goals: {{tpot: {{p95: 80ms}}, ttft: {{p95: 2s}}}}
limits: {{clouds: [aws, gcp, azure]}}
"""


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


def drawn(random: Random, items: int, hosts: int) -> tuple[list[Item], list[Host], Prices]:
    made = [
        Host(f"host {at}", random.choice((24.0, 48.0, 80.0)), random.random() < 0.8, *random.choice(((0, ()), (7, SEVENTHS))))
        for at in range(hosts)
    ]
    models = [random.choice((at, max(at - 1, 0))) for at in range(items)]
    found = []
    for at in range(items):
        share = np.array([random.choice((0.1, 0.2, 0.3, 0.5, np.inf)) for _ in made])
        memory = np.array([random.uniform(3, 30) for _ in made])
        profile = [random.randrange(-1, 6) if one.profiles else -1 for one in made]
        alone = np.array([random.random() < 0.8 for _ in made])
        alone[random.randrange(hosts)] = True
        found.append(Item(models[at], random.randrange(2), alone, share, memory, profile))
    usd = [np.array([random.uniform(100, 900) for _ in made]) for _ in range(2)]

    def prices(rules: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        chosen = [one for at, one in enumerate(usd) if rules >> at & 1]
        return np.asarray(np.maximum.reduce(chosen))

    return found, made, prices


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for at, group in enumerate(smaller):
            yield [*smaller[:at], [first, *group], *smaller[at + 1 :]]


def fits_slices(wanted: Sequence[Profile], compute: int) -> bool:
    """Every slice at every start, in the order given."""
    free = [({*range(8)}, compute)]
    for one in wanted:
        free = [
            (left - {*range(start, start + one.memory)}, units - one.compute)
            for left, units in free
            for start in one.starts
            if {*range(start, start + one.memory)} <= left and units >= one.compute
        ]
    return bool(free)


def least(items: Sequence[Item], hosts: Sequence[Host], prices: Prices) -> float:
    """The cheapest of all partitions, each group on the cheapest host that holds it."""

    def cost(group: Sequence[int]) -> float:
        mine = [items[at] for at in group]
        if len({one.model for one in mine}) < len(mine):
            return float("inf")
        usd = prices(sum(1 << one for one in {one.rules for one in mine}))
        best = float("inf")
        for at, host in enumerate(hosts):
            if len(mine) == 1:
                fine = bool(mine[0].alone[at])
            else:
                fine = host.in_turns and sum(one.share[at] for one in mine) <= MOST_SHARE + 1e-9
                fine = fine and sum(one.memory[at] for one in mine) <= MOST_MEMORY * host.memory_bytes
                sliced = bool(host.profiles) and all(one.profile[at] >= 0 for one in mine)
                fine = fine or (sliced and fits_slices([host.profiles[one.profile[at]] for one in mine], host.compute))
            if fine:
                best = min(best, float(usd[at]))
        return best

    return min(sum(cost(group) for group in groups) for groups in partitions(range(len(items))))


def checked(found: Packing | None, items: Sequence[Item], hosts: Sequence[Host]) -> Packing:
    assert found is not None
    assert sorted(at for one in found.bins for at in one.items) == list(range(len(items)))
    assert found.usd == pytest.approx(sum(one.usd for one in found.bins))
    for one in found.bins:
        mine = [items[at] for at in one.items]
        assert len({item.model for item in mine}) == len(mine)
        assert (one.sharing == ALONE) == (len(mine) == 1)
        if one.sharing == IN_TURNS:
            assert sum(item.share[one.host] for item in mine) <= MOST_SHARE + 1e-9
            assert sum(item.memory[one.host] for item in mine) <= MOST_MEMORY * hosts[one.host].memory_bytes
        if one.sharing == IN_SLICES:
            assert fits_slices([hosts[one.host].profiles[item.profile[one.host]] for item in mine], hosts[one.host].compute)
    return found


@pytest.mark.parametrize("seed", seeds(110))
def test_no_partition_is_cheaper(seed: int) -> None:
    random = Random(f"pack {seed}")
    items, hosts, prices = drawn(random, random.randrange(1, 7), random.randrange(1, 5))
    found = checked(pack(items, hosts, prices), items, hosts)
    assert found.proven
    assert found.usd == pytest.approx(least(items, hosts, prices))


@pytest.mark.parametrize("seed", seeds(20))
def test_many_models_are_packed_well_though_not_proven(seed: int) -> None:
    random = Random(f"many {seed}")
    items, hosts, prices = drawn(random, EXACT + 1 + random.randrange(8), 4)
    found = checked(pack(items, hosts, prices), items, hosts)
    assert not found.proven
    assert found.usd <= sum(one.usd for one in apart(items, hosts, prices)) + 1e-6


def test_twelve_models_are_exact() -> None:
    items, hosts, prices = drawn(Random("twelve"), EXACT, 6)
    assert checked(pack(items, hosts, prices), items, hosts).proven


def test_a_model_without_a_host_has_no_packing() -> None:
    items, hosts, prices = drawn(Random("none"), 2, 2)
    lost = Item(9, 0, np.zeros(2, dtype=bool), np.full(2, np.inf), np.full(2, np.inf), [-1, -1])
    assert pack([*items, lost], hosts, prices) is None


def test_slices_go_together_as_the_vendor_places_them() -> None:
    one, wide, two, three, four, seven = SEVENTHS
    together = [
        (one,) * 7,
        (three, three),
        (four, three),
        (four, two, one),
        (three, two, one, one),
        (two, two, two, one),
        (three, wide, wide),
        (wide,) * 4,
        (seven,),
    ]
    never = [
        (one,) * 8,
        (four, four),
        (seven, one),
        (three, three, one, one),
        (two, two, two, two),
        (four, three, one),
        (wide,) * 5,
    ]
    assert all(placed(wanted, 7) is not None for wanted in together)
    assert all(placed(wanted, 7) is None for wanted in never)


def test_the_catalog_s_profiles_are_those_the_vendor_places(session: Session) -> None:
    slices = mig_profiles(session.catalog.data)
    compute, found = profiles_of(slices, "A100-80", 80 * GIB)
    assert (compute, {(one.name, one.compute, one.memory, one.starts) for one in found}) == (
        7,
        {(one.name, one.compute, one.memory, one.starts) for one in SEVENTHS},
    )
    assert profiles_of(slices, "T4", 16 * GIB) == (0, ())
    for chip in {one.chip for one in slices}:
        units, profiles = profiles_of(slices, chip, session.parts[chip].memory_bytes)
        total = 8 if units == 7 else units
        for one, two in pairwise(profiles):
            assert one.memory <= two.memory
            assert one.compute <= two.compute, f"{chip}: a larger slice must hold what a smaller one holds"
        for one in profiles:
            assert one.starts[-1] + one.memory <= total
            assert placed((one,) * len(one.starts), units) is not None


def written(folder: Path, name: str, model: str = "llama-3.2-1b", rate: float = 0.3) -> str:
    path = folder / f"{name}.yaml"
    path.write_text(CHAT.format(name=name, model=model, rate=rate))
    return str(path)


def test_small_models_share_a_chip_and_cost_less_than_apart(session: Session, tmp_path: Path) -> None:
    paths = [written(tmp_path, f"chat{at}") for at in range(3)]
    found = pack_files(session, paths)
    assert found.proven
    assert len(found.machines) == 1
    assert len(found.apart) == 3
    assert found.usd < found.apart_usd
    shared = found.machines[0]
    assert shared.sharing != ALONE
    assert {one.name for one in shared.residents} == {"chat0", "chat1", "chat2"}


def test_more_load_never_costs_less(session: Session, tmp_path: Path) -> None:
    costs = [
        pack_files(session, [written(tmp_path, "busy", "llama-3.1-8b", rate), written(tmp_path, "other", "llama-3.2-3b")]).usd
        for rate in (0.05, 0.5, 2.0)
    ]
    assert costs == sorted(costs)


def test_copies_of_a_model_are_kept_apart(session: Session, tmp_path: Path) -> None:
    path = Path(written(tmp_path, "two"))
    path.write_text(path.read_text() + "replicas: {min: 2}\n")
    found = pack_files(session, [str(path), written(tmp_path, "one")])
    assert all(len({one.name for one in at.residents}) == len(at.residents) for at in found.machines)
    assert sum(one.name == "two" for at in found.machines for one in at.residents) == 2


def test_machines_are_allowed_by_the_limits_of_all_who_share_them(session: Session, tmp_path: Path) -> None:
    european, any_place = Path(written(tmp_path, "eu")), Path(written(tmp_path, "any"))
    european.write_text(european.read_text().replace("limits: {", "limits: {residency: [EU], "))
    found = pack_files(session, [str(european), str(any_place)])
    regions = {one.key: one for one in session.catalog.regions}
    for one in found.machines:
        if any(at.name == "eu" for at in one.residents):
            assert regions[one.provider, one.region].country in {
                "DEU",
                "FRA",
                "IRL",
                "NLD",
                "BEL",
                "SWE",
                "FIN",
                "ESP",
                "ITA",
                "POL",
            }


def test_bad_input_is_told(session: Session, tmp_path: Path) -> None:
    one = written(tmp_path, "one")
    with pytest.raises(BadInput, match="nothing to pack"):
        pack_files(session, [])
    with pytest.raises(BadInput, match="given twice"):
        pack_files(session, [one, str(tmp_path / "." / "one.yaml")])
    training = Path(__file__).resolve().parents[3] / "examples" / "train" / "workload.yaml"
    with pytest.raises(BadInput, match="train work"):
        pack_files(session, [one, str(training)])
    with pytest.raises(NoResult, match="chipwise plan"):
        pack_files(session, [one, written(tmp_path, "huge", "llama-3.1-405b")])


def test_chips_that_need_porting_are_packed_only_where_that_saves_enough(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(
        "kind: serve\nname: chat\nmodel: llama-3.1-8b\narrival: {rate: 5 req/s}\ninput_tokens: 1000\noutput_tokens: 300\n"
        "goals: {ttft: 800ms, tpot: 50ms}\nlimits: {clouds: [aws, gcp]}\n"
    )
    packed = pack_files(session, [str(file)])
    assert not packed.machines[0].chip.startswith("TPU")
    assert packed.apart_usd == packed.usd
    assert "porting must save at least 20% and $1,000 a year" in packed.notes[0]
    file.write_text(file.read_text().replace("[aws, gcp]", "[aws, gcp], chips: [tpu-v6e, rtx-pro-6000-se]"))
    named = pack_files(session, [str(file)])  # who names such chips has the software for them
    assert named.machines[0].chip.startswith("TPU")


def test_a_region_that_is_not_stated_is_told_in_words() -> None:
    shared = Shared("runpod", "1x_L40", "*", "L40", 48 * GIB, "on-demand", "alone", (), 1.0)
    assert shared.title == "runpod 1x_L40 (region not stated)"
