"""SPHT-eADR: effects of shadow, logs and replay on programs and users."""

from __future__ import annotations

import pytest
from htm_runs import ROOMY

import durasim as ds

DESIGNS = ("htm-sgl", "spht-eadr", "spht-eadr-flush", "spht", "nv-htm")


def run(design: str, ops: int = 60, threads: int = 2, **arguments: object) -> ds.RunResult:
    """Runs array-swap on `tiny` with caches that hold its transactions."""
    return ds.run(
        design=design,
        workload="array-swap",
        machine="tiny",
        ops=ops,
        threads=threads,
        set=ROOMY,
        workload_args={"populate": 12, "element-bytes": 64} | arguments,
        guest_output=lambda *_: None,
    )


def test_most_transactions_commit_in_hardware() -> None:
    """The others take the lock. Designs without hardware transactions do not count them."""
    for design in DESIGNS:
        tx = run(design, ops=200).tx
        assert tx.htm_committed is not None and tx.sgl_committed is not None
        assert tx.htm_committed + tx.sgl_committed == tx.committed == 200
        assert tx.htm_committed > 100
    assert run("opt").tx.htm_committed is None


def test_log_lines_are_cleaned() -> None:
    """One clean for each line of a log after its commit, and none without -Flush."""
    plain, flush = (run(design, ops=100).stats["core.cache_block_operations"].value for design in DESIGNS[1:3])
    assert plain == 0
    assert flush >= 100


@pytest.mark.parametrize(("design", "words"), [("spht-eadr", 16), ("spht", 24), ("nv-htm", 24)])
def test_a_log_too_small_for_a_transaction_is_refused(design: str, words: int) -> None:
    said: list[bytes] = []
    result = ds.run(
        design=design,
        workload="array-swap",
        machine="tiny",
        ops=10,
        workload_args={"element-bytes": 1024, "log-bytes": 256},
        guest_output=lambda _stream, data: said.append(data),
    )
    assert result.guest_exit_code == 70
    assert f"the redo log of {words} words is too small for one transaction" in b"".join(said).decode()


@pytest.mark.parametrize("design", DESIGNS[1:])
def test_clocks_that_differ_are_refused(design: str) -> None:
    """Timestamps are cycle counts: with cores that run ahead they would not be in the order of commits."""
    with pytest.raises(ds.ConfigError, match=r"skew_cycles.*no core may run ahead: it has to be 0"):
        ds.run(design=design, workload="array-swap", machine="tiny", ops=1, set={"skew_cycles": 10})


@pytest.mark.parametrize("design", DESIGNS)
def test_crashes_fall_into_all_rare_situations(design: str) -> None:
    """A log of a few transactions wraps around, and some transactions do not fit into the L1D."""
    arguments = {"populate": 6, "element-bytes": 64} | ({} if design == "htm-sgl" else {"log-bytes": 512})
    result = ds.crash(
        design=design,
        workload="array-swap",
        machine="tiny",
        ops=60,
        threads=3,
        points=300,
        set=ROOMY | {"l1d.size_bytes": 2048},
        workload_args=arguments,
    )
    assert result.failures == ()
    marks = next(row["marks"] for row in ds.designs() if row["name"] == design)
    # Pages leave the DRAM in test_shadow_pages.py.
    assert set(marks) - {"page-out"} <= result.marks.keys()


@pytest.mark.parametrize("design", ["spht", "nv-htm"])
def test_what_read_only_transactions_have_read_survives_if_they_wait(design: str) -> None:
    """As published they return before the transaction that wrote their data is durable."""
    lost = {
        how: ds.crash(
            design=design,
            workload="false-sharing",
            machine="tiny",
            domain="adr",
            ops=300,
            threads=4,
            points=400,
            set=ROOMY,
            workload_args={"populate": 4, "shared-lines": "false", "look-percent": 50, "read-only": how},
        ).violations
        for how in ("wait", "return")
    }
    assert lost["wait"] == 0
    assert lost["return"] > 0
