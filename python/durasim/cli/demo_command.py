"""The command `demo`: a table of the B+-tree under five designs, then crashes of three of them."""

from __future__ import annotations

import sys
import time

import typer

from durasim import api
from durasim.cli import render
from durasim.cli.comparison_tables import comparison_tables
from durasim.cli.shell import EXIT_NEGATIVE
from durasim.documents.results import CrashResult, RunResult
from durasim.runs import comparison

WORKLOAD = "btree"
DESIGNS = ("opt", "swl-flush", "swl-eadr", "tc", "hercules")
RUN_OPS = 4_000
POPULATE = 8_000
# With small caches, populating a tree that exceeds them takes seconds; with the full LLC it would take minutes.
CACHES = {"l1d.size_bytes": 4096, "l2.size_bytes": 32_768, "llc.size_bytes": 131_072}

DURABLE = ("hercules", "tc")
# The design without durability: a check that finds nothing wrong with it would be worth nothing.
NOT_DURABLE = "opt"
CRASH_MACHINE = "tiny"
CRASH_OPS = 100
CRASH_POINTS = 300
CRASH_POPULATE = 100


def demo() -> None:
    """Run the B+-tree under five designs, crash two that survive and one that does not.

    The exit code is 1 if a recovery was wrong, or if the lost data of the design without durability was not noticed.
    """
    begin = time.monotonic()
    results = _run_all()
    render.show(comparison_tables(comparison.judge(results)))
    verdicts = [_crash(design, begin) for design in DURABLE]
    loses = _crash(NOT_DURABLE, begin)
    for verdict in (*verdicts, loses):
        render.show(render.crash_text(verdict))
    _say("done", begin)
    failed = any(verdict.violations for verdict in verdicts) or not loses.violations
    if failed or any(result.guest_exit_code for result in results):
        raise typer.Exit(EXIT_NEGATIVE)


def _run_all() -> list[RunResult]:
    _say(f"running {WORKLOAD}, {RUN_OPS:,} inserts after {POPULATE:,}, under {', '.join(DESIGNS)}")
    _say("caches of 4 KB, 32 KB and 128 KB, so that the tree exceeds them")
    with render.progress_bar() as bar:
        task = bar.add_task("running", total=len(DESIGNS))
        compared = api.compare(
            designs=DESIGNS,
            workloads=[WORKLOAD],
            progress=lambda _: bar.advance(task),
            ops=RUN_OPS,
            set=CACHES,
            workload_args={"populate": POPULATE},
        )
        return list(compared.runs)


def _crash(design: str, begin: float) -> CrashResult:
    _say(f"crashing {design} on the machine {CRASH_MACHINE} at {CRASH_POINTS} persist events", begin)
    with render.progress_bar() as bar:
        task = bar.add_task("crashing", total=None)
        return api.crash(
            design=design,
            workload=WORKLOAD,
            machine=CRASH_MACHINE,
            ops=CRASH_OPS,
            points=CRASH_POINTS,
            workload_args={"populate": CRASH_POPULATE},
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _say(sentence: str, begin: float | None = None) -> None:
    """Prints a sentence, with the seconds since the begin if they are wanted."""
    after = "" if begin is None else f" (after {time.monotonic() - begin:.1f} s)"
    print(f"durasim: {sentence}{after}", file=sys.stderr, flush=True)
