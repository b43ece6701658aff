"""How programs of SPHT-eADR are run."""

from __future__ import annotations

from comparison import Command

MACHINE = "spht-eadr-2022"
# Operations of each thread, by the words that a transaction reads and writes.
OPERATIONS = {10: 1000, 50: 400}
MIXES = {"1w9r": 10, "5w5r": 10, "9w1r": 10, "5w45r": 50, "25w25r": 50, "45w5r": 50}
# One on each core, and one on each hardware thread.
PEAK, ALL = 12, 24
# How transactions of SPHT are linked, other than not at all (section 2.4.2).
LINKS = {"forward": ("--arg", "links=true"), "backward": ("--arg", "links=true", "--arg", "replay=backward")}
# Logs that hold what populating and a run append, so that nothing is replayed meanwhile.
LOG_BYTES = 33554432


def run(design: str, mix: str, threads: int, *more: str, ops: int | None = None) -> Command:
    """Gives the run of a mix of the synthetic benchmark, with its own number of operations if none is given."""
    operations = ops or threads * OPERATIONS[MIXES[mix]]
    return run_of(design, f"spht-{mix}", threads, operations, LOG_BYTES, *more)


def run_of(design: str, workload: str, threads: int, ops: int, log_bytes: int, *more: str) -> Command:
    """Gives the run of a workload on durable caches, to the end of what is measured: logs are not replayed after it."""
    found = ["run", "--design", design, "--machine", MACHINE, "--workload", workload, "--threads", str(threads)]
    found += ["--domain", "eadr"] if design in ("spht", "nv-htm") else []
    # The thesis reads the clock as its algorithms print it.
    found += [] if design == "htm-sgl" else ["--arg", "commit-clock=published"]
    found += ["--ops", str(ops), "--arg", f"log-bytes={log_bytes}"]
    return Command((*found, "--arg", "no-check=true", "--fast-forward", "roi", "--stop-after-roi", *more))
