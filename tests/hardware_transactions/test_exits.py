"""Programs that exit while their threads have durable transactions."""

from __future__ import annotations

from pathlib import Path

import pytest
from htm_runs import ROOMY

import compiled
import durasim as ds

HERE = Path(__file__).resolve().parent
DESIGNS = ["spht", "nv-htm", "spht-eadr"]


def _run(elf: Path, pool: Path, design: str, *arguments: str) -> tuple[int | None, str]:
    said: list[bytes] = []
    result = ds.run(
        design=design,
        elf=elf,
        args=arguments,
        machine="tiny",
        set=ROOMY | {"cores": 8},
        pool=pool,
        max_instructions=20_000_000,
        guest_output=lambda _stream, data: said.append(data),
    )
    return result.guest_exit_code, b"".join(said).decode()


def _counters(elf: Path, pool: Path, design: str, *arguments: str) -> list[int]:
    code, said = _run(elf, pool, design, *arguments)
    assert code == 0, said
    return [int(number) for number in said.split()]


def _program(design: str) -> Path:
    return compiled.program(HERE / "exits.cpp", [f"-DDURASIM_BACKEND={design}"])


@pytest.mark.parametrize("where", ["outside", "inside"])
@pytest.mark.parametrize("design", DESIGNS)
def test_what_was_acknowledged_before_the_exit_is_there(tmp_path: Path, design: str, where: str) -> None:
    """The exit waits for committing transactions, and no transaction commits after it."""
    elf, pool = _program(design), tmp_path / "pool"
    acknowledged = _counters(elf, pool, design, "run", where)
    found = _counters(elf, pool, design, "check")
    assert min(acknowledged[1:]) >= 20
    assert found[0] == 0
    # A thread may have committed without having reported it.
    assert all(there - said in (0, 1) for there, said in zip(found, acknowledged, strict=True))


@pytest.mark.parametrize("design", DESIGNS)
def test_a_transaction_after_the_end_of_the_session_is_refused(tmp_path: Path, design: str) -> None:
    """It would wait indefinitely for the lock held by its own thread."""
    elf, pool = _program(design), tmp_path / "pool"
    code, said = _run(elf, pool, design, "run", "behind")
    assert (code, said) == (
        70,
        "durasim: a transaction begins after the runtime has ended, while the program exits\n",
    )
    assert _counters(elf, pool, design, "check")[0] == 0
