"""One real Kubernetes for a whole run, or for each of its workers, started when the first test asks for it.

Its logs stand beside a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest

from command import Chipwise
from kube import control_plane, karpenter, kueue
from kube.control_plane import Cluster
from kube.process_kubelet import ProcessKubelet, process_kubelet
from kube.user import User, user_of

RUNNING = pytest.StashKey[Cluster]()
# Files that take minutes are begun first, so that no worker is left with one of them when the others are done.
LONGEST = (
    "test_render_karpenter",
    "test_every_command",
    "test_render_layers",
    "test_run_ec2_moves",
    "test_render_terraform",
    "test_base_install",
    "test_run_kubernetes_user",
    "test_render_slow_start",
    "test_render_more",
    "test_bench",
    "test_serve",
    "test_serve_kubernetes",
    "test_run_local",
    "test_machine",
    "test_hostile_member",
    "test_render_aws",
    "test_claims",
    "test_gateway_storm",
    "test_cases",
    "test_run_faults",
    "test_run_nobody_leads",
    "test_render_kueue",
)
StartKarpenter = Callable[[Sequence[karpenter.MachineType]], None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order of `--forks`, and of `--dist loadfile --no-loadscope-reorder`."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture
def chipwise(tmp_path: Path) -> Chipwise:
    (tmp_path / "config" / "catalog").mkdir(parents=True)
    return Chipwise(tmp_path)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with control_plane.started(tmp_path_factory.mktemp("cluster")) as running:
        request.config.stash[RUNNING] = running
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace; what the test made in it and the nodes that it made are gone afterwards."""
    with cluster.namespace() as name:
        yield name


@pytest.fixture(scope="session")
def kueued(cluster: Cluster) -> Cluster:
    """The cluster with Kueue, which stays for the rest of the run: it leaves alone what names no queue."""
    kueue.start(cluster)
    return cluster


@pytest.fixture
def start_karpenter(cluster: Cluster) -> Iterator[StartKarpenter]:
    """Karpenter with the machine types of the test, for the time of the test."""
    started: list[karpenter.Karpenter] = []

    def start(types: Sequence[karpenter.MachineType]) -> None:
        started.append(karpenter.start(cluster, types))

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def user(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[User]:
    """Somebody at the command line, with that namespace."""
    with user_of(cluster, namespace, tmp_path) as made:
        yield made


@pytest.fixture
def kubelet(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[ProcessKubelet]:
    """Who really runs what pods say, on the nodes that it is given."""
    with process_kubelet(cluster, tmp_path / "pods") as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    running = item.config.stash.get(RUNNING, None)
    if report.failed and running is not None and "cluster" in getattr(item, "fixturenames", ()):
        report.sections += [(f"end of the log of {name}", text) for name, text in running.logs().items()]
    return report
