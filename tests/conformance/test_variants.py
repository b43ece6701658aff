"""Requirements of every design in the registry beyond test_pairs.py and campaigns/quick.toml."""

import pytest

import durasim as ds
from durasim.crashes.test_plans import plan_of, plans

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

ROWS = ds.designs()
SMALL = {"machine": "tiny", "ops": 10, "workload_args": {"populate": 10}}


def _first_workload(row):
    return "array-swap" if "transactions" in row["interfaces"] else "pinspect-hashmap"


def _crash(row, workload, **options):
    return ds.crash(design=row["name"], workload=workload, **{**SMALL, "points": 150, **options})


@pytest.mark.parametrize("row", [row for row in ROWS if not row["control"]], ids=lambda row: row["name"])
def test_every_persist_event_of_a_small_run_is_survived(row):
    result = _crash(row, _first_workload(row), ops=2, points="all", workload_args={"populate": 4})
    assert result.trials_by_fault["clean"] == result.points
    assert result.failures == ()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_domain_it_does_not_tolerate_is_refused(row):
    for domain in {"adr", "eadr", "bbb", "nv-llc", "nv-llc-media", "nv-tc", "media"} - set(row["domains"]):
        with pytest.raises(ds.ConfigError, match="--control"):
            ds.run(design=row["name"], workload=_first_workload(row), domain=domain, **SMALL)


@pytest.mark.parametrize("design", ["hercules", "tc"])
def test_hardware_that_keeps_versions_is_refused_persist_buffers_even_as_a_control(design):
    with pytest.raises(ds.ConfigError, match="several versions of a line"):
        ds.run(design=design, workload="array-swap", domain="bbb", control=True, **SMALL)


def test_persist_buffers_are_full_and_drain_where_they_are_small():
    small = ["bbb.entries=2", "pmem.controller.write_queue_entries=1", "pmem.media.banks=1"]
    result = _crash({"name": "swl-eadr"}, "btree", domain="bbb", set=small, ops=60, points=400)
    assert result.failures == ()
    assert all(result.marks.get(mark, 0) > 0 for mark in ("persist_buffer_full", "persist_buffer_drains"))
    assert result.events_by_kind["cache_store"] > 0


def test_software_logging_fails_where_it_must():
    without = {"populate": 10, "no-flush": "true"}
    assert _crash({"name": "swl-flush"}, "btree", workload_args=without).violations > 0
    assert _crash({"name": "swl-flush"}, "btree", workload_args=without, domain="eadr").violations == 0
    for domain in ("adr", "nv-llc"):
        assert _crash({"name": "swl-eadr"}, "btree", domain=domain, control=True).violations > 0
    assert _crash({"name": "swl-flush"}, "btree", workload_args=without, domain="bbb").violations == 0
    assert _crash({"name": "swl-flush"}, "btree", workload_args=without, domain="nv-llc").violations > 0
    for domain, fails in (("adr", True), ("media", True), ("nv-llc", True), ("eadr", False), ("bbb", False)):
        for row in ("sp", "sp-indirect"):
            crashed = _crash({"name": row}, "btree", workload_args=without, domain=domain)
            assert (crashed.violations > 0) == fails, (row, domain)
    fences = {"populate": 10, "no-fence": "true"}
    for row in ("sp", "sp-indirect"):
        assert _crash({"name": row}, "btree", workload_args=fences, faults=("reorder",)).violations > 0
    # Without transaction caches that domain preserves only the contents of the media.
    assert _crash({"name": "swl-flush"}, "btree", domain="nv-tc", control=True).violations == 0


# Situations that are rare on real machines and common on `tiny`.
RARE = [design for design, of in plans().items() if of.common_counters or of.common_marks]


@pytest.mark.parametrize("design", RARE)
def test_rare_paths_are_common_on_tiny_and_crash_points_fall_into_them(design):
    run = ds.run(design=design, workload="btree", machine="tiny", ops=200, guest_output=lambda *_: None)
    of, hardware = plan_of(design), next(row["hardware"] for row in ROWS if row["name"] == design)
    for counter in of.common_counters:
        assert run.stats[f"{hardware}.{counter}"].value > 0, counter
    crash = ds.crash(
        design=design, workload="btree", machine="tiny", ops=60, points=400, workload_args={"populate": 400}
    )
    assert crash.failures == ()
    for mark in of.common_marks:
        assert crash.marks.get(mark, 0) > 0, mark
