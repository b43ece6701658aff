"""Shadows with a limited number of pages in the DRAM."""

from __future__ import annotations

import pytest
from htm_runs import ROOMY

import durasim as ds

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

# 3 MB; a transaction stores to five pages at most.
HEAP = {"populate": 3000, "element-bytes": 1024, "log-bytes": 8192}
MIB = 1 << 20


def run(design: str, *, dram_mib: int = 64, **arguments: object) -> tuple[ds.RunResult, str]:
    said: list[bytes] = []
    result = ds.run(
        design=design,
        workload="array-swap",
        machine="tiny",
        ops=60,
        threads=2,
        set=ROOMY | {"dram.capacity_mib": dram_mib},
        workload_args=HEAP | {name.replace("_", "-"): value for name, value in arguments.items()},
        guest_output=lambda _stream, data: said.append(data),
    )
    return result, b"".join(said).decode()


@pytest.mark.parametrize("design", ["spht-eadr", "spht-eadr-flush"])
def test_heaps_may_be_larger_than_the_dram(design: str) -> None:
    """The program checks its data at the end, most of them outside the DRAM."""
    result, said = run(design, dram_mib=1, shadow_bytes=MIB // 8, populate=1200)
    assert (result.guest_exit_code, said) == (0, "array-swap: ops=60 elements=1200 swaps=60 ok\n")
    assert result.replay is not None
    assert result.replay.page_outs > 0
    assert result.replay.page_out_cycles > 100 * result.replay.page_outs
    assert result.tx.aborted_by is not None
    assert result.tx.aborted_by.trap > 0


def test_a_shadow_with_room_for_all_has_no_page_leave() -> None:
    replay = run("spht-eadr", shadow_bytes=32 * MIB, populate=600)[0].replay
    assert replay is not None
    assert (replay.page_outs, replay.page_out_cycles) == (0, 0)


@pytest.mark.parametrize(
    ("design", "arguments"),
    [("spht", {}), ("nv-htm", {}), ("spht-eadr", {}), ("spht-eadr-flush", {"shadow_bytes": 2 * MIB})],
)
def test_a_shadow_beyond_the_dram_is_refused(design: str, arguments: dict[str, int]) -> None:
    result, said = run(design, dram_mib=1, **arguments)
    assert result.guest_exit_code == 2
    wanted = arguments.get("shadow_bytes", 3104768)
    remedy = "let less of it lie there (shadow-bytes)" if "eadr" in design else "make the pool smaller (pool-bytes)"
    assert said == f"durasim: a shadow of {wanted} bytes does not fit into the DRAM of 1048576 bytes; {remedy}\n"


def test_a_transaction_that_stores_to_more_pages_than_there_may_be_is_refused() -> None:
    result, said = run("spht-eadr", shadow_bytes=8192)
    assert result.guest_exit_code == 70
    assert said == (
        "durasim: a transaction stores to more than the 2 pages that the shadow may have; give it more (shadow-bytes)\n"
    )


@pytest.mark.parametrize("design", ["spht-eadr", "spht-eadr-flush"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_power_may_fail_while_pages_leave(design: str, threads: int) -> None:
    result = ds.crash(
        design=design,
        workload="array-swap",
        machine="tiny",
        ops=30 * threads,
        threads=threads,
        points=150,
        set=ROOMY,
        workload_args=HEAP | {"populate": 40, "shadow-bytes": 24576},
    )
    assert result.failures == ()
    assert "page-out" in result.marks
