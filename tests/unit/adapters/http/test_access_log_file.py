"""The file of the access log: private, bounded, and written on where nothing new can be opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chipwise.adapters.http import service_gateway
from chipwise.adapters.http.service_gateway import LogFile


def test_only_the_owner_reads_it_and_one_older_part_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_gateway, "LOG_BYTES", 100)
    log = LogFile(tmp_path / "access.log")
    for _ in range(10):
        log.write(b"a" * 60)
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["access.log", "access.log.1"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())


def test_where_no_file_can_be_opened_the_full_one_is_written_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where clients hold all descriptors: requests are answered all the same."""
    monkeypatch.setattr(service_gateway, "LOG_BYTES", 100)
    log = LogFile(tmp_path / "access.log")

    def refuses(*values: object) -> int:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as full:
        full.setattr(os, "open", refuses)
        log.write(b"a" * 200)
    log.write(b"b")
    log.close()
    assert b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir())).count(b"b") == 1
