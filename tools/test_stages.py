"""Runs the stages of `make test`, or with `--all` those of `make test-all`.

The output ends with the ten slowest tests and the seconds of each stage. Rust tests are timed by file, because cargo
reports no times of single tests.
"""

from __future__ import annotations

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
WHEEL = ((str(BIN / "python"), str(ROOT / "tools" / "wheel.py")),)
FAULTS = (
    ("cargo", "test", *TARGETS[:2], "--test", "canaries", "--", "--ignored"),
    ("env", "DURASIM_SEEDS=1500", "cargo", "test", *TARGETS[:2], "--test", "random"),
)
# Tests of planted faults take minutes each and are consecutive: an idle worker takes over some of them.
LONG = ((*PYTHON[-1], "--dist", "worksteal", "-m", "long"),)

Stages = Sequence[tuple[str, Sequence[Sequence[str]]]]
STAGES: Stages = (("build", BUILD), ("rust", RUST), ("python", PYTHON))
FURTHER_STAGES: Stages = (("wheel", WHEEL), ("faults", FAULTS), ("long", LONG))

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


def main() -> None:
    """Runs the stages up to the first that fails."""
    is_all = "--all" in sys.argv[1:]
    name = "test-all" if is_all else "test"
    begin, seconds, times, code = time.monotonic(), {}, [], 0
    with subprocess.Popen(SETUP, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as setup:
        for stage, commands in (*STAGES, *FURTHER_STAGES) if is_all else STAGES:
            stage_begin = time.monotonic()
            REPORT.unlink(missing_ok=True)
            for command in commands:
                code, printed = _run(command)
                times += _rust_times(printed)
                if code:
                    break
            if stage == "build":
                code = _finish(setup) or code
            times += _python_times()
            seconds[stage] = round(time.monotonic() - stage_begin)
            if code:
                break
    for duration, test in sorted(times, reverse=True)[:SLOWEST]:
        print(f"{duration:7.1f} s {test}")
    failed = f", failed in {stage}" if code else ""
    print(f"{name}: {time.monotonic() - begin:.0f} s, stages {seconds}{failed}")
    sys.exit(code)


if __name__ == "__main__":
    main()
