"""Proteus with whole programs: log operations, spills, aborts, threads that lose their core."""

import pytest

import durasim as ds
from durasim.crashes.mutants import first_objection
from durasim.crashes.test_plans import plan_of
from durasim.programs import toolchain

ROWS = ["proteus", "proteus-eadr"]
QUIET = {"guest_output": lambda _stream, _bytes: None}
SPILLING = ["design.proteus.lpq_entries=2", "design.proteus.llt_entries=4", "design.proteus.llt_ways=2"]
SMALL = ["l1d.size_bytes=256", "l2.size_bytes=256", "llc.size_bytes=512"]


def _run(row, **options):
    return ds.run(design=row, workload="btree", machine="tiny", ops=60, **QUIET, **options)


def _count(result, name):
    return result.stats[f"proteus.{name}"].value


def _crash(row, **options):
    arguments = {"populate": "20", "node-bytes": "128"}
    return ds.crash(design=row, workload="btree", machine="tiny", points=120, workload_args=arguments, **options)


@pytest.mark.parametrize("row", ROWS)
def test_most_repeats_are_dropped(row):
    result = _run(row)
    flushes, elided = _count(result, "flushes"), _count(result, "elided_flushes")
    assert flushes > 2 * (flushes - elided) > 0
    assert _count(result, "spilled_entries") == 0
    assert _count(result, "removed_entries") == flushes - elided


def test_only_the_row_without_durable_caches_cleans():
    assert [_count(_run(row), "cleaned_lines") > 0 for row in ROWS] == [True, False]


@pytest.mark.parametrize("row", ROWS)
def test_a_short_queue_sends_entries_to_the_log(row):
    assert _run(row).pmem_write_bytes.log == 0
    result = _run(row, set=SPILLING)
    assert _count(result, "spilled_entries") > 0
    assert result.pmem_write_bytes.log > 0


@pytest.mark.parametrize("row", ROWS)
def test_crashes_around_spills_are_survived(row):
    assert _crash(row, ops=20, set=[*SPILLING, *SMALL]).failures == ()


@pytest.mark.parametrize("row", ROWS)
def test_threads_that_lose_their_core_inside_transactions_survive(row):
    slices = ["cores=2", "core.time_slice_cycles=2000", "core.context_switch_cycles=0"]
    assert _crash(row, ops=30, threads=4, set=[*SPILLING, *slices]).failures == ()


@pytest.mark.parametrize("row", ROWS)
def test_crashes_around_aborts_are_survived(row):
    """Each transaction is undone once before it commits."""
    rehearsals = [campaign for campaign in plan_of(row).campaigns if campaign.rehearsals]
    assert len(rehearsals) > 1
    assert [first_objection(row, None, campaign) for campaign in rehearsals] == [None] * len(rehearsals)


@pytest.mark.parametrize(("row", "mark"), [("tc", None), ("opt", "roi")])
def test_log_operations_need_a_design_that_has_them(row, mark):
    program = toolchain.build("btree", "log-operations")
    with pytest.raises(ds.DurasimError, match=r"log\.load and log\.flush are instructions of designs that log"):
        ds.run(
            design=row, machine="tiny", elf=program, args=["run", "--pool-path", "/pmem/pool", "--ops", "1"],
            control=True, fast_forward=mark, **QUIET,
        )  # fmt: skip


def test_a_fast_forward_goes_through_log_operations():
    plain = _run("proteus", fast_forward="roi")
    assert plain.guest_exit_code == 0
    assert _count(plain, "flushes") > 0


INSIDE = ["design.proteus.log_queue=inside", *SPILLING[1:]]


def _inside(row, places, **options):
    return _run(row, set=[*INSIDE, f"pmem.controller.write_queue_entries={places}"], **options)


@pytest.mark.parametrize("row", ROWS)
def test_log_entries_in_the_write_queue_compete_with_data(row):
    """With space for all, each entry is discarded; in a short queue they go to the media, and the size matters."""
    flushes, elided = (_count(_inside(row, 512), name) for name in ("flushes", "elided_flushes"))
    roomy, short = _inside(row, 512), _inside(row, 3)
    assert roomy.pmem_write_bytes.log == roomy.stats["pmem.yielded"].value == 0
    assert roomy.stats["pmem.discarded"].value == flushes - elided
    assert short.stats["pmem.yielded"].value + short.stats["pmem.discarded"].value == flushes - elided
    assert short.pmem_write_bytes.log > 0
    assert short.throughput_ops_per_us < roomy.throughput_ops_per_us
    beside = _run(row, set=[*SPILLING[1:], "pmem.controller.write_queue_entries=512"])
    assert beside.stats["pmem.discarded"].value == beside.stats["pmem.yielded"].value == 0


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(
    "settings", [INSIDE, [*INSIDE, "design.proteus.lpq_entries=2"], [*INSIDE, "design.proteus.flush_order=in_order"]]
)
def test_crashes_with_log_entries_in_the_write_queue_are_survived(row, settings):
    few = ["pmem.controller.write_queue_entries=3", "pmem.media.write_latency_ns=1000"]
    assert _crash(row, ops=20, set=[*settings, *few, *SMALL]).failures == ()


def test_spills_of_a_queue_that_is_not_there_are_refused():
    with pytest.raises(ds.ConfigError, match="spills_in_flight: 2 has no effect where log_queue is inside"):
        _run("proteus", set=[*INSIDE, "design.proteus.spills_in_flight=2"])


@pytest.mark.parametrize("row", ROWS)
def test_flushes_in_order_use_one_entry_of_the_logq(row):
    """Each store waits for the entry before it: a longer LogQ has no benefit, and no flush leaves early."""
    in_order = "design.proteus.flush_order=in_order"
    long, short = (_run(row, set=[in_order, f"design.proteus.logq_entries={entries}"]) for entries in (16, 2))
    assert _count(long, "early_flushes") == 0
    assert long.roi == short.roi
    assert long.throughput_ops_per_us < _run(row).throughput_ops_per_us
