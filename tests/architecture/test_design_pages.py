"""docs/designs/: functions and tests that the tables name are there. `durasim designs --check` runs the tests too."""

import pytest

from durasim import design_tables

ROOT = design_tables.checkout()
ROWS = design_tables.read_tables(ROOT)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.design}:{row.line}")
def test_a_row_names_what_is_there(row):
    design_tables.check_names(ROOT, [row])
    assert row.problems == []
