"""An archive of video: every item is encoded once, by one part, and what is there is not done again."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.auditor.auditing import audit
from chipwise.files.source import read_text
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.archive import archive_words
from chipwise.renderer.layout import independent, meets, pods
from chipwise.renderer.named_targets import files, target
from chipwise.units import HOUR
from deployments import EXAMPLES, session
from once_in_run import once_in_run

TEXT = """\
kind: transcode
name: film-archive
duration: 20000h
source: {codec: h264, resolution: 1080p, fps: 25, bitrate: 8 Mbit/s}
outputs:
  - {codec: hevc, resolution: 1080p, fps: 25, bitrate: 4 Mbit/s}
  - {codec: hevc, resolution: 720p, fps: 25, bitrate: 2 Mbit/s}
goals: {deadline: 5d, objective: cost}
limits: {clouds: [aws]}
"""
# A stand-in for ffmpeg: it copies its source to every target, and fails for what is called broken.
FFMPEG = """\
#!/bin/sh
source=""
for word in "$@"; do
  if [ "$last" = -i ]; then source=$word; fi
  case $word in */[0-9].ts) echo "$PART $source $word" >> "$LOG"; cat "$source" > "$word" ;; esac
  last=$word
done
case ${source##*/} in broken*) exit 3 ;; esac
"""


def planned() -> Deployment:
    path = str(EXAMPLES / "transcode" / "workload.yaml")
    assert read_text(path)
    return once_in_run(("archive",), lambda: deployment_of(session(), path, RenderRequest(text=TEXT)))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ffmpeg").write_text(FFMPEG)
    (tools / "ffmpeg").chmod(0o755)
    for number in range(7):
        item = tmp_path / "in" / ("reel one" if number % 2 else "reel$two") / f"film {number}.mp4"
        item.parent.mkdir(parents=True, exist_ok=True)
        item.write_text(f"film {number}\n")
    return tmp_path


def run(place: Path, part: int, parts: int) -> int:
    words = [word.replace("/data/", f"{place}/") for word in planned().software.command]
    env = {"PATH": f"{place}/tools:{os.environ['PATH']}", "PART": str(part), "PARTS": str(parts), "LOG": f"{place}/log"}
    return subprocess.run(words, env=env | {"RETRY_SECONDS": "0"}, timeout=60, check=False).returncode


def results(place: Path) -> dict[str, str]:
    out = place / "out"
    return {str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()}


def test_parts_share_the_items_and_no_file_is_written_twice(place: Path) -> None:
    assert [run(place, part, 3) for part in range(3)] == [0, 0, 0]
    made = results(place)
    assert len(made) == 14
    assert made["reel one/film 3.mp4/1.ts"] == "film 3\n"
    written = [line.split(" ", 1)[1] for line in (place / "log").read_text().splitlines()]
    assert len(written) == len(set(written)) == 14


def test_what_is_there_is_not_done_again(place: Path) -> None:
    assert run(place, 0, 1) == 0
    (place / "out" / "reel one" / "film 1.mp4" / "0.ts").unlink()
    (place / "log").unlink()
    assert run(place, 0, 1) == 0
    assert len((place / "log").read_text().splitlines()) == 2, "one item, both of its results"


def test_a_bad_item_stops_no_other_and_shows(place: Path) -> None:
    (place / "in" / "broken.mp4").write_text("x")
    assert run(place, 0, 1) == 1
    made = results(place)
    assert len(made) == 14
    assert not any("broken" in name for name in made)
    assert not list((place / "out").glob(".now*")), "nothing half-done is left"


def test_the_parts_of_an_archive_never_meet() -> None:
    archive = planned()
    assert independent(archive)
    assert not meets(archive)
    [job] = [
        one
        for file in files("kubernetes", target("kubernetes"), archive)
        for one in yaml.safe_load_all(file.text)
        if one["kind"] == "Job"
    ]
    assert job["spec"]["completions"] == pods(archive) == archive.machines * max(archive.node.chips, 1)
    assert job["spec"]["backoffLimitPerIndex"] >= 1
    data = archive.volume("data")
    assert data is not None
    assert data.size_bytes == pytest.approx(1.1 * 20000 * HOUR * (8 + 4 + 2) * 1e6 / 8)


def test_the_command_overwrites_only_names_of_its_own() -> None:
    words = archive_words(("ffmpeg", "-i", "/data/in.ts", "-f", "mpegts", "/data/out-0.ts"))
    assert words[-2] == 'exec ffmpeg -y -i "$SOURCE" -f mpegts "${1}"'


def test_results_of_several_codecs_have_the_container_that_their_ending_names() -> None:
    one = ("ffmpeg", "-i", "/data/in.ts", "-c:v", "av1_nvenc", "-f", "matroska", "/data/out-0.mkv")
    two = ("-c:v", "h264_nvenc", "-f", "mpegts", "/data/out-1.ts")
    words = archive_words((*one, *two))
    assert words[7] == "mkv"
    assert "mpegts" not in words[-2]
    assert words[-2].count("matroska") == 2


@pytest.mark.parametrize("name", ["kubernetes", "kueue", "skypilot"])
def test_an_archive_that_goes_on_where_it_was_is_fit_for_spot_machines(name: str) -> None:
    assert planned().spot
    found = audit([(file.path, file.text) for file in target(name).render(planned())]).findings
    assert "spot-without-checkpoint" not in {finding.rule for finding in found}


def test_the_price_of_a_file_system_for_the_archive_is_said() -> None:
    [volume] = [volume for volume in planned().volumes if volume.shared]
    written = next(file.text for file in target("kubernetes").render(planned()) if file.path == "namespace.yaml")
    assert f"EFS takes about ${volume.size_bytes / 1e9 * 0.3:,.0f} a month" in written


def held(terabytes: float) -> Deployment:
    what = planned()
    volumes = tuple(replace(one, size_bytes=terabytes * 1e12) if one.name == "data" else one for one in what.volumes)
    return replace(what, volumes=volumes, node=replace(what.node, disk_bytes=None, share=1.0))


def test_an_archive_that_no_disk_holds_is_not_copied_to_one() -> None:
    """Before, each of the machines got the largest disk that there is, and a copy that filled it."""
    with pytest.raises(CannotRender, match="would copy /data"):
        target("ec2").render(held(70))
    assert target("ec2").render(held(3))


def test_terraform_gives_such_an_archive_a_node_pool_whose_disks_hold_images() -> None:
    pytest.importorskip("hcl2")
    made = {file.path: file.text for file in target("terraform").render(held(70))}
    assert {path.partition("/")[0] for path in made} == {"eks"}
    assert "would copy /data" in made["eks/main.tf"]
    sizes = [int(size) for size in re.findall(r"volume_size\s*=\s*(\d+)", made["eks/main.tf"])]
    assert sizes
    assert max(sizes) <= 500
    assert "main.tf" in {file.path for file in target("terraform").render(held(3))}
