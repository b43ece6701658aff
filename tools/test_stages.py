"""Runs the stages of `make test`, with `--all` those of `make test-all`, with `--deep` those of `make test-deep`.

It ends with the ten slowest tests and the seconds of each stage. A test of Rust is counted with all others of its file:
cargo gives no times of single tests.

A stage that passed is recorded in build/stages.json with the commit and the hash of the compiled module, if no file
differed from the commit. `--from STAGE` leaves out the stages before it, and refuses unless they passed on this commit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv" / "bin"
REPORT = ROOT / "build" / "pytest.xml"
RECORD = ROOT / "build" / "stages.json"
MODULE = ROOT / "python" / "durasim" / "_core.abi3.so"
SLOWEST = 10

# The module is built concurrently with lints and Rust tests: its link-time optimisation keeps one core busy.
SETUP = ("make", "--no-print-directory", "setup")
# Examples are checked only by clippy.
TARGETS = ("--workspace", "--locked", "--lib", "--bins", "--tests")
BUILD = (
    ("cargo", "fmt", "--all", "--check"),
    ("cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"),
    ("cargo", "test", *TARGETS, "--no-run", "--quiet"),
)
RUST = (("cargo", "test", *TARGETS), ("cargo", "test", "--workspace", "--locked", "--doc", "--quiet"))
PYTHON = (
    (str(BIN / "ruff"), "check"),
    (str(BIN / "ruff"), "format", "--check"),
    (str(BIN / "python"), "-m", "pytest", "--numprocesses", "auto", f"--junit-xml={REPORT}"),
)
# Stages that take too long for every change. The tests of the wheel are among the long ones.
WHEEL = (("make", "--no-print-directory", "page"), (str(BIN / "python"), "-m", "tools.wheel"))
FAULTS = (
    ("cargo", "test", *TARGETS[:2], "--test", "canaries", "--", "--ignored"),
    ("env", "DURASIM_SEEDS=1500", "cargo", "test", *TARGETS[:2], "--test", "random"),
)
# A worker that is done takes the next test, in the order of tests/conftest.py. Tests that share what they build are a
# group: one worker runs all of them.
IN_ORDER = ("--dist", "loadgroup", "--no-loadscope-reorder")
LONG = (
    ("make", "--no-print-directory", "build/stamps/browser", "page"),
    (*PYTHON[-1], *IN_ORDER, "-m", "long and not deep"),
)
DEEP = ((*PYTHON[-1], *IN_ORDER, "-m", "deep"),)

Stages = Sequence[tuple[str, Sequence[Sequence[str]]]]
STAGES: Stages = (("build", BUILD), ("rust", RUST), ("python", PYTHON))
FURTHER_STAGES: Stages = (("wheel", WHEEL), ("faults", FAULTS), ("long", LONG))
DEEP_STAGES: Stages = (("deep", DEEP),)
ALL_STAGES: Stages = (*STAGES, *FURTHER_STAGES, *DEEP_STAGES)

_FILE = re.compile(r"^\s+Running (?:unittests )?(\S+) \(\S*?/deps/([^)]+)-[0-9a-f]+\)")
_FINISHED = re.compile(r"^test result: .* finished in ([0-9.]+)s")


def _run(command: Sequence[str]) -> tuple[int, list[str]]:
    """Runs a command, passes its output on, and returns its exit code and lines."""
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line)
    return process.returncode, lines


def _finish(setup: subprocess.Popen[str]) -> int:
    """Waits until the module is built, passes the output on, and returns the exit code."""
    printed, _ = setup.communicate()
    sys.stdout.write(printed)
    sys.stdout.flush()
    return setup.returncode


def _rust_times(lines: Sequence[str]) -> Iterator[tuple[float, str]]:
    file = ""
    for line in lines:
        if found := _FILE.match(line):
            file = f"{found[2]} ({found[1]})"
        elif found := _FINISHED.match(line):
            yield float(found[1]), file


def _python_times() -> Iterator[tuple[float, str]]:
    if REPORT.is_file():
        for case in ElementTree.parse(REPORT).iter("testcase"):  # noqa: S314 - written by pytest above
            yield float(case.get("time", 0)), f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def _git(*arguments: str) -> str | None:
    command = ("git", *arguments)
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def _tree() -> str | None:
    """Gives commit and hash of the module; None if a file differs from the commit, or there is none."""
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    if commit is None or changes != "" or not MODULE.is_file():
        return None
    return f"{commit} {hashlib.sha256(MODULE.read_bytes()).hexdigest()[:16]}"


def _passed() -> dict[str, dict[str, str | int]]:
    """Gives the stages that passed, each with `tree` and `seconds`."""
    return json.loads(RECORD.read_text()) if RECORD.is_file() else {}


def _record(stage: str, seconds: int) -> None:
    if (tree := _tree()) is not None:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(_passed() | {stage: {"tree": tree, "seconds": seconds}}, indent=1) + "\n")


def _chosen() -> tuple[str, Stages]:
    """Gives the name of what is run, and its stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--all", action="store_true", help="the stages of make test-all")
    kind.add_argument("--deep", action="store_true", help="the stages of make test-all, and what takes hours")
    names = [stage for stage, _ in ALL_STAGES]
    parser.add_argument("--from", dest="first", choices=names, metavar="STAGE", help=f"one of {', '.join(names)}")
    chosen = parser.parse_args()
    stages = ALL_STAGES if chosen.deep else (*STAGES, *FURTHER_STAGES) if chosen.all else STAGES
    name = "test-deep" if chosen.deep else "test-all" if chosen.all else "test"
    if chosen.first is None:
        return name, stages
    present = [stage for stage, _ in stages]
    if chosen.first not in present:
        parser.error(f"--from: {chosen.first} is no stage of {name}, which has {', '.join(present)}")
    before, passed, tree = present[: present.index(chosen.first)], _passed(), _tree()
    missing = [stage for stage in before if tree is None or passed.get(stage, {}).get("tree") != tree]
    if missing:
        parser.error(f"--from: {', '.join(missing)} did not pass on this commit with this build")
    return name, stages[len(before) :]


def main() -> None:
    """Runs the stages up to the first that fails."""
    name, stages = _chosen()
    begin, seconds, times, code, stage = time.monotonic(), {}, [], 0, ""
    with subprocess.Popen(SETUP, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as setup:
        for stage, commands in stages:
            stage_begin = time.monotonic()
            REPORT.unlink(missing_ok=True)
            for command in commands:
                code, printed = _run(command)
                times += _rust_times(printed)
                if code:
                    break
            if setup.poll() is None or stage == stages[0][0]:
                code = _finish(setup) or code
            times += _python_times()
            seconds[stage] = round(time.monotonic() - stage_begin)
            if code:
                break
            _record(stage, seconds[stage])
    for duration, test in sorted(times, reverse=True)[:SLOWEST]:
        print(f"{duration:7.1f} s {test}")
    failed = f", failed in {stage}" if code else ""
    print(f"{name}: {time.monotonic() - begin:.0f} s, stages {seconds}{failed}")
    sys.exit(code)


if __name__ == "__main__":
    main()
