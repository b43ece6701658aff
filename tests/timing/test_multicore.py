"""Several cores and cache-block operations compared with gem5's O3 model, on few kernels; `make validate` runs all."""

import multicore
import pytest

KERNELS = ("amo-shared", "hand-modify", "pingpong", "clean-clean-fence", "private-fill")


@pytest.fixture(scope="module")
def rows():
    return [multicore.measure(r) for r in multicore.references(kernels=KERNELS)]


def test_the_reference_is_complete():
    rows = multicore.references()
    assert len(rows) == 200
    assert {row.kernel for row in rows} > set(KERNELS)


def test_the_readme_names_every_reason():
    text = (multicore.HERE / "README.md").read_text(encoding="utf-8")
    assert [name for name in multicore.REASONS if f"- **{name}.**" not in text] == []


def test_the_recorded_cycles_are_those_of_a_run(rows):
    """`python tests/timing/validation.py --record` records them again."""
    recorded = {row.gem5: row.cycles for row in multicore.recorded()}
    assert {row.gem5: recorded[row.gem5] for row in rows} == {row.gem5: row.cycles for row in rows}


def test_rows_are_as_on_gem5_or_have_a_reason(rows):
    assert [row for row in rows if not row.is_close and multicore.reason(row.gem5) is None] == []


def test_rows_of_a_are_as_on_gem5_where_a_snoop_takes_a_look_up(rows):
    far = [row for row in rows if row.gem5.machine == "A" and not row.is_close]
    assert far == []


def test_lines_that_move_directly_move_as_on_gem5(rows):
    """Machine B has no variant with a latency of snoops: the look-up of the last level is removed here."""
    moved = [row for row in rows if row.gem5.machine == "B" and row.cycles_direct is not None]
    assert len(moved) == 6
    assert [row for row in moved if abs(row.difference_direct_percent) > 12] == []
