"""Cycles compared with gem5's O3 model, on the kernels that take seconds; `make validate` runs all.

Each entry of DEVIATIONS.md about a gap has a test here that fails when the gap closes.
"""

import csv

import pytest
import validation

# Small enough for every test run: 22 of 32 rows.
KERNELS = (
    "chase-16k",
    "chase-128k",
    "atomics",
    "divs",
    "stream",
    "sort",
    "btree",
    "rbmap",
    "matmul",
    "branches",
    "crc",
)
IPC_ERROR_MEAN_PERCENT_MAX = 10
IPC_ERROR_PERCENT_MAX = 25
SPEEDUP_ERROR_PERCENT_MAX = 10
MISSES_ERROR_PERCENT_MAX = 5


@pytest.fixture(scope="module")
def rows():
    found = validation.measure_all(validation.references(kernels=KERNELS))
    return {(row.gem5.machine, row.gem5.kernel): row for row in found}


def test_the_reference_is_complete():
    rows = validation.references()
    assert len(rows) == 32
    assert len({row.args for row in rows}) == 16
    assert set(KERNELS) < {row.kernel for row in rows}


def test_the_ipc_is_gem5s(rows):
    summary = validation.summary(list(rows.values()))
    assert summary.ipc_error_mean_percent <= IPC_ERROR_MEAN_PERCENT_MAX
    assert summary.ipc_error_max_percent <= IPC_ERROR_PERCENT_MAX
    assert summary.speedup_error_max_percent <= SPEEDUP_ERROR_PERCENT_MAX


def test_the_recorded_cycles_are_those_of_a_run(rows):
    """`python tests/timing/validation.py --record` records them again."""
    with validation.RECORDED.open(newline="") as file:
        recorded = {(row["machine"], row["args"]): int(row["cycles"]) for row in csv.DictReader(file)}
    assert recorded.keys() == {(row.machine, row.args) for row in validation.references()}
    assert {name: recorded[name] for name in recorded if name[1].split()[0] in KERNELS} == {
        (row.gem5.machine, row.gem5.args): row.cycles for row in rows.values()
    }


@pytest.mark.parametrize("kernel", [k for k in validation.MEMORY_BOUND if k in KERNELS])
@pytest.mark.parametrize("machine", validation.MACHINES)
def test_misses_below_the_l1d_are_gem5s(rows, machine, kernel):
    row = rows[machine, kernel]
    for here, gem5 in ((row.l2_misses, row.gem5.l2_misses), (row.llc_misses, row.gem5.l3_misses)):
        assert abs(here / gem5 - 1) * 100 <= MISSES_ERROR_PERCENT_MAX


def test_the_summary_line_can_be_read_by_machines(rows):
    line = validation.summary(list(rows.values())).line()
    fields = dict(field.split("=") for field in line.split())
    names = ["ipc_error_mean_percent", "ipc_error_max_percent", "speedup_error_max_percent", "programs"]
    assert list(fields) == names
    assert int(fields["programs"]) == len(KERNELS)


def test_gap_startup_executes_more_instructions_than_gem5s(rows):
    """[D:validation-startup]."""
    more = {row.instructions - row.gem5.instructions for row in rows.values()}
    assert all(50 < difference < 250 for difference in more), more


def test_gap_store_sets_of_neighbours_are_one_in_gem5(rows):
    """[D:validation-store-sets]: a load that shares its entry with another one waits for the other one's store."""
    for machine in validation.MACHINES:
        row = rows[machine, "matmul"]
        assert 3 < row.ipc_error_percent < 10
        apart = validation.measure(row.gem5, settings=["core.store_sets.pc_shift_bits=1"])
        assert apart.ipc_error_percent > row.ipc_error_percent + 8


def test_gap_gem5_learns_compressed_branches_as_taken(rows):
    """[D:validation-compressed-branches]: without gem5's defect far fewer mispredictions."""
    with_defect = rows["B", "rbmap"]
    assert abs(with_defect.mispredictions / with_defect.gem5.mispredicts - 1) < 0.1
    setting = ["core.predictor.compressed_branches_stay_taken=false"]
    without = [validation.measure(with_defect.gem5, settings=setting)]
    assert without[0].mispredictions < 0.6 * with_defect.gem5.mispredicts
    assert without[0].ipc_error_percent > 10


def test_gap_nothing_of_the_wrong_path_reaches_the_caches(rows):
    """[D:validation-wrong-path]: gem5's own machines differ in L1D misses by how far they speculate."""
    a, b = rows["A", "btree"], rows["B", "btree"]
    assert a.l1d_misses < 0.5 * b.gem5.l1d_misses < 0.5 * a.gem5.l1d_misses
    assert abs(a.l1d_misses / b.l1d_misses - 1) < 0.01


def test_gap_the_wrong_path_is_dropped_from_an_estimated_reorder_buffer(rows):
    """[D:validation-squash]: B is too fast on branches, more so where dropping takes no time."""
    row = rows["B", "branches"]
    assert 3 < row.ipc_error_percent < 15
    at_once = validation.measure(row.gem5, settings=["core.squash_width=4096"])
    assert at_once.ipc_error_percent > row.ipc_error_percent + 1
