"""TC with guest programs: overflow, identifiers that wrap around, and crashes in both."""

import pytest

import durasim as ds

FAULTS = ("clean", "nested", "recrash")


def test_a_transaction_of_60000_lines_commits():
    """Section 4.1: the fall-back path takes lines that exceed the transaction cache."""
    result = ds.run(
        design="tc", workload="huge", machine="hercules-tecs23-modern-eighth", ops=1,
        workload_args={"lines-per-tx": 60000, "populate": 60000}, guest_output=lambda *_: None,
    )  # fmt: skip
    assert result.guest_exit_code == 0
    assert result.tx.aborted == 0
    assert result.stats["tc.overflows"].value >= 1
    assert result.stats["tc.shadowed_lines"].value > 60000 - 64


def test_without_room_in_the_shadow_area_the_program_is_told_and_ends():
    result = ds.run(
        design="tc", workload="huge", machine="tiny", ops=1, set=["design.tc.shadow_lines=50"],
        workload_args={"lines-per-tx": 120, "populate": 120}, guest_output=lambda *_: None,
    )  # fmt: skip
    assert result.guest_exit_code != 0
    assert result.tx.aborted > 0


@pytest.mark.parametrize("threads", [1, 3])
def test_crashes_of_transactions_that_overflow(threads):
    result = ds.crash(
        design="tc", workload="huge", machine="tiny", ops=2 * threads, threads=threads, points=300,
        set=["design.tc.entries=4"], workload_args={"lines-per-tx": 60, "populate": 60}, faults=FAULTS,
    )  # fmt: skip
    assert result.failures == ()
    assert result.marks["overflow_in_progress"] > 0


def test_crashes_where_identifiers_wrap_around():
    """Section 4.2: threads that wait inside transactions hold their identifiers while others use the rest."""
    settings = [
        "cores=2", "core.time_slice_cycles=2000", "core.context_switch_cycles=0",
        "design.tc.tx_id_bits=2", "design.tc.entries=8",
    ]  # fmt: skip
    result = ds.crash(
        design="tc",
        workload="array-swap",
        machine="tiny",
        ops=60,
        threads=4,
        points=300,
        set=settings,
        workload_args={"populate": 12},
        faults=FAULTS,
    )
    assert result.failures == ()
    assert result.marks["identifier_wrapped_around"] > 0


def test_commits_retire_early():
    row = next(row for row in ds.designs() if row["name"] == "tc")
    assert row["promise"] == "immediate"
    assert row["commits_retire"] == "early"
    assert next(row for row in ds.designs() if row["name"] == "hercules")["commits_retire"] == "at gate"
