"""Ctrl-C and SIGTERM end every command promptly, with one sentence about saved results and no remaining process."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import elf_files

LONG = ["--workload", "array-swap", "--machine", "tiny", "--ops", "100000000"]
CAMPAIGN = """
name = "long"
[[sweep]]
designs = ["tc", "hercules"]
workloads = ["array-swap"]
seeds = 60
ops = 60
points = 1000
args = { populate = 10 }
"""
# Generous: the machine may be busy with other tests.
SOON_S = 10


def start(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "durasim", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options,
    )  # fmt: skip


def end(process, number=signal.SIGINT, *, group=True):
    """Sends a signal, as a terminal does to all processes of a command, and returns the messages."""
    begin = time.monotonic()
    if group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 128 + number, complaint
    assert "Traceback" not in complaint
    assert time.monotonic() - begin < SOON_S
    *_, last = complaint.strip().split("\n")
    assert last.startswith("durasim: interrupted")
    assert "kept" in last or "saved" in last or "resumes" in last or "lost" in last
    return complaint


def wait_until(happened):
    # The guest program may first be built, on a busy machine.
    deadline = time.monotonic() + 400
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def has_loaded(process):
    """Whether the Rust core is loaded: earlier signals end Python with its default behaviour."""
    maps = Path(f"/proc/{process.pid}/maps").read_text()
    threads = len(os.listdir(f"/proc/{process.pid}/task"))  # noqa: PTH208 - a count of files in /proc
    return "_core" in maps and threads > 1


def children_of(pid):
    """The child processes listed by the kernel."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_never_ends(elf, tmp_path, number):
    path = tmp_path / "result.json"
    spin = elf(elf_files.elf64([*elf_files.write_from_pc(1, b"spinning\n"), elf_files.SPIN]))
    process = start("run", "--elf", spin, "--json", path)
    assert process.stdout is not None
    assert process.stdout.readline() == "spinning\n"
    end(process, number)
    assert not path.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["run", *LONG],
        ["run", *LONG, "--fast-forward", "roi", "--arg", "warm-ops=100000000"],
        ["crash", "--design", "opt", *LONG],
        ["crash", "--design", "tc", "--workload", "array-swap", "--machine", "tiny", "--ops", "300", "--points", "all"],
        ["workloads", "array-swap", "--measure", "--ops", "100000000"],
        ["mutation"],
    ],
    ids=["run", "fast-forward", "count", "crash", "measure", "mutation"],
)
def test_every_long_command(words):
    with start(*words) as process:
        wait_until(lambda: has_loaded(process))
        time.sleep(0.5)
        assert process.poll() is None
        end(process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_comparison_says_how_far_it_was(number):
    with start("compare", "--designs", "opt,hercules,tc", "--workloads", *LONG[1:], "--jobs", "2") as process:
        wait_until(lambda: has_loaded(process))
        time.sleep(0.5)
        complaint = end(process, number, group=False)
    assert "0 of 3 runs were done" in complaint


@pytest.fixture
def campaign(tmp_path):
    path = tmp_path / "campaign.toml"
    path.write_text(CAMPAIGN)
    return path


def kept(path):
    try:
        with sqlite3.connect(path) as connection:
            return connection.execute("SELECT count(*) FROM result").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def test_a_campaign_says_what_is_kept_and_takes_its_workers_with_it(campaign, tmp_path):
    verdicts = tmp_path / "verdicts.sqlite"
    with start("campaign", campaign, "--store", verdicts) as process:
        wait_until(lambda: verdicts.exists() and kept(verdicts) > 2)
        workers = children_of(process.pid)
        assert workers
        complaint = end(process)
    assert f"{verdicts} holds {kept(verdicts)} results: the same command resumes" in complaint
    wait_until(lambda: not any(is_alive(worker) for worker in workers))


def test_workers_end_with_a_campaign_that_is_killed(campaign, tmp_path):
    verdicts = tmp_path / "verdicts.sqlite"
    with start("campaign", campaign, "--store", verdicts) as process:
        wait_until(lambda: verdicts.exists() and kept(verdicts) > 0)
        workers = children_of(process.pid)
        assert workers
        process.kill()
    wait_until(lambda: not any(is_alive(worker) for worker in workers))


def test_a_campaign_whose_worker_is_killed_says_what_is_kept(campaign, tmp_path):
    verdicts = tmp_path / "verdicts.sqlite"
    with start("campaign", campaign, "--store", verdicts) as process:
        wait_until(lambda: verdicts.exists() and kept(verdicts) > 0)
        os.kill(children_of(process.pid)[-1], signal.SIGKILL)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == 4, complaint
    assert "Traceback" not in complaint
    *_, last = complaint.strip().split("\n")
    said = f"a worker process was killed; {verdicts} holds {kept(verdicts)} results: the same command resumes"
    assert said in " ".join(complaint.split()), last
