"""What decides between SPHT-eADR and its baselines on the programs: inputs, contention, attempts, pages of the shadow.

The thesis names neither the inputs of its programs nor what happens between two attempts. A public source of a later
work on SPHT does (https://github.com/andreliborio98/spht_paging, commit 0fde72d: bench/stamp/benches_args.sh,
bench/tpcc/benches_args.sh and deps/htm_alg).
"""

from __future__ import annotations

from comparison import Command, Documents, Part, Rows, throughput_text
from spht_eadr_2022.runs import run_of

DESIGNS = ("htm-sgl", "spht", "spht-eadr")
THREADS = (1, 8, 12, 24)
LOG_BYTES = 16777216

# Programs by the names of the thesis: the workload, operations of all threads, and arguments as in the page's table.
PROGRAMS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "STAMP genome": ("stamp-genome", 2400, ()),
    "STAMP intruder": ("stamp-intruder", 1200, ()),
    "STAMP ssca2": ("stamp-ssca2", 6000, ()),
    "STAMP vacation low": ("stamp-vacation-low", 1200, ("populate=4096",)),
    "STAMP yada": ("stamp-yada", 480, ()),
    "TPC-C": ("spht-tpcc", 2400, ("populate=32000",)),
}
# Towards those of that source, as far as a run of some seconds allows: there ssca2 has -s20 (a million vertices),
# vacation -r1048576, intruder -n262144 -l128, yada a mesh of a million triangles and -a15, genome -g16384 -s64
# -n16777216.
LARGER: dict[str, tuple[str, ...]] = {
    "STAMP genome": ("gene=16384", "segment=32", "populate=262144"),
    "STAMP intruder": ("populate=65536", "fragments-max=64"),
    "STAMP ssca2": ("populate=65536",),
    "STAMP vacation low": ("populate=131072",),
    "STAMP yada": ("populate=20000", "angle=15"),
}
# A Payment of that source changes five words and inserts no row, so that its warehouse is in its write set for a
# shorter time than in that of a Payment as specified. Here more warehouses make conflicts as rare.
WAREHOUSES = {"TPC-C": ("populate=32000", "warehouses=256")}
ON_SHADOW = DESIGNS[1:]


def _variants() -> dict[str, dict[str, tuple[str, ...]]]:
    """By name: the arguments of each program, those of the table included."""
    plain = {program: arguments for program, (_, _, arguments) in PROGRAMS.items()}

    def with_(*more: str) -> dict[str, tuple[str, ...]]:
        return {program: (*arguments, *more) for program, arguments in plain.items()}

    return {
        "as above": plain,
        "larger inputs": LARGER,
        "256 warehouses": WAREHOUSES,
        "shadow touched": with_("shadow-touched=true"),
        "50 attempts": with_("attempts=50"),
        "back-off": with_("back-off-pauses=1000"),
    }


VARIANTS = _variants()


def _key(variant: str, program: str, design: str, threads: int) -> str:
    return f"variants.{variant.replace(' ', '-')}.{PROGRAMS[program][0]}.{design}.{threads}"


def _run(variant: str, program: str, design: str, threads: int) -> Command:
    workload, ops, _ = PROGRAMS[program]
    # Data in place have no shadow.
    arguments = [
        word
        for argument in VARIANTS[variant][program]
        if design in ON_SHADOW or not argument.startswith("shadow")
        for word in ("--arg", argument)
    ]
    return run_of(design, workload, threads, ops, LOG_BYTES, "--seed", "1", *arguments)


COMMANDS = {
    _key(variant, program, design, threads): _run(variant, program, design, threads)
    for variant, programs in VARIANTS.items()
    for program in programs
    for design in DESIGNS
    for threads in THREADS
}


def _rows(documents: Documents) -> Rows:
    """Throughput, its ratios, and the share of transactions that SPHT-eADR commits in hardware."""
    found = []
    for program in PROGRAMS:
        for variant, programs in VARIANTS.items():
            if program not in programs:
                continue
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
