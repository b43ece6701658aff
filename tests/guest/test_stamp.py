"""C programs with the macros of STAMP, on the host: their interface, restarts and aborts, and an example with power
failures. tests/cli runs them under durasim."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from guest_programs import BACKENDS, HERE, LOG_BACKENDS, ROOT, TOOLCHAIN, Outcome, execute

import compiled

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

BANK = ROOT / "guest" / "examples" / "stamp" / "bank.c"
TEST = HERE / "stamp_test.c"
CAN_RESTART = [backend for backend in BACKENDS if backend != "plain"]
DOMAINS = {"undo-flush": "adr", "undo-fence": "eadr", "redo-flush": "adr", "write-ahead": "adr"}
Build = Callable[..., Path]


@pytest.fixture(scope="module")
def stamp() -> Build:
    """stamp(source, backend, hooks="") builds a C program for the host; hooks as for workloads."""
    if shutil.which("g++") is None or shutil.which("gcc") is None:
        pytest.skip("skipped: there is no gcc and g++ for the host")
    guest = ROOT / "guest"

    def build(source: Path, backend: str, hooks: str = "") -> Path:
        define = next(info.define for info in TOOLCHAIN.backends() if info.name == backend)
        shared = [f"-I{guest / 'include'}", f"-I{guest}", f"-D{define}", "-O1", "-Wall", "-Wextra", "-Werror"]
        shared += ["-DDURASIM_TEST_HOOKS"] if hooks else []
        names = f"-I{guest / 'include' / 'durasim' / 'stamp'}"
        # The sources test variables that a restart clobbers.
        of_c = ["gcc", names, *shared, "-std=gnu17", "-Wno-clobbered", "-c"]
        of_cpp = ["g++", *shared, "-std=c++20", "-Wpedantic", "-Wshadow", "-pthread", "-Wl,--wrap=free"]
        of_stamp = [*of_cpp[:-1], "-c"]

        def object_of(command: list[str], one: Path) -> Path:
            return compiled.command(f"{one.stem}-{backend}-{hooks}.o", [*command, one], [one])

        objects = [object_of(of_c, source), object_of(of_stamp, guest / "stamp" / "stamp.cpp")]
        if hooks:
            objects.append(object_of(of_stamp, HERE / f"{hooks}.cpp"))
        return compiled.command(f"{source.stem}-{backend}-{hooks}", [*of_cpp, *objects], [source])

    return build


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", ["values", "blocks", "threads"])
def test_the_interface(stamp: Build, tmp_path: Path, backend: str, case: str) -> None:
    assert execute([stamp(TEST, backend), case], DURASIM_POOL=tmp_path / "pool") == Outcome(0, "ok\n")


@pytest.mark.parametrize("backend", CAN_RESTART)
def test_a_transaction_starts_again(stamp: Build, tmp_path: Path, backend: str) -> None:
    """After an abort by the program or the machine, pool, shared and local variables have their previous values."""
    hooks = "aborts" if backend in ("markers", "log-operations") else ""
    for one_in in (0, 9) if hooks else (0,):
        environment = {"DURASIM_POOL": tmp_path / f"pool-{one_in}", "DURASIM_TEST_ABORT_ONE_IN": one_in}
        assert execute([stamp(TEST, backend, hooks), "restart"], **environment) == Outcome(0, "ok\n")


def test_aborts_by_the_machine(stamp: Build, tmp_path: Path) -> None:
    """The results of threads do not depend on the number of aborts by hardware."""
    for source, arguments in [(TEST, ["threads"]), (BANK, ["run", "-n", "800", "-t", "4"])]:
        report = tmp_path / "report"
        outcome = execute(
            [stamp(source, "markers", "aborts"), *arguments],
            DURASIM_POOL=tmp_path / f"{source.stem}-{arguments[0]}",
            DURASIM_TEST_ABORT_ONE_IN=25,
            DURASIM_TEST_REPORT=report,
        )
        assert outcome.code == 0, outcome
        assert int(report.read_text().split()[0]) > 50


@pytest.mark.parametrize(
    ("backend", "case", "code", "words"),
    [
        ("plain", "restart", 70, "the runtime plain cannot abort"),
        ("markers", "restart", 70, "cannot abort a transaction"),
        ("undo-flush", "nested", 70, "do not nest"),
        ("markers", "no-begin", 70, "TM_END outside of a transaction"),
        ("markers", "write-outside", 70, "TM_SHARED_WRITE outside of a transaction"),
        ("redo-flush", "free-inside-block", 70, "not what TM_MALLOC has given"),
        ("plain", "early", 70, "TM_BEGIN comes after TM_STARTUP"),
        ("plain", "twice", 70, "TM_STARTUP comes once"),
        ("plain", "many-threads", 2, "from 1 to 64 threads"),
    ],
)
def test_refusals(stamp: Build, tmp_path: Path, backend: str, case: str, code: int, words: str) -> None:
    outcome = execute([stamp(TEST, backend), case], DURASIM_POOL=tmp_path / "pool")
    assert outcome.code == code
    assert words in outcome.text
    assert outcome.text.count("\n") == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_example(stamp: Build, tmp_path: Path, backend: str) -> None:
    bank, environment = stamp(BANK, backend), {"DURASIM_POOL": tmp_path / "pool", "DURASIM_POOL_BYTES": 1 << 20}
    assert execute([bank, "run", "-n", "3000", "-t", "4"], **environment).text.endswith("4 threads, ok\n")
    assert execute([bank, "run", "-n", "300", "-t", "2"], **environment).code == 0
    assert execute([bank, "check", "-n", "3300"], **environment) == Outcome(0, "bank: 3300 transfers, consistent\n")
    assert execute([bank, "check", "-n", "3301"], **environment).code == 1
    more = execute([bank, "run", "-t", "5"], **environment)
    assert (more.code, "has no logs for 5" in more.text) == ((2, True) if backend in LOG_BACKENDS else (0, False))
    bad = execute([bank, "check"], **environment | {"DURASIM_POOL_BYTES": "1M"})
    assert bad.code == 2 and "DURASIM_POOL_BYTES has to be a number" in bad.text


@pytest.mark.parametrize(
    ("backend", "threads"), [*((backend, 1) for backend in DOMAINS), ("redo-flush", 3), ("write-ahead", 3)]
)
def test_power_fails_in_the_example(stamp: Build, tmp_path: Path, backend: str, threads: int) -> None:
    """After recovery the pool contains all acknowledged transfers, and no partial one."""
    bank, pool, report = stamp(BANK, backend, "power_failure"), tmp_path / "pool", tmp_path / "report"

    def start(arguments: list[str], kill_at: int) -> Outcome:
        return execute(
            [bank, *arguments],
            DURASIM_POOL=pool,
            DURASIM_TEST_KILL_AT=kill_at,
            DURASIM_TEST_DOMAIN=DOMAINS[backend],
            DURASIM_TEST_SEED=kill_at % 5,
            DURASIM_TEST_REPORT=report,
        )

    run = ["run", "-a", "3", "-n", "24", "-t", str(threads)]
    assert start(run, 0).code == 0
    steps, half = int(report.read_text().split()[0]), 0
    for kill_at in range(1, steps, max(steps // 16, 1)):
        pool.unlink(missing_ok=True)
        assert start(run, kill_at).code in ((42,) if threads == 1 else (0, 42))
        acknowledged = max(int(report.read_text().split()[1]) - 1, 0)  # the first one creates the bank
        half += start(["check"], 1 + kill_at % 13).code == 42
        verdict = start(["check", "-n", str(acknowledged)], 0)
        assert verdict.code == 0, (kill_at, verdict)
    assert half > 1, "recovery was interrupted too"
