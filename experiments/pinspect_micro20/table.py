"""What P-INSPECT measures in software: Kokolis, Shull, Huang and Torrellas, "P-INSPECT", MICRO 2020.

Figures 4 to 7, Table IX and sections IV and IX. Its baseline is `autopersist`, Ideal-R `ideal-r`; a program without
persistence is `opt`. Its hardware is not built.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

from comparison import Command, Documents, Formula, Kind, Measured, Published

MACHINE = "pinspect-micro20"
KERNELS = {
    "ArrayList": "arraylist",
    "LinkedList": "linkedlist",
    "ArrayListX": "arraylistx",
    "HashMap": "hashmap",
    "BTree": "btree",
    "BPlusTree": "bplustree",
}
SERVERS = {
    f"{name}-{mix}": f"kv-{backend}-{mix.lower()}"
    for name, backend in (("pTree", "ptree"), ("HpTree", "hptree"), ("hashmap", "hashmap"), ("pmap", "pmap"))
    for mix in "ABD"
}
PROGRAMS = KERNELS | SERVERS
GROUPS = {"kernels average": KERNELS, "YCSB KV average": SERVERS}
FOUR_ISSUE = ("--set", "core.width=4")
# What is run: the design, and what is different from it. Each is one step of the split.
VARIANTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "baseline": ("autopersist", (), ()),
    "no-moves": ("autopersist", ("placed",), ()),
    "ideal-r": ("ideal-r", (), ()),
    "no-writes": ("ideal-r", ("no-flush", "no-fence"), ()),
    "no-logs": ("ideal-r", ("no-flush", "no-fence", "no-log"), ()),
    "volatile": ("opt", (), ()),
    "baseline-4-issue": ("autopersist", (), FOUR_ISSUE),
    "ideal-r-4-issue": ("ideal-r", (), FOUR_ISSUE),
}


def _command(workload: str, design: str, flags: Iterable[str], settings: tuple[str, ...]) -> Command:
    run = ["run", "--design", design, "--machine", MACHINE, "--workload", f"pinspect-{workload}-full"]
    run += ["--scale", "quick", "--fast-forward", "roi"]
    for flag in ("no-check", *flags):
        run += ["--arg", f"{flag}=true"]
    return Command((*run, *settings))


COMMANDS = {
    f"{workload}.{name}": _command(workload, *variant)
    for workload in PROGRAMS.values()
    for name, variant in VARIANTS.items()
}
EXPERIMENTS = ()
EXPERIMENT_COMMANDS: dict[str, Command] = {}


def _instructions(documents: Documents, workload: str, variant: str) -> float:
    return float(documents[f"{workload}.{variant}"]["roi"]["instructions"])


def _cycles(documents: Documents, workload: str, variant: str) -> float:
    return float(documents[f"{workload}.{variant}"]["roi"]["cycles"])


Quantity = Callable[[Documents, str, str], float]


def reduction(quantity: Quantity, suffix: str = "") -> Formula:
    """How much less Ideal-R takes than the baseline, in percent: the arithmetic mean over a group of programs."""

    def of(documents: Documents, row: Published) -> Measured:
        group = next(group for name, group in GROUPS.items() if row.workload.startswith(name))
        ratios = [
            quantity(documents, workload, f"ideal-r{suffix}") / quantity(documents, workload, f"baseline{suffix}")
            for workload in group.values()
        ]
        ours = sum(ratios) / len(ratios)
        text = f"from {100 * (1 - max(ratios)):.0f} to {100 * (1 - min(ratios)):.0f}"
        return Measured(f"{100 * (1 - ours):.0f}", Kind.RATIO, ours, 1 - row.number / 100, text)

    return of


def framework_share(documents: Documents, row: Published) -> Measured:
    """Which share of the baseline's instructions a program without persistence does not have, as a range."""
    shares = [
        1 - _instructions(documents, workload, "volatile") / _instructions(documents, workload, "baseline")
        for workload in PROGRAMS.values()
    ]
    least, most = (float(bound) / 100 for bound in row.value.split("-"))
    holds = least <= min(shares) and max(shares) <= most
    return Measured(f"{100 * min(shares):.0f}-{100 * max(shares):.0f}", Kind.CLAIM, float(holds))


def _pmem_share(documents: Documents, workload: str, variant: str) -> float:
    core = documents[f"{workload}.{variant}"]["stats"]["core"]
    loads = core["loads"]["value"] - core["forwards"]["value"]
    persistent = core["pmem_loads"]["count"]["value"] + core["pmem_stores"]["value"]
    return float(persistent / (loads + core["stores"]["value"]))


def pmem_share(documents: Documents, row: Published) -> Measured:
    """Which share of loads and stores that go to the caches goes to persistent memory."""
    ours = _pmem_share(documents, PROGRAMS[row.workload], "baseline")
    # A rate below 5 % is compared by points, others by their ratio.
    kind = Kind.RATE if row.number < 5 else Kind.AMOUNT  # noqa: PLR2004
    return Measured(f"{100 * ours:.1f}", kind, ours, row.number / 100, "under `autopersist`")


def not_built(_: Documents, __: Published) -> Measured:
    """The number belongs to hardware."""
    return Measured("", Kind.NONE, reason=HARDWARE)


def split(documents: Documents) -> list[dict[str, str]]:
    """Where the baseline's time and instructions go, by subtraction of runs, in percent of the baseline's.

    ck: no moves less Ideal-R. wr: Ideal-R less the same without cleans and fences. rm: moves (baseline less no moves)
    and logs (no writes less no logs). op: `opt`. The residual is what Ideal-R has besides: data in persistent memory.
    """
    rows = []
    for program, workload in PROGRAMS.items():
        for what, quantity in (("time", _cycles), ("instructions", _instructions)):
            of = {variant: quantity(documents, workload, variant) for variant in VARIANTS}
            parts = {
                "ck": of["no-moves"] - of["ideal-r"],
                "wr": of["ideal-r"] - of["no-writes"],
                "rm moves": of["baseline"] - of["no-moves"],
                "rm logs": of["no-writes"] - of["no-logs"],
                "op": of["volatile"],
                "residual": of["no-logs"] - of["volatile"],
            }
            per_op = of["baseline"] / documents[f"{workload}.baseline"]["ops"]
            rows.append(
                {"program": program, "of": what, "baseline per operation": f"{per_op:.0f}"}
                | {name: f"{100 * part / of['baseline']:.1f}" for name, part in parts.items()}
                | {"ideal-r": f"{100 * of['ideal-r'] / of['baseline']:.1f}"}
            )
    return rows


HARDWARE = "the hardware of P-INSPECT is not built"
TABLES = {"split": split}
TABLE_IX_AND_VIII = (*KERNELS, *(f"{name}-D" for name in ("pTree", "HpTree", "hashmap", "pmap")))
FOUR = 'speedup ("average speed-ups")'
FORMULAS: dict[tuple[str, str, str, str], Formula] = {
    ("Sec4", "framework_overhead_share_of_instructions", "Baseline AutoPersist", "set of workloads"): framework_share,
    ("Fig4", "instruction_reduction", "Ideal-R", "kernels average"): reduction(_instructions),
    ("Fig5", "exec_time_reduction", "Ideal-R", "kernels average"): reduction(_cycles),
    ("Fig6", "instruction_reduction", "Ideal-R", "YCSB KV average"): reduction(_instructions),
    ("Fig7", "exec_time_reduction", "Ideal-R", "YCSB KV average"): reduction(_cycles),
    ("Sec9.C (4-issue)", FOUR, "Ideal-R", "kernels average, 4-issue"): reduction(_cycles, "-4-issue"),
    ("Sec9.C (4-issue)", FOUR, "Ideal-R", "YCSB KV average, 4-issue"): reduction(_cycles, "-4-issue"),
    **{("Table9", "NVM_access_share", "P-INSPECT", program): pmem_share for program in TABLE_IX_AND_VIII},
}
HARDWARE_DESIGNS = ("P-INSPECT", "P-INSPECT--", "persistentWrite")


def _hardware_rows() -> dict[tuple[str, str, str, str], Formula]:
    with Path(__file__).with_name("published.csv").open(encoding="utf-8", newline="") as text:
        rows = [Published(**row) for row in csv.DictReader(text)]
    return {row.key: not_built for row in rows if row.design in HARDWARE_DESIGNS or row.baseline in HARDWARE_DESIGNS}


FORMULAS = _hardware_rows() | FORMULAS
