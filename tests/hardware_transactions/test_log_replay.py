"""Redo logs: replay with links and several replayers, its report in a run, threads without a log, and the limit on open
transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from htm_runs import ROOMY, Program

import durasim as ds

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

DESIGNS = ("spht", "nv-htm", "spht-eadr", "spht-eadr-flush")
# Two pages of elements.
PAGES = {"populate": 100, "element-bytes": 64, "log-bytes": 1024}


def run(
    design: str, *, ops: int = 200, threads: int = 2, cores: int = 8, **arguments: object
) -> tuple[ds.RunResult, str]:
    """Runs array-swap with short logs; returns the result and the output of the program."""
    said: list[bytes] = []
    result = ds.run(
        design=design,
        workload="array-swap",
        machine="tiny",
        ops=ops,
        threads=threads,
        set=ROOMY | {"cores": cores},
        workload_args=PAGES | {name.replace("_", "-"): value for name, value in arguments.items()},
        guest_output=lambda _stream, data: said.append(data),
    )
    return result, b"".join(said).decode()


def crash(design: str, *, threads: int, **arguments: Any) -> ds.CrashResult:
    return ds.crash(
        design=design,
        workload="array-swap",
        machine="tiny",
        ops=100,
        threads=threads,
        points=200,
        set=ROOMY | {"cores": 8},
        workload_args=PAGES | arguments,
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_runs_say_what_was_replayed(design: str) -> None:
    """Logs of a few transactions: almost all are replayed in the region of interest, and threads wait for replay."""
    replay = run(design)[0].replay
    assert replay is not None
    assert 150 < replay.transactions <= 200
    assert 1 <= replay.lag_max <= replay.transactions
    assert replay.stall_cycles > 0


def test_logs_with_room_for_all_are_not_waited_for() -> None:
    replay = run("spht-eadr", log_bytes=1 << 20)[0].replay
    assert replay is not None
    assert (replay.transactions, replay.lag_max, replay.stall_cycles) == (0, 0, 0)


def test_designs_without_hardware_transactions_say_nothing() -> None:
    assert (
        ds.run(design="opt", workload="array-swap", machine="tiny", ops=2, guest_output=lambda *_: None).replay is None
    )


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("threads", [1, 3])
def test_linked_logs_survive_power_failures(direction: str, threads: int) -> None:
    result = crash("spht", threads=threads, links=True, replay=direction)
    assert result.failures == ()
    assert "log-full" in result.marks


@pytest.mark.parametrize("design", DESIGNS)
def test_several_replayers_survive_power_failures(design: str) -> None:
    assert crash(design, threads=2, replayers=3).failures == ()


@pytest.mark.parametrize(
    ("design", "replayers", "element_bytes"), [("spht-eadr", 2, 512), ("spht-eadr", 3, 768), ("spht", 3, 512)]
)
def test_a_log_that_fills_in_the_last_attempt_is_no_error(design: str, replayers: int, element_bytes: int) -> None:
    """No attempt follows the wait for space before the lock: the next wait must not count it as one."""
    result, said = run(design, ops=400, replayers=replayers, element_bytes=element_bytes, log_bytes=8192)
    assert result.guest_exit_code == 0, said
    assert result.tx.committed == 400


@pytest.mark.parametrize("design", ["spht", "spht-eadr"])
def test_several_replayers_share_the_stores(design: str) -> None:
    """Two threads of the program, then the replayer, then its helper: both read the logs and store."""
    levels = run(design, ops=400, replayers=2)[0].stats["l1d"]
    first, second = (levels[f"thread_{number}"]["accesses"].value for number in (2, 3))
    assert second > 0.3 * first


@pytest.mark.parametrize("design", DESIGNS)
def test_replayers_without_cores_are_refused(design: str) -> None:
    result, said = run(design, threads=3, cores=4, replayers=2)
    assert result.guest_exit_code == 2
    assert said == "durasim: 2 replayers beside 3 threads need 5 hardware threads of the machine, which has 4\n"


@pytest.mark.parametrize(
    ("design", "backend"),
    [
        *((design, design) for design in DESIGNS),
        ("htm-sgl", "htm-sgl"),
        ("swl-flush", "undo-flush"),
        ("swl-eadr", "undo-fence"),
        ("sp-indirect", "redo-flush"),
        ("sp", "write-ahead"),
    ],
)
@pytest.mark.parametrize(
    ("number", "code", "printed"),
    [(1, 0, "5\n"), (2, 2, "durasim: thread 2 has no log: the pool was made for 2 threads\n")],
)
def test_threads_have_a_log_or_are_refused(
    program: Program, tmp_path: Path, design: str, backend: str, number: int, code: int, printed: str
) -> None:
    said: list[bytes] = []
    result = ds.run(
        design=design,
        elf=program("logs", f"-DDURASIM_BACKEND={backend}"),
        args=[str(number)],
        machine="tiny",
        pool=tmp_path / "pool",
        guest_output=lambda _stream, data: said.append(data),
    )
    assert (result.guest_exit_code, b"".join(said).decode()) == (code, printed)


def test_a_limit_on_open_transactions_holds() -> None:
    """With one transaction at a time there are no conflicts; with a self-tuning limit all transactions complete."""
    contended = {"populate": 2, "log_bytes": 1 << 16, "ops": 400, "threads": 4}
    free, one, tuned = (
        run("spht-eadr", **contended, **more)[0].tx for more in ({}, {"open_max": 1}, {"tune_open_max": True})
    )
    assert free.aborted_by is not None
    assert free.aborted_by.conflict > 0
    assert one.aborted_by is not None
    assert one.aborted_by.conflict == 0
    assert one.committed == tuned.committed == 400
