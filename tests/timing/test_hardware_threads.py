"""Two hardware threads of a core: shared resources slow them down, private ones do not.

The guest kernel numbers the threads of core n as n and n + cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import compiled
import durasim
from durasim.documents.results import RunResult

HERE = Path(__file__).resolve().parent
MACHINE = HERE / "machines" / "micro.toml"
CORES = 2
# With two cores: both threads of the first core, and the first thread of each.
SIBLINGS, APART = (0, CORES), (0, 1)

Measure = Callable[..., tuple[list[int], RunResult]]


@pytest.fixture(scope="session")
def program() -> Path:
    return compiled.program(HERE / "hardware_threads.cpp", name="threads")


@pytest.fixture(scope="session")
def measure(program: Path) -> Measure:
    """Returns the cycles of each thread, and the result of the run."""

    def run(
        kernel: str, rounds: int, cpus: Sequence[int], per_core: int = 2, **settings: Any
    ) -> tuple[list[int], RunResult]:
        printed: list[bytes] = []
        result = durasim.run(
            design="opt", control=True, machine=os.fspath(MACHINE), elf=program,
            args=[kernel, str(rounds), *map(str, cpus)],
            set={"cores": CORES, "threads_per_core": per_core} | settings,
            guest_output=lambda _stream, data: printed.append(data),
        )  # fmt: skip
        assert result.guest_exit_code == 0
        return [int(word) for word in b"".join(printed).split()], result

    return run


@pytest.mark.parametrize("kernel", ["additions", "multiplications", "divisions", "misses"])
def test_one_thread_has_its_core_for_itself(measure: Measure, kernel: str) -> None:
    """Queues are halved only while both threads run, so its timing is unchanged."""
    (one,), _ = measure(kernel, 50, [0], per_core=1)
    (two,), _ = measure(kernel, 50, [0])
    (second,), _ = measure(kernel, 50, [CORES])
    assert one == two
    assert second == pytest.approx(one, rel=0.05)


@pytest.mark.parametrize(("kernel", "slowdown"), [("additions", 2.0), ("divisions", 2.0), ("multiplications", 1.0)])
def test_units_are_shared_and_latencies_overlap(measure: Measure, kernel: str, slowdown: float) -> None:
    (alone,), _ = measure(kernel, 1000, [0])
    together, _ = measure(kernel, 1000, SIBLINGS)
    apart, _ = measure(kernel, 1000, APART)
    for taken in together:
        assert taken == pytest.approx(slowdown * alone, rel=0.05)
    for taken in apart:
        assert taken == pytest.approx(alone, rel=0.02)


@pytest.mark.parametrize(("resource", "few", "many"), [("l1d.mshrs", 4, 256), ("core.rob_entries", 16, 1024)])
def test_miss_registers_are_shared_and_reorder_buffers_halved(
    measure: Measure, resource: str, few: int, many: int
) -> None:
    """If a resource limits a single thread, half of it doubles the time; if it is plentiful, there is no effect."""
    # 128 lines per thread: the caches below the L1D hold those of both.
    caches = {"l2.size_bytes": 1 << 18, "llc.size_bytes": 1 << 20}
    (alone,), _ = measure("misses", 40, [0], **{resource: few}, **caches)
    together, _ = measure("misses", 40, SIBLINGS, **{resource: few}, **caches)
    apart, _ = measure("misses", 40, APART, **{resource: few}, **caches)
    (roomy,), _ = measure("misses", 40, [0], **{resource: many}, **caches)
    assert alone > 1.5 * roomy, "it must be the limit"
    for taken in together:
        assert taken == pytest.approx(2 * alone, rel=0.1)
    for taken in apart:
        assert taken == pytest.approx(alone, rel=0.05)


def test_threads_of_a_core_have_lines_together(measure: Measure) -> None:
    """Lines fetched by one thread hit for the other, without messages between them."""
    stats = {}
    for name, cpus in [("siblings", SIBLINGS), ("apart", APART)]:
        _, result = measure("lines", 200, cpus)
        stats[name] = result.stats
    misses = {name: of["l1d.misses"].value for name, of in stats.items()}
    transfers = {name: of["coherence.transfers"].value for name, of in stats.items()}
    assert misses["siblings"] + 32 <= misses["apart"]
    assert transfers["siblings"] < transfers["apart"]
    assert "core.0.thread_1.instructions" in stats["siblings"]
