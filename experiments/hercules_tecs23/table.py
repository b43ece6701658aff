"""The experiments of Hercules: Ye, Chen, Jiang and Wang, ACM TECS 2023, sections 3 and 5.

At scale quick: data, transactions and data caches are an eighth of the paper's. Each footprint is a suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isnan
from statistics import mean
from typing import Any

from experiments.comparison import (
    Command,
    Documents,
    Experiment,
    Formula,
    Measured,
    geomean,
    half_interval,
    measured,
    percent_less,
    percent_more,
    pmem_bytes,
    throughput,
)
from experiments.hercules_tecs23.parts import PARTS  # noqa: F401 - for tools/published.py
from experiments.hercules_tecs23.runs import (
    CONTENDERS,
    DESIGNS,
    FOOTPRINTS,
    HUGE,
    MACHINES,
    MACRO,
    MOTIVATION,
    PAIR_KEYS,
    RATIOS,
    READINGS,
    ROWS,
    RUNS,
    SCALING,
    SEEDS,
    SIZED,
    SIZES,
    TREES,
    VARIED,
    WITH_ROWS,
    WORKLOADS,
    WRITE_LATENCIES_NS,
    WRITE_QUEUES,
    key,
    pair,
    reading,
)
from experiments.scoring import Published

# Workloads with the larger and with the smaller loss in Figure 11.
LIGHT, HEAVY = ("linked-list", "hash-table", "array-swap", "binary-heap"), ("btree", "rbtree", "sdg")

COMMANDS = RUNS
EXPERIMENTS: tuple[Experiment, ...] = ()
EXPERIMENT_COMMANDS: dict[str, Command] = {}


def _mean_ratio(
    documents: Documents, pair: tuple[str, str], value: Any, footprint: str = "1.4", machine: str = "gem5"
) -> float:
    """Returns the geometric mean over workloads and seeds of a design's value relative to another one's."""
    ours, baseline = pair
    return geomean([
        value(documents[key(workload, ours, footprint, machine, seed)])
        / value(documents[key(workload, baseline, footprint, machine, seed)])
        for workload in WORKLOADS
        for seed in SEEDS
    ])  # fmt: skip


def gain() -> Formula:
    """Throughput over that of the baseline, as a gain in percent."""

    def formula(documents: Documents, number: Published) -> Measured:
        return percent_more(_mean_ratio(documents, ("hercules", ROWS[number.baseline]), throughput))

    return formula


def bytes_share() -> Formula:
    """Bytes written to persistent memory, as a share of the baseline's."""

    def formula(documents: Documents, number: Published) -> Measured:
        ours = _mean_ratio(documents, ("hercules", ROWS[number.baseline]), pmem_bytes)
        return measured(ours * 100, 1)

    return formula


def of_motivation(value: Any, *, is_share: bool = False) -> Formula:
    """A value of the B+-tree of section 3 under one design, relative to another one."""

    def formula(documents: Documents, number: Published) -> Measured:
        pair = [documents[key(MOTIVATION, ROWS[name])] for name in (number.design, number.baseline)]
        ours = value(pair[0]) / value(pair[1])
        return measured(ours * 100, 1) if is_share else percent_more(ours)

    return formula


def _accesses(level: str) -> Any:
    return lambda document: document["stats"][level]["accesses"]["value"]


def tail() -> Formula:
    """The 99.9th percentile of the latency of a transaction, as a reduction in percent."""

    def formula(documents: Documents, number: Published) -> Measured:
        ours, theirs = (
            documents[key(MOTIVATION, of)]["latency_ns"]["p999"] for of in ("hercules", ROWS[number.baseline])
        )
        return percent_less(ours / theirs)

    return formula


def of_picl(*, is_time: bool) -> Formula:
    """Time, or bytes, of PiCL relative to Hercules."""

    def formula(documents: Documents, _number: Published) -> Measured:
        ratios = []
        for workload in WORKLOADS:
            ours, theirs = (documents[key(workload, design)] for design in ("hercules", "picl"))
            time = throughput(ours) / throughput(theirs)
            ratios.append(time if is_time else pmem_bytes(theirs) / pmem_bytes(ours))
        ratio = geomean(ratios)
        return percent_more(ratio) if is_time else measured(ratio, 1)

    return formula


def lines(workload: str, column: str) -> Formula:
    """Lines that a transaction writes, in the suite of the compared runs."""

    def formula(documents: Documents, _number: Published) -> Measured:
        own, beyond = (
            next(row for row in documents[f"lines.{suite}"] if row["name"] == f"{suite}-{workload}")["tx_lines"][column]
            for suite in ("hercules", "hercules-beyond")
        )
        return measured(own, 1, f"`hercules-beyond-{workload}`, which is made for this table: {beyond:.1f}")

    return formula


def eviction_loss() -> Formula:
    """Loss of transactions of 60,000 lines due to the limit of the eWPQ."""

    def formula(documents: Documents, _number: Published) -> Measured:
        ours, free = (throughput(documents[f"huge-60.hercules.{of}"]) for of in ("512", "unlimited"))
        return percent_less(ours / free)

    return formula


def huge_gain() -> Formula:
    """Throughput with huge transactions on the scaled-down machine, over all sizes."""

    def formula(documents: Documents, number: Published) -> Measured:
        baseline = ROWS[number.baseline.split()[0]]
        ratios = [
            throughput(documents[f"huge-{n}.hercules.down"]) / throughput(documents[f"huge-{n}.{baseline}.down"])
            for n in HUGE
        ]
        return percent_more(geomean(ratios))

    return formula


def macro_gain(threads: int) -> Formula:
    """Throughput over that of the baseline on the macro-benchmarks, as a gain in percent."""

    def formula(documents: Documents, number: Published) -> Measured:
        baseline = ROWS[number.baseline]
        ratios = [
            throughput(documents[f"{workload}.hercules.{threads}"])
            / throughput(documents[f"{workload}.{baseline}.{threads}"])
            for workload in MACRO
        ]
        return percent_more(geomean(ratios))

    return formula


def scaling(threads: int) -> Formula:
    """Throughput of Hercules with several threads, relative to one."""

    def formula(documents: Documents, _number: Published) -> Measured:
        ratios = [
            throughput(documents[f"{workload}.hercules.{threads}"]) / throughput(documents[f"{workload}.hercules.1"])
            for workload in MACRO
        ]
        return measured(geomean(ratios), 1)

    return formula


def _bits(documents: Documents, name: str) -> float:
    structures = documents["cost"][0]["cost"]["structures"]
    return float(next(of["bits"] for of in structures if of["name"] == name))


def storage(name: str, divisor: float, digits: int = 0) -> Formula:
    """The size of a structure, in the unit of the paper."""

    def formula(documents: Documents, _number: Published) -> Measured:
        return measured(_bits(documents, name) / divisor, digits)

    return formula


# Bits of a line with its tag and state, by the paper's estimate.
LINE_BITS, TAG_BITS = 48 + 512, 48
LINES_OF = {"l1d": 480, "l2": 4096, "llc": 262144}


def overhead(level: str) -> Formula:
    """Bits of TransTags for each line, as a share of a line's."""

    def formula(documents: Documents, _number: Published) -> Measured:
        return measured(_bits(documents, f"TransTags {level}") / LINES_OF[level] / LINE_BITS * 100, 1)

    return formula


def tag_growth(documents: Documents, _number: Published) -> Measured:
    """Bits of a TransTag relative to a tag that contains one."""
    bits = _bits(documents, "TransTags l1d") / LINES_OF["l1d"]
    return measured(bits / (TAG_BITS + bits) * 100, 1)


def energy(name: str, digits: int) -> Formula:
    """Energy of a crash."""

    def formula(documents: Documents, _number: Published) -> Measured:
        return measured(documents["cost"][0]["cost"][name], digits)

    return formula


def energy_overhead(documents: Documents, _number: Published) -> Measured:
    """Additional energy of a crash due to TransTags, as a share."""
    cost = documents["cost"][0]["cost"]
    ours = (cost["crash_energy_mj"] + cost["crash_comparison_energy_nj"] * 1e-6) / cost["crash_base_energy_mj"] * 100
    return measured(ours, 2)


def comparable(documents: Documents, _number: Published) -> Measured:
    """Throughput of Hercules relative to that without durability."""
    ours = _mean_ratio(documents, ("hercules", "opt"), throughput)
    return Measured(f"{ours:.2f} x", (ours,))


def best_ratio(documents: Documents, _number: Published) -> Measured:
    """Best ratio of TransTags in the last level for transactions of 30,000 lines."""
    found = {percent: throughput(documents[f"huge-30.hercules.ratio-{percent}"]) for percent in RATIOS}
    best = [percent for percent in RATIOS if found[percent] == max(found.values())]
    return Measured(", ".join(map(str, best)), tuple(map(float, best)), f"of {', '.join(map(str, RATIOS))}")


def reset_order(documents: Documents, _number: Published) -> Measured:
    """Loss of light and of heavy transactions due to a longer state reset."""
    drops = {
        workload: 1
        - throughput(documents[f"{workload}.hercules.reset-90"]) / throughput(documents[f"{workload}.hercules.reset-0"])
        for workload in WORKLOADS
    }
    values = tuple(drops[of] * 100 for of in (*LIGHT, *HEAVY))
    text = ", ".join(f"{of} {lost:.1f} %" for of, lost in zip((*LIGHT, *HEAVY), values, strict=True))
    return Measured(text, values, reason="lost from 0 to 90 cycles")


def _ends(documents: Documents, design: str, setting: str, values: Iterable[int]) -> float:
    """Throughput with the last of some values, relative to that with the first."""
    first, *_, last = (throughput(documents[f"{design}.{setting}-{value}"]) for value in values)
    return last / first


def unaffected(setting: str, values: tuple[int, ...]) -> Formula:
    """Throughput with the last of some values, relative to that with the first."""

    def formula(documents: Documents, number: Published) -> Measured:
        ours = _ends(documents, ROWS[number.design], setting, values)
        return Measured(f"{ours:.2f} x", (ours,), f"from {values[0]} to {values[-1]}")

    return formula


def queue_helps(documents: Documents, _number: Published) -> Measured:
    """Gain of HOOP and Proteus from more entries of the write queue."""
    found = [_ends(documents, design, "queue", WRITE_QUEUES) for design in ("hoop", "proteus")]
    text = ", ".join(f"{ratio:.2f}" for ratio in found)
    return Measured(f"{text} x", tuple(found), f"HOOP, Proteus, from {WRITE_QUEUES[0]} to {WRITE_QUEUES[-1]}")


def latency_hurts(documents: Documents, _number: Published) -> Measured:
    """Remaining throughput, with slower persistent memory, of designs that write copies."""
    names = tuple(design for design in VARIED if design != "hercules")
    found = [_ends(documents, design, "write", WRITE_LATENCIES_NS) for design in names]
    text = ", ".join(f"{ratio:.2f}" for ratio in found)
    reason = f"{', '.join(names)}, from {WRITE_LATENCIES_NS[0]} to {WRITE_LATENCIES_NS[-1]} ns"
    return Measured(f"{text} x", tuple(found), reason)


LEVELS = {"L1": "l1d", "L2": "l2", "L3": "llc"}


def of_pair(level: str, other: str, tree: str) -> Formula:
    """The miss rate of the ordinary thread of Table 5."""

    def formula(documents: Documents, _number: Published) -> Measured:
        return measured(_first_thread_miss_percent(documents[pair(TREES[tree], CONTENDERS[other])], level), 2)

    return formula


def _first_thread_miss_percent(document: Mapping[str, Any], level: str) -> float:
    of = document["stats"][LEVELS[level]]["thread_0"]
    return 100 * float(of["misses"]["value"]) / float(of["accesses"]["value"])


def not_measured(reason: str) -> Formula:
    """A published number without a measurement."""
    return lambda _documents, _number: Measured("", reason=reason)


PREVALENT, MOTIVATION_ROW = "avg(prevalent workloads)", "B+-Tree 1M KV inserts (8B/8B)"
MICRO, HUGE_ROW = "micro average", "artificial huge tx"
MACRO_ROW = "macro average (TPC-C, YCSB value sizes), {}"
UNCLEAR = not_measured("the text that is left of Table 4 does not tell of which column it is")
FORMULAS: dict[tuple[str, str, str, str], Formula] = {
    ("Sec1 (intro)", "throughput_gain", "Hercules", PREVALENT): gain(),
    ("Sec1 (intro)", "pmem_write_ratio", "Hercules", PREVALENT): bytes_share(),
    ("Fig2b", "throughput_gain", "SWL_eADR", MOTIVATION_ROW): of_motivation(throughput),
    ("Fig2c", "pmem_write_ratio", "SWL_eADR", MOTIVATION_ROW): of_motivation(pmem_bytes, is_share=True),
    ("Fig5", "throughput_gain", "Hercules", MICRO): gain(),
    ("Fig5", "throughput_relation", "Hercules", "micro"): comparable,
    ("Fig6", "pmem_write_ratio", "Hercules", MICRO): bytes_share(),
    ("Fig7b", "tail_latency_99.9P_reduction", "Hercules", "B+-Tree"): tail(),
    ("Fig8", "exec_time_increase", "PiCL", MICRO): of_picl(is_time=True),
    ("Fig8", "pmem_write_ratio", "PiCL", MICRO): of_picl(is_time=False),
    ("Table4", "TxLen_avg", "(workload property)", "Array Swap"): lines("array-swap", "avg"),
    ("Table4", "TxLen_avg", "(workload property)", "Binary Heap"): lines("binary-heap", "avg"),
    ("Table4", "TxLen_avg", "(workload property)", "B+-Tree"): lines("btree", "avg"),
    ("Table4", "TxLen_avg", "(workload property)", "Linked List"): lines("linked-list", "avg"),
    ("Table4", "TxLen_avg", "(workload property)", "RB-Tree"): lines("rbtree", "avg"),
    ("Table4", "TxLen_avg", "(workload property)", "SDG"): lines("sdg", "avg"),
    ("Table4", "TxLen_max", "(workload property)", "Binary Heap or Hash Table (OCR column unclear)"): UNCLEAR,
    ("Table4", "TxLen_max", "(workload property)", "B+-Tree (OCR column unclear)"): lines("btree", "max"),
    ("Table4", "TxLen_max", "(workload property)", "Linked List (OCR column unclear)"): lines("linked-list", "max"),
    ("Table4", "TxLen_max", "(workload property)", "SDG (OCR column unclear)"): lines("sdg", "max"),
    ("Table4", "TxLen_min", "(workload property)", "SDG (OCR column unclear)"): lines("sdg", "min"),
    ("Fig9a", "throughput_loss", "Hercules eWPQ=512", "artificial huge tx 60k lines, caches /8"): eviction_loss(),
    ("Fig9b", "best_L3_TransTag_ratio", "Hercules", "30k-line huge tx, 2MB L3"): best_ratio,
    ("Fig10", "throughput_gain", "Hercules (scale-down /8)", HUGE_ROW): huge_gain(),
    (
        "Fig11",
        "state_reset_latency_sensitivity order",
        "Hercules",
        "LinkedList,HashTable,ArraySwap,BinaryHeap drop more than B+-Tree,RB-Tree,SDG",
    ): reset_order,
    ("Fig12", "WPQ_size_sensitivity", "Hercules", "Linked List"): unaffected("queue", WRITE_QUEUES),
    ("Fig12", "WPQ_size_sensitivity", "HOOP and Proteus", "Linked List"): queue_helps,
    ("Fig13", "pmem_latency_sensitivity", "Hercules", "Linked List"): unaffected("write", WRITE_LATENCIES_NS),
    ("Fig13", "pmem_latency_sensitivity", "prior works relying on pmem backup writes", "Linked List"): latency_hurts,
    ("Table6", "TransTag_storage L1D (per core)", "Hercules", ""): storage("TransTags l1d", 8192, 2),
    ("Table6", "TransTag_storage L2 (per core)", "Hercules", ""): storage("TransTags l2", 8192, 2),
    ("Table6", "TransTag_storage L3", "Hercules", ""): storage("TransTags llc", 8192),
    ("Table6", "eWPQ_entries_storage", "Hercules", ""): storage("eWPQ entries", 8),
    ("Sec5.4", "eWPQ_validity_bitmap_storage", "Hercules", ""): storage("eWPQ validity bitmap", 8),
    ("Sec5.4", "LogHead_storage", "Hercules", ""): storage("LogHead and LogTail", 16),
    ("Sec5.4", "LogTail_storage", "Hercules", ""): storage("LogHead and LogTail", 16),
    ("Sec5.4", "TransTag_space_overhead L1D", "Hercules", ""): overhead("l1d"),
    ("Sec5.4", "TransTag_space_overhead L2", "Hercules", ""): overhead("l2"),
    ("Sec5.4", "TransTag_space_overhead L3", "Hercules", ""): overhead("llc"),
    ("Sec5.4", "TransTag_tag_growth L1D (22/(48+22))", "Hercules", ""): tag_growth,
    ("Sec5.4", "crash_flush_energy base (whole hierarchy, 8 cores)", "eADR", ""): energy("crash_base_energy_mj", 3),
    (
        "Sec5.4",
        "crash_flush_energy extra TransTag+home addr",
        "Hercules",
        "worst case all dirty uncommitted",
    ): energy("crash_energy_mj", 3),
    ("Sec5.4", "crash WayNo comparison energy total", "Hercules", "worst case"): energy(
        "crash_comparison_energy_nj", 3
    ),
    ("Sec5.4", "crash_flush_energy_overhead max", "Hercules", "worst case"): energy_overhead,
    ("Fig14", "throughput_gain", "Hercules", MACRO_ROW.format("1 thread")): macro_gain(1),
    ("Fig15", "throughput_gain", "Hercules", MACRO_ROW.format("4 threads")): macro_gain(4),
}
FORMULAS |= {
    ("Fig2d", f"cache_access_increase_{published}", "SWL_eADR", MOTIVATION_ROW): of_motivation(_accesses(level))
    for published, level in (("L1D", "l1d"), ("L2", "l2"), ("L3", "llc"))
}
FORMULAS |= {
    ("Fig16", "throughput_scaling", f"Hercules {threads} threads", "macro geomean"): scaling(threads)
    for threads in SCALING[1:]
}
FORMULAS |= {
    ("Table5", f"miss_rate_{level} of ordinary thread", f"contended by {other}", tree): of_pair(level, other, tree)
    for level in LEVELS
    for other in CONTENDERS
    for tree in TREES
}


PUBLISHED_GAINS = {"swl-eadr": 1.892, "kiln": 1.292, "tc": 1.152, "hoop": 1.513, "proteus": 1.480, "fwb": 1.570}
PUBLISHED_BYTES = {"swl-eadr": 29.8, "kiln": 37.4, "tc": 5.3, "hoop": 1.4, "proteus": 1.5, "fwb": 2.1}


def _throughputs(documents: Documents) -> list[dict[str, str]]:
    """Throughput of Hercules over that of each design, by machine and footprint."""

    def of_seed(design: str, footprint: str, machine: str, seed: int) -> float:
        ours, theirs = _values(documents, design, throughput, (footprint, machine, seed))
        return geomean([a / b for a, b in zip(ours, theirs, strict=True)])

    return _overview(of_seed, {of: f"{gain:.2f}" for of, gain in PUBLISHED_GAINS.items()} | {"opt": "comparable"}, 2)


def _bytes(documents: Documents) -> list[dict[str, str]]:
    """Bytes that Hercules writes, in percent of those of each design, by machine and footprint."""

    def of_seed(design: str, footprint: str, machine: str, seed: int) -> float:
        ours, theirs = _values(documents, design, pmem_bytes, (footprint, machine, seed))
        return 100 * _ratio(ours, theirs)

    return _overview(of_seed, {of: f"{share}" for of, share in PUBLISHED_BYTES.items()}, 1)


def _ratio(ours: list[float], theirs: list[float]) -> float:
    """Returns the geometric mean of ratios, or the ratio of the sums if some programs write nothing."""
    if min(*ours, *theirs) == 0:
        return sum(ours) / sum(theirs) if sum(theirs) else float("nan")
    return geomean([a / b for a, b in zip(ours, theirs, strict=True)])


def _overview(
    of_seed: Callable[[str, str, str, int], float], published: Mapping[str, str], digits: int
) -> list[dict[str, str]]:
    """Means with the halves of their 95 % intervals over the seeds: designs by machine and footprint."""
    found = []
    for design in DESIGNS:
        if design == "hercules":
            continue
        row = {"design": f"`{design}`", "published": published.get(design, "-")}
        for machine in MACHINES:
            for footprint in sorted(FOOTPRINTS, key=float):
                values = [of_seed(design, footprint, machine, seed) for seed in SEEDS]
                is_known = not any(map(isnan, values))
                row[f"{machine} {footprint}"] = (
                    f"{mean(values):.{digits}f} ± {half_interval(values):.{digits}f}" if is_known else "-"
                )
        found.append(row)
    return found


def _values(
    documents: Documents, design: str, value: Any, place: tuple[str, str, int]
) -> tuple[list[float], list[float]]:
    """Values of all workloads, of Hercules and of a design."""
    ours, theirs = ([value(documents[key(of, by, *place)]) for of in WORKLOADS] for by in ("hercules", design))
    return ours, theirs


def _by_workload(documents: Documents) -> list[dict[str, str]]:
    """Throughput relative to `opt` and bytes relative to Hercules by workload, in the compared footprint."""
    found = []
    for workload in WORKLOADS:
        for design in DESIGNS:
            run, opt, hercules = (documents[key(workload, of)] for of in (design, "opt", "hercules"))
            found.append({
                "workload": workload,
                "design": design,
                "throughput_over_opt": f"{throughput(run) / throughput(opt):.2f}",
                "pmem_bytes_over_hercules": f"{pmem_bytes(run) / pmem_bytes(hercules):.2f}",
                "l2_miss_percent": f"{_miss_percent(run, 'l2'):.1f}",
                "llc_miss_percent": f"{_miss_percent(run, 'llc'):.1f}",
            })  # fmt: skip
    return found


def _miss_percent(document: Mapping[str, Any], level: str) -> float:
    of = document["stats"][level]
    return 100 * float(of["misses"]["value"]) / float(of["accesses"]["value"])


def _pairs(documents: Documents) -> list[dict[str, str]]:
    """The misses of the ordinary thread of Table 5 by the keys of each tree."""
    found = []
    for tree in TREES.values():
        of = {
            (f"{keys:,}", other): documents[pair(tree, ordinary, keys)]
            for keys in sorted(PAIR_KEYS)
            for other, ordinary in CONTENDERS.items()
        }
        at_once = {
            (f"{PAIR_KEYS[0]:,}", "ordinary thread, two hardware threads"): documents[f"pair.{tree}.at-once.full"]
        }
        for (keys, other), document in (of | at_once).items():
            rates = {f"{level}_percent": f"{_first_thread_miss_percent(document, level):.2f}" for level in LEVELS}
            found.append({"tree": tree, "keys_each": keys, "beside": other} | rates)
    return found


def _readings(documents: Documents) -> list[dict[str, str]]:
    """Designs under alternative readings of their papers, by workload."""
    found = []
    for number, (name, (design, _)) in enumerate(READINGS.items()):
        plain = design if design in DESIGNS else design.removesuffix("-eadr")
        of_workloads = [[documents[reading(number, of)], documents[key(of, plain)]] for of in WORKLOADS]
        row = {"reading": name}
        row |= {
            of: f"{throughput(new) / throughput(old):.2f}"
            for of, (new, old) in zip(WORKLOADS, of_workloads, strict=True)
        }
        hercules = [throughput(documents[key(of, "hercules")]) for of in WORKLOADS]
        gains = [ours / throughput(new) for ours, (new, _) in zip(hercules, of_workloads, strict=True)]
        new_bytes, old_bytes = ([pmem_bytes(of[place]) for of in of_workloads] for place in (0, 1))
        ours = [pmem_bytes(documents[key(of, "hercules")]) for of in WORKLOADS]
        row |= {"bytes": f"{_ratio(new_bytes, old_bytes):.2f}", "hercules_over_it": f"{geomean(gains):.2f}"}
        share = _ratio(ours, new_bytes)
        found.append(row | {"hercules_bytes_percent": "-" if isnan(share) else f"{share * 100:.1f}"})
    return found


def _medium(documents: Documents) -> list[dict[str, str]]:
    """Throughput of Hercules over that of each design where adjacent lines share a bank, by workload."""
    found = []
    for design in DESIGNS:
        ratios = {
            of: throughput(documents[key(of, "hercules", machine=WITH_ROWS)])
            / throughput(documents[key(of, design, machine=WITH_ROWS)])
            for of in WORKLOADS
        }
        if design != "hercules":
            row = {"design": f"`{design}`", "published": f"{PUBLISHED_GAINS.get(design, 1):.2f}"}
            row |= {of: f"{ratio:.2f}" for of, ratio in ratios.items()}
            found.append(row | {"mean": f"{geomean(list(ratios.values())):.2f}"})
    return found


def _sizes(documents: Documents) -> list[dict[str, str]]:
    """Throughput relative to `opt`, and bytes written for each transaction, by the size of the data."""
    found = []
    for workload in SIZED:
        for design in DESIGNS:
            row = {"workload": workload, "design": design}
            for size in sorted({*SIZES, *FOOTPRINTS}, key=float):
                run, opt = (documents[key(workload, of, size)] for of in (design, "opt"))
                written = pmem_bytes(run) / run["ops"]
                row[size] = f"{throughput(run) / throughput(opt):.2f} / {written:.0f}"
            found.append(row)
    return found


TABLES = {
    "throughput": _throughputs,
    "bytes": _bytes,
    "workloads": _by_workload,
    "pairs": _pairs,
    "readings": _readings,
    "medium": _medium,
    "sizes": _sizes,
}
