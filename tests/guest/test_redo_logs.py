"""The redo logs of SPHT-eADR, SPHT and NV-HTM on the host, without hardware transactions: damaged logs, and threads
without a log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from guest_programs import LOG_BACKENDS, NativeBuild, execute

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

LOG_BYTES = 1024
THREADS = 2
LINE = 64
SIZES = ("--ops", "40", "--populate", "10", "--element-bytes", "64", "--log-bytes", str(LOG_BYTES))
DAMAGE = {
    "head after the tail": [(LINE, 1 << 40)],
    "more words than the ring": [(0, 1 << 40)],
    "a place outside of the data": [(0, 3), (LINE, 0), (2 * LINE, 1 << 50), (2 * LINE + 16, 1 << 63 | 5)],
    "a place in the middle of a word": [(0, 3), (LINE, 0), (2 * LINE, 4097), (2 * LINE + 16, 1 << 63 | 5)],
    "its timestamps go back": [
        *((offset, 4096) for offset in (2 * LINE, 2 * LINE + 24)),
        *[(0, 6), (LINE, 0), (2 * LINE + 16, 1 << 63 | 9), (2 * LINE + 40, 1 << 63 | 5)],
    ],
    "no end of a transaction": [(0, 2), (LINE, 0), (2 * LINE, 4096)],
}
# SPHT and NV-HTM: the word of an open session, after the header, and the first place of the ring.
SESSION, RING = LINE, LINE
# Value of the word during a session, above the bits of the direction of its links.
OPEN = int.from_bytes(b"TXRN", "little") << 32
# Only SPHT: the timestamp up to which transactions are durable, and the link to the first one.
MARKER, FIRST = 3 * LINE, 4 * LINE
# Both: the timestamp up to which all has been replayed, and the first place of the data.
REPLAYED, DATA = 2 * LINE, 4096
TIMED_DAMAGE = {
    "a place outside of the data": (RING, 1 << 50),
    "a place in the middle of a word": (RING, 4097),
    "a head between pairs": (0, 3),
}


def _pool(native: NativeBuild, folder: Path, backend: str = "spht-eadr") -> tuple[Path, Path]:
    program, pool = native("array-swap", backend), folder / "pool"
    assert execute([program, "run", "--pool-path", pool, "--threads", str(THREADS), *SIZES]).code == 0
    return program, pool


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_logs_are_refused(native: NativeBuild, tmp_path: Path, damage: str) -> None:
    program, pool = _pool(native, tmp_path)
    assert execute([program, "recover-and-check", "--pool-path", pool]).code == 0
    content = bytearray(pool.read_bytes())
    log = len(content) - LOG_BYTES  # that of the second thread
    for offset, word in DAMAGE[damage]:
        content[log + offset : log + offset + 8] = word.to_bytes(8, "little")
    pool.write_bytes(content)
    outcome = execute([program, "recover-and-check", "--pool-path", pool])
    assert (outcome.code, "the redo log of thread 1 is damaged" in outcome.text) == (1, True), outcome


@pytest.mark.parametrize("backend", ["spht", "nv-htm"])
@pytest.mark.parametrize("damage", TIMED_DAMAGE)
def test_damaged_timed_logs_are_refused(native: NativeBuild, tmp_path: Path, backend: str, damage: str) -> None:
    program, pool = _pool(native, tmp_path, backend)
    content = bytearray(pool.read_bytes())
    content[SESSION : SESSION + 8] = OPEN.to_bytes(8, "little")
    pool.write_bytes(content)
    assert execute([program, "recover-and-check", "--pool-path", pool]).code == 0
    offset, word = TIMED_DAMAGE[damage]
    # In the log of the second thread, which is empty.
    content[-LOG_BYTES:] = bytes(LOG_BYTES)
    place = len(content) - LOG_BYTES + offset
    content[place : place + 8] = word.to_bytes(8, "little")
    pool.write_bytes(content)
    outcome = execute([program, "recover-and-check", "--pool-path", pool])
    assert (outcome.code, "the redo log of thread 1 is damaged" in outcome.text) == (1, True), outcome


# The timestamp up to which all has been replayed, those of the transactions in a ring, and whether they are valid: from
# the head to the tail they increase. The tail is before the first end of the previous round, marked by ROUND here; the
# rest is ignored.
ROUND = 1 << 62
ORDERS = {
    "in order": (0, [5, 9, 11], True),
    "replayed first, then the previous round": (7, [5, 6, 9, 11, ROUND | 3], True),
    "anything after the tail": (0, [5, 9, ROUND | 3, 1 << 40, 2, ROUND | 99], True),
    "not durable yet": (4, [5, 9, 90, ROUND | 3], True),
    "back among those in use": (0, [9, 5, 11], False),
    "one repeated": (0, [9, 9], False),
    "back to replayed ones": (7, [9, 5, 11], False),
    "back after one that is not durable": (0, [5, 90, 9], False),
}


# Without a marker all transactions whose logs are complete are durable.
NV_HTM_ORDERS = [order for order, (_, timestamps, _) in ORDERS.items() if 90 not in timestamps]


@pytest.mark.parametrize(
    ("backend", "order"), [*(("spht", order) for order in ORDERS), *(("nv-htm", order) for order in NV_HTM_ORDERS)]
)
def test_timestamps_that_go_back_are_refused(native: NativeBuild, tmp_path: Path, backend: str, order: str) -> None:
    replayed, timestamps, is_possible = ORDERS[order]
    program, pool = _pool(native, tmp_path, backend)
    content = bytearray(pool.read_bytes())
    words = {SESSION: OPEN, REPLAYED: replayed, **({MARKER: 77} if backend == "spht" else {})}
    content[-LOG_BYTES:] = bytes(LOG_BYTES)  # the log of the second thread
    log = len(content) - LOG_BYTES + RING
    value = int.from_bytes(content[DATA : DATA + 8], "little")  # stored again, so that the structure is unchanged
    for i, timestamp in enumerate(timestamps):
        words |= {log + 32 * i: DATA, log + 32 * i + 8: value, log + 32 * i + 16: 1 << 63 | timestamp}
    for place, word in words.items():
        content[place : place + 8] = word.to_bytes(8, "little")
    pool.write_bytes(content)
    outcome = execute([program, "recover-and-check", "--pool-path", pool])
    said = "the redo log of thread 1 is damaged: its timestamps go back"
    assert (outcome.code, said in outcome.text) == ((0, False) if is_possible else (1, True)), outcome


# Words of the pool, and the message of recovery: unknown kinds of sessions; a marker after which a link leads nowhere,
# to a missing log, and into the middle of a pair; and such links backward, where no log has the transaction.
LINK_DAMAGE = {
    "session": ({SESSION: OPEN + 9}, "the pool's session of transactions is damaged"),
    "no session": ({SESSION: 1}, "the pool's session of transactions is damaged"),
    "words of a session that is closed": ({REPLAYED: 77}, "the pool's session of transactions is damaged"),
    "replayed what is not durable": (
        {SESSION: OPEN, REPLAYED: 78, MARKER: 77},
        "the pool's session of transactions is damaged",
    ),
    "no link": ({SESSION: OPEN + 1, MARKER: 77}, "the links between the redo logs are damaged"),
    "no log": ({SESSION: OPEN + 1, MARKER: 77, FIRST: 9 << 48}, "the links between the redo logs are damaged"),
    "no pair": ({SESSION: OPEN + 1, MARKER: 77, FIRST: 1 << 48 | 3}, "the links between the redo logs are damaged"),
    "no newest": ({SESSION: OPEN + 2, MARKER: 77}, "the links between the redo logs are damaged"),
}


@pytest.mark.parametrize("damage", LINK_DAMAGE)
def test_damaged_links_are_refused(native: NativeBuild, tmp_path: Path, damage: str) -> None:
    program, pool = _pool(native, tmp_path, "spht")
    content = bytearray(pool.read_bytes())
    words, said = LINK_DAMAGE[damage]
    for place, word in words.items():
        content[place : place + 8] = word.to_bytes(8, "little")
    pool.write_bytes(content)
    outcome = execute([program, "recover-and-check", "--pool-path", pool])
    assert (outcome.code, said in outcome.text) == (1, True), outcome


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_links_of_an_earlier_session_are_none(native: NativeBuild, tmp_path: Path, direction: str) -> None:
    """Power fails soon after the start of the second session on a pool: links of the first one are not followed."""
    program = native("array-swap", "spht", hooks="power_failure")
    first, pool, report = tmp_path / "first", tmp_path / "pool", tmp_path / "report"
    settings: dict[str, object] = {"DURASIM_TEST_DOMAIN": "adr", "DURASIM_TEST_SEED": 1, "DURASIM_TEST_REPORT": report}
    sizes = ["--threads", str(THREADS), *SIZES, "--links", "--replay", direction]
    run = [program, "run", "--pool-path"]
    assert execute([*run, first, *sizes], DURASIM_TEST_KILL_AT=0, **settings).code == 0
    recovered = 0
    for step in range(5, 200, 3):
        shutil.copy(first, pool)
        assert execute([*run, pool, *sizes], DURASIM_TEST_KILL_AT=step, **settings).code == 42
        outcome = execute([program, "recover", "--pool-path", pool], DURASIM_TEST_KILL_AT=0, **settings)
        assert outcome.code == 0, (step, outcome)
        recovered += int(outcome.text.partition("recovered, ")[2].partition(" ")[0])
        outcome = execute([program, "check", "--pool-path", pool], DURASIM_TEST_KILL_AT=0, **settings)
        assert outcome.code == 0, (step, outcome)
    assert recovered > 0


@pytest.mark.parametrize("backend", ["spht-eadr", "spht", "nv-htm"])
def test_more_threads_than_logs_are_refused(native: NativeBuild, tmp_path: Path, backend: str) -> None:
    program, pool = _pool(native, tmp_path, backend)
    outcome = execute([program, "run", "--pool-path", pool, "--threads", "3", *SIZES])
    # The workload refuses before a thread requests a log; hardware_transactions/test_log_replay.py has another program.
    sentence = "array-swap: the pool was made with "
    assert (outcome.code, outcome.text.startswith(sentence)) == (2, True), outcome
    assert f"--threads {THREADS}; use these" in outcome.text


MADE_BY = {
    "spht-eadr": "another kind of log than spht",
    "nv-htm": "another kind of log than spht",
    "spht": "another kind of log than nv-htm",
}


@pytest.mark.parametrize("maker", MADE_BY)
def test_logs_of_another_runtime_are_refused(native: NativeBuild, tmp_path: Path, maker: str) -> None:
    said = MADE_BY[maker]
    _, pool = _pool(native, tmp_path, maker)
    other = native("array-swap", said.rpartition(" ")[2])
    for command in (["run", *SIZES, "--threads", str(THREADS)], ["recover-and-check"]):
        outcome = execute([other, *command, "--pool-path", pool])
        assert (outcome.code, said in outcome.text) == (2, True), outcome


@pytest.mark.parametrize("backend", ["spht", "nv-htm"])
def test_recovery_ends_where_the_next_session_begins(native: NativeBuild, tmp_path: Path, backend: str) -> None:
    """The end of a transaction that is not durable is removed, and the head is moved after the durable ones."""
    program, pool = _pool(native, tmp_path, backend)
    content = bytearray(pool.read_bytes())
    content[-LOG_BYTES:] = bytes(LOG_BYTES)
    log = len(content) - LOG_BYTES
    value = int.from_bytes(content[DATA : DATA + 8], "little")
    words = {SESSION: OPEN, **({MARKER: 77} if backend == "spht" else {})}
    for i, timestamp in enumerate([5, 9, 90]):
        place = log + RING + 32 * i
        words |= {place: DATA, place + 8: value, place + 16: 1 << 63 | timestamp}
    for place, word in words.items():
        content[place : place + 8] = word.to_bytes(8, "little")
    pool.write_bytes(content)
    outcome = execute([program, "recover", "--pool-path", pool])
    # All are durable under NV-HTM, those up to the marker under SPHT.
    count = 2 if backend == "spht" else 3
    assert (outcome.code, f"recovered, {count} log entries" in outcome.text) == (0, True), outcome
    after = pool.read_bytes()
    assert int.from_bytes(after[log : log + 8], "little") == 4 * count
    last_end = int.from_bytes(after[log + RING + 80 : log + RING + 88], "little")
    assert last_end == (0 if backend == "spht" else 1 << 63 | 90)
    # A second recovery, and one of a session without stores, find nothing.
    assert "recovered, 0 log entries" in execute([program, "recover", "--pool-path", pool]).text
    opened = bytearray(after)
    opened[SESSION : SESSION + 8] = OPEN.to_bytes(8, "little")
    pool.write_bytes(opened)
    assert "recovered, 0 log entries" in execute([program, "recover", "--pool-path", pool]).text
    assert pool.read_bytes()[log : log + 8] == after[log : log + 8]


@pytest.mark.parametrize("backend", LOG_BACKENDS)
def test_a_pool_without_its_header_is_not_formatted_again(native: NativeBuild, tmp_path: Path, backend: str) -> None:
    program, pool = _pool(native, tmp_path, backend)
    content = bytearray(pool.read_bytes())
    content[:8] = bytes(8)
    pool.write_bytes(content)
    outcome = execute([program, "run", "--pool-path", pool, "--threads", str(THREADS), *SIZES])
    assert (outcome.code, "holds data, but the header of the pool is gone" in outcome.text) == (1, True), outcome
    assert pool.read_bytes() == content
