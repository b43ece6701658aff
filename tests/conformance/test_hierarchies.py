"""Every design on hierarchies without a preset: without an L2, and with an L1D of two ways."""

import pytest

import durasim as ds
from durasim.crashes.test_plans import plan_of
from pairing import pairs

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

DESIGNS = [row["name"] for row in ds.designs()]
CONTROLS = {row["name"] for row in ds.designs() if row["control"]}
SMALL = {workload.name: workload.small for workload in ds.workloads()}
# Words of different locks are on separate lines, as in test_pairs.py.
WORKLOADS = [name for name in SMALL if name != "false-sharing"]
NARROW = ("l1d.size_bytes=256", "l1d.ways=2")
HIERARCHIES = {
    "no-l2": ("l2=none",),
    "two-ways": NARROW,
    "both": ("l2=none", *NARROW, "interconnect.inclusion=non-inclusive"),
}


@pytest.mark.parametrize(
    ("number", "place"),
    pairs(range(len(DESIGNS)), range(len(HIERARCHIES)), keep=lambda number, place: place == number % len(HIERARCHIES)),
)
def test_durable_designs_survive_and_controls_are_caught(number: int, place: int) -> None:
    design = DESIGNS[number]
    fitting = {workload.name for workload in ds.workloads(design)}
    workloads = [workload for workload in WORKLOADS if workload in fitting]
    workload = workloads[(number + place) % len(workloads)]
    threads = (1, 2, 4)[(number + place // 2) % 3]
    small = dict(SMALL[workload])
    result = ds.crash(
        design=design,
        workload=workload,
        machine="tiny",
        ops=threads * small.pop("ops"),
        threads=threads,
        points=50,
        set=(*(plan_of(design).short_run_settings if threads > 1 else ()), *list(HIERARCHIES.values())[place]),
        workload_args=small,
    )
    assert set(result.judged_by) == {"bytes", "guest", "history"}
    if design in CONTROLS:
        assert result.violations > 0
    else:
        assert result.failures == ()
