"""Factors that decide between SPHT-eADR and its baselines: inputs, contention, attempts, pages of the shadow.

The thesis specifies neither the inputs of its programs nor the code between two attempts. A public source of a later
work on SPHT does (https://github.com/andreliborio98/spht_paging, commit 0fde72d: bench/stamp/benches_args.sh,
bench/tpcc/benches_args.sh and deps/htm_alg).
"""

from __future__ import annotations

from tools.additional_tables.comparison import Command, Documents, Part, Rows, throughput_text
from tools.additional_tables.spht_eadr_2022_programs.runs import PROGRAMS, run

DESIGNS = ("htm-sgl", "spht", "spht-eadr")
THREADS = (1, 8, 12, 24)
SEED = 1
WHAT_DIFFERS = ("STAMP genome", "STAMP intruder", "STAMP ssca2", "STAMP vacation low", "STAMP yada", "TPC-C")
# Closer to the inputs of that source, within runs of some seconds. That source has ssca2 -s20 (a million vertices),
# vacation -r1048576, intruder -n262144 -l128, yada a mesh of a million triangles and -a15, genome -g16384 -s64
# -n16777216.
LARGER: dict[str, tuple[str, ...]] = {
    "STAMP genome": ("gene=16384", "segment=32", "populate=262144"),
    "STAMP intruder": ("populate=65536", "fragments-max=64"),
    "STAMP ssca2": ("populate=65536",),
    "STAMP vacation low": ("populate=131072",),
    "STAMP yada": ("populate=20000", "angle=15"),
}
# A Payment of that source changes five words and inserts no row, so its warehouse is in the write set for a shorter
# time than in a Payment as specified. Here more warehouses reduce conflicts to that level.
WAREHOUSES = {"TPC-C": ("populate=32000", "warehouses=256")}
# Data in place have no shadow.
ON_SHADOW = DESIGNS[1:]
TOUCHED = "shadow touched"
# By name: different sizes of each program, if any, and arguments of all programs.
VARIANTS: dict[str, tuple[dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "as above": ({}, ()),
    "larger inputs": (LARGER, ()),
    "256 warehouses": (WAREHOUSES, ()),
    TOUCHED: ({}, ("--arg", "shadow-touched=true")),
    "50 attempts": ({}, ("--arg", "attempts=50")),
    "back-off": ({}, ("--arg", "back-off-pauses=1000")),
}


def _programs(variant: str) -> tuple[str, ...]:
    sizes, _ = VARIANTS[variant]
    return tuple(program for program in WHAT_DIFFERS if not sizes or program in sizes)


def _key(variant: str, program: str, design: str, threads: int) -> str:
    return f"variants.{variant.replace(' ', '-')}.{PROGRAMS[program][0]}.{design}.{threads}"


def _run(variant: str, program: str, design: str, threads: int) -> Command:
    sizes, more = VARIANTS[variant]
    more = () if variant == TOUCHED and design not in ON_SHADOW else more
    return run(design, program, threads, SEED, *more, sizes=sizes.get(program))


COMMANDS = {
    _key(variant, program, design, threads): _run(variant, program, design, threads)
    for variant in VARIANTS
    for program in _programs(variant)
    for design in DESIGNS
    for threads in THREADS
}


def _rows(documents: Documents) -> Rows:
    """Throughput, its ratios, and the share of transactions that SPHT-eADR commits in hardware."""
    found = []
    for program in WHAT_DIFFERS:
        for variant in filter(lambda variant: program in _programs(variant), VARIANTS):
            for threads in THREADS:
                runs = {design: documents[_key(variant, program, design, threads)] for design in DESIGNS}
                ours = {design: float(run["throughput_ops_per_us"]) for design, run in runs.items()}
                tx = runs["spht-eadr"]["tx"]
                row = {"program": program, "variant": variant, "threads": str(threads)}
                row |= {design.replace("-", "_"): throughput_text(value) for design, value in ours.items()}
                row |= {
                    f"over_{base.replace('-', '_')}": f"{ours['spht-eadr'] / ours[base]:.2f}" for base in DESIGNS[:2]
                }
                found.append(row | {"in_hardware_percent": f"{100 * tx['htm_committed'] / tx['committed']:.0f}"})
    return found


PARTS: dict[str, Part] = {"variants": (COMMANDS, _rows)}
