"""Runs of the guest programs of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from durasim import _core

HERE = Path(__file__).resolve().parent
# 48 KiB in 12 ways, as in the L1D of the processors of the thesis: 64 sets.
SETS, WAYS = 64, 12
CACHES = {
    "l1d.size_bytes": SETS * WAYS * 64,
    "l1d.ways": WAYS,
    "l2.size_bytes": 1 << 20,
    "l2.ways": 16,
    "llc.size_bytes": 4 << 20,
    "llc.ways": 16,
}
# Caches of `tiny` that hold the transactions of the workloads.
ROOMY = {"l1d.size_bytes": 32768, "l2.size_bytes": 65536, "llc.size_bytes": 1 << 20}
EXPLICIT, RETRY, CONFLICT, CAPACITY, DEBUG, NESTED = (1 << bit for bit in range(6))

Program = Callable[..., Path]
"""program(name, *flags) compiles name.cpp of this folder."""


def simulate(elf: Path, *arguments: object, **options: Any) -> str:
    """Returns the output of a program; `options` are those of simulate_and_count."""
    return simulate_and_count(elf, *arguments, **options)[0]


def simulate_and_count(
    elf: Path,
    *arguments: object,
    cores: int = 1,
    design: str = "htm-sgl",
    functional: bool = False,
    **settings: object,
) -> tuple[str, dict[str, Any]]:
    """Returns the output of a program and the document of the run."""
    values = {"cores": cores, "dram.capacity_mib": 64} | CACHES | settings
    request = {
        "machine": "tiny",
        "design": design,
        "elf": str(elf),
        "elf_name": elf.name,
        "args": [str(argument) for argument in arguments],
        "seed": 1,
        "workload": elf.name,
        "max_instructions": 200_000_000,
        "functional": functional,
        "set": [f"{path}={value}" for path, value in values.items()],
    }
    written: list[bytes] = []
    result = json.loads(_core.run(json.dumps(request), lambda _stream, data: written.append(data)))
    text = b"".join(written).decode()
    assert result["guest_exit_code"] == 0, text
    return text, result
