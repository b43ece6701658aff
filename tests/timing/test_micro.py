"""Microbenchmarks with known results: the cost of a kernel of micro.cpp equals a formula of the configuration.

Each formula is next to its test and uses the configuration reported by the run. It is tested with several values of
each parameter. A kernel prints the cost of N and of 2 N iterations; their difference divided by N excludes the start
and the end of a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import compiled
import durasim
from durasim.documents.results import RunResult

HERE = Path(__file__).resolve().parent
MACHINE = HERE / "machines" / "micro.toml"
TOLERANCE = 0.02

# Lines of the kernels by the level that holds them, while the level above always misses: 64 lines are in the L1D, 256
# in the L2, 1024 in the LLC, and cyclic accesses to more lines than a level holds always miss in it.
LINES = {"l1d": 32, "l2": 128, "llc": 512, "dram": 2048, "pmem": 2048}
LEVELS = tuple(LINES)
# Loads or stores per iteration of the kernels that walk over lines.
UNROLLED = 8
# Latencies of the links between the parts: zero, small and large.
LINKS = (
    {"request_cycles": 0, "response_cycles": 1, "memory_request_cycles": 0, "memory_response_cycles": 0},
    {"request_cycles": 1, "response_cycles": 2, "memory_request_cycles": 5, "memory_response_cycles": 4},
    {"request_cycles": 9, "response_cycles": 3, "memory_request_cycles": 17, "memory_response_cycles": 2},
)

Settings = Mapping[str, Any]


def links(number: int) -> dict[str, int]:
    """Returns one of LINKS as settings."""
    return {f"interconnect.{name}": value for name, value in LINKS[number].items()}


@dataclass(frozen=True)
class Formulas:
    """Costs in cycles derived from a configuration."""

    config: Mapping[str, Any]

    def cycles(self, ns: float) -> float:
        return ns * self.config["frequency_mhz"] / 1000

    @property
    def core(self) -> Mapping[str, Any]:
        return self.config["core"]

    @property
    def links(self) -> Mapping[str, int]:
        return self.config["interconnect"]

    @property
    def address(self) -> int:
        """Address generation."""
        return self.core["units"]["memory"]["latency_cycles"]

    def latency(self, level: str) -> int:
        return self.config[level]["latency_cycles"]

    def media_read(self, memory: str) -> float:
        return self.cycles(self.config[memory]["media"]["read_latency_ns"])

    def media_write(self, memory: str) -> float:
        return self.cycles(self.config[memory]["media"]["write_latency_ns"])

    def transfer(self, memory: str) -> float:
        """A line over the channel of a memory."""
        return self.cycles(64_000 / self.config[memory]["media"]["bandwidth_mb_per_s"])

    def down(self) -> int:
        """A request from its lookup in the L1D to the response of the last level, with a link after L1D and L2."""
        return self.latency("l1d") + self.latency("l2") + self.latency("llc") + 2 * self.links["request_cycles"]

    def below_llc(self, memory: str) -> float:
        """From the last level's miss through a memory and up to the core."""
        to_memory, from_memory = self.links["memory_request_cycles"], self.links["memory_response_cycles"]
        return to_memory + self.media_read(memory) + from_memory + 3 * self.links["response_cycles"]

    def path(self, level: str) -> float:
        """From the lookup in the L1D to the data of a line in a given level."""
        if level == "l1d":
            return self.latency("l1d")
        if level == "l2":
            links = self.links["request_cycles"] + self.links["response_cycles"]
            return self.latency("l1d") + self.latency("l2") + links
        if level == "llc":
            return self.down() + 2 * self.links["response_cycles"]
        return self.down() + self.below_llc(level)

    def held(self, registers_of: str, level: str) -> float:
        """Occupancy of a miss register by a miss served by another level: from the end of the lookup until the data are
        at the core. The L1D's and the L2's registers are taken at the end of the link after the lookup."""
        before = {
            "l1d": self.latency("l1d") + self.links["request_cycles"],
            "l2": self.latency("l1d") + self.latency("l2") + 2 * self.links["request_cycles"],
            "llc": self.down(),
        }[registers_of]
        return self.path(level) - before

    def store_path(self, level: str) -> float:
        """The path of a line that evicts a dirty one. If memory is near, the evicted line takes the channel before the
        request of the new one."""
        if level not in ("dram", "pmem"):
            return self.path(level)
        return self.path(level) + max(0, self.transfer(level) - self.links["memory_request_cycles"])

    @property
    def dispatch_to_store(self) -> int:
        """From the dispatch of a store to the cycle in which it may leave the store buffer, after its commit."""
        return self.address + self.core["complete_to_commit_cycles"] + 1

    @property
    def barrier(self) -> int:
        """Cost of a fence on a core with waiting fences: it issues after the previous commit, and commits."""
        return self.core["serialize_cycles"] + 1 + self.core["complete_to_commit_cycles"]

    @property
    def front_end(self) -> int:
        """From the execution of a mispredicted branch to the dispatch of the next instruction."""
        core = self.core
        ways = core["fetch_to_rename_cycles"] + core["rename_to_dispatch_cycles"]
        return core["mispredict_redirect_cycles"] + self.latency("l1i") + ways

    def transfer_between_cores(self) -> int:
        """A line from the cache of another core: down to the directory, to the owner's L1D and L2 and back, and up."""
        return self.down() - self.latency("llc") + self.hand_over()

    def hand_over(self) -> int:
        """Its part after the owner's access: directory, owner's L1D and L2, and the path up."""
        snoop = self.links["snoop_cycles"] + max(self.latency("l1d"), self.latency("l2"))
        return self.latency("llc") + snoop + 2 * self.links["response_cycles"]


@dataclass(frozen=True)
class Measured:
    """Results of a run."""

    cost: float
    mean_cost: float
    iterations: int
    result: RunResult

    @property
    def formulas(self) -> Formulas:
        return Formulas(self.result.configuration)

    def stat(self, name: str) -> float:
        return self.result.stats[name].value


Measure = Callable[..., Measured]


@pytest.fixture(scope="session")
def program() -> Path:
    return compiled.program(HERE / "micro.cpp")


@pytest.fixture
def measure(program: Path) -> Measure:
    """measure(kernel, n, level) runs a kernel on the lines of a level."""

    def run(
        kernel: str, n: int, level: str, settings: Settings | None = None, *, lines: int | None = None,
        memory: str | None = None, domain: str = "adr", design: str = "opt",
    ) -> Measured:  # fmt: skip
        memory = memory or ("pmem" if level == "pmem" else "dram")
        printed: list[bytes] = []
        result = durasim.run(
            design=design, domain=domain, machine=os.fspath(MACHINE), set=settings or {}, control=True, elf=program,
            args=[kernel, str(n), str(lines or LINES[level]), memory],
            guest_output=lambda _stream, data: printed.append(data),
        )  # fmt: skip
        assert result.guest_exit_code == 0
        once, twice = map(int, b"".join(printed).split())
        return Measured((twice - once) / n, (once + twice) / (3 * n), 3 * n, result)

    return run


def about(expected: float) -> Any:
    return pytest.approx(expected, rel=TOLERANCE)


# Loads.

LATENCIES: tuple[Settings, ...] = (
    {},
    {"l1d.latency_cycles": 5, "l2.latency_cycles": 14, "llc.latency_cycles": 47},
    {"l1d.latency_cycles": 2, "l2.latency_cycles": 23, "llc.latency_cycles": 25, "core.units.memory.latency_cycles": 4},
    {"dram.media.read_latency_ns": 12, "pmem.media.read_latency_ns": 404},
    {"frequency_mhz": 1000},
    {"frequency_mhz": 3100},
    {"interconnect.inclusion": "inclusive"},
    links(0),
    links(2),
)


@pytest.mark.parametrize("settings", LATENCIES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_dependent_load_takes_address_generation_and_the_way_to_its_level(
    measure: Measure, level: str, settings: Settings
) -> None:
    measured = measure("chase", 2 * LINES[level] // UNROLLED, level, settings)
    expected = measured.formulas.address + measured.formulas.path(level)
    assert measured.cost / UNROLLED == about(expected)


@pytest.mark.parametrize("memory", ["dram", "pmem"])
@pytest.mark.parametrize("bandwidth_mb_per_s", [1600, 6400, 12_800, 25_600])
@pytest.mark.parametrize("frequency_mhz", [2000, 3000])
def test_a_stream_of_loads_is_bound_by_the_bandwidth_of_its_memory(
    measure: Measure, memory: str, bandwidth_mb_per_s: int, frequency_mhz: int
) -> None:
    bandwidth = {f"{memory}.media.bandwidth_mb_per_s": bandwidth_mb_per_s, "frequency_mhz": frequency_mhz}
    measured = measure("loads", 500, memory, bandwidth)
    assert measured.cost / UNROLLED == about(measured.formulas.transfer(memory))


@pytest.mark.parametrize("memory", ["dram", "pmem"])
@pytest.mark.parametrize("bandwidth_mb_per_s", [1600, 6400, 12_800])
def test_a_stream_of_stores_takes_each_line_over_the_channel_twice(
    measure: Measure, memory: str, bandwidth_mb_per_s: int
) -> None:
    # It is read when it is stored to and written when it is pushed out.
    settings = {f"{memory}.media.bandwidth_mb_per_s": bandwidth_mb_per_s, "core.store_queue_entries": 32}
    measured = measure("stores", 1500, memory, settings)
    assert measured.cost / UNROLLED == about(2 * measured.formulas.transfer(memory))


@pytest.mark.parametrize("registers", [1, 2, 5, 16])
@pytest.mark.parametrize(
    ("registers_of", "level"),
    [("l1d", "l2"), ("l1d", "llc"), ("l1d", "dram"), ("l1d", "pmem"),
     ("l2", "llc"), ("l2", "dram"), ("l2", "pmem"), ("llc", "dram"), ("llc", "pmem")],
)  # fmt: skip
@pytest.mark.parametrize("ways", [1, 2])
def test_independent_loads_are_bound_by_the_miss_registers(
    measure: Measure, registers_of: str, level: str, registers: int, ways: int
) -> None:
    # This many misses are in service at a time.
    measured = measure("loads", 500, level, {f"{registers_of}.mshrs": registers} | links(ways))
    assert measured.cost / UNROLLED == about(measured.formulas.held(registers_of, level) / registers)


@pytest.mark.parametrize("entries", [4, 8, 24])
@pytest.mark.parametrize("level", ["llc", "dram", "pmem"])
@pytest.mark.parametrize("settings", [{}, {"core.complete_to_commit_cycles": 9, "core.rename_to_dispatch_cycles": 5}])
def test_independent_loads_are_bound_by_the_load_queue(
    measure: Measure, level: str, entries: int, settings: Settings
) -> None:
    # A load holds its entry from its rename to its commit, and rename is notified one cycle later.
    measured = measure("loads", 500, level, {"core.load_queue_entries": entries} | settings)
    core = measured.formulas.core
    stages = core["rename_to_dispatch_cycles"] + core["complete_to_commit_cycles"] + 1
    expected = (stages + measured.formulas.address + measured.formulas.path(level)) / entries
    assert measured.cost / UNROLLED == about(expected)


@pytest.mark.parametrize("count", [1, 2])
def test_loads_of_the_l1d_are_bound_by_its_ports(measure: Measure, count: int) -> None:
    assert measure("loads", 2000, "l1d", {"core.units.memory.count": count}).cost / UNROLLED == about(1 / count)


@pytest.mark.parametrize("width", [1, 2, 4, 16])
@pytest.mark.parametrize("banks", [1, 8])
def test_lines_of_the_last_level_take_the_width_of_their_link(measure: Measure, width: int, banks: int) -> None:
    settings = {
        "interconnect.topology": "crossbar", "interconnect.link_width_bytes": width, "interconnect.llc_banks": banks,
    }  # fmt: skip
    # A request takes a cycle to a bank, and a line takes its width divided by that of the link back.
    one = measure("chase", 2 * LINES["llc"] // UNROLLED, "llc", settings)
    assert one.cost / UNROLLED == about(one.formulas.address + one.formulas.path("llc") + 1 + 64 / width)
    many = measure("loads", 500, "llc", settings)
    assert many.cost / UNROLLED == about(64 / width)


# Stores.


@pytest.mark.parametrize("entries", [6, 8, 16, 32])
@pytest.mark.parametrize("level", ["llc", "dram", "pmem"])
@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize("ways", [0, 2])
def test_stores_that_miss_are_bound_by_the_store_buffer(
    measure: Measure, level: str, entries: int, pipelined: bool, ways: int
) -> None:
    # Lines are requested at commit, as many at a time as there are stores in the buffer. One entry is reserved for the
    # second half of a store that crosses a line. A store that leaves frees an entry: another one is renamed in the next
    # cycle, dispatched, executed and committed, and requests its line. Without pipelining the entry is free with the
    # response of the L1D, for which the next store also waits.
    measured = measure(
        "stores", 1500, level, {"core.store_queue_entries": entries, "core.pipelined_stores": pipelined} | links(ways)
    )
    f = measured.formulas
    answer = 0 if pipelined else f.latency("l1d")
    round_trip = answer + 1 + f.core["rename_to_dispatch_cycles"] + f.dispatch_to_store + f.store_path(level)
    assert measured.cost / UNROLLED == about(max(round_trip / (entries - 1), answer))


@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize(("buffered", "below"), [("l1d", "l2"), ("l2", "llc")])
def test_dirty_lines_wait_for_the_buffers_of_their_level(
    measure: Measure, buffered: str, below: str, buffers: int
) -> None:
    # Each store that misses evicts a dirty line, which holds a buffer while in flight to the level below.
    settings = {f"interconnect.{buffered}_write_back_buffers": buffers, "core.store_queue_entries": 32}
    measured = measure("stores", 1500, below, settings)
    hold = measured.formulas.links["request_cycles"] + measured.formulas.latency(below)
    assert measured.cost / UNROLLED == about(hold / buffers)


@pytest.mark.parametrize("level", ["l2", "llc", "dram", "pmem"])
@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize("ways", [0, 1, 2])
def test_stores_that_ask_for_their_lines_in_turn_take_the_whole_way_each(
    measure: Measure, level: str, pipelined: bool, ways: int
) -> None:
    # Total store order without prefetches of ownership. A pipelined store leaves in the cycle after the line arrives.
    settings = {"core.ownership_prefetch": False, "core.pipelined_stores": pipelined, "core.store_queue_entries": 16}
    measured = measure("stores", 500, level, settings | links(ways))
    assert measured.cost / UNROLLED == about(measured.formulas.store_path(level) + (1 if pipelined else 0))


@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.parametrize("latency", [2, 3, 6])
def test_stores_to_the_l1d_leave_every_cycle_or_after_the_previous_response(
    measure: Measure, latency: int, prefetch: bool
) -> None:
    for pipelined, expected in ((True, 1), (False, latency)):
        settings = {
            "core.ownership_prefetch": prefetch, "core.pipelined_stores": pipelined, "l1d.latency_cycles": latency,
        }  # fmt: skip
        assert measure("stores", 6000, "l1d", settings).cost / UNROLLED == about(expected)


# Branches.

FRONT_ENDS: tuple[Settings, ...] = (
    {},
    {"core.mispredict_redirect_cycles": 11},
    {"core.mispredict_redirect_cycles": 0, "l1i.latency_cycles": 1},
    {"l1i.latency_cycles": 7, "core.fetch_to_rename_cycles": 4},
    {"core.rename_to_dispatch_cycles": 9},
    {"core.units.int_alu.latency_cycles": 3},
)
# The kernels' chain of additions and shifts before each branch.
CHAIN = 6


@pytest.mark.parametrize("settings", FRONT_ENDS)
@pytest.mark.parametrize("pattern", ["taken", "alternating"])
def test_regular_branches_are_predicted_and_cost_nothing(measure: Measure, pattern: str, settings: Settings) -> None:
    measured = measure(f"{pattern}-branches", 4000, "l1d", settings)
    assert measured.stat("core.mispredictions") < measured.iterations / 500
    assert measured.cost == about(CHAIN * measured.formulas.core["units"]["int_alu"]["latency_cycles"])


@pytest.mark.parametrize("settings", FRONT_ENDS)
def test_half_of_all_random_branches_are_mispredicted_at_the_configured_price(
    measure: Measure, settings: Settings
) -> None:
    measured = measure("random-branches", 12_000, "l1d", settings)
    mispredictions = measured.stat("core.mispredictions") / measured.iterations
    assert mispredictions == pytest.approx(0.5, abs=0.01)
    f = measured.formulas
    alu = f.core["units"]["int_alu"]["latency_cycles"]
    # The chain stalls while the bit is extracted and the branch is executed in a cycle, the front end restarts, and the
    # branch back to the start of the loop ends a cycle of fetching.
    price = alu + 1 + f.front_end + 1
    assert measured.mean_cost == about(CHAIN * alu + mispredictions * price)


@pytest.mark.parametrize("settings", FRONT_ENDS[:-1])
@pytest.mark.parametrize("memory", ["dram", "pmem"])
def test_a_mispredicted_branch_after_a_miss_adds_its_cost(measure: Measure, memory: str, settings: Settings) -> None:
    measured = measure("late-branches", 12_000, memory, settings)
    mispredictions = measured.stat("core.mispredictions") / measured.iterations
    f = measured.formulas
    miss = f.address + f.path(memory)
    # The branch executes in a cycle, and the branch back to the start of the loop ends a cycle of fetching.
    price = 1 + f.front_end + 1
    assert measured.mean_cost == about(miss + mispredictions * price)
    # The miss is much longer: the cost alone.
    assert (measured.mean_cost - miss) / mispredictions == about(price)


@pytest.mark.parametrize("rob_entries", [64, 128, 256])
@pytest.mark.parametrize("squash_width", [1, 2, 4])
def test_a_wrong_path_that_fills_the_reorder_buffer_is_dropped_at_the_squash_width(
    measure: Measure, rob_entries: int, squash_width: int
) -> None:
    settings = {"core.rob_entries": rob_entries, "core.squash_width": squash_width}
    measured = measure("late-branches", 2000, "pmem", settings)
    mispredictions = measured.stat("core.mispredictions") / measured.iterations
    f = measured.formulas
    # The whole buffer except uncommitted instructions older than the branch: the loads, a branch, an addition.
    steps = (rob_entries - 5) / squash_width
    # The signal to the reorder buffer and back takes five cycles; the front end is ready long before.
    price = 1 + steps + 5 + f.core["fetch_to_rename_cycles"] + f.core["rename_to_dispatch_cycles"]
    assert measured.mean_cost == about(f.address + f.path("pmem") + mispredictions * price)


# Fences and cache-block operations.


def acknowledged(f: Formulas, domain: str) -> float:
    """From a cache-block operation's leaving the store buffer to its acknowledgement."""
    up = 3 * f.links["response_cycles"]
    if domain in ("eadr", "bbb"):
        return 0
    if domain == "nv-llc":
        return f.down() + up
    queue = f.down() + f.links["memory_request_cycles"] + f.links["memory_response_cycles"] + up
    return queue if domain == "adr" else queue + f.media_write("pmem")


DOMAINS = ("adr", "eadr", "media", "bbb", "nv-llc", "nv-tc")
FENCES: tuple[Settings, ...] = (
    {},
    {"core.fences": "all"},
    {"core.fences": "all", "core.serialize_cycles": 8, "core.complete_to_commit_cycles": 5},
    {"core.units.memory.latency_cycles": 3, "core.complete_to_commit_cycles": 7},
    {"l1d.latency_cycles": 4, "l2.latency_cycles": 19, "llc.latency_cycles": 61},
    {"pmem.media.write_latency_ns": 33, "pmem.media.read_latency_ns": 52},
    links(0),
    links(2),
)


def domain_of(design_domain: str) -> dict[str, str]:
    """A domain with a design that supports it: only TC has a transaction cache."""
    return {"domain": design_domain, "design": "tc" if design_domain == "nv-tc" else "opt"}


def fenced(f: Formulas) -> int:
    """From one fence to the departure of the store after it: the store's address, then the cycle after its commit. The
    commit overlaps with that of the fence. If all fences wait, each adds its barrier."""
    return f.address + 1 + (f.barrier if f.core["fences"] == "all" else 0)


@pytest.mark.parametrize("settings", FENCES)
def test_a_fence_after_a_store_waits_until_it_has_left(measure: Measure, settings: Settings) -> None:
    for pipelined in (True, False):
        measured = measure("store-fence", 1000, "l1d", {"core.pipelined_stores": pipelined} | settings)
        f = measured.formulas
        assert measured.cost == about(fenced(f) + (0 if pipelined else f.latency("l1d")))


@pytest.mark.parametrize("settings", FENCES[1:3])
def test_fences_of_a_core_that_waits_for_all_take_a_barrier_each(measure: Measure, settings: Settings) -> None:
    measured = measure("fences", 500, "l1d", settings)
    assert measured.cost == about(8 * measured.formulas.barrier)


@pytest.mark.parametrize("settings", FENCES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_clean_and_a_fence_cost_what_the_domain_waits_for(measure: Measure, domain: str, settings: Settings) -> None:
    measured = measure("clean-fence", 3000, "pmem", settings, lines=64, **domain_of(domain))
    f = measured.formulas
    # The operation leaves in the cycle after the store.
    expected = fenced(f) + 1 + acknowledged(f, domain)
    if domain == "bbb":
        # A clean drains its line: the rate is that of the write queue, whose entries wait to be written, or the link.
        queue = f.media_write("pmem") / f.config["pmem"]["controller"]["write_queue_entries"]
        expected = max(expected, queue, 64 / f.links["controller_link_bytes"])
    assert measured.cost == about(expected)


@pytest.mark.parametrize("settings", FENCES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_flush_and_a_fence_cost_a_miss_as_well(measure: Measure, domain: str, settings: Settings) -> None:
    # The next store to the line misses in all caches, and waits in the store buffer.
    measured = measure("flush-fence", 500, "pmem", settings, lines=64, **domain_of(domain))
    f = measured.formulas
    assert measured.cost == about(fenced(f) + f.path("pmem") + 1 + acknowledged(f, domain))


@pytest.mark.parametrize(
    ("entries", "banks", "write_latency_ns"),
    [(1, 16, 101), (2, 16, 101), (8, 16, 101), (64, 1, 101), (64, 2, 101), (64, 4, 40), (64, 8, 300), (16, 1024, 101)],
)
@pytest.mark.parametrize("domain", ["adr", "media", "bbb", "nv-tc"])
def test_cleans_without_fences_proceed_at_the_rate_of_the_media(
    measure: Measure, domain: str, entries: int, banks: int, write_latency_ns: int
) -> None:
    settings = {
        "pmem.controller.write_queue_entries": entries,
        "pmem.media.banks": banks,
        "pmem.media.write_latency_ns": write_latency_ns,
    }
    measured = measure("clean", 2000, "pmem", settings, lines=64, **domain_of(domain))
    # An entry leaves the queue when the medium has written it; a bank writes one line at a time.
    assert measured.cost == about(measured.formulas.media_write("pmem") / min(entries, banks))


@pytest.mark.parametrize("bandwidth_mb_per_s", [800, 3200, 12_800])
def test_cleans_without_fences_are_bound_by_the_bandwidth_of_the_media(
    measure: Measure, bandwidth_mb_per_s: int
) -> None:
    settings = {"pmem.media.bandwidth_mb_per_s": bandwidth_mb_per_s}
    measured = measure("clean", 2000, "pmem", settings, lines=64)
    assert measured.cost == about(measured.formulas.transfer("pmem"))


# Two cores and one line.

SHARING: tuple[Settings, ...] = (
    {},
    {"interconnect.snoop_cycles": 0},
    {"interconnect.snoop_cycles": 90},
    {"l1d.latency_cycles": 5, "l2.latency_cycles": 30, "llc.latency_cycles": 44},
    {"l1d.latency_cycles": 12, "l2.latency_cycles": 7},
    {"core.serialize_cycles": 14, "core.complete_to_commit_cycles": 6, "core.units.memory.latency_cycles": 2},
    links(0),
    links(2),
)


@pytest.mark.parametrize("settings", SHARING)
def test_atomic_operations_of_two_cores_hand_a_line_to_and_fro(measure: Measure, settings: Settings) -> None:
    measured = measure("atomics", 4000, "l1d", settings)
    f = measured.formulas
    # Each begins after the commit of the one before, takes the line from the other core, and reads it in the L1D.
    own = f.core["serialize_cycles"] + f.address + f.latency("l1d") + f.core["complete_to_commit_cycles"]
    # The line is transferred after the other core has read it there: twice until it is back.
    assert measured.cost == about(max(f.transfer_between_cores() + own, 2 * (f.hand_over() + f.latency("l1d"))))


@pytest.mark.parametrize("settings", SHARING)
def test_stores_of_two_cores_hand_a_line_to_and_fro(measure: Measure, settings: Settings) -> None:
    measured = measure("shared-stores", 16_000, "l1d", {"core.ownership_prefetch": False} | settings)
    f = measured.formulas
    assert measured.cost == about(max(fenced(f) + f.transfer_between_cores(), 2 * f.hand_over()))


@pytest.mark.xfail(reason="a line that has arrived for a store may move to another core before the store writes it")
def test_a_store_writes_the_line_that_it_has_asked_for(measure: Measure) -> None:
    measured = measure("shared-stores", 16_000, "l1d", {"core.ownership_prefetch": True})
    f = measured.formulas
    assert measured.cost == about(max(fenced(f) + f.transfer_between_cores(), 2 * f.hand_over()))
