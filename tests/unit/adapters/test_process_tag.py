"""A tag stays on a process that clears its environment, and comes off what is no part of the job."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chipwise.adapters import process_tag

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets one process read the limits of another")
SHOW = "import os; from chipwise.adapters import process_tag; print(process_tag.tag(os.getpid()))"


def test_marks_have_tags_of_their_own() -> None:
    tags = {process_tag.tag_of(f"/run/jobs/j{number}/1") for number in range(1000)}
    assert len(tags) == 1000
    assert all(0 < tag < 2**63 - 1 for tag in tags)


def test_a_tag_is_inherited_until_it_is_taken_off() -> None:
    tag = process_tag.tag_of("one")
    with subprocess.Popen(["env", "-i", "cat"], stdin=subprocess.PIPE, preexec_fn=lambda: process_tag.put_on(tag)) as child:
        assert process_tag.tag(child.pid) == tag
        assert child.stdin is not None
        child.stdin.close()
    code = f"from chipwise.adapters import process_tag as t; import subprocess, sys; t.put_on({tag})\n"
    code += f"show = [sys.executable, '-c', {SHOW!r}]\nwith t.taken_off(): subprocess.run(show)\nsubprocess.run(show)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["None", str(tag)]
