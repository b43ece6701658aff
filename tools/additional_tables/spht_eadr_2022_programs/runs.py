"""Runs of the programs of STAMP and TPC-C."""

from __future__ import annotations

from tools.additional_tables.comparison import Command
from tools.additional_tables.spht_eadr_2022.runs import run_of

# Programs by their names in the thesis: the workload, and the total operations of all threads.
PROGRAMS = {
    "STAMP genome": ("stamp-genome", 2400),
    "STAMP intruder": ("stamp-intruder", 1200),
    "STAMP kmeans low": ("stamp-kmeans-low", 1200),
    "STAMP kmeans vlow": ("stamp-kmeans-vlow", 1200),
    "STAMP labyrinth": ("stamp-labyrinth", 96),
    "STAMP ssca2": ("stamp-ssca2", 6000),
    "STAMP vacation low": ("stamp-vacation-low", 1200),
    "STAMP yada": ("stamp-yada", 480),
    "TPC-C": ("spht-tpcc", 2400),
}
# Sizes below those of the suite: populating takes most of the time.
SMALLER = {"STAMP vacation low": ("populate=4096",), "TPC-C": ("populate=32000",)}
# Logs large enough for population and the run.
LOG_BYTES = 16777216


def run(
    design: str, program: str, threads: int, seed: int, *more: str, sizes: tuple[str, ...] | None = None
) -> Command:
    """Returns the run of a program, with the sizes above unless others are given as NAME=VALUE."""
    workload, ops = PROGRAMS[program]
    chosen = SMALLER.get(program, ()) if sizes is None else sizes
    words = [word for size in chosen for word in ("--arg", size)]
    return run_of(design, workload, threads, ops, LOG_BYTES, "--seed", str(seed), *words, *more)
