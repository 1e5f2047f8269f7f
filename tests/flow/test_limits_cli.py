"""Hard limits as a user meets them: exit code 1 and the number that was missing, exit code 2 and a sentence for mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from command import Chipwise

pytestmark = pytest.mark.real_catalog

ROOT = Path(__file__).resolve().parents[2]
TRAIN = f"{ROOT}/examples/train/workload.yaml"


def written(folder: Path, example: str, **goals: object) -> str:
    """An example with other goals."""
    data = yaml.safe_load((ROOT / "examples" / example / "workload.yaml").read_text())
    data.pop("environments", None)
    data["goals"] = goals
    path = folder / "workload.yaml"
    path.write_text(yaml.safe_dump(data))
    return str(path)


def flat(text: str) -> str:
    """Without the line breaks of 80 columns."""
    return " ".join(text.split())


def test_a_quota_is_refused_with_its_number(chipwise: Chipwise) -> None:
    done = chipwise(
        "plan", TRAIN, "--limit", "chips=h100", "--limit", "clouds=aws", "--limit", 'quotas={"aws:eu-north-1:h100": 4, h100: 7}'
    )
    assert done.code == 1
    assert "needs 8 h100, your quota is 7" in flat(done.out)
    assert "your quota 1 higher: 8 h100" in flat(done.out)
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_chip_that_does_not_run_what_is_required_is_refused(chipwise: Chipwise) -> None:
    done = chipwise("plan", TRAIN, "--limit", "chips=t4", "--limit", "requires=flash-attention>=2")
    assert done.code == 1
    assert "offers: flash-attention>=2 does not run there, such as" in flat(done.out)
    assert "T4 (Turing) has 7.5" in flat(done.out)
    assert "without limits.requires" in flat(done.out)


def test_a_moment_that_is_past_is_a_mistake(chipwise: Chipwise, tmp_path: Path) -> None:
    done = chipwise("plan", written(tmp_path, "train", finish_by="2026-11-14T10:00Z"))
    assert done.code == 2
    assert "goals.finish_by: 2026-11-14T10:00+00:00 is past; today is 2026-11-15" in flat(done.err)
    assert "72h" in done.err
    near = chipwise("plan", written(tmp_path, "train", finish_by="2026-11-15T02:00Z"))
    assert near.code == 1
    assert "Would help: deadline" in flat(near.out)


def test_more_replicas_than_allowed_are_refused_with_the_number(chipwise: Chipwise) -> None:
    file = yaml.safe_load((ROOT / "examples" / "serve" / "workload.yaml").read_text())
    file["replicas"], file["arrival"]["rate"] = {"min": 1, "max": 2}, "400 req/s"
    file.pop("environments")
    path = chipwise.home / "serve.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(file))
    done = chipwise("plan", str(path), "--limit", "chips=l4")
    assert done.code == 1
    assert "2 are allowed. Would help: replicas.max of" in flat(done.out)
    assert "offers: needs more than 2 replicas, such as" in flat(done.out)


def test_a_budget_per_hour_limits_a_training(chipwise: Chipwise, tmp_path: Path) -> None:
    held = chipwise("plan", written(tmp_path, "train", budget="$12/hour", objective="time"), "--json")
    assert held.code == 0
    for one in held.json["choices"]:
        assert one["usd"] / (one["seconds"]["value"] / 3600) <= 12.001
    free = chipwise("plan", written(tmp_path, "train", objective="time"), "--json").json
    assert free["winner"]["usd"] / (free["winner"]["seconds"]["value"] / 3600) > 12
    none = chipwise("plan", written(tmp_path, "train", budget="$0.02/hour"))
    assert none.code == 1
    assert "an hour higher" in flat(none.out)


def test_what_a_provider_grants_unasked_is_told(chipwise: Chipwise) -> None:
    done = chipwise(
        *("plan", TRAIN, "--full", "--budget", "20k"),
        *("--limit", "chips=h100", "--limit", "clouds=aws", "--limit", "interruptible=false"),
    )
    assert done.code == 0
    asked = r"aws: Running On-Demand P instances: \d+ vCPUs needed, default 0; request an increase \(L-417A185B\) first"
    assert re.search(asked, flat(done.out))
    hard = chipwise(
        "plan",
        TRAIN,
        "--limit",
        "chips=h100",
        "--limit",
        "clouds=aws",
        "--limit",
        "interruptible=false",
        "--limit",
        "default_quotas=true",
    )
    assert hard.code == 1
    assert "needs 192 vCPU of aws Running On-Demand P instances, the default quota is 0" in flat(hard.out)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("requires=flsh-attention", "Did you mean flash-attention?"),
        ("requires=[cuda>=12, cuda<11]", "no version of cuda"),
        (f"requires={'x' * 5000}", "does not name what must run"),
        ('quotas={"mars:h100": 4}', "mars"),
    ],
)
def test_mistakes_end_in_a_sentence(chipwise: Chipwise, limit: str, told: str) -> None:
    done = chipwise("plan", TRAIN, "--limit", limit)
    assert done.code == 2, done.out
    assert told in done.err
    assert "Traceback" not in done.err
    assert len(done.err) < 1500
