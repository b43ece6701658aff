"""Programs that exit while their threads have durable transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

import durasim as ds
from durasim import toolchain

HERE = Path(__file__).resolve().parent
ROOMY = {"cores": 8, "l1d.size_bytes": 32768, "l2.size_bytes": 65536, "llc.size_bytes": 1 << 20}


def _counters(elf: Path, pool: Path, design: str, *arguments: str) -> list[int]:
    said: list[bytes] = []
    result = ds.run(
        design=design,
        elf=elf,
        args=arguments,
        machine="tiny",
        set=ROOMY,
        pool=pool,
        max_instructions=20_000_000,
        guest_output=lambda _stream, data: said.append(data),
    )
    assert result.guest_exit_code == 0, said
    return [int(number) for number in b"".join(said).split()]


@pytest.mark.parametrize("where", ["outside", "inside"])
@pytest.mark.parametrize("design", ["spht", "nv-htm", "spht-eadr"])
def test_what_was_acknowledged_before_the_exit_is_there(tmp_path: Path, design: str, where: str) -> None:
    """The exit waits for what is committing, and no transaction commits behind it."""
    elf, pool = tmp_path / "exits", tmp_path / "pool"
    toolchain.compile_program(HERE / "exits.cpp", elf, [f"-DDURASIM_BACKEND_{design.upper().replace('-', '_')}"])
    acknowledged = _counters(elf, pool, design, "run", where)
    found = _counters(elf, pool, design, "check")
    assert min(acknowledged[1:]) >= 20
    assert found[0] == 0
    # A thread may have committed without having said so.
    assert all(there - said in (0, 1) for there, said in zip(found, acknowledged, strict=True))
