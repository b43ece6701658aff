"""Lines modified per transaction by workloads, compared with the papers, and refused arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from guest_programs import NativeBuild, execute


def lines_per_transaction(program: Path, folder: Path, *arguments: str) -> float:
    """Returns the entries of a log of lines, one for each line that a transaction modifies."""
    entries, ops = [], 600
    for count in (0, ops):
        pool = folder / f"pool-{count}"
        command = [program, "run", "--pool-path", pool, "--pool-bytes", str(16 << 20), "--ops", str(count), *arguments]
        machine = {"KILL_AT": 0, "DOMAIN": "adr", "SEED": 1, "REPORT": folder / "report"}
        outcome = execute(command, **{f"DURASIM_TEST_{name}": value for name, value in machine.items()})
        assert outcome.code == 0, outcome
        entries.append(int(outcome.text.split("log_entries=")[1].split()[0]))
    return (entries[1] - entries[0]) / ops


@pytest.mark.parametrize(
    ("workload", "arguments", "lines"),
    [
        ("array-swap", [], 8.0),  # Hercules, Table 4
        ("graph", [], 33.8),
        ("array-swap", ["--element-bytes", "512"], 16),  # LAD, Table 2
        ("queue", [], 4),
        ("tatp", [], 1),
        ("huge", ["--lines-per-tx", "25"], 25),
    ],
)
def test_the_papers_lines(
    native: NativeBuild, tmp_path: Path, workload: str, arguments: list[str], lines: float
) -> None:
    program = native(workload, "undo-flush", hooks="power_failure")
    assert lines_per_transaction(program, tmp_path, "--populate", "200", *arguments) == pytest.approx(lines, rel=0.2)


@pytest.mark.parametrize(("workload", "lines"), [("queue", 4), ("tatp", 1), ("sps", 2)])
def test_threads_that_count_in_the_data_modify_no_line_more(
    native: NativeBuild, tmp_path: Path, workload: str, lines: int
) -> None:
    program = native(workload, "undo-flush", hooks="power_failure")
    measured = lines_per_transaction(program, tmp_path, "--populate", "900", "--threads", "6")
    # Some lines that share an entry in the table of recently logged lines are logged again.
    assert lines * 0.97 <= measured <= lines * 1.06


def test_a_huge_transaction_needs_a_large_log(native: NativeBuild, tmp_path: Path) -> None:
    program = native("huge", "undo-flush", hooks="power_failure")
    for number, (log_bytes, code, words) in enumerate([(32 * 1024, 70, "log-bytes"), (64 * 1024, 0, " ok\n")]):
        sizes = ["--populate", "600", "--ops", "5", "--log-bytes", str(log_bytes)]
        outcome = execute([program, "run", "--pool-path", tmp_path / str(number), *sizes])
        assert outcome.code == code, outcome
        assert words in outcome.text and outcome.text.count("\n") == 1


@pytest.mark.parametrize(
    ("workload", "arguments", "words"),
    [
        ("queue", ["--value-bytes", "12"], "multiple of 8"),
        ("queue", ["--threads", "9", "--queues", "2"], "at least --queues 3"),
        ("binary-heap", ["--threads", "5", "--heaps", "1"], "at least --heaps 2"),
        ("tatp", ["--populate", "1"], "at least 2"),
        ("sps", ["--threads", "64", "--populate", "91"], "from 92 to"),
        ("huge", ["--lines-per-tx", "1001"], "--populate 1000"),
        ("huge", ["--populate", "0"], "--populate 0"),
        ("graph", ["--value-bytes", "12"], "multiple of 8"),
        ("graph", ["--vertices", "1"], "at least 2"),
    ],
)
def test_refused_arguments(
    native: NativeBuild, tmp_path: Path, workload: str, arguments: list[str], words: str
) -> None:
    outcome = execute([native(workload, "markers"), "run", "--pool-path", tmp_path / "pool", *arguments])
    assert outcome.code == 2
    assert words in outcome.text and outcome.text.count("\n") == 1
