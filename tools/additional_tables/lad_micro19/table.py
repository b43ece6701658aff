"""The experiments of LAD: Gupta, Daglis and Falsafi, "Distributed Logless Atomic Durability", MICRO 2019.

Figures 8 and 9, Tables 2, 4 and 5, sections 4.2, 4.3, 6.1, 6.2 and 6.4. Volatile is `opt`, SW Logging `swl-flush`.
"""

from __future__ import annotations

from tools.additional_tables.comparison import (
    Command,
    Documents,
    Experiment,
)

# Operations before the measured region and in it. The number of the former is the 131,072 lines of the last-level cache
# divided by the lines that a transaction modifies, or less if it mostly reads; data of rbt fit into the cache.
OPERATIONS = {
    "tatp": (100000, 25000),
    "rbt": (10000, 30000),
    "cq": (33000, 40000),
    "pc": (16500, 16500),
    "sps": (8200, 8200),
    "tpcc": (4000, 2500),
}
NVM = '{kind="fixed",read_latency_ns=60,write_latency_ns=150,write_granularity_bytes=64}'
MACHINE = "lad-micro19"
THREADS = 15


def _entries(number: int) -> tuple[str, ...]:
    return (f"pmem.controller.write_queue_entries={number}", f"dram.controller.write_queue_entries={number}")


def _media(media: str) -> tuple[str, ...]:
    return (f"pmem.media={media}", f"dram.media={media}")


# Settings and the designs that run with them. `single` comes first: its runs save the snapshots.
VARIANTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "single": (MACHINE, (), ("opt", "lad-llc", "lad-base", "lad", "swl-flush")),
    "dual": ("lad-micro19-dual", (), ("opt", "lad-llc", "lad-base", "lad", "swl-flush")),
    "queue-32": (MACHINE, _entries(32), ("lad",)),
    "queue-16": (MACHINE, _entries(16), ("lad",)),
    "queue-8": (MACHINE, _entries(8), ("opt", "lad", "swl-flush")),
    "nvm": (MACHINE, _media(NVM), ("opt", "lad-llc", "lad", "swl-flush")),
}
LINES_TAKE_TURNS = ("pmem.interleave_bytes=64", "dram.interleave_bytes=64")
SMALL_TRANSACTIONS = ("tatp", "rbt", "cq", "pc", "sps")
# Experiments with which docs/results/lad-micro19.md explains differences.
EXPERIMENTS = (
    Experiment(
        "later-answers",
        SMALL_TRANSACTIONS,
        ("opt", "lad", "lad-base"),
        ("interconnect.remote_controllers=[0,1,2,3]", "interconnect.remote_response_ns=12"),
    ),
    Experiment("clean-caches", ("sps",), ("opt", "lad"), operations=(0, 3000)),
    Experiment("no-flushes", ("tatp", "cq", "sps"), ("swl-eadr",), baseline="single"),
    Experiment("lines-take-turns", ("cq", "sps", "tpcc"), ("opt", "lad"), LINES_TAKE_TURNS),
    Experiment("lines-take-turns-queue-8", ("cq", "sps", "tpcc"), ("opt", "lad"), (*LINES_TAKE_TURNS, *_entries(8))),
    Experiment("five-threads", ("cq", "sps"), ("opt", "lad"), threads=5),
    Experiment("five-threads-queue-8", ("cq", "sps"), ("opt", "lad"), _entries(8), threads=5),
    Experiment("nvm-64-banks", ("cq",), ("opt", "lad"), _media(NVM.replace("}", ",banks=64}"))),
)


def _run(
    design: str,
    machine: str,
    workload: str,
    operations: tuple[int, int],
    settings: tuple[str, ...],
    threads: int = THREADS,
) -> tuple[str, ...]:
    warm, ops = operations
    run = ["run", "--design", design, "--machine", machine, "--workload", f"lad-{workload}", "--threads", str(threads)]
    run += ["--ops", str(ops), "--arg", f"warm-ops={warm}", "--arg", "no-check=true"]
    return (*run, *(part for setting in settings for part in ("--set", setting)))


def _program(workload: str, design: str) -> str:
    return f"{workload}-{design if design.startswith('swl') else 'hardware'}"


def _experiments() -> dict[str, Command]:
    found = {}
    for experiment in EXPERIMENTS:
        for workload in experiment.workloads:
            operations = experiment.operations or OPERATIONS[workload]
            is_other = experiment.threads != THREADS or experiment.operations is not None
            own = f"-{experiment.threads}-{operations[1]}" if is_other else ""
            for design in experiment.designs:
                arguments = _run(design, MACHINE, workload, operations, experiment.settings, experiment.threads)
                command = Command(arguments, _program(workload, design) + own)
                found[f"{workload}.{design}.{experiment.name}"] = command
    return found


def _commands() -> dict[str, Command]:
    found: dict[str, Command] = {}
    for variant, (machine, settings, designs) in VARIANTS.items():
        # Start the long populations first.
        for workload in reversed(OPERATIONS):
            for design in designs:
                arguments = _run(design, machine, workload, OPERATIONS[workload], settings)
                found[f"{workload}.{design}.{variant}"] = Command(arguments, _program(workload, design))
    # One thread alone on the machine, with data in its caches.
    for workload in SMALL_TRANSACTIONS:
        run = ["run", "--design", "lad", "--machine", "lad-micro19", "--workload", f"lad-{workload}", "--threads", "1"]
        run += ["--ops", "1000", "--arg", "populate=1000", "--fast-forward", "roi"]
        found[f"{workload}.lad.one-thread"] = Command(tuple(run))
        measure = ("workloads", f"lad-{workload}", "--measure", "--ops", "2000")
        found[f"{workload}.lines"] = Command(measure)
    found["tpcc.lines"] = Command(("workloads", "lad-tpcc", "--measure", "--ops", "2000"))
    found["cost"] = Command(("designs", "lad"))
    return found


COMMANDS = _commands()
EXPERIMENT_COMMANDS = _experiments()


def _throughput(documents: Documents, workload: str, design: str, variant: str) -> float:
    return float(documents[f"{workload}.{design}.{variant}"]["throughput_ops_per_us"])


def _relative(documents: Documents, workload: str, pair: tuple[str, str], variant: str) -> float:
    ours, baseline = (_throughput(documents, workload, design, variant) for design in pair)
    return ours / baseline


def _by_program(documents: Documents) -> list[dict[str, str]]:
    """For each program and design, by setting: throughput over Volatile's, and instructions of a transaction."""
    found = []
    for workload in OPERATIONS:
        for variant, (_, _, designs) in VARIANTS.items():
            for design in designs:
                result = documents[f"{workload}.{design}.{variant}"]
                row = {"workload": workload, "set": variant, "design": design}
                row |= {"throughput_over_opt": "", "over_queue_64": ""}
                if "opt" in designs:
                    row["throughput_over_opt"] = f"{_relative(documents, workload, (design, 'opt'), variant):.2f}"
                if variant.startswith("queue"):
                    full = _throughput(documents, workload, design, "single")
                    row["over_queue_64"] = f"{_throughput(documents, workload, design, variant) / full:.2f}"
                row["instructions_per_tx"] = f"{result['instructions_per_transaction']:.0f}"
                row["media_writes_per_tx"] = f"{result['accesses_per_tx']['writes']:.3g}"
                found.append(row)
    return found


TABLES = {"workloads": _by_program}
