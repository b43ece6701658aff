"""The experiments of P-INSPECT: Kokolis, Shull, Huang and Torrellas, "P-INSPECT", MICRO 2020.

Figures 4 to 8, Tables VIII and IX and sections IV, VI and IX. Its baseline is `autopersist`, Ideal-R `ideal-r`; a
program without persistence is `opt`.
"""

from __future__ import annotations

from collections.abc import Callable

from tools.additional_tables.comparison import Command, Documents

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
FOUR_ISSUE = ("--set", "core.width=4")
# Runs: the design and its changes. Each run is one step of the split.
VARIANTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "baseline": ("autopersist", (), ()),
    "no-moves": ("autopersist", ("placed",), ()),
    "ideal-r": ("ideal-r", (), ()),
    "no-writes": ("ideal-r", ("no-flush", "no-fence"), ()),
    "no-logs": ("ideal-r", ("no-flush", "no-fence", "no-log"), ()),
    "volatile": ("opt", (), ()),
    "baseline-4-issue": ("autopersist", (), FOUR_ISSUE),
    "ideal-r-4-issue": ("ideal-r", (), FOUR_ISSUE),
    "p-inspect--": ("p-inspect--", (), ()),
    "p-inspect": ("p-inspect", (), ()),
    "p-inspect---4-issue": ("p-inspect--", (), FOUR_ISSUE),
    "p-inspect-4-issue": ("p-inspect", (), FOUR_ISSUE),
    # With profiles of allocation sites, no object is forwarded in these regions, so the filters are measured without
    # profiles. These runs are functional, so regions are longer.
    "moving": ("p-inspect", ("no-profile",), ("--functional",)),
}
SPLIT = ("no-moves", "no-writes", "no-logs")
# The programs of Tables VIII and IX.
CHARACTERIZED = KERNELS | {name: workload for name, workload in SERVERS.items() if name.endswith("-D")}
# Operations of functional regions: about a thousand million instructions.
MOVING_OPS = {
    "arraylist": 400,
    "linkedlist": 3000,
    "arraylistx": 300,
    **dict.fromkeys(("hashmap", "btree", "bplustree"), 800000),
    **{f"kv-{backend}-d": 120000 for backend in ("ptree", "hptree", "hashmap", "pmap")},
}
# Without a profile, functional population takes most of the host time of pmap.
MOVING_FOOTPRINTS_BYTES = {"kv-pmap-d": 16777216}


def _command(workload: str, name: str) -> Command:
    design, flags, settings = VARIANTS[name]
    run = ["run", "--design", design, "--machine", MACHINE, "--workload", f"pinspect-{workload}-full"]
    run += ["--scale", "quick"]
    run += ["--ops", str(MOVING_OPS[workload])] if name == "moving" else ["--fast-forward", "roi"]
    for flag in ("no-check", *flags):
        run += ["--arg", f"{flag}=true"]
    if name == "moving" and workload in MOVING_FOOTPRINTS_BYTES:
        run += ["--arg", f"footprint-bytes={MOVING_FOOTPRINTS_BYTES[workload]}"]
    return Command((*run, *settings))


def _is_run(program: str, variant: str) -> bool:
    return variant not in (*SPLIT, "moving") or program in CHARACTERIZED


COMMANDS = {
    f"{workload}.{variant}": _command(workload, variant)
    for program, workload in PROGRAMS.items()
    for variant in VARIANTS
    if _is_run(program, variant)
}
EXPERIMENTS = ()
EXPERIMENT_COMMANDS: dict[str, Command] = {}


def _instructions(documents: Documents, workload: str, variant: str) -> float:
    return float(documents[f"{workload}.{variant}"]["roi"]["instructions"])


def _cycles(documents: Documents, workload: str, variant: str) -> float:
    return float(documents[f"{workload}.{variant}"]["roi"]["cycles"])


Quantity = Callable[[Documents, str, str], float]


def _ratio(documents: Documents, quantity: Quantity, workload: str, design: str, suffix: str = "") -> float:
    return quantity(documents, workload, design + suffix) / quantity(documents, workload, f"baseline{suffix}")


def split(documents: Documents) -> list[dict[str, str]]:
    """Breakdown of the baseline's time and instructions, by subtraction of runs, in percent of the baseline's.

    ck: no moves minus Ideal-R. wr: Ideal-R minus Ideal-R without cleans and fences. rm: moves (baseline minus no moves)
    and logs (no writes minus no logs). op: `opt`. The residual is the rest of Ideal-R: data in persistent memory.
    """
    rows = []
    for program, workload in CHARACTERIZED.items():
        for what, quantity in (("time", _cycles), ("instructions", _instructions)):
            of = {
                variant: quantity(documents, workload, variant)
                for variant in ("baseline", "ideal-r", "volatile", *SPLIT)
            }
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
                | {
                    design: f"{100 * _ratio(documents, quantity, workload, design):.1f}"
                    for design in ("ideal-r", "p-inspect--", "p-inspect")
                }
            )
    return rows


def filters(documents: Documents) -> list[dict[str, str]]:
    """Hardware load of the checks of each program, with the energies of Table VII."""
    rows = []
    for program, workload in PROGRAMS.items():
        document = documents[f"{workload}.p-inspect"]
        found = document["stats"]["p_inspect"]
        checks = sum(float(kind["value"]) for kind in found["checks"].values())
        instructions = float(document["roi"]["instructions"])
        calls = sum(float(found["handlers"][number]["value"]) for number in "1234")
        energy_pj = checks * (READ_PJ + HASHES * HASH_PJ)
        rows.append(
            {"program": program, "checks per instruction": f"{checks / instructions:.3f}"}
            | {"handler calls per check": f"{calls / checks:.4f}"}
            | {"persistent writes per check": f"{float(found['persistent_writes']['value']) / checks:.5f}"}
            | {"energy of checks in pJ per instruction": f"{energy_pj / instructions:.2f}"}
        )
    return rows


# Table VII: reading a BFilter_Buffer, and one hash.
READ_PJ, HASH_PJ, HASHES = 12.8, 0.98, 2
TABLES = {"split": split, "filters": filters}
