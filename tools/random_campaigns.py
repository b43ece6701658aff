"""Crashes durable rows with drawn workloads, sizes and parameters on `tiny`; ends with 1 if a promise is broken.

    .venv/bin/python tools/random_campaigns.py 1000    # so many campaigns of 120 crashes
    .venv/bin/python tools/random_campaigns.py 1000 8  # with another seed

Equal arguments draw equal campaigns. Each objection is printed with the command that replays it.
"""

import argparse
import random
import sys
from typing import Any

import durasim
from durasim.laboratory import laboratory_of

POINTS = 120
WORKLOADS = {
    "btree": ("node-bytes", [128, 256, 1024, 5440]),
    "array-swap": ("element-bytes", [64, 256, 1024]),
    "false-sharing": ("shared-lines", ["true", "false"]),
}
# A log of lines brings back the words of others: it is for data of different locks on different lines.
GRANULARITY = {"swl-flush": "word", "swl-eadr": "word"}
# Under these designs programs lock more than a word: words of different locks stay on different lines.
COARSE = frozenset(row["name"] for row in durasim.designs() if row["locking"] in ("blocks", "lines"))
MACHINE = {
    "cores": [1, 2, 4, 8],
    "core.time_slice_cycles": [2000, 20_000, 3_000_000],
    "core.context_switch_cycles": [0, 500],
    "interconnect.inclusion": ["inclusive", "non-inclusive"],
    "pmem.controller.write_queue_entries": [1, 2, 4, 64],
    "pmem.controller.write_policy": ["when-free", "read-first"],
    "pmem.controllers": [1, 1, 2, 3, 8],
    "pmem.interleave_bytes": [64, 256, 4096],
    "pmem.media": [
        "{ banks = 1 }",
        "{ banks = 2 }",
        "{}",
        '{ kind = "stt-ram" }',
        '{ kind = "ddr3", ranks = 2, timing = { t_wr_ps = 180000 } }',
        '{ kind = "ddr4", page_policy = "closed", address_mapping = "row-column-rank-bank" }',
    ],
}


def draw(rng: random.Random) -> dict[str, Any]:
    """Gives the arguments of one campaign."""
    design = rng.choice([row["name"] for row in durasim.designs() if not row["control"]])
    workload = rng.choice(sorted(WORKLOADS))
    argument, sizes = WORKLOADS[workload]
    threads = rng.choice([1, 2, 4, 6])
    # Many large transactions at once exceed the smallest eWPQ and its extension area.
    sizes = sizes[:2] if threads > 1 else sizes
    arguments = {"populate": rng.choice([5, 30, 200, 600]), argument: rng.choice(sizes)}
    if workload == "false-sharing" and design in GRANULARITY:
        arguments["log-granularity"] = GRANULARITY[design]
    if workload == "false-sharing" and design in COARSE:
        arguments["shared-lines"] = "false"
    settings = {
        key: rng.choice(values) for key, values in {**MACHINE, **laboratory_of(design).drawn_parameters}.items()
    }
    if "ddr" in settings["pmem.media"]:
        # Media with rows gather writes.
        settings["pmem.controller.write_policy"] = "read-first"
    return {
        "design": design,
        "workload": workload,
        "machine": "tiny",
        "ops": rng.choice([10, 40]),
        "threads": threads,
        "points": POINTS,
        "seed": rng.randrange(1, 10**6),
        "set": settings,
        "workload_args": arguments,
    }


def main(campaigns: int, seed: int) -> int:
    """Runs the campaigns; gives the number of those in which a promise was broken or the run failed."""
    rng = random.Random(seed)  # noqa: S311 - draws test cases
    trials = broken = 0
    for _ in range(campaigns):
        arguments = draw(rng)
        try:
            result = durasim.crash(**arguments)
        except durasim.DurasimError as error:
            print(f"{arguments}: {error}", flush=True)
            broken += 1
            continue
        trials += result.trials
        if result.failures:
            print(f"{result.failures[0].message}\n  {result.failures[0].command}", flush=True)
            broken += 1
    print(f"{campaigns} campaigns, {trials} crashes, {broken} campaigns with a broken promise")
    return broken


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Crash durable rows with drawn parameters.")
    parser.add_argument("campaigns", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=7)
    chosen = parser.parse_args()
    sys.exit(1 if main(chosen.campaigns, chosen.seed) else 0)
