"""`chipwise simulate queue` as a user has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import Chipwise

FIELDS = {"policy", "jobs", "mean_jct_s", "p99_jct_s", "makespan_s", "ratio_to_bound"}
FIELDS |= {"fairness", "utilisation", "preemptions", "late"}
JOBS = "timestamp,num_gpus,duration,team\n2026-03-01 10:00:00,1,60,a\n2026-03-01 10:00:10,2,30,b\n"


def test_a_table_of_ones_own_and_a_policy_of_ones_own(chipwise: Chipwise, tmp_path: Path) -> None:
    table, own = tmp_path / "jobs.csv", tmp_path / "mine.py"
    table.write_text(JOBS)
    own.write_text("PREEMPTS = True\n\ndef rank(job):\n    return -job.gpus\n")
    flags = ("--trace", str(table), "--gpus", "2", "--restart", "0s", "--json")
    done = chipwise("simulate", "queue", "--policy", f"fifo,{own}", *flags)
    assert done.code == 0, done.err
    fifo, mine = json.loads(done.out)
    assert set(fifo) == set(mine) == FIELDS
    assert fifo["mean_jct_s"] == pytest.approx((60 + 80) / 2)
    assert mine["mean_jct_s"] == pytest.approx((90 + 30) / 2)
    assert fifo["jobs"] == 2
    assert fifo["ratio_to_bound"] >= mine["ratio_to_bound"] >= 1.0


def test_invented_jobs_with_failures_are_shown_as_a_table(chipwise: Chipwise) -> None:
    flags = ("--synthetic", "jobs=40", "--failures-every", "6h", "--checkpoint-every", "10min", "--quota", "team 1=4")
    done = chipwise("simulate", "queue", "--policy", "fair-share,deadline", *flags)
    assert done.code == 0, done.err
    assert "to bound" in done.out


def test_the_table_fits_80_columns_and_shows_each_name_whole(chipwise: Chipwise) -> None:
    names = ("fifo", "shortest-estimate", "shortest-remaining", "least-attained", "heterogeneity")
    done = chipwise("simulate", "queue", "--synthetic", "jobs=80,spread=3", "--gpus", "16", "--policy", ",".join(names))
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[2:]] == list(names)


def test_bad_input_ends_in_a_sentence(chipwise: Chipwise, tmp_path: Path) -> None:
    table, own = tmp_path / "jobs.csv", tmp_path / "mine.py"
    cases = (
        ("", "has no jobs"),
        ("timestamp,duration\n1,2\n", "has no column for gpus"),
        ("timestamp,gpus,duration\nsoon,1,2\n", "line 2: 'soon' is not a time"),
        ("timestamp,gpus,duration\n-5,1,2\n", "line 2: the time '-5' is not possible"),
        ("timestamp,gpus,duration\n1,many,2\n", "line 2: gpus is 'many'"),
        ("timestamp,gpus,duration\n1,1.5,2\n", "line 2: 1.5 GPUs for 2 s are not possible"),
        ("timestamp,gpus,duration\n1,1,-2\n", "line 2: 1 GPUs for -2 s are not possible"),
        ("timestamp,gpus,duration\n2026-03-01T10:00:00Z,1,2\n2026-03-01T10:00:00,1,2\n", "some times have a time zone"),
        ("timestamp,gpus,duration\n1,64,2\n", "needs 64 GPUs at once"),
        ("timestamp,gpus,duration\n1,1e308,2\n", "1e+308 GPUs for 2 s"),
        ("timestamp,gpus,duration\n1e50,1,2\n", "from 1e+50 s on"),
    )
    wrong = []
    for content, sentence in cases:
        table.write_text(content)
        done = chipwise("simulate", "queue", "--trace", str(table), "--gpus", "8")
        if done.code != 2 or sentence not in done.err:
            wrong.append((content, sentence, done.code, done.err))
    for arguments, sentence in (
        ((), "Give either --trace or --synthetic."),
        (("--synthetic", "job=3"), "Did you mean jobs?"),
        (("--synthetic", "jobs=3", "--policy", "fifa"), "Did you mean fifo?"),
        (("--synthetic", "jobs=3", "--policy", "greedy"), "greedy"),
        (("--synthetic", "jobs=3", "--quota", "team 11=4"), "No team of the jobs is called 'team 11'."),
        (("--synthetic", "jobs=3", "--failures-every", "0s"), "The time between failures must be above zero"),
        (("--synthetic", "jobs=3", "--quota", "a"), "Write --quota TEAM=GPUS"),
    ):
        done = chipwise("simulate", "queue", *arguments)
        if done.code != 2 or sentence not in done.err:
            wrong.append((str(arguments), sentence, done.code, done.err))
    for body, sentence in (("rank = 3", "defines neither rank"), ("def rank(job):\n    return 'x'", "answered 'x'")):
        own.write_text(body)
        done = chipwise("simulate", "queue", "--synthetic", "jobs=3", "--policy", str(own))
        if done.code != 2 or sentence not in done.err:
            wrong.append((body, sentence, done.code, done.err))
    assert not wrong


def test_a_trace_of_another_format_that_is_spoilt_ends_in_a_sentence(chipwise: Chipwise, tmp_path: Path) -> None:
    jobs = "timestamp,gpus,duration\n1,1,2\n"
    wrong = []
    cases = (
        ("workload.csv", "nam,time,application,num_replicas\na,0,bert,1\n", "has no column name"),
        ("workload.csv", "name,time,application,num_replicas\na,0,bert,0\n", "needs 0 GPUs"),
        ("pods.csv", "name,num_gpu,gpu_milli,deletion_time\na,1,1000,5\n", "has no column creation_time"),
        ("node_list.csv", "gpu,model\n0,V100\n", "has no machine with a GPU"),
        ("simulation_throughputs.json", "[" * 5000, "is no table of throughputs"),
        ("simulation_throughputs.json", '{"v100": {}, "p100": {}, "k80": {}}', "has no job type of 1 GPUs"),
    )
    for place, (name, content, sentence) in enumerate(cases):
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / name).write_text(content)
        if "node" in name:
            (folder / "jobs.csv").write_text(jobs)
        done = chipwise("simulate", "queue", "--policy", "fifo", "--trace", str(folder))
        if done.code != 2 or sentence not in done.err:
            wrong.append((name, sentence, done.code, done.err))
    for arguments, sentence in (
        (("--failures-every=-1h",), "time between failures must be above zero"),
        (("--failures-every", "1ns", "--repair", "0s"), "is too much to simulate"),
        (("--estimate-error", "nan"), "--estimate-error nan is not possible"),
    ):
        done = chipwise("simulate", "queue", "--policy", "fifo", "--synthetic", "jobs=20", *arguments)
        if done.code != 2 or sentence not in done.err:
            wrong.append((" ".join(arguments), sentence, done.code, done.err))
    assert not wrong


def test_the_page_draws_when_jobs_ran_and_the_gpus_in_use(chipwise: Chipwise, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    flags = ("--synthetic", "jobs=80", "--gpus", "16", "--policy", "fifo,least-attained")
    done = chipwise("simulate", "queue", *flags, "--html", str(page))
    assert done.code == 0, done.err
    text = page.read_text()
    assert "Soonest done on average" in text
    assert all(f'id="{name}"' in text for name in ("times", "policies", "jobs-0", "gpus-0", "jobs-1", "gpus-1"))


def test_a_folder_with_machines_alone_says_what_is_missing(chipwise: Chipwise, tmp_path: Path) -> None:
    (tmp_path / "node_info_df.csv").write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nA100,8,192,0\nA10,1,64,1\n")
    done = chipwise("simulate", "queue", "--trace", str(tmp_path))
    assert (done.code, "has machines (2 with 9 GPUs) and no jobs" in done.err) == (2, True)
