"""Effects of batches of a run on the numbers of its document."""

from statistics import fmean

import pytest

from durasim.papers.batches import deviations

COUNT = 10


def document(**counters):
    """A document whose batches have these steps of counters, by path with `__` for dots."""
    ends = {path.replace("__", "."): [sum(of[: at + 1]) for at in range(COUNT)] for path, of in counters.items()}
    return {
        "throughput_ops_per_us": 3.0, "latency_ns": {"p99": 5.0}, "tx": {"aborted_by": {"a": 8.0, "b": 2.0}},
        "stats": {"llc": {"misses": {"value": 50.0}, "hits": {"value": 0.0}}},
        "configuration": {"cores": 4.0}, "batches": {"ops": 4, "count": COUNT, "counters": ends},
    }  # fmt: skip


CYCLES = [10, 20, 10, 20, 10, 20, 10, 20, 10, 20]
OPS = [4] * COUNT


def test_a_batch_without_which_the_number_were_higher_moves_it_down():
    of = deviations(document(ops=OPS, roi__cycles=CYCLES), ["throughput_ops_per_us"])["throughput_ops_per_us"]
    # Without a batch of 20 cycles: 36 operations in 130 cycles instead of 40 in 150.
    assert of[1] == pytest.approx(9 * 3 * (1 - (36 / 130) / (40 / 150)))
    assert of[0] > 0 > of[1]
    # The mean of the deviations is of second order.
    assert abs(fmean(of)) < 0.1 * max(of)


def test_counters_are_rates_of_operations_and_a_star_is_their_sum():
    found = deviations(
        document(
            ops=OPS, stats__llc__misses=[5] * 9 + [14], tx__aborted_by__a=[1] * COUNT, tx__aborted_by__b=[0] * COUNT
        ),
        ["stats.llc.misses", "tx.aborted_by.*", "stats.llc.hits", "configuration.cores", "latency_ns.p99", "roi.ipc"],
    )
    assert found["stats.llc.misses"][9] == pytest.approx(9 * 50 * (1 - (45 / 36) / (59 / 40)))
    assert found["tx.aborted_by.*"] == pytest.approx([0.0] * COUNT)
    assert found["stats.llc.hits"] == found["configuration.cores"] == (0.0,) * COUNT
    # Percentiles cannot be divided into batches, and the document has no such number.
    assert "latency_ns.p99" not in found and "roi.ipc" not in found


def test_a_run_without_batches_or_with_few_has_no_deviations():
    few = document(ops=OPS, roi__cycles=CYCLES)
    few["batches"]["count"] = 7
    assert deviations(few, ["throughput_ops_per_us"]) == {}
    assert deviations({"throughput_ops_per_us": 1.0}, ["throughput_ops_per_us"]) == {}
    assert deviations({"throughput_ops_per_us": 1.0, "batches": None}, ["throughput_ops_per_us"]) == {}
