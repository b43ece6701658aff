"""The printed summary of a run."""

import pytest
from rich.console import Console

import durasim as ds
import samples
from durasim.cli.render import run_table
from durasim.runs.sensitivity import footnote, measurements, ratios

CAUSES = {"conflict": 118, "capacity": 1879, "explicit": 3, "nested": 0, "trap": 0, "other": 0}


def _rows(*, wide=True, **changes):
    """Returns the rows of a table by label."""
    console = Console(width=120)
    with console.capture() as capture:
        console.print(run_table(ds.RunResult.from_dict(samples.run(**changes)), wide=wide))
    cells = (line.split("│")[1:3] for line in capture.get().splitlines() if "│" in line)
    return {label.strip(): value.strip() for label, value in cells}


def test_hardware_transactions_are_shown_by_outcome():
    rows = _rows(design="htm-sgl", tx__htm_committed=4, tx__sgl_committed=6, tx__aborted_by=CAUSES)
    assert rows["transactions committed"] == "10"
    assert (rows["committed in hardware"], rows["committed under the lock"]) == ("4", "6")
    assert rows["attempts in hardware aborted"] == "2,000"
    by_cause = {name: value for name, value in rows.items() if name.startswith("attempts aborted, ")}
    assert by_cause == {
        "attempts aborted, conflict": "118",
        "attempts aborted, capacity": "1,879",
        "attempts aborted, explicit": "3",
    }


def test_other_designs_have_no_such_rows():
    assert [name for name in _rows() if "hardware" in name or "attempts" in name] == []


@pytest.mark.parametrize("row", ds.designs(), ids=lambda row: row["name"])
def test_the_footnote_has_a_range_only_of_its_machine(row):
    said = footnote(row["name"], "tiny"), footnote(row["name"], "made-up")
    if not row["assumptions"]:
        assert said == (None, None)
        return
    measured = {of.measured.key for of in ratios(measurements())
                if of.measured.design == row["name"] and of.measured.place.startswith("tiny,")}  # fmt: skip
    assert ("not varied on tiny" in said[0]) == (not measured & set(row["assumptions"]))
    assert "not varied on made-up" in said[1]
    varied = len(measured & set(row["assumptions"]))
    assert varied == 0 or f"; {varied} of {len(row['assumptions'])} varied, " in said[0], said
    assert said[0].endswith(f"durasim designs {row['name']}")


def test_a_run_shows_what_is_asked_for_most():
    rows = _rows(wide=False)
    assert next(iter(rows)) == "throughput"
    assert "digest" not in rows
    assert len(rows) <= 9
