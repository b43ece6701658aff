"""The guest side on the host: API, workloads against their models, arguments, and power failures of a modelled
persistence domain (see power_failure.cpp)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest_programs import (
    BACKENDS,
    CROSSED,
    LOG_BACKENDS,
    QEMU,
    SMALL,
    SMALL_POPULATE,
    TOOLCHAIN,
    UNDO_BACKENDS,
    WORKLOADS,
    NativeBuild,
    Outcome,
    execute,
    pairs,
)

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

# Software that logs lines does not isolate words; with one thread this has no effect.
WORDS = {"false-sharing": ["--log-granularity", "word"]}


def words_for(workload: str, backend: str) -> list[str]:
    """Arguments with which a backend isolates the data protected by the locks of the workload."""
    return WORDS.get(workload, []) if backend in UNDO_BACKENDS else []


# Number of steps with a power failure: more in `make test-all` than in `make test`.
STEPS = [10, pytest.param(70, marks=pytest.mark.long)]
# The persistence domain of a runtime.
DOMAINS = {"undo-flush": "adr", "undo-fence": "eadr", "redo-flush": "adr", "write-ahead": "adr", "htm-sgl": "eadr"}
DOMAINS |= {"spht-eadr": "eadr", "spht-eadr-flush": "eadr-with-cleans", "spht": "adr", "nv-htm": "adr"}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", ["values", "allocator", "large-blocks", "locks", "barriers", "arenas"])
def test_api(native: NativeBuild, tmp_path: Path, backend: str, case: str) -> None:
    assert execute([native("api_test", backend), tmp_path / "pool", case]) == Outcome(0, "ok\n")


@pytest.mark.parametrize("backend", LOG_BACKENDS)
@pytest.mark.parametrize("case", ["take-back", "many-lines"])
def test_abort_of_a_transaction(native: NativeBuild, tmp_path: Path, backend: str, case: str) -> None:
    assert execute([native("api_test", backend), tmp_path / "pool", case]) == Outcome(0, "ok\n")


@pytest.mark.parametrize("backend", [*UNDO_BACKENDS, "redo-flush"])
def test_a_torn_entry_is_never_completed(native: NativeBuild, tmp_path: Path, backend: str) -> None:
    assert execute([native("api_test", backend), tmp_path / "pool", "torn-entry"]) == Outcome(0, "ok\n")


@pytest.mark.parametrize(
    ("backend", "case", "code", "words"),
    [
        ("markers", "take-back", 70, "cannot abort a transaction"),
        ("markers", "nested", 70, "do not nest"),
        ("undo-flush", "nested", 70, "do not nest"),
        ("undo-flush", "full-pool", 70, "the pool is full"),
        ("undo-fence", "full-log", 70, "the undo log is full"),
        ("redo-flush", "full-log", 70, "the redo log is full"),
        ("redo-flush", "nested", 70, "do not nest"),
        ("write-ahead", "full-log", 70, "the write-ahead log is full"),
        ("plain", "take-back", 70, "the runtime plain cannot abort a transaction"),
        ("plain", "nested", 70, "do not nest"),
        ("markers", "second-pool", 2, "one pool only"),
    ],
)
def test_api_refuses(native: NativeBuild, tmp_path: Path, backend: str, case: str, code: int, words: str) -> None:
    outcome = execute([native("api_test", backend), tmp_path / "pool", case])
    assert outcome.code == code
    assert words in outcome.text
    assert outcome.text.count("\n") == 1


@pytest.mark.parametrize(("workload", "backend"), pairs(BACKENDS, "markers"))
def test_run_and_check(native: NativeBuild, tmp_path: Path, workload: str, backend: str) -> None:
    program, pool = native(workload, backend), ["--pool-path", tmp_path / "pool"]
    sizes = ["--populate", "300", "--seed", "7"]
    first = execute([program, "run", *pool, *sizes, "--ops", "2000", "--pool-bytes", "67108864"])
    assert first.code == 0
    assert first.text.startswith(f"{workload}: ops=2000 ")
    assert first.text.endswith(" ok\n")
    checked = execute([program, "check", *pool])
    assert checked == Outcome(0, f"{workload}: operations=2300 consistent\n")
    # A second run continues after the first one.
    assert execute([program, "run", *pool, *sizes, "--ops=100", "--no-check"]).text.endswith(" unchecked\n")
    again = execute([program, "recover-and-check", *pool, "--operations-min", "2400"])
    assert again == Outcome(0, f"{workload}: operations=2400 consistent\n")
    missing = execute([program, "check", *pool, "--operations-min", "2401"])
    assert missing.code == 1
    assert "violation" in missing.text
    assert execute([program, "recover", *pool]).code == 0
    other = execute([program, "run", *pool, "--populate", "300", "--seed", "8"])
    assert other.code == 2
    assert "--seed 7" in other.text


@pytest.mark.parametrize(("workload", "backend"), pairs(BACKENDS, "markers"))
@pytest.mark.parametrize("threads", [3, pytest.param(5, marks=pytest.mark.long)])
def test_threads(native: NativeBuild, tmp_path: Path, workload: str, backend: str, threads: int) -> None:
    """The results of each thread are present, also after a second run; the check counts the operations."""
    program, pool = native(workload, backend), ["--pool-path", tmp_path / "pool"]
    sizes = ["--populate", "50", "--seed", "7", "--threads", threads, *words_for(workload, backend)]
    roomy = ["--pool-bytes", str(64 << 20)]
    first = execute([program, "run", *pool, *sizes, *roomy, "--ops", "4003"])
    assert first.code == 0, first
    assert first.text.endswith(" ok\n")
    assert execute([program, "check", *pool]) == Outcome(0, f"{workload}: operations=4053 consistent\n")
    assert execute([program, "run", *pool, *sizes, *roomy, "--ops", "100"]).text.endswith(" ok\n")
    checked = execute([program, "recover-and-check", *pool, "--operations-min", "4153"])
    assert checked == Outcome(0, f"{workload}: operations=4153 consistent\n")
    other = execute([program, "run", *pool, *sizes, "--threads", threads + 1])
    assert other.code == 2 and f"--threads {threads}" in other.text


def test_threads_leave_the_same_keys(native: NativeBuild, tmp_path: Path) -> None:
    """The set of operations does not depend on the order of threads."""
    arguments = ["--threads", "4", "--ops", "2000", "--trees", "1", "--node-bytes", "256"]
    for pool in (tmp_path / "one", tmp_path / "other"):
        outcome = execute([native("btree", "markers"), "run", "--pool-path", pool, *arguments])
        assert outcome.text.startswith("btree: ops=2000 keys=3000 ")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_aborted_transactions_are_tried_again(native: NativeBuild, tmp_path: Path, workload: str) -> None:
    """Bodies can be executed again: the final bytes of the pool do not depend on the number of aborts."""
    program = native(workload, "markers", hooks="aborts")
    images = set()
    for one_in in (0, 100, 30):
        pool, report = tmp_path / f"pool-{one_in}", tmp_path / "report"
        outcome = execute(
            [program, "run", "--pool-path", pool, *SMALL[workload], "--ops", "300"],
            DURASIM_TEST_ABORT_ONE_IN=one_in,
            DURASIM_TEST_REPORT=report,
        )
        assert outcome.code == 0, outcome
        aborts, commits = (int(word) for word in report.read_text().split())
        assert (aborts > 10) == (one_in != 0)
        assert commits == 2 + SMALL_POPULATE[workload] + 300  # the header and the root are transactions too
        images.add(pool.read_bytes())
    assert len(images) == 1


@pytest.mark.parametrize("workload", WORKLOADS)
def test_threads_try_aborted_transactions_again(native: NativeBuild, tmp_path: Path, workload: str) -> None:
    program, pool = native(workload, "markers", hooks="aborts"), tmp_path / "pool"
    arguments = ["--pool-path", pool, "--threads", "4", "--ops", "2000", "--populate", "40"]
    outcome = execute([program, "run", *arguments], DURASIM_TEST_ABORT_ONE_IN=60)
    assert outcome.code == 0, outcome
    assert outcome.text.endswith(" ok\n")


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (0x200, "too large for the machine"),
        (0x300, "no persistent memory left"),
        (0x400, "which this program does not know"),
    ],
)
def test_some_aborts_are_final(native: NativeBuild, tmp_path: Path, cause: int, words: str) -> None:
    program = native("array-swap", "markers", hooks="aborts")
    outcome = execute(
        [program, "run", "--pool-path", tmp_path / "pool"], DURASIM_TEST_ABORT_ONE_IN=3, DURASIM_TEST_ABORT_CAUSE=cause
    )
    assert outcome.code == 70
    assert words in outcome.text
    assert outcome.text.count("\n") == 1


def test_endless_conflicts_are_given_up(native: NativeBuild, tmp_path: Path) -> None:
    program = native("array-swap", "markers", hooks="aborts")
    outcome = execute([program, "run", "--pool-path", tmp_path / "pool"], DURASIM_TEST_ABORT_ONE_IN=1)
    assert outcome.code == 70
    assert "1000000 times for conflicts" in outcome.text


def test_a_program_aborts_a_hardware_transaction(native: NativeBuild, tmp_path: Path) -> None:
    program = native("api_test", "markers", hooks="aborts")
    assert execute([program, tmp_path / "pool", "take-back"], DURASIM_TEST_ABORT_ONE_IN=7) == Outcome(0, "ok\n")


@pytest.mark.parametrize("node_bytes", [64, 128, 192, 1024, 5440, 8192])
@pytest.mark.parametrize("granularity", ["line", "word"])
def test_node_sizes(native: NativeBuild, tmp_path: Path, node_bytes: int, granularity: str) -> None:
    command = [native("btree", "undo-flush"), "run", "--pool-path", tmp_path / "pool", "--node-bytes", node_bytes]
    command += ["--ops", "6000", "--log-granularity", granularity, "--log-bytes", "1000000"]
    assert execute(command).text.endswith(" ok\n")


def test_logs_lines_or_words(native: NativeBuild, tmp_path: Path) -> None:
    entries = {}
    for granularity in ("line", "word"):
        command = [native("array-swap", "undo-fence"), "run", "--pool-path", tmp_path / granularity, "--populate", "50"]
        text = execute([*command, "--ops", "100", "--log-granularity", granularity]).text
        entries[granularity] = int(text.split("log_entries=")[1].split()[0])
    # The root object takes three entries as lines (allocator, root, and the root object), else one per written word;
    # an element takes four lines or 32 words, and filling one in also counts it in the root object.
    assert entries["line"] == 3 - 1 + 50 * 5 + 100 * 8
    assert entries["word"] > 50 * 33 + 100 * 2 * 31


def test_same_data_with_every_backend(native: NativeBuild, tmp_path: Path) -> None:
    """The data range does not depend on the runtime: equal addresses, equal bytes."""
    for workload in CROSSED:
        images = set()
        for backend in BACKENDS:
            pool = tmp_path / f"{workload}-{backend}"
            assert execute([native(workload, backend), "run", "--pool-path", pool, "--ops", "500"]).code == 0
            log_bytes = 65536 if backend in LOG_BACKENDS else 0
            images.add(pool.read_bytes()[4096 : pool.stat().st_size - log_bytes])
        assert len(images) == 1


def _damage(pool: Path, offset: int) -> None:
    data = bytearray(pool.read_bytes())
    data[offset] ^= 0x40
    pool.write_bytes(data)


@pytest.mark.parametrize("one_in", [7, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_check_sees_damage(native: NativeBuild, tmp_path: Path, workload: str, one_in: int) -> None:
    """Flips a bit in some words of the data in use; each is reported, and the check never crashes."""
    program, pool = native(workload, "markers"), tmp_path / "pool"
    execute([program, "run", "--pool-path", pool, *SMALL[workload]])
    whole = pool.read_bytes()
    used = int.from_bytes(whole[4096 + 8 : 4096 + 16], "little")
    silent = []
    # The first two words matter; after them a step that is not a multiple of a power of two reaches all kinds of words.
    offsets = [4096, 4104, *range(4112, 4096 + used, 8 * one_in)]
    for offset in offsets:
        _damage(pool, offset)
        outcome = execute([program, "check", "--pool-path", pool])
        assert outcome.code in (0, 1), (offset, outcome)
        if outcome.code == 0:
            silent.append(offset)
        pool.write_bytes(whole)
    # Words without meaning: padding, keys beyond a node's count, space after a node, remains in free blocks.
    live = {offset for offset in offsets if whole[offset : offset + 8] != bytes(8)}
    meaningless = 2 / 3 if workload == "allocator" else 1 / 3
    assert len(live & set(silent)) <= meaningless * len(live), sorted(live & set(silent))
    assert 4096 not in silent and 4104 not in silent


def test_bad_pools(native: NativeBuild, tmp_path: Path) -> None:
    program, pool = native("btree", "undo-flush"), tmp_path / "pool"
    run, check = [program, "run", "--pool-path", pool], [program, "recover-and-check", "--pool-path", pool]
    assert execute(check) == Outcome(0, "btree: empty\n")
    pool.write_bytes(b"")
    assert execute(check) == Outcome(0, "btree: empty\n")
    pool.write_bytes(bytes(1 << 20))
    assert execute(check) == Outcome(0, "btree: empty\n")
    assert execute([*check, "--operations-min", "1"]).code == 1

    assert execute(run).code == 0
    whole = pool.read_bytes()
    for change, code, words in [
        (lambda data: b"X" + data[1:], 2, "not a pool of durasim"),
        (lambda data: data[:8] + b"\x63" + data[9:], 2, "layout version 99"),
        (lambda data: data + bytes(4096), 2, "its file has"),
        (lambda data: data[:4096], 2, "too few for a pool"),
        (lambda data: data[:24] + b"\x07" + data[25:], 1, "header of the pool is damaged"),
        (lambda data: bytes(8) + data[8:], 1, "the header of the pool is gone"),
    ]:
        pool.write_bytes(change(whole))
        outcome = execute(check)
        assert outcome.code == code, outcome
        assert words in outcome.text
    pool.write_bytes(whole)
    other = execute([native("btree", "markers"), "check", "--pool-path", pool])
    assert other.code == 2 and "another kind of log" in other.text
    other = execute([native("array-swap", "undo-flush"), "run", "--pool-path", pool])
    assert other.code == 2 and "another workload" in other.text
    assert execute([*run, "--pool-bytes", "8192000"]).code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the first argument has to be"),
        (["walk"], "the first argument has to be"),
        (["run", "--nonsense"], 'no argument "--nonsense"'),
        (["run", "ops"], 'no argument "ops"'),
        (["run", "--ops"], "--ops needs a value"),
        (["run", "--ops", "-1"], "--ops takes a whole number"),
        (["run", "--seed=18446744073709551616"], "--seed takes a whole number"),
        (["run", "--node-bytes", "65"], "multiple of 64"),
        (["run", "--node-bytes", "63"], "from 64 to 8192"),
        (["run", "--threads", "0"], "from 1 to 64"),
        (["run", "--threads", "65"], "from 1 to 64"),
        (["run", "--no-check=1"], "--no-check takes no value"),
        (["run", "--log-granularity", "byte"], "one of |line|word|"),
        (["check", "--ops", "3"], "--ops does not apply to check"),
        (["run", "--pool-bytes", "4096"], "is too small"),
        (["run", "--pool-path", "/nonexistent/pool"], "No such file"),
    ],
)
def test_bad_arguments(native: NativeBuild, tmp_path: Path, arguments: list[str], words: str) -> None:
    if arguments and "--pool-path" not in arguments:
        arguments = [*arguments, f"--pool-path={tmp_path / 'pool'}"] if arguments[-1] != "--ops" else arguments
    outcome = execute([native("btree", "undo-flush"), *arguments])
    assert outcome.code == 2
    assert words in outcome.text
    assert outcome.text.count("\n") == 1


@pytest.mark.parametrize(("workload", "backend"), pairs(BACKENDS, "markers"))
def test_describe(native: NativeBuild, workload: str, backend: str) -> None:
    printed = json.loads(execute([native(workload, backend), "--describe"]).text)
    assert printed == json.loads(json.dumps(TOOLCHAIN.describe(workload, backend, history=True)))
    assert {"ops", "seed", "threads", "populate"} <= {argument["name"] for argument in printed["arguments"]}
    assert execute([native(workload, backend), "--help"]).code == 0


class PowerFailures:
    """Runs a program repeatedly with a power failure at a different step each time."""

    def __init__(self, program: Path, folder: Path, domain: str, run: list[str]) -> None:
        self.program, self.pool, self.report, self.domain = program, folder / "pool", folder / "report", domain
        self.run = [program, "run", "--pool-path", self.pool, *run]
        self.recover = [program, "recover-and-check", "--pool-path", self.pool]
        described = json.loads(execute([program, "--describe"]).text)["arguments"]
        self.has_threads = "--threads" in run or any(argument["name"] == "replayers" for argument in described)
        assert self._execute(self.run, 0).code == 0
        self.steps, _ = self._reported()

    def _execute(self, command: list[str | Path], kill_at: int | str, seed: int = 1) -> Outcome:
        return execute(
            command,
            DURASIM_TEST_KILL_AT=kill_at,
            DURASIM_TEST_DOMAIN=self.domain,
            DURASIM_TEST_SEED=seed,
            DURASIM_TEST_REPORT=self.report,
        )

    def _reported(self) -> tuple[int, int]:
        steps, commits = self.report.read_text().split()
        return int(steps), int(commits)

    def outcomes(self, count: int, transactions_before: int, nested: bool) -> Iterator[tuple[int, Outcome]]:
        """Yields the step and the verdict of recover-and-check for `count` steps, evenly spread."""
        for kill_at in sorted({1 + i * (self.steps - 1) // count for i in range(count)}):
            self.pool.unlink(missing_ok=True)
            killed = self._execute(self.run, kill_at, seed=kill_at % 5)
            # The number of steps of threads, including replayers, varies slightly between runs.
            assert killed.code in ((0, 42) if self.has_threads else (42,)), killed
            acknowledged = max(self._reported()[1] - transactions_before, 0)
            if nested:
                # Recovery is interrupted, possibly more than once, or power fails again after its end.
                for step in (1 + kill_at % 11, 1 + kill_at % 31, "exit"):
                    assert self._execute(self.recover, step, seed=kill_at).code in (0, 42)
            yield kill_at, self._execute([*self.recover, "--operations-min", str(acknowledged)], 0)

    def every_cut_of_recovery(self, kill_at: int) -> Iterator[tuple[int, Outcome]]:
        """Recovers the pool after a failure at `kill_at`, with a power failure at every step of recovery in turn.

        A short recovery is interrupted several times at each step, with different lines lost.
        """
        self.pool.unlink(missing_ok=True)
        assert self._execute(self.run, kill_at).code == 42
        image = self.pool.read_bytes()
        self.report.unlink()
        assert self._execute(self.recover, 0).code == 0
        steps, _ = self._reported() if self.report.exists() else (0, 0)  # nothing was stored, nothing reported
        for step in range(1, steps + 1):
            for seed in range(min(max(1, 200 // steps), 6)):
                self.pool.write_bytes(image)
                assert self._execute(self.recover, step, seed).code == 42
                yield step, self._execute(self.recover, 0)


@pytest.mark.parametrize(
    ("workload", "backend", "granularity"),
    [
        (workload, backend, granularity)
        for workload, backend in pairs(LOG_BACKENDS, "undo-flush")
        for granularity in (("line", "word") if backend in UNDO_BACKENDS else ("",))
        if workload in CROSSED or granularity == "line"
    ],
)
@pytest.mark.parametrize("steps", STEPS)
def test_survives_power_failure(
    native: NativeBuild, tmp_path: Path, workload: str, backend: str, granularity: str, steps: int
) -> None:
    """For every set of surviving lines, even interrupted recovery restores whole and all acknowledged operations."""
    domain = DOMAINS[backend]
    # A log this small wraps around many times.
    arguments = [*SMALL[workload], "--log-bytes", "4096"]
    arguments += ["--log-granularity", granularity] if granularity else []
    failures = PowerFailures(native(workload, backend, hooks="power_failure"), tmp_path, domain, arguments)
    for nested in (False, True):
        for step, verdict in failures.outcomes(steps, transactions_before=1, nested=nested):
            assert verdict.code == 0, (step, nested, verdict)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(("workload", "backend"), pairs(LOG_BACKENDS, "undo-flush"))
def test_threads_survive_power_failure(
    native: NativeBuild, tmp_path: Path, workload: str, backend: str, steps: int
) -> None:
    """Several transactions are open when power fails; each thread's log undoes its own."""
    domain = DOMAINS[backend]
    arguments = [*SMALL[workload], "--threads", "4", "--ops", "60", *words_for(workload, backend)]
    failures = PowerFailures(native(workload, backend, hooks="power_failure"), tmp_path, domain, arguments)
    for nested in (False, True):
        for step, verdict in failures.outcomes(steps, transactions_before=1, nested=nested):
            assert verdict.code == 0, (step, nested, verdict)


@pytest.mark.parametrize(("granularity", "shared"), [("line", "true"), ("line", "false"), ("word", "true")])
def test_false_sharing_needs_isolated_words(native: NativeBuild, tmp_path: Path, granularity: str, shared: str) -> None:
    """A log of lines undoes commits of a neighbour; a log of words or of unshared lines does not."""
    arguments = ["--populate", "4", "--ops", "200", "--threads", "4", "--shared-lines", shared]
    arguments += ["--log-granularity", granularity]
    failures = PowerFailures(
        native("false-sharing", "undo-flush", hooks="power_failure", history=False), tmp_path, "adr", arguments
    )
    codes = {verdict.code for _, verdict in failures.outcomes(60, transactions_before=1, nested=False)}
    assert codes == ({0, 1} if (granularity, shared) == ("line", "true") else {0})


# A long recovery can be interrupted at hundreds of steps.
CUTS = 100


@pytest.mark.parametrize(("backend", "domain"), DOMAINS.items())
def test_recovery_may_be_cut_anywhere(native: NativeBuild, tmp_path: Path, backend: str, domain: str) -> None:
    failures = PowerFailures(native("btree", backend, hooks="power_failure"), tmp_path, domain, SMALL["btree"])
    cuts = 0
    for kill_at in range(failures.steps // 2, failures.steps // 2 + 120, 24):
        for step, verdict in failures.every_cut_of_recovery(kill_at):
            assert verdict.code == 0, (kill_at, step, verdict)
            cuts += 1
        if cuts > CUTS:
            break
    assert cuts > CUTS


def _committed_image(program: Path, failures: PowerFailures) -> tuple[bytes, int]:
    """A pool with a committed transaction of more than 16 words not yet applied, and the number of its entries."""
    recover = [program, "recover", "--pool-path", failures.pool]
    for kill_at in range(failures.steps // 2, failures.steps):
        failures.pool.unlink(missing_ok=True)
        failures._execute(failures.run, kill_at)
        image = failures.pool.read_bytes()
        applied = int(execute(recover).text.split()[2])
        if applied > 16:
            return image, applied
    raise AssertionError("power failed in no large commit")


def test_a_damaged_redo_log_is_not_believed(native: NativeBuild, tmp_path: Path) -> None:
    """A committed transaction not yet applied: recovery applies all of it, nothing, or refuses the pool."""
    program = native("array-swap", "redo-flush", hooks="power_failure")
    arguments = [*SMALL["array-swap"], "--log-bytes", "1024"]
    failures = PowerFailures(program, tmp_path, "adr", arguments)
    recover = [program, "recover", "--pool-path", failures.pool]
    image, applied = _committed_image(program, failures)
    whole, log = failures.pool.read_bytes(), len(image) - 1024
    data = slice(4096, log)
    ends = {"carried through": 0, "left out": 0, "refused": 0}
    for offset in range(log, len(image), 8):
        failures.pool.write_bytes(image)
        _damage(failures.pool, offset)
        outcome = execute(recover)
        recovered = failures.pool.read_bytes()
        if outcome.code == 1:
            assert "violation: the redo log of thread 0 is damaged" in outcome.text
            assert recovered[data] == image[data]
            ends["refused"] += 1
        else:
            entries = int(outcome.text.split()[2])
            assert (entries, recovered[data]) in [(applied, whole[data]), (0, image[data])]
            ends["carried through" if entries else "left out"] += 1
    # The committed entries; the record; the rest of the ring, and the rest of the first line.
    assert ends == {"refused": 2 * applied, "left out": 4, "carried through": 1024 // 8 - 2 * applied - 4}


def test_a_damaged_write_ahead_log_is_left_out(native: NativeBuild, tmp_path: Path) -> None:
    """A log whose record has the checksum of the entries: damage is indistinguishable from a torn commit."""
    program = native("array-swap", "write-ahead", hooks="power_failure")
    failures = PowerFailures(program, tmp_path, "adr", [*SMALL["array-swap"], "--log-bytes", "1024"])
    image, applied = _committed_image(program, failures)
    whole, log = failures.pool.read_bytes(), len(image) - 1024
    data = slice(4096, log)
    ends = {"carried through": 0, "left out": 0}
    for offset in range(log, len(image), 8):
        failures.pool.write_bytes(image)
        _damage(failures.pool, offset)
        outcome = execute([program, "recover", "--pool-path", failures.pool])
        recovered = failures.pool.read_bytes()
        assert outcome.code == 0
        entries = int(outcome.text.split()[2])
        assert (entries, recovered[data]) in [(applied, whole[data]), (0, image[data])]
        assert recovered[log : log + 8] == bytes(8), "no record is left, or a later run might complete it"
        ends["carried through" if entries else "left out"] += 1
    # The record and the entries; the word next to the record, and the rest of the log.
    assert ends == {"left out": 1 + 2 * applied, "carried through": 1024 // 8 - 1 - 2 * applied}


CONTROLS = [
    ("undo-flush", "adr", ["--no-flush"]),
    ("undo-flush", "adr", ["--no-fence"]),
    ("undo-fence", "adr", []),
    ("redo-flush", "adr", ["--no-flush"]),
    ("redo-flush", "adr", ["--no-fence"]),
    ("write-ahead", "adr", ["--no-flush"]),
    ("write-ahead", "adr", ["--no-fence"]),
    ("markers", "adr", []),
    ("markers", "eadr", []),
]


@pytest.mark.parametrize(
    ("workload", "backend", "domain", "arguments"),
    [(workload, *control) for workload in WORKLOADS for control in (CONTROLS if workload in CROSSED else CONTROLS[:1])],
)
def test_controls_are_caught(
    native: NativeBuild, tmp_path: Path, workload: str, backend: str, domain: str, arguments: list[str]
) -> None:
    """Missing durability or atomicity must be reported: a check that cannot fail tests nothing."""
    failures = PowerFailures(
        native(workload, backend, hooks="power_failure"), tmp_path, domain, [*SMALL[workload], *arguments]
    )
    before = 2 if backend == "markers" else 1  # the header of the pool is a transaction there
    for _, verdict in failures.outcomes(60, before, nested=False):
        assert verdict.code in (0, 1)
        if verdict.code == 1:
            return
    raise AssertionError("nothing was reported")


# Neither the runtimes of these tests nor the workloads may clean lines: not every qemu has Zicbom.
WITHOUT_CLEANS = [workload for workload in WORKLOADS if workload != "unlocked"]


@pytest.mark.parametrize("backend", ["markers", "undo-fence"])
@pytest.mark.parametrize("workload", WITHOUT_CLEANS)
def test_risc_v_program(tmp_path: Path, workload: str, backend: str) -> None:
    """The binaries for RISC-V run under qemu."""
    if QEMU is None:
        pytest.skip("skipped: there is no qemu-riscv64")
    program, pool = _risc_v(workload, backend), tmp_path / "pool"
    outcome = execute([QEMU, program, "run", "--pool-path", pool, "--populate", "200", "--ops", "2000"])
    assert outcome.code == 0, outcome
    assert outcome.text.endswith(" ok\n")
    checked = execute([QEMU, program, "recover-and-check", "--pool-path", pool])
    assert checked == Outcome(0, f"{workload}: operations=2200 consistent\n")
    assert json.loads(execute([QEMU, program, "--describe"]).text)["name"] == workload


def test_risc_v_same_bytes_as_host(native: NativeBuild, tmp_path: Path) -> None:
    if QEMU is None:
        pytest.skip("skipped: there is no qemu-riscv64")
    # RISC-V fuses multiplications and additions of floating-point numbers, x86-64 does not.
    for workload in (workload for workload in WITHOUT_CLEANS if workload != "yada"):
        here, there = tmp_path / f"{workload}-host", tmp_path / f"{workload}-riscv"
        arguments = ["--ops", "300", "--pool-path"]
        assert execute([native(workload, "markers"), "run", *arguments, here]).code == 0
        assert execute([QEMU, _risc_v(workload, "markers"), "run", *arguments, there]).code == 0
        assert here.read_bytes() == there.read_bytes(), workload


@pytest.mark.parametrize("case", ["values", "allocator", "large-blocks", "locks", "barriers", "arenas"])
def test_risc_v_api(tmp_path: Path, case: str) -> None:
    if QEMU is None:
        pytest.skip("skipped: there is no qemu-riscv64")
    program = _compiled(tmp_path)
    assert execute([QEMU, program, tmp_path / "pool", case]) == Outcome(0, "ok\n")


def _compiled(folder: Path) -> Path:
    try:
        return TOOLCHAIN.compile_program(
            Path(__file__).with_name("api_test.cpp"), folder / "api_test", ["-DDURASIM_BACKEND=undo-fence"]
        )
    except TOOLCHAIN.ToolchainError as error:
        pytest.skip(f"skipped: {error.sentence}")


def _risc_v(workload: str, backend: str) -> Path:
    try:
        return TOOLCHAIN.build(workload, backend)
    except TOOLCHAIN.ToolchainError as error:
        if "no compiler for guest programs" not in error.sentence:
            raise
        pytest.skip(f"skipped: {error.sentence}")
