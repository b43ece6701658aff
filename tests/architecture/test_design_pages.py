"""docs/designs/: functions and tests in the tables exist. `durasim designs --check` also runs the tests."""

import pytest

from durasim.checkout import checkout
from tools import design_tables

ROOT = checkout()
ROWS = design_tables.read_tables(ROOT)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.design}:{row.line}")
def test_a_row_names_what_is_there(row):
    design_tables.check_names(ROOT, [row])
    assert row.problems == []
