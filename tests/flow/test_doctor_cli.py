from __future__ import annotations

import json
from pathlib import Path

import chipwise as cw
from chipwise.observe.recording import written
from command import Chipwise
from played_recordings import H200, played


def recording(path: Path, kind: str) -> Path:
    path.write_text(written(played({"nvidia:0": H200[kind]}, program={}, usd_per_hour=3.5)))
    return path


def test_the_first_line_names_the_cause_and_its_cost(chipwise: Chipwise, tmp_path: Path) -> None:
    done = chipwise("doctor", str(recording(tmp_path / "run.jsonl", "tiny-kernels")))
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("launch-bound: ")
    assert "$2.66 an hour" in " ".join(lines[:2])
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines)


def test_a_well_used_device_needs_nothing(chipwise: Chipwise, tmp_path: Path) -> None:
    done = chipwise("doctor", str(recording(tmp_path / "run.jsonl", "matrix-products")))
    assert (done.code, done.out.splitlines()[0][:21]) == (0, "Nothing need be done.")


def test_json_and_the_function_say_the_same(chipwise: Chipwise, tmp_path: Path) -> None:
    path = recording(tmp_path / "run.jsonl", "pcie")
    done = chipwise("doctor", str(path), "--json")
    view = json.loads(done.out)
    assert view["findings"][0]["rule"] == "transfer-bound"
    assert view["findings"][0]["page"] == "docs/doctor/transfer-bound.md"
    assert cw.doctor(path).findings[0].rule == "transfer-bound"


def test_bad_input_gets_a_sentence_and_the_right_exit_code(chipwise: Chipwise, tmp_path: Path) -> None:
    text = recording(tmp_path / "run.jsonl", "pcie").read_text()
    cut, empty, other = tmp_path / "cut.jsonl", tmp_path / "empty.jsonl", tmp_path / "other.jsonl"
    cut.write_text(text[: len(text) // 2])
    empty.write_text("")
    other.write_text("hello\n")
    assert chipwise("doctor", str(cut)).code == 0  # what was written before the cut counts
    short = tmp_path / "short.jsonl"
    short.write_text("".join(text.splitlines(keepends=True)[:4]))
    for arguments, code in (
        (("doctor",), 2),
        (("doctor", str(empty)), 2),
        (("doctor", str(other)), 2),
        (("doctor", str(tmp_path / "missing.jsonl")), 2),
        (("doctor", str(cut), "--pid", "1"), 2),
        (("doctor", str(cut), "--for", "0s"), 2),
        (("doctor", str(short)), 1),
        (("health", "--from", str(tmp_path / "missing")), 2),
        (("health", "--from", str(empty)), 2),
        (("health", "--from", str(tmp_path)), 2),
    ):
        done = chipwise(*arguments)
        assert done.code == code, (arguments, done.err)
        assert len(done.err.strip().splitlines()) <= 2


def test_rules_are_listed(chipwise: Chipwise) -> None:
    assert "launch-bound" in chipwise("doctor", "--rules").out


def test_health_of_a_log_a_recording_and_nodes(chipwise: Chipwise, tmp_path: Path) -> None:
    log, nodes = tmp_path / "kernel.log", tmp_path / "nodes.json"
    log.write_text(
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\nNVRM: Xid (PCI:0000:5e:00): 13, pid=2\n"
    )
    done = chipwise("health", "--from", str(log))
    assert done.code == 1
    assert "drain" in done.out.splitlines()[0]
    assert "a program failed" in done.out
    nodes.write_text(json.dumps({"items": [{"metadata": {"name": "n1"}, "status": {}}]}))
    assert chipwise("health", "--from", str(nodes)).code == 0
    well = chipwise("health", "--from", str(recording(tmp_path / "run.jsonl", "copies")), "--json")
    assert json.loads(well.out)["devices"][0]["state"] == "fine"
    assert cw.health(log).devices[0].state == "drain"


def test_a_file_that_is_not_text_is_not_called_healthy(chipwise: Chipwise, tmp_path: Path) -> None:
    """A wrong file had no line about a device in it, and so all was well."""
    (junk := tmp_path / "core").write_bytes(b"\x7fELF\0\1\2" * 100)
    done = chipwise("health", "--from", str(junk))
    assert (done.code, "is not text" in done.err) == (2, True)
