"""Runs of the programs of SPHT-eADR."""

from __future__ import annotations

from tools.additional_tables.comparison import Command

MACHINE = "spht-eadr-2022"
# Operations per thread, by the words that a transaction reads and writes.
OPERATIONS = {10: 1000, 50: 400}
MIXES = {"1w9r": 10, "5w5r": 10, "9w1r": 10, "5w45r": 50, "25w25r": 50, "45w5r": 50}
# One on each core, and one on each hardware thread.
PEAK, ALL = 12, 24
# Links between transactions of SPHT, in addition to none (section 2.4.2).
LINKS = {"forward": ("--arg", "links=true"), "backward": ("--arg", "links=true", "--arg", "replay=backward")}
# Logs large enough for population and the run, so that no replay occurs meanwhile.
LOG_BYTES = 33554432


def run(design: str, mix: str, threads: int, *more: str, ops: int | None = None) -> Command:
    """Returns the run of a mix of the synthetic benchmark, by default with the mix's number of operations."""
    operations = ops or threads * OPERATIONS[MIXES[mix]]
    return run_of(design, f"spht-{mix}", threads, operations, LOG_BYTES, *more)


def run_of(design: str, workload: str, threads: int, ops: int, log_bytes: int, *more: str) -> Command:
    """Returns the run of a workload on durable caches up to the end of the measured region, without final replay."""
    found = ["run", "--design", design, "--machine", MACHINE, "--workload", workload, "--threads", str(threads)]
    found += ["--domain", "eadr"] if design in ("spht", "nv-htm") else []
    # The clock is read as in the algorithms printed in the thesis.
    found += [] if design == "htm-sgl" else ["--arg", "commit-clock=published"]
    found += ["--ops", str(ops), "--arg", f"log-bytes={log_bytes}"]
    return Command((*found, "--arg", "no-check=true", "--fast-forward", "roi", "--stop-after-roi", *more))
