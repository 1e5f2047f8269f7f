"""API keys in a file: digests only, and a file that is wrong lets nobody in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chipwise.adapters.http.key_file import add_key, read_keys
from chipwise.errors import BadInput


def test_a_new_key_is_let_in_and_stands_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    alice, bob = add_key(path, "alice", "search"), add_key(path, "bob")
    ring = read_keys(path)
    found = ring.find(f"Bearer {alice}".encode())
    assert found is not None
    assert (found.name, found.team) == ("alice", "search")
    assert ring.find(b"Bearer " + alice[:-1].encode()) is None
    assert not any(secret in path.read_text() for secret in (alice, bob))
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(BadInput, match="a key of alice already"):
        add_key(path, "alice")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("keys: []", "has no list `keys`"),
        ("keyz: [{name: a}]", "has no list `keys`"),
        ("keys: [{sha256: 00}]", "key 1 has no name"),
        ("keys: [{name: a, sha256: secret}]", "has no SHA-256"),
        (f"keys: [{{name: a, sha256: {'0' * 64}, tokens: 5}}]", "unknown fields: tokens"),
        (f"keys: [{{name: a, sha256: {'a' * 64}, requests_per_s: -1}}]", "requests_per_s is -1"),
        (f"keys: [{{name: a, sha256: {'a' * 64}, priority: 1e999}}]", "priority is inf"),
        (f"keys: [{{name: a, sha256: {'a' * 64}}}, {{name: a, sha256: {'b' * 64}}}]", "two keys of one name"),
        (f"keys: [{{name: a, sha256: {'a' * 64}}}, {{name: b, sha256: {'a' * 64}}}]", "one key under two names"),
        (f'keys: [{{name: "", sha256: {"a" * 64}}}]', "key 1 has no name"),
        (f'keys: [{{name: a, sha256: {"a" * 64}, team: "x\\e[31m"}}]', "no printable team"),
    ],
)
def test_a_file_that_is_wrong_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=reason):
        read_keys(path)


@pytest.mark.parametrize(("name", "team"), [("a\nb", ""), ("", ""), ("a" * 201, ""), ("a", "b\x1b[31m")])
def test_a_name_that_would_make_the_file_unreadable_is_refused(name: str, team: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    add_key(path, "alice")
    before = path.read_text()
    with pytest.raises(BadInput, match="printable characters"):
        add_key(path, name, team)
    assert path.read_text() == before


def test_no_key_is_written_through_a_link(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="is a link"):
        add_key(path, "alice")
    assert not (tmp_path / "elsewhere").exists()


def test_keys_that_are_added_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda number: add_key(path, f"key-{number}"), range(16)))
    ring = read_keys(path)
    assert all(ring.find(f"Bearer {secret}".encode()) for secret in added)
