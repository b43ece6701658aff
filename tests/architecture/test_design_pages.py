"""docs/designs/: functions and tests in the tables exist. `durasim designs --check` also runs the tests."""

import pytest

from durasim import design_tables

ROOT = design_tables.checkout()
ROWS = design_tables.read_tables(ROOT)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.design}:{row.line}")
def test_a_row_names_what_is_there(row):
    design_tables.check_names(ROOT, [row])
    assert row.problems == []
