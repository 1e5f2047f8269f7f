"""One file or one folder, nothing else edited: a copy of a feed or of an engine under another name is another one at once."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from azure_prices import AzurePrices
from package_copy import PackageCopy

OUTSIDE = '''"""Machines of a package that is not ours. Options: none."""
from chipwise.errors import NoResult
OPTIONS = ()


def fetch(settings, report):
    raise NoResult("The outside feed was asked.")
'''


@pytest.fixture
def copied(tmp_path: Path) -> PackageCopy:
    return PackageCopy.into(tmp_path)


@pytest.fixture
def azure() -> Iterator[AzurePrices]:
    with AzurePrices() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def helped(copied: PackageCopy, *command: str, ahead: Path | None = None) -> str:
    """Its help, however it is folded."""
    done = copied.chipwise(*command, "--help", ahead=ahead)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split()).replace("- ", "-")


def passed(summary: str) -> int:
    found = re.search(r"(\d+) passed", summary)
    return int(found[1]) if found else 0


def test_a_copy_of_the_engine_of_this_machine_is_listed_and_runs_jobs_by_its_own_code(copied: PackageCopy) -> None:
    engine = copied.engine("local", "second_machine") / "engine.py"
    changed = engine.read_text().replace(
        'env = {**spec.env, "CHIPWISE_JOB"', 'env = {**spec.env, "RUNS_BY": NAME, "CHIPWISE_JOB"'
    )
    assert changed != engine.read_text()
    engine.write_text(changed)
    assert "Run on local, ec2, kubernetes, second-machine," in helped(copied, "run")
    for name, says in (("second-machine", "by second-machine"), ("local", "by ")):
        done = copied.chipwise("run", "--engine", name, "--", "sh", "-c", "echo by $RUNS_BY")
        assert (done.returncode, done.stdout.strip()) == (0, says.strip()), done.stderr
    jobs = json.loads(copied.chipwise("ps", "--all", "--json").stdout)
    assert sorted((job["engine"], job["phase"]) for job in jobs) == [("local", "done"), ("second-machine", "done")]
    [job] = [one["id"] for one in jobs if one["engine"] == "second-machine"]
    assert copied.chipwise("logs", job).stdout == "by second-machine\n"
    assert "second-machine:" in copied.chipwise("describe", job, "--json").stdout


@pytest.mark.e2e
def test_the_contract_suite_finds_a_copy_of_an_engine_and_asks_for_its_harness(copied: PackageCopy) -> None:
    copied.engine("simulated", "second_world")
    done = copied.suite("test_engines.py", "-k", "second_world and harness")
    assert "write tests/support/engines/second_world.py" in done.stdout
    copied.harness("simulated", "second_world")
    done = copied.suite("test_engines.py", "-k", "second_world")
    assert (done.returncode, passed(done.stdout) > 20) == (0, True), done.stdout
    assert "second-world" not in helped(copied, "run")  # nothing really runs there
    assert "second-world, simulated" in helped(copied, "bench")


@pytest.mark.e2e
def test_the_contract_suite_collects_a_copy_of_an_engine_with_real_processes(copied: PackageCopy) -> None:
    copied.engine("local", "second_machine")
    copied.harness("local", "second_machine")
    named = copied.suite("test_engines.py", "--collect-only", "-k", "second_machine").stdout
    assert "test_a_loss_is_told_when_nothing_runs_any_more[second_machine]" in named
    done = copied.suite("test_engines.py", "-k", "second_machine and (exit_code or 127 or ended_before)")
    assert (done.returncode, passed(done.stdout)) == (0, 3), done.stdout


@pytest.mark.e2e
@pytest.mark.parametrize("source", ["ec2", "kubernetes"])
def test_a_copy_of_an_engine_of_others_takes_settings_and_asks_for_its_sdk_only_when_it_is_used(
    copied: PackageCopy, tmp_path: Path, source: str
) -> None:
    copied.engine(source, "elsewhere")
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name in ("boto3", "lightkube"):
        (stubs / f"{name}.py").write_text("raise ImportError('not installed')\n")
    config = tmp_path / "home" / "config"
    settings = {"ec2": "region: eu-west-1, keep: 's3://b/x'", "kubernetes": "kubeconfig: /nowhere"}[source]
    (config / "engines.yaml").write_text(f"far: {{kind: elsewhere, {settings}}}\n")
    assert "elsewhere," in helped(copied, "run", ahead=stubs)
    words = ("--machine", "m5.large") if source == "ec2" else ("--image", "a:1")
    done = copied.chipwise("run", "--engine", "far", *words, "--", "true", ahead=stubs)
    assert (done.returncode, "pip install 'chipwise[" in done.stderr) == (3, True), done.stderr
    (config / "engines.yaml").write_text(f"far: {{kind: elsewhere, {settings}, nonsense: 1}}\n")
    done = copied.chipwise("run", "--engine", "far", *words, "--", "true", ahead=stubs)
    assert "far.nonsense: is not a field of elsewhere" in done.stderr


def test_a_copy_of_a_feed_is_listed_and_brings_prices(copied: PackageCopy, azure: AzurePrices) -> None:
    copied.feed("azure", "nimbus")
    assert "Feeds: aws, azure, gcp, nimbus." in helped(copied, "catalog", "refresh")
    done = copied.chipwise("catalog", "refresh", "nimbus", "--option", f"endpoint={azure.url}", "--json")
    assert done.returncode == 0, done.stderr
    [brought] = json.loads(done.stdout)
    assert (brought["provider"], brought["offers"]) == ("azure", 1)
    assert "nimbus" in copied.chipwise("catalog", "refresh", "nowhere").stderr
    suite = copied.suite("test_feeds.py", "-k", "nimbus")
    assert (suite.returncode, passed(suite.stdout)) == (0, 6), suite.stdout


def test_a_copy_of_a_feed_of_files_is_listed_and_imports(copied: PackageCopy, tmp_path: Path) -> None:
    copied.feed("inventory", "asset_list")
    machines = tmp_path / "servers.csv"
    machines.write_text("name,chip,chips,hourly cost\nours,H100,8,12\n")
    told = helped(copied, "catalog", "import")
    assert "What PATH is: asset-list, inventory, skypilot" in told
    assert "asset-list: provider, lifetime_years" in told
    done = copied.chipwise("catalog", "import", str(machines), "--as", "asset-list", "--json")
    assert (done.returncode, json.loads(done.stdout)[0]["machines"]) == (0, 1), done.stderr
    unsure = copied.chipwise("catalog", "import", str(machines))
    assert (unsure.returncode, "could be of asset-list or inventory" in unsure.stderr) == (2, True)


def test_other_packages_join_by_entry_points(copied: PackageCopy, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "outside-1.0.dist-info").mkdir(parents=True)
    (other / "outside-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (other / "outside-1.0.dist-info" / "entry_points.txt").write_text(
        "[chipwise.feeds]\noutside = outside_feed\n\n[chipwise.engines]\noutside = outside_engine\n"
    )
    (other / "outside_feed.py").write_text(OUTSIDE)
    local = (copied.adapters / "engines" / "local" / "__init__.py").read_text()
    (other / "outside_engine.py").write_text(local.replace("from .engine", "from chipwise.adapters.engines.local.engine"))
    assert "gcp, outside." in helped(copied, "catalog", "refresh", ahead=other)
    assert "The outside feed was asked." in copied.chipwise("catalog", "refresh", "outside", ahead=other).stderr
    assert "kubernetes, outside," in helped(copied, "run", ahead=other)
    done = copied.chipwise("run", "--engine", "outside", "--", "echo", "here", ahead=other)
    assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr
