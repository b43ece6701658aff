"""How a program of the synthetic benchmark of SPHT-eADR is run."""

from __future__ import annotations

from comparison import Command

MACHINE = "spht-eadr-2022"
# Operations of each thread, by the words that a transaction reads and writes.
OPERATIONS = {10: 1000, 50: 400}
MIXES = {"1w9r": 10, "5w5r": 10, "9w1r": 10, "5w45r": 50, "25w25r": 50, "45w5r": 50}
# One on each core, and one on each hardware thread.
PEAK, ALL = 12, 24
# Logs that hold what populating and a run append, so that nothing is replayed meanwhile.
LOG_BYTES = 33554432


def run(design: str, mix: str, threads: int, *more: str, ops: int | None = None, log_bytes: int = LOG_BYTES) -> Command:
    """Gives the run of a mix, with its own number of operations if none is given."""
    found = ["run", "--design", design, "--machine", MACHINE, "--workload", f"spht-{mix}", "--threads", str(threads)]
    found += ["--domain", "eadr"] if design in ("spht", "nv-htm") else []
    found += ["--ops", str(ops or threads * OPERATIONS[MIXES[mix]]), "--arg", f"log-bytes={log_bytes}"]
    return Command((*found, "--arg", "no-check=true", "--fast-forward", "roi", *more))
