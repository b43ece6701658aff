"""The programs of STAMP and TPC-C in SPHT-eADR (thesis, Lisboa 2022), sections 4.3.2 and 4.3.3."""

from __future__ import annotations

from collections import Counter
from statistics import mean

from tools.additional_tables.comparison import (
    LIMITS,
    Command,
    Documents,
    Experiment,
    Part,
    Rows,
    limit_key,
    limit_rows,
    throughput_text,
)
from tools.additional_tables.spht_eadr_2022_programs.runs import PROGRAMS, run
from tools.additional_tables.spht_eadr_2022_programs.variants import PARTS as VARIANTS

DESIGNS = ("htm-sgl", "spht", "spht-eadr", "spht-eadr-flush")
# One thread on each of a subset of the cores, one on each core, and one on each hardware thread.
SOME, PEAK, ALL = 8, 12, 24
THREADS = (SOME, PEAK, ALL)
# Fewer threads, for the program with the published peak at the smallest of these numbers.
FEW, YADA = 4, "STAMP yada"
# With conflicts, small differences decide when the lock is first taken: numbers are means of two seeds.
SEEDS = (1, 2)
# Not measured in the thesis: a limit on open transactions.
LIMITED = ("STAMP kmeans low", "TPC-C")


def key(program: str, design: str, threads: int, seed: int = SEEDS[0]) -> str:
    """Returns the name of a run's document."""
    return f"{PROGRAMS[program][0]}.{design}.{threads}.{seed}"


def _threads_of(program: str) -> tuple[int, ...]:
    return (FEW, *THREADS) if program == YADA else THREADS


def _all_runs(*more: str) -> dict[str, Command]:
    return {
        key(program, design, threads, seed): run(design, program, threads, seed, *more)
        for program in PROGRAMS
        for design in DESIGNS
        for threads in _threads_of(program)
        for seed in SEEDS
    }


COMMANDS = _all_runs() | {
    limit_key(key(program, "spht-eadr", ALL), limit): run("spht-eadr", program, ALL, SEEDS[0], *arguments)
    for program in LIMITED
    for limit, arguments in LIMITS.items()
}
EXPERIMENTS: tuple[Experiment, ...] = ()
EXPERIMENT_COMMANDS: dict[str, Command] = {}


def _throughputs(documents: Documents, program: str, design: str, threads: int) -> list[float]:
    return [float(documents[key(program, design, threads, seed)]["throughput_ops_per_us"]) for seed in SEEDS]


def _outcomes(documents: Documents, program: str, design: str, threads: int) -> Counter[str]:
    """Outcomes of attempts, summed over all runs: commits by path, aborts by cause."""
    found: Counter[str] = Counter()
    for seed in SEEDS:
        tx = documents[key(program, design, threads, seed)]["tx"]
        found.update({"htm_commits": tx["htm_committed"], "sgl_commits": tx["sgl_committed"]})
        found.update({f"aborts_{cause}": count for cause, count in tx["aborted_by"].items()})
    return found


def _threads(documents: Documents) -> Rows:
    """Throughput by threads with its range, and outcomes of attempts, summed over all runs."""
    found = []
    for program in PROGRAMS:
        for design in DESIGNS:
            for threads in _threads_of(program):
                ours = _throughputs(documents, program, design, threads)
                row = {"program": program, "design": design, "threads": str(threads)}
                ends = f"{throughput_text(min(ours))}-{throughput_text(max(ours))}"
                row |= {"throughput_ops_per_us": throughput_text(mean(ours)), "range": ends}
                outcomes = _outcomes(documents, program, design, threads)
                found.append(row | {name: str(count) for name, count in outcomes.items()})
    return found


def _limits(documents: Documents) -> Rows:
    return limit_rows(documents, {program: key(program, "spht-eadr", ALL) for program in LIMITED})


TABLES = {"threads": _threads, "limits": _limits}

PARTS: dict[str, Part] = VARIANTS
