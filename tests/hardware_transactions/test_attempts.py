"""Attempts of a transaction before it takes the global lock, and first stores to pages of the shadow."""

from __future__ import annotations

import pytest

import durasim as ds

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

DESIGNS = ("htm-sgl", "spht", "nv-htm", "spht-eadr", "spht-eadr-flush")
# Threads that conflict so often that the lock is taken repeatedly.
THREADS, OPS = 16, 400


def run(design: str, **arguments: int | bool) -> ds.RunResult:
    return ds.run(
        design=design,
        workload="btree",
        machine="spht-eadr-2022",
        domain="eadr",
        threads=THREADS,
        ops=OPS,
        workload_args={"populate": 40} | {name.replace("_", "-"): value for name, value in arguments.items()},
        guest_output=lambda *_: None,
        fast_forward="roi",
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_attempts_that_the_lock_ends_may_go_uncounted(design: str) -> None:
    """Fewer transactions exhaust their attempts; those that take the lock still had ten counted aborts."""
    counted, uncounted = run(design).tx, run(design, lock_aborts_uncounted=True).tx
    for tx in (counted, uncounted):
        assert tx.htm_committed is not None
        assert tx.sgl_committed is not None
        assert tx.aborted_by is not None
        assert tx.htm_committed + tx.sgl_committed == tx.committed == OPS
        assert sum(tx.aborted_by.to_dict().values()) >= 10 * tx.sgl_committed > 0
    assert uncounted.sgl_committed < counted.sgl_committed


@pytest.mark.parametrize("design", DESIGNS)
def test_the_number_of_attempts_can_be_set(design: str) -> None:
    """A transaction takes the lock after this many aborts, and not before."""
    tx = run(design, attempts=3).tx
    assert tx.sgl_committed is not None
    assert tx.aborted_by is not None
    aborted = sum(tx.aborted_by.to_dict().values())
    # The others have lost two at most.
    assert 3 * tx.sgl_committed <= aborted <= 3 * tx.sgl_committed + 2 * (OPS - tx.sgl_committed)


# Under SPHT most attempts end because the lock is held, which a pause after conflicts does not change.
@pytest.mark.parametrize("design", [design for design in DESIGNS if design != "spht"])
def test_threads_that_pause_after_conflicts_conflict_less(design: str) -> None:
    """Threads that aborted each other do not conflict again, so fewer transactions take the lock."""
    at_once, later = run(design).tx, run(design, back_off_pauses=1000).tx
    assert at_once.sgl_committed is not None
    assert later.sgl_committed is not None
    assert later.sgl_committed < at_once.sgl_committed / 2


@pytest.mark.parametrize("design", DESIGNS[1:])
def test_a_shadow_that_was_touched_ends_no_attempt(design: str) -> None:
    """The first store to a page that is not in the DRAM aborts a hardware transaction."""
    for is_touched in (False, True):
        tx = run(design, shadow_touched=is_touched).tx
        assert tx.committed == OPS
        assert tx.aborted_by is not None
        assert (tx.aborted_by.trap == 0) is is_touched


def test_a_shadow_is_limited_or_touched() -> None:
    """A limit on the shadow in DRAM and touching all of it exclude each other."""
    printed: list[bytes] = []
    arguments: dict[str, int | bool] = {"populate": 40, "shadow-touched": True, "shadow-bytes": 65536}
    result = ds.run(
        design="spht-eadr",
        workload="btree",
        ops=4,
        workload_args=arguments,
        guest_output=lambda _, text: printed.append(text),
    )
    sentence = (
        "durasim: shadow-touched has all of the shadow in the DRAM, and shadow-bytes a part of it; use one of them"
    )
    assert (result.guest_exit_code, b"".join(printed).decode()) == (2, sentence + "\n")


@pytest.mark.parametrize("design", ["spht", "spht-eadr"])
def test_a_shadow_that_is_touched_needs_its_dram(design: str) -> None:
    """The pool takes the whole DRAM, so no space remains for the program."""
    arguments: dict[str, int | bool] = {"populate": 40, "shadow-touched": True, "pool-bytes": 64 << 20}
    with pytest.raises(ds.GuestFault, match="the program needs more than the 67108864 bytes of DRAM of the machine"):
        ds.run(
            design=design,
            workload="btree",
            domain="eadr",
            ops=4,
            workload_args=arguments,
            set={"dram.capacity_mib": 64},
            guest_output=lambda *_: None,
        )
