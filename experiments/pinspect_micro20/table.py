"""The experiments of P-INSPECT: Kokolis, Shull, Huang and Torrellas, "P-INSPECT", MICRO 2020.

Figures 4 to 8, Tables VIII and IX and sections IV, VI and IX. Its baseline is `autopersist`, Ideal-R `ideal-r`; a
program without persistence is `opt`.
"""

from __future__ import annotations

from collections.abc import Callable

from experiments.comparison import Command, Documents, Formula, Measured, measured, percent_less
from experiments.scoring import Published

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


def reduction(quantity: Quantity, design: str, suffix: str = "", group: str = "") -> Formula:
    """Reduction by a design relative to the baseline, in percent: the arithmetic mean over a group of programs."""

    def of(documents: Documents, row: Published) -> Measured:
        named = next(of for name, of in GROUPS.items() if (group or row.workload).startswith(name))
        ratios = [_ratio(documents, quantity, workload, design, suffix) for workload in named.values()]
        ours = sum(ratios) / len(ratios)
        text = f"from {100 * (1 - max(ratios)):.0f} to {100 * (1 - min(ratios)):.0f}"
        return percent_less(ours, 0, text)

    return of


def reduction_of_one(quantity: Quantity, design: str) -> Formula:
    """Reduction by a design relative to the baseline in one program, in percent."""

    def of(documents: Documents, row: Published) -> Measured:
        ours = _ratio(documents, quantity, PROGRAMS[row.workload], design)
        return percent_less(ours)

    return of


def faster_than_ideal(documents: Documents, row: Published) -> Measured:
    """Reduction of time by P-INSPECT relative to Ideal-R in one program, in percent."""
    ours, ideal = (_cycles(documents, PROGRAMS[row.workload], design) for design in ("p-inspect", "ideal-r"))
    less = 100 * (1 - ours / ideal)
    return Measured(f"{less:.1f} % less time", (less,))


def gap_to_ideal(documents: Documents, row: Published) -> Measured:
    """Difference between Ideal-R and P-INSPECT in points of the baseline's time, as a mean over a group of programs."""
    group = GROUPS[row.workload].values()
    gaps = [
        _ratio(documents, _cycles, workload, "p-inspect") - _ratio(documents, _cycles, workload, "ideal-r")
        for workload in group
    ]
    return measured(100 * sum(gaps) / len(gaps), 1)


def framework_share(documents: Documents, _row: Published) -> Measured:
    """Share of the baseline's instructions that a program without persistence does not execute, as a range."""
    shares = [
        1 - _instructions(documents, workload, "volatile") / _instructions(documents, workload, "baseline")
        for workload in PROGRAMS.values()
    ]
    ends = 100 * min(shares), 100 * max(shares)
    return Measured(f"{ends[0]:.0f}-{ends[1]:.0f}", ends)


def _count(documents: Documents, workload: str, name: str) -> float:
    found = documents[f"{workload}.moving"]["stats"]["p_inspect"]
    for part in name.split("/"):
        found = found[part]
    return float(found["value"])


def pmem_share(documents: Documents, row: Published) -> Measured:
    """Share of persistent memory in the loads and stores sent to the caches."""
    stats = documents[f"{PROGRAMS[row.workload]}.p-inspect"]["stats"]
    return measured(float(stats["p_inspect"]["nvm_access_percent"]["value"]), 1)


def _checks(documents: Documents, workload: str) -> float:
    return sum(_count(documents, workload, f"checks/{kind}") for kind in ("load", "store_h", "store_both"))


def _sweep_instructions(documents: Documents, workload: str) -> float:
    return _count(documents, workload, "put/instructions")


def _program_instructions(documents: Documents, workload: str) -> float:
    return _instructions(documents, workload, "moving") - _sweep_instructions(documents, workload)


def _inserts_per_fill(documents: Documents, size_bits: int) -> float:
    """Returns the number of objects that fill a filter of this size, over all programs."""
    fills = sum(_count(documents, workload, f"fwd/fills/{size_bits}") for workload in CHARACTERIZED.values())
    return _inserts(documents) / fills


def _inserts(documents: Documents) -> float:
    return sum(_count(documents, workload, "fwd/inserts") for workload in CHARACTERIZED.values())


# Inserts per sweep of a filter of 2,047 bits, over all programs: some have fewer than one sweep in their region.
def _interval(documents: Documents, workload: str) -> float:
    per_insert = _program_instructions(documents, workload) / _count(documents, workload, "fwd/inserts")
    return per_insert * _inserts_per_fill(documents, FWD_BITS)


def _checks_per_insert(documents: Documents, workload: str) -> float:
    return _checks(documents, workload) / _count(documents, workload, "fwd/inserts")


def _occupancy(documents: Documents, workload: str) -> float:
    return _count(documents, workload, "fwd/occupancy_percent")


def _overhead(documents: Documents, workload: str) -> float:
    return 100 * _sweep_instructions(documents, workload) / _program_instructions(documents, workload)


def _false_positives(documents: Documents, filters: str) -> float:
    """Share of look-ups that are false positives: the average over all programs, as in section IX-B."""

    def of(documents: Documents, workload: str) -> float:
        found, all_of_them = (
            _count(documents, workload, f"{filters}/{name}") for name in ("false_positives", "lookups")
        )
        return found / all_of_them if all_of_them else 0.0

    return _mean(documents, of)


def _mean(documents: Documents, of: Callable[[Documents, str], float]) -> float:
    return sum(of(documents, workload) for workload in CHARACTERIZED.values()) / len(CHARACTERIZED)


def moving(of: Callable[[Documents, str], float], scale: float, digits: int) -> Formula:
    """Load of the filters in a program, or its mean over all programs, without profiles of allocation sites."""

    def formula(documents: Documents, row: Published) -> Measured:
        average = row.workload in ("Average", "average")
        ours = _mean(documents, of) if average else of(documents, CHARACTERIZED[row.workload])
        return measured(ours / scale, digits, MOVING)

    return formula


def share(of: Callable[[Documents], float]) -> Formula:
    """A share in percent."""

    def formula(documents: Documents, _row: Published) -> Measured:
        return measured(100 * of(documents), 2, MOVING)

    return formula


def inserts_per_fill(documents: Documents, _row: Published) -> Measured:
    """Number of objects inserted before 30 % of the bits are set."""
    return measured(_inserts_per_fill(documents, FWD_BITS), 0, MOVING)


def rarely_called_in_vain(documents: Documents, _row: Published) -> Measured:
    """Share of checks that call a handler only because of a false positive, in percent."""
    calls = sum(_count(documents, workload, "handlers/false_positive") for workload in CHARACTERIZED.values())
    ours = calls / sum(_checks(documents, workload) for workload in CHARACTERIZED.values())
    return measured(100 * ours, 2, MOVING)


def looked_up_more_often(documents: Documents, _row: Published) -> Measured:
    """Checks per insert."""
    return measured(_mean(documents, _checks_per_insert), 0, MOVING)


def is_almost_linear(documents: Documents, _: Published) -> Measured:
    """Instructions between sweeps per bit of the filter, by its size, relative to those of 2,047 bits."""
    per_fill = {size: _inserts_per_fill(documents, size) for size in (511, 1023, FWD_BITS, 4095)}
    relative = {size: of / per_fill[FWD_BITS] for size, of in per_fill.items()}
    values = tuple(of / (size / FWD_BITS) for size, of in relative.items())
    text = ", ".join(f"{of:.2f} ({size})" for size, of in relative.items())
    return Measured(text, values, MOVING)


def range_of(of: Callable[[Documents, str], float], unit: float, digits: int) -> Formula:
    """The smallest and the largest value of all programs."""

    def formula(documents: Documents, _: Published) -> Measured:
        values = [of(documents, workload) / unit for workload in CHARACTERIZED.values()]
        ends = min(values), max(values)
        return Measured(f"{ends[0]:.{digits}f}-{ends[1]:.{digits}f}", ends, MOVING)

    return formula


def _fenced_store_cycles(documents: Documents, workload: str, design: str) -> float:
    """Returns the mean duration of a store with a clean and a fence."""
    found = documents[f"{workload}.{design}"]["stats"]["p_inspect"]["fenced_stores"]
    return float(found["cycles"]["value"]) / float(found["count"]["value"])


def time_of_fenced_stores(documents: Documents, row: Published) -> Measured:
    """Reduction of time of a store, its clean and its fence as one operation instead of three, in percent.

    A program has equal stores of this kind under both designs. The time is that from the moment at which a store could
    leave the store buffer until its acknowledgement; overlap with other instructions counts in full. An average is the
    mean over all programs.
    """
    workloads = PROGRAMS.values() if row.workload == "average" else (PROGRAMS[row.workload],)
    ratios = [
        _fenced_store_cycles(documents, workload, "p-inspect")
        / _fenced_store_cycles(documents, workload, "p-inspect--")
        for workload in workloads
    ]
    ours = sum(ratios) / len(ratios)
    text = "" if len(ratios) == 1 else f"from {100 * (1 - max(ratios)):.0f} to {100 * (1 - min(ratios)):.0f}"
    return percent_less(ours, 0, text)


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
FWD_BITS = 2047
MOVING = "without profiles of allocation sites; with them nothing forwards in the region"
FOUR = 'speedup ("average speed-ups")'
FASTER = 'exec_time_reduction ("faster")'
ISOLATED = "persistentWrite_time_reduction (isolated, no overlap)"
INSTRUCTIONS, TIME = "instruction_reduction", "exec_time_reduction"
KV = "YCSB KV average"
DESIGNS = {"P-INSPECT--": "p-inspect--", "P-INSPECT": "p-inspect", "Ideal-R": "ideal-r"}
FORMULAS: dict[tuple[str, str, str, str], Formula] = {
    ("Sec4", "framework_overhead_share_of_instructions", "Baseline AutoPersist", "set of workloads"): framework_share,
    ("Fig6", INSTRUCTIONS, "P-INSPECT", "hashmap-A"): reduction_of_one(_instructions, "p-inspect"),
    ("Fig7", "exec_time_relation", "P-INSPECT", "hashmap-A"): faster_than_ideal,
    ("Fig7 (text)", "exec_time_reduction gap", "Ideal-R", KV): gap_to_ideal,
    ("Sec9.A", ISOLATED, "persistentWrite", "average"): time_of_fenced_stores,
    ("Sec9.A", ISOLATED, "persistentWrite", "ArrayList"): time_of_fenced_stores,
    ("Sec9.B", "TRANS_false_positive_rate", "P-INSPECT", "all"): share(lambda of: _false_positives(of, "trans")),
    ("Sec9.B", "FWD_false_positive_rate", "P-INSPECT", "average"): share(lambda of: _false_positives(of, "fwd")),
    ("Sec9.B", "FWD_inserts_before_30%_threshold", "P-INSPECT", "average"): inserts_per_fill,
    ("Sec9.B", "handler_call_rate_due_to_FP (below)", "P-INSPECT", "average"): rarely_called_in_vain,
    ("Sec6.C", "FWD_lookup_per_write_op (over)", "P-INSPECT", "average"): looked_up_more_often,
    ("Sec9.B", "FWD_reads_per_write", "P-INSPECT", "average"): moving(_checks_per_insert, 1, 0),
    ("Fig8", "PUT_interval_vs_FWD_size", "P-INSPECT", "all apps, 511-4095 bits"): is_almost_linear,
    ("Table8 (text)", "FWD_occupancy_range", "P-INSPECT", "all"): range_of(_occupancy, 1, 1),
    ("Table8 (text)", "instructions_between_PUT_calls range", "P-INSPECT", "all"): range_of(_interval, 1e6, 2),
}
for figure, workload in (("abstract", "real-world apps (YCSB KV) average"), ("Sec1", "real-world apps average")):
    FORMULAS[figure, INSTRUCTIONS, "P-INSPECT", workload] = reduction(_instructions, "p-inspect", group=KV)
    FORMULAS[figure, TIME, "P-INSPECT", workload] = reduction(_cycles, "p-inspect", group=KV)
for name, design in DESIGNS.items():
    FORMULAS["Fig4", INSTRUCTIONS, name, "kernels average"] = reduction(_instructions, design)
    FORMULAS["Fig5", TIME if name == "Ideal-R" else FASTER, name, "kernels average"] = reduction(_cycles, design)
    FORMULAS["Fig6", INSTRUCTIONS, name, KV] = reduction(_instructions, design)
    FORMULAS["Fig7", TIME, name, KV] = reduction(_cycles, design)
    for group in GROUPS:
        FORMULAS["Sec9.C (4-issue)", FOUR, name, f"{group}, 4-issue"] = reduction(_cycles, design, "-4-issue")
for program in CHARACTERIZED:
    FORMULAS["Table9", "NVM_access_share", "P-INSPECT", program] = pmem_share
    FORMULAS["Table9", TIME, "P-INSPECT", program] = reduction_of_one(_cycles, "p-inspect")
for program in (*CHARACTERIZED, "Average"):
    of_table = {
        "instructions_between_PUT_calls": moving(_interval, 1e6, 2),
        "FWD_checks_per_insert": moving(_checks_per_insert, 1e3, 3),
        "FWD_avg_occupancy": moving(_occupancy, 1, 1),
        "PUT_instruction_overhead": moving(_overhead, 1, 1),
    }
    FORMULAS |= {("Table8", metric, "P-INSPECT", program): formula for metric, formula in of_table.items()}
