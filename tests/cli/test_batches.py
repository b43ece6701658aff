"""`--batches`: counters at the ends of batches of operations, which change no result and add up to it."""

import pytest

import durasim as ds

SMALL = {"machine": "tiny", "ops": 100, "workload_args": {"populate": 20}, "guest_output": lambda *_: None}


@pytest.mark.parametrize(
    ("design", "threads", "options"),
    [("opt", 1, {}), ("tc", 4, {"fast_forward": "roi"}), ("hercules", 2, {"stop_after_roi": True})],
)
def test_batches_add_up_to_the_result_and_change_nothing_else(conforms, design, threads, options):
    plain, recorded, again = (
        ds.run(design=design, workload="array-swap", threads=threads, batches=wanted, **SMALL, **options)
        for wanted in (False, True, True)
    )
    document = recorded.to_dict()
    conforms("run", document)
    assert plain.batches is None
    own = ("batches", "host")
    first, second = (
        {name: value for name, value in of.items() if name not in own} for of in (plain.to_dict(), document)
    )
    assert first == second
    assert recorded.batches == again.batches
    found = recorded.batches
    assert 32 <= found.count < 64
    counters = found.counters
    assert all(len(column) == found.count and sorted(column) == list(column) for column in counters.values())
    steps = [after - before for before, after in zip([0, *counters["ops"]], counters["ops"], strict=False)]
    assert min(steps) >= 1
    assert 0 < counters["roi.cycles"][-1] <= recorded.roi.cycles
    assert counters["pmem_write_bytes.total"][-1] <= recorded.pmem_write_bytes.total
    misses = counters["stats.llc.misses"][-1]
    assert 0 < misses <= recorded.stats["llc"]["misses"].value


def test_a_functional_run_has_no_batches(program):
    words = ["run", "--workload", "array-swap", "--machine", "tiny", "--ops", "100", "--arg", "populate=20"]
    result = program(*words, "--functional", "--batches")
    assert result.returncode == 2
    assert result.stderr.endswith("batches: a functional run has no cycles: leave batches out\n")
