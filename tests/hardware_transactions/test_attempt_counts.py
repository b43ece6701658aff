"""Counts of attempts by the runtimes (guest/runtimes/htm_attempts.h) and by the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from htm_runs import ROOMY, Program

import durasim as ds

DESIGNS = ("htm-sgl", "spht-eadr", "spht-eadr-flush", "spht", "nv-htm")
SETTINGS = ROOMY | {"cores": 8, "timer_interrupt_cycles": 20_000}
# Rounds of counts.cpp. One of eight rounds rolls back.
THREADS, ROUNDS = 4, 48


@pytest.mark.parametrize("design", DESIGNS)
def test_counts_of_machine_and_program_agree(program: Program, tmp_path: Path, design: str) -> None:
    """Each cause occurs. For an interrupt and a page fault the program only observes another cause."""
    said: list[bytes] = []
    result = ds.run(
        design=design,
        elf=program("counts", f"-DDURASIM_BACKEND={design}"),
        machine="tiny",
        set=SETTINGS,
        pool=tmp_path / "pool",
        max_instructions=20_000_000,
        guest_output=lambda _stream, data: said.append(data),
    )
    text = b"".join(said).decode()
    assert result.guest_exit_code == 0, text
    counted = {name: int(value) for name, value in (word.split("=") for word in text.split())}
    assert counted.pop("added") == counted.pop("found") > 0
    tx = result.tx
    by = tx.aborted_by
    assert by is not None
    assert counted == {
        "hardware": tx.htm_committed,
        "lock": tx.sgl_committed,
        "conflict": by.conflict,
        "capacity": by.capacity,
        "explicitly": by.explicit,
        "nested": by.nested,
        "other": by.trap,
    }
    assert by.other == 0
    assert min(counted.values()) > 0
    rolled_back = THREADS * ROUNDS // 8
    # One more has made the numbers.
    assert (tx.committed, tx.aborted) == (THREADS * ROUNDS - rolled_back + 1, rolled_back)
