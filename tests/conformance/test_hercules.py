"""End-to-end tests of Hercules: aborts, identifiers, threads that change cores, hierarchies that are not inclusive,
and threads without transactions. Single hooks have unit tests in its code."""

from collections import Counter
from pathlib import Path

import pytest

import compiled
import durasim as ds
from durasim.documents.described_crash import FAULTS

# Exit code of programs that the machine cannot continue (guest/include/durasim/error.h).
RUNTIME_ERROR = 70
MARKS = next(row["marks"] for row in ds.designs() if row["name"] == "hercules")
# Six threads or more share few cores, in slices much shorter than a transaction.
TURNS = ["core.time_slice_cycles=1500", "core.context_switch_cycles=300"]


@pytest.fixture(scope="module")
def program():
    return compiled.program(Path(__file__).with_name("hercules.cpp"), ["-DDURASIM_BACKEND=markers"])


class Run:
    """A run of `hercules.cpp` on `tiny`."""

    def __init__(self, program, pool, arguments, settings):
        said = []
        self.result = ds.run(
            design="hercules",
            machine="tiny",
            elf=program,
            args=["/pmem/words", *map(str, arguments)],
            pool=pool,
            set=settings,
            guest_output=lambda _, data: said.append(data.decode()),
        )
        self.text = "".join(said)
        self.tx = self.result.tx

    def counter(self, name):
        return self.result.stats[f"hercules.{name}"].value

    def number(self, name):
        """A count of the program."""
        return int(dict(pair.split("=") for pair in self.text.split())[name])


@pytest.fixture
def run(program, tmp_path):
    def start(*arguments, settings=()):
        return Run(program, tmp_path / "pool", arguments, list(settings))

    return start


@pytest.mark.parametrize("lines", [10, 200], ids=("in the caches", "in the log"))
def test_a_transaction_that_aborts_itself_leaves_nothing_and_is_told_its_cause(run, lines):
    """Section 4.2, Listing 1, tx_abort: lines in caches and entries in the log are discarded."""
    done = run("abort", lines, 5)
    assert done.result.guest_exit_code == 0, done.text
    assert done.number("aborted") == done.tx.aborted == 5
    assert done.tx.committed == lines
    assert (done.counter("premature_flushes") > 0) == (lines == 200)


def test_a_transaction_without_room_ends_the_program_and_leaves_nothing(run):
    """Section 4.2, abortion by exhaustion: here of the extension area of the eWPQ."""
    lines = 600
    settings = ["design.hercules.ewpq_extension_factor=10", "design.hercules.extension_chain_bytes=0"]
    done = run("long", lines, settings=settings)
    assert done.result.guest_exit_code == RUNTIME_ERROR
    assert "too large for the machine" in done.text
    assert (done.tx.committed, done.tx.aborted) == (1, 1)
    assert done.counter("ewpq_spills") > 0
    after = run("nothing", lines, settings=settings)
    assert after.result.guest_exit_code == 0, after.text


# Two entries in the eWPQ, two in its extension area, eight in each block that is chained to it.
CHAINED = [
    "design.hercules.ewpq_entries=2", "design.hercules.ewpq_extension_factor=1",
    "design.hercules.extension_block_entries=8",
]  # fmt: skip


def test_a_transaction_of_60000_lines_commits():
    """Section 5.2: it exceeds caches, eWPQ and extension area, so the extension area grows."""
    result = ds.run(
        design="hercules", workload="huge", machine="hercules-tecs23-modern-eighth", ops=2,
        workload_args={"lines-per-tx": 60000, "populate": 60000}, guest_output=lambda *_: None,
    )  # fmt: skip
    assert result.guest_exit_code == 0
    assert result.tx.aborted == 0
    count = {name: result.stats[f"hercules.{name}"].value for name in ("ewpq_chained_blocks", "ewpq_spills")}
    # 60 lines of the L1D, 256 of the L2, 8192 of the LLC, 512 entries and their extension of 5120.
    assert count["ewpq_spills"] > 60000 - 60 - 256 - 8192 - 512
    assert count["ewpq_chained_blocks"] * 4096 > 60000 - 60 - 256 - 8192 - 512 - 5120


@pytest.mark.parametrize(
    ("settings", "threads"), [([], 1), ([], 3), (["pmem.controllers=2", "pmem.interleave_bytes=64"], 1)]
)
def test_crashes_of_transactions_with_chained_blocks(settings, threads):
    result = ds.crash(
        design="hercules", workload="huge", machine="tiny", ops=2 * threads, threads=threads, points=200,
        set=[*CHAINED, *settings], workload_args={"lines-per-tx": 120, "populate": 120}, faults=FAULTS,
    )  # fmt: skip
    assert result.failures == ()
    assert result.marks["extension_chained"] > 0


@pytest.mark.parametrize("lookup", ["by_address", "scan"])
@pytest.mark.parametrize("threads", [1, 3])
def test_lines_with_equal_parts_of_their_addresses_survive_crashes(lookup, threads):
    """Section 4.2: entries hold a part of the home address, here two bits of it."""
    compact = ["design.hercules.ewpq_home_bits=2", f"design.hercules.extension_lookup={lookup}"]
    options = {
        "design": "hercules", "workload": "btree", "machine": "tiny", "ops": 20 * threads, "threads": threads,
        "set": [*CHAINED, *compact], "workload_args": {"populate": 200},
    }  # fmt: skip
    result = ds.crash(**options, points=200, faults=FAULTS)
    assert result.failures == ()
    assert result.marks["extension_populated"] > 0
    run = ds.run(**options, guest_output=lambda *_: None)
    assert run.stats["hercules.false_matches"].value > 0
    assert run.stats["hercules.extension_hits"].value > 0


def test_crashes_with_fewer_tags_than_lines_in_the_l1d():
    """Section 4.1 gives each level a share of lines with TransTags."""
    result = ds.crash(
        design="hercules", workload="btree", machine="tiny", ops=24, threads=2, points=300,
        set=["design.hercules.trans_tag_percent_l1d=50"], workload_args={"populate": 200}, faults=FAULTS,
    )  # fmt: skip
    assert result.failures == ()
    assert result.marks["tagged_line_in_l1d"] > 0 and result.marks["tagged_line_in_l2"] > 0


def test_a_log_above_its_share_of_memory_ends_the_program_and_leaves_nothing(run, program, tmp_path):
    """Sections 4.2 and 4.4: the log grows on demand, up to a share of persistent memory (80 % unless set)."""
    lines = 3000
    room = ["design.hercules.ewpq_extension_factor=1000", "design.hercules.log_zone_bytes=131072",
            "design.hercules.log_extension_bytes=524288", "design.hercules.log_extension_chunk_entries=64",
            "pmem.capacity_mib=2"]  # fmt: skip
    small = [*room, "design.hercules.abort_threshold_percent=10"]
    done = run("long", lines, settings=small)
    assert done.result.guest_exit_code == RUNTIME_ERROR
    assert "no persistent memory left" in done.text
    assert (done.tx.committed, done.tx.aborted) == (1, 1)
    assert done.counter("log_chunks") > 0
    after = run("nothing", lines, settings=small)
    assert after.result.guest_exit_code == 0, after.text
    whole = Run(program, tmp_path / "another", ["long", lines], room)
    assert whole.result.guest_exit_code == 0, whole.text
    assert whole.counter("log_chunks") > done.counter("log_chunks")
    assert whole.counter("indirect_flushes") > 0


@pytest.mark.parametrize("interleave_bytes", [64, 4096])
@pytest.mark.parametrize("controllers", [2, 4])
def test_every_controller_has_an_ewpq_and_a_part_of_the_log(controllers, interleave_bytes):
    """Section 4.1: "the log zone can be partitioned to be managed by distributed MCs"; a commit is one for all."""
    result = ds.crash(
        design="hercules", workload="btree", machine="tiny", ops=40, threads=2, points=300,
        set=[
            f"pmem.controllers={controllers}", f"pmem.interleave_bytes={interleave_bytes}",
            "design.hercules.log_gc_trigger_entries=2", "design.hercules.log_gc_chunk_entries=2",
        ],
        workload_args={"populate": 400},
    )  # fmt: skip
    assert result.failures == ()
    assert min(result.marks[mark] for mark in ("premature_flush_open", "migration_in_flight", "gc_copying")) > 0


def test_few_identifiers_are_enough_for_many_threads(run):
    """Section 4.1: identifiers wrap around; none is in use twice, and a thread without a free one retries."""
    # 16 identifiers, 20 threads that are almost always inside transactions. The log has space for the lines of all.
    settings = ["cores=2", "design.hercules.tx_id_bits=4", *TURNS]
    done = run("many", 20, 5, 20, settings=settings)
    assert done.result.guest_exit_code == 0, done.text
    assert done.tx.committed == 100
    assert done.tx.aborted > 0


def test_a_thread_that_changes_cores_inside_a_transaction_keeps_it(run):
    """Section 4.1: an equal TxID on another core is no conflict, and no line is counted or lost twice."""
    done = run("many", 3, 10, 64, settings=["cores=2", *TURNS])
    assert done.result.guest_exit_code == 0, done.text
    assert done.number("moved") > 5
    assert (done.tx.committed, done.tx.aborted) == (30, 0)
    assert done.counter("tagged_lines") == 30 * 64


def test_threads_without_transactions_share_a_core_with_one_that_has_them(run):
    """Section 5.3, Table 5: stores outside transactions behave as on any machine, between those of a transaction."""
    done = run("mixed", 10, settings=["cores=1", *TURNS])
    assert done.result.guest_exit_code == 0, done.text
    assert done.number("rounds") > 10
    assert done.result.stats["core.context_switches"].value > 100
    assert (done.tx.committed, done.tx.aborted) == (10, 0)
    assert done.counter("tagged_lines") == 10 * 64


def _crash(program, run, check, settings, points):
    result = ds.crash(
        design="hercules", machine="tiny", elf=program, args=["/pmem/words", *run], points=points,
        check_args=["/pmem/words", *check], set=settings,
        # A run that continues on a crashed pool restarts its numbers, which the check does not expect.
        faults=["clean", "nested"],
    )  # fmt: skip
    assert result.failures == ()
    assert result.trials_by_fault["clean"] > points // 2
    return result


def test_crashes_beside_threads_without_transactions(program):
    """Table 5: stores of transactions survive as a whole, other stores in their order."""
    result = _crash(program, ["mixed", "6"], ["whole"], ["cores=1", *TURNS], 400)
    assert result.marks["transaction_off_its_core"] > 0
    assert result.marks["premature_flush_open"] > 0


def test_nothing_of_a_transaction_that_aborts_itself_survives_a_crash(program):
    result = _crash(program, ["abort", "60", "4"], ["prefix", "60"], [], 400)
    assert result.marks["premature_flush_open"] > 0


def test_crashes_find_transactions_whose_thread_has_no_core():
    result = ds.crash(
        design="hercules", workload="btree", machine="tiny", ops=36, threads=6, points=300,
        set=["cores=2", "design.hercules.tx_id_bits=4", *TURNS], workload_args={"populate": 40},
    )  # fmt: skip
    assert result.failures == ()
    assert result.marks["transaction_off_its_core"] > 0


def test_crashes_fall_into_every_situation():
    """Lines of transactions at each level and in the log, migrations, commits: every mark is hit."""
    marks = Counter()
    store = ["design.hercules.tx_len_store=controller"]
    collected = ["design.hercules.log_gc_trigger_entries=8", "design.hercules.log_gc_chunk_entries=4"]
    room = {"tx_id_bits": 4, "log_zone_bytes": 8000, "log_extension_bytes": 32768, "log_extension_chunk_entries": 8}
    small_caches = ["l1d.size_bytes=256", "l2.size_bytes=256", "llc.size_bytes=512"]
    extended = [*small_caches, *(f"design.hercules.{name}={value}" for name, value in room.items())]
    turns = ["cores=2", *TURNS]
    for threads, settings in ((1, []), (1, store), (1, CHAINED), (2, extended), (4, collected), (6, turns)):
        result = ds.crash(
            design="hercules", workload="btree", machine="tiny", ops=40, threads=threads, points=400,
            set=settings, workload_args={"populate": 400},
        )  # fmt: skip
        assert result.failures == ()
        marks.update(result.marks)
    assert [mark for mark in MARKS if not marks[mark]] == []


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("workload", ["btree", "array-swap"])
def test_a_hierarchy_that_is_not_inclusive(workload, threads):
    """Section 4.5.1: non-inclusive caches keep TransTags as inclusive ones do."""
    options = {
        "design": "hercules", "workload": workload, "machine": "tiny", "ops": 12 * threads, "threads": threads,
        "set": ["interconnect.inclusion=non-inclusive"], "workload_args": {"populate": 200},
    }  # fmt: skip
    result = ds.crash(**options, points=300, faults=FAULTS)
    assert result.failures == ()
    assert result.marks["transaction_open"] > 0
    assert workload != "btree" or result.marks["premature_flush_open"] > 0
    inclusive = ds.run(**(options | {"set": []}), guest_output=lambda *_: None)
    other = ds.run(**options, guest_output=lambda *_: None)
    assert other.digest != inclusive.digest, "it is another machine"
