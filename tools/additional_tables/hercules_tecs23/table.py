"""The experiments of Hercules: Ye, Chen, Jiang and Wang, ACM TECS 2023, sections 3 and 5.

At scale quick: data, transactions and data caches are an eighth of the paper's. Each footprint is a suite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from statistics import mean
from typing import Any

from tools.additional_tables.comparison import (
    Command,
    Documents,
    Experiment,
    geomean,
    half_interval,
    pmem_bytes,
    throughput,
)
from tools.additional_tables.hercules_tecs23.parts import PARTS  # noqa: F401 - for tools/published.py
from tools.additional_tables.hercules_tecs23.runs import (
    CONTENDERS,
    DESIGNS,
    FOOTPRINTS,
    MACHINES,
    PAIR_KEYS,
    READINGS,
    RUNS,
    SEEDS,
    SIZED,
    SIZES,
    TREES,
    WITH_ROWS,
    WORKLOADS,
    key,
    pair,
    reading,
)

COMMANDS = RUNS
EXPERIMENTS: tuple[Experiment, ...] = ()
EXPERIMENT_COMMANDS: dict[str, Command] = {}


LEVELS = {"L1": "l1d", "L2": "l2", "L3": "llc"}


def _first_thread_miss_percent(document: Mapping[str, Any], level: str) -> float:
    of = document["stats"][LEVELS[level]]["thread_0"]
    return 100 * float(of["misses"]["value"]) / float(of["accesses"]["value"])


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
