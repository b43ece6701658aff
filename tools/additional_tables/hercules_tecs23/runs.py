"""The runs of Hercules' experiments: Ye, Chen, Jiang and Wang, ACM TECS 2023, sections 3 and 5."""

from __future__ import annotations

from tools.additional_tables.comparison import Command

WORKLOADS = ("array-swap", "binary-heap", "btree", "hash-table", "linked-list", "rbtree", "sdg")
# Suites by size of the data in multiples of the last-level cache; numbers of the paper are compared with the first.
FOOTPRINTS = {"1.4": "hercules", "0.5": "hercules-half", "1": "hercules-one", "4": "hercules-four"}
MACHINES = {"gem5": "hercules-tecs23", "modern": "hercules-tecs23-modern"}
DESIGNS = ("opt", "hercules", "tc", "kiln", "proteus", "hoop", "fwb", "swl-eadr")
SEEDS = (1, 2, 3)
MOTIVATION = "btree"


def run(machine: str, design: str, suite: str, workload: str, seed: int, *more: str) -> Command:
    """Returns the run of a suite's program at scale quick."""
    of = ["run", "--design", design, "--machine", machine, "--workload", f"{suite}-{workload}", "--scale", "quick"]
    of += ["--seed", str(seed), "--arg", "no-check=true", "--fast-forward", "roi"]
    return Command((*of, *more))


def key(workload: str, design: str, footprint: str = "1.4", machine: str = "gem5", seed: int = 1) -> str:
    """Returns the name of a run's document."""
    return f"{workload}.{design}.{footprint}.{machine}.{seed}"


def _main_runs() -> dict[str, Command]:
    return {
        key(workload, design, footprint, machine, seed): run(MACHINES[machine], design, suite, workload, seed)
        for seed in SEEDS
        for machine in MACHINES
        for footprint, suite in FOOTPRINTS.items()
        for workload in WORKLOADS
        for design in DESIGNS
    }


# TPC-C and YCSB, by the name of the workload after `hercules-`.
MACRO = ("tpcc", "ycsb-64", "ycsb-256", "ycsb-1024", "ycsb-4096")
# Lines of an artificial transaction, in thousands.
HUGE = (1, 10, 20, 30, 40, 50, 60)
# Structures that Figure 10 scales down together with the caches: the eWPQ, the array of TC, the queues of Proteus.
SCALED_DOWN = {
    "hercules": ("--set", "design.hercules.ewpq_entries=64"),
    "tc": ("--set", "design.tc.entries=8"),
    "proteus": ("--set", "design.proteus.lpq_entries=32", "--set", "design.proteus.logq_entries=2"),
}
UNLIMITED = ("--set", "design.hercules.ewpq_entries=1048576")
RESETS = (0, 90)


def macro(design: str, workload: str, threads: int, *more: str) -> Command:
    """Returns the run of a macro-benchmark."""
    return run(MACHINES["gem5"], design, "hercules", workload, 1, "--threads", str(threads), *more)


def huge(design: str, lines: int, *more: str) -> Command:
    """Returns the run with artificial transactions of the given thousands of lines, on the scaled-down machine."""
    of = ["run", "--design", design, "--machine", "hercules-tecs23-eighth", "--workload", f"hercules-huge-{lines}k"]
    return Command((*of, "--arg", "no-check=true", "--fast-forward", "roi", *more))


def _reset_runs() -> dict[str, Command]:
    found = {}
    for workload in WORKLOADS:
        for cycles in RESETS:
            settings = ("--set", f"design.hercules.state_reset_cycles={cycles}")
            found[f"{workload}.hercules.reset-{cycles}"] = run(
                MACHINES["gem5"], "hercules", "hercules", workload, 1, *settings
            )
    return found


# Table 5: the thread that shares a core with the ordinary thread, as the number of threads without transactions.
CONTENDERS = {"Hercules transactional thread": 1, "ordinary thread": 2}
TREES = {"B+-Tree": "btree", "RB-Tree": "rbtree"}
# Keys of each tree, the first number being that of the suite, and the time slice of the threads in cycles: gem5 runs
# both threads at once, which Hercules' per-core registers do not permit here. These runs have the size of the paper.
PAIR_KEYS = (500_000, 216_000, 1_000_000)
SLICE_CYCLES = 20_000


def pair(tree: str, ordinary: int, keys: int = PAIR_KEYS[0]) -> str:
    """Returns the name of the document of two threads that share a core in time slices."""
    return f"pair.{tree}.{ordinary}.{keys}.full"


def _pair_runs() -> dict[str, Command]:
    def of_pair(design: str, tree: str, ordinary: int, keys: int, *more: str) -> Command:
        return Command((
            "run", "--design", design, "--machine", MACHINES["gem5"], "--workload", f"hercules-pair-{tree}",
            "--threads", "2", "--arg", f"items-max={keys}", "--arg", f"ordinary={ordinary}", "--arg", "no-check=true",
            "--fast-forward", "roi", "--set", "cores=1", *more,
        ))  # fmt: skip

    turns = ("--set", f"core.time_slice_cycles={SLICE_CYCLES}")
    found = {
        pair(tree, ordinary, keys): of_pair("hercules", tree, ordinary, keys, *turns)
        for tree in TREES.values()
        for ordinary in CONTENDERS.values()
        for keys in PAIR_KEYS
    }
    both = ("--set", "threads_per_core=2")
    return found | {
        f"pair.{tree}.at-once.full": of_pair("opt", tree, 2, PAIR_KEYS[0], *both) for tree in TREES.values()
    }


# Alternative readings of the papers, on all workloads: the design and the settings. Without a setting, only the domain
# differs.
READINGS = {
    "TC: a commit holds later stores until persistent memory has all lines": (
        "tc",
        ("--set", "design.tc.commit=acknowledged"),
    ),
    "Kiln: an LLC as large as that of the others": ("kiln", ("--set", "design.kiln.llc_size_factor=1")),
    "Kiln: writes of the LLC are pipelined": ("kiln", ("--set", "design.kiln.llc_pipelined=all")),
    "Kiln: both versions of a line in the LLC": ("kiln", ("--set", "design.kiln.versions=two-in-llc")),
    "Kiln: on eADR": ("kiln-eadr", ()),
    "Proteus: a log queue of 8 entries": ("proteus", ("--set", "design.proteus.lpq_entries=8")),
    "Proteus: on eADR": ("proteus-eadr", ()),
    "HOOP: on eADR": ("hoop-eadr", ()),
    "FWB: on eADR": ("fwb-eadr", ()),
    "SWL_eADR: a log of four times the LLC": ("swl-eadr", ("--arg", "log-bytes=8388608")),
}


def reading(number: int, workload: str) -> str:
    """Returns the name of the document of a reading, by its index."""
    return f"reading-{number}.{workload}"


def _reading_runs() -> dict[str, Command]:
    found = {}
    for number, (design, more) in enumerate(READINGS.values()):
        for workload in WORKLOADS:
            found[reading(number, workload)] = run(MACHINES["gem5"], design, "hercules", workload, 1, *more)
    return found


# The medium with rows: the lines of a block of 256 bytes are on one bank.
WITH_ROWS = "rows"


def _row_runs() -> dict[str, Command]:
    return {
        key(workload, design, machine=WITH_ROWS): run("hercules-tecs23-rows", design, "hercules", workload, 1)
        for workload in WORKLOADS
        for design in DESIGNS
    }


# Sizes of the data in multiples of the last-level cache, in addition to those of the suites, and the arguments that
# give data of the size of that cache at scale quick.
SIZES = ("0.0625", "0.125", "0.25")
SIZED = {"array-swap": ("populate", 8_125), "btree": ("items-max", 77_600), "rbtree": ("items-max", 32_770)}


def _size_runs() -> dict[str, Command]:
    found = {}
    for workload, (argument, of_llc) in SIZED.items():
        for size in SIZES:
            given = ("--arg", f"{argument}={int(of_llc * float(size))}")
            for design in DESIGNS:
                found[key(workload, design, size)] = run(MACHINES["gem5"], design, "hercules", workload, 1, *given)
    return found


RUNS = _main_runs() | _reset_runs() | _pair_runs() | _reading_runs() | _row_runs() | _size_runs()
