"""Workloads that map keys to values: all their operations, and the corresponding inputs of the papers."""

from __future__ import annotations

from pathlib import Path

import pytest
from guest_programs import NativeBuild, execute
from test_reports import dump, replay

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

KEYED = ["btree", "hash-table", "linked-list", "rbtree"]
# Percentages of searches, updates and removals; the rest are insertions.
PERCENTAGES = [(20, 20, 30), (0, 0, 100), (30, 70, 0)]
YCSB = [(mix, store) for mix in "abcdef" for store in ("hash-table", "btree") if (mix, store) != ("e", "hash-table")]


def percentages(search: int, update: int, erase: int) -> list[str]:
    return ["--search-percent", str(search), "--update-percent", str(update), "--erase-percent", str(erase)]


def reports_lead_to_the_dump(program: Path, folder: Path, arguments: list[str | Path]) -> str:
    """Runs a program with a history and returns its output."""
    pool = ["--pool-path", folder / "pool"]
    outcome = execute([program, "run", *pool, *arguments], DURASIM_TEST_REPORT=folder / "report")
    assert outcome.code == 0, outcome
    state, _ = replay(folder / "report")
    dumped, said = dump([program, "check", "--dump", *pool])
    assert dumped == state
    assert said.endswith(b"consistent\n")
    return outcome.text


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("mix", PERCENTAGES)
@pytest.mark.parametrize("workload", KEYED)
def test_all_operations(
    native: NativeBuild, tmp_path: Path, workload: str, mix: tuple[int, int, int], threads: str
) -> None:
    """Results of searches, and effects of updates, removals and insertions, equal those of a replay."""
    program = native(workload, "markers", hooks="history", history=True)
    sizes = ["--populate", "100", "--ops", "600", "--value-bytes", "88", "--threads", threads]
    small_nodes = ["--node-bytes", "64"] if workload == "btree" else []
    text = reports_lead_to_the_dump(program, tmp_path, [*sizes, *small_nodes, *percentages(*mix)])
    keys = int(text.split("keys=")[1].split()[0])
    if mix == (30, 70, 0):
        assert keys == 100
    elif mix == (0, 0, 100):
        assert keys <= 3
    else:
        assert 50 < keys < 150


@pytest.mark.parametrize(
    ("workload", "arguments", "lines"),
    [
        # Hercules (TECS'23), Table 4.
        ("btree", [], 34.4),
        ("linked-list", ["--lists", "512"], 12.5),
        ("rbtree", [], 50.6),
        # LAD (MICRO'19), Table 2: 2 to 10, and 8.
        ("rbtree", ["--value-bytes", "8", "--erase-percent", "50"], 6),
        ("hash-table", ["--value-bytes", "432", "--update-percent", "100", "--buckets", "4096"], 8),
    ],
)
def test_lines_of_a_transaction(
    native: NativeBuild, tmp_path: Path, workload: str, arguments: list[str], lines: float
) -> None:
    """The log of lines has an entry for each line that a transaction modifies."""
    entries = []
    for ops in (0, 2000):
        command = [native(workload, "undo-fence"), "run", "--pool-path", tmp_path / f"pool-{ops}", "--populate", "4000"]
        text = execute([*command, "--ops", str(ops), "--no-check", "--log-bytes", "1000000", *arguments]).text
        entries.append(int(text.split("log_entries=")[1].split()[0]))
    assert (entries[1] - entries[0]) / 2000 == pytest.approx(lines, rel=0.2)


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize(("mix", "store"), YCSB)
def test_ycsb(native: NativeBuild, tmp_path: Path, mix: str, store: str, threads: str) -> None:
    program = native("ycsb", "markers", hooks="history", history=True)
    sizes = ["--populate", "100", "--ops", "600", "--value-bytes", "88", "--threads", threads]
    text = reports_lead_to_the_dump(program, tmp_path, [*sizes, "--mix", mix, "--store", store])
    records = int(text.split("records=")[1].split()[0])
    assert (100 < records < 160) if mix in "de" else records == 100


@pytest.mark.parametrize(("mix", "distribution"), [("a", "uniform"), ("f", "latest"), ("d", "zipfian")])
def test_ycsb_goes_on(native: NativeBuild, tmp_path: Path, mix: str, distribution: str) -> None:
    program, pool = native("ycsb", "markers", hooks="history", history=True), tmp_path / "pool"
    run = [
        program,
        "run",
        "--pool-path",
        pool,
        "--pool-bytes",
        "16777216",
        "--mix",
        mix,
        "--distribution",
        distribution,
    ]
    for _ in range(2):
        assert execute([*run, "--threads", "2", "--ops", "300"]).text.endswith(" ok\n")
    checked = execute([program, "check", "--pool-path", pool, "--operations-min", "1600"])
    assert checked.text == "ycsb: operations=1600 consistent\n"
    other = execute([*run, "--threads", "2", "--store", "btree"])
    assert other.code == 2 and f"--mix {mix} --distribution {distribution}" in other.text


@pytest.mark.parametrize(
    ("workload", "arguments", "words"),
    [
        ("rbtree", ["--search-percent", "60", "--erase-percent", "41"], "more than 100 together"),
        ("rbtree", ["--value-bytes", "12"], "multiple of 8"),
        ("ycsb", ["--mix", "e"], "use --store btree"),
        ("ycsb", ["--populate", "0"], "at least 1"),
        ("ycsb", ["--value-bytes", "65"], "multiple of 8"),
    ],
)
def test_refused(native: NativeBuild, tmp_path: Path, workload: str, arguments: list[str], words: str) -> None:
    program = native(workload, "markers", hooks="history", history=True)
    outcome = execute([program, "run", "--pool-path", tmp_path / "pool", *arguments])
    assert outcome.code == 2 and words in outcome.text and outcome.text.count("\n") == 1
