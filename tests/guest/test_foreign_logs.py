"""Pools of one runtime used by another, on the host: logs of another kind are refused, undo logs are compatible."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from guest_programs import SMALL, NativeBuild, Outcome, execute

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

# HTM+SGL uses their log under its lock, and accepts their pools; no other runtime does.
UNDO = ["undo-flush", "undo-fence", "htm-sgl"]
OTHERS = ["redo-flush", "write-ahead", "spht-eadr", "spht", "nv-htm"]
# Each kind with each of the others; one of the software undo logs is enough.
PAIRS = [
    (maker, reader)
    for undo in ("undo-flush", "htm-sgl")
    for other in OTHERS
    for maker, reader in ((undo, other), (other, undo))
]
PAIRS += [("spht-eadr-flush", "htm-sgl"), ("htm-sgl", "spht-eadr-flush")]
SIZES = ["--populate", "20", "--ops", "60", "--threads", "2"]


@pytest.mark.parametrize(("maker", "reader"), PAIRS)
def test_logs_of_another_kind_are_refused(native: NativeBuild, tmp_path: Path, maker: str, reader: str) -> None:
    """One sentence, and the pool is unchanged."""
    pool = tmp_path / "pool"
    assert execute([native("btree", maker), "run", "--pool-path", pool, *SIZES]).code == 0
    content = pool.read_bytes()
    sentence = f"durasim: the pool was made by a runtime with another kind of log than {reader}\n"
    for command in (["run", *SIZES], ["check"], ["recover"], ["recover-and-check"]):
        outcome = execute([native("btree", reader), *command, "--pool-path", pool])
        assert outcome == Outcome(2, sentence), command
    assert pool.read_bytes() == content


@pytest.mark.parametrize(("maker", "reader"), [(maker, reader) for maker in UNDO for reader in UNDO if maker != reader])
def test_undo_logs_are_rolled_back_by_each_other(native: NativeBuild, tmp_path: Path, maker: str, reader: str) -> None:
    """Power fails at many steps of a run; the other runtime finds all acknowledged operations."""
    pool, report = tmp_path / "pool", tmp_path / "report"
    domain = "adr" if maker == "undo-flush" else "eadr"
    run = [native("btree", maker, hooks="power_failure"), "run", "--pool-path", pool, *SMALL["btree"]]

    def fails_at(step: int) -> tuple[int, int]:
        """Returns the steps and commits of a run in which power fails then."""
        pool.unlink(missing_ok=True)
        settings = {"DURASIM_TEST_KILL_AT": step, "DURASIM_TEST_DOMAIN": domain, "DURASIM_TEST_REPORT": report}
        assert execute(run, DURASIM_TEST_SEED=step % 5, **settings).code == (42 if step else 0)
        steps, commits = (int(word) for word in report.read_text().split())
        return steps, commits

    restored = 0
    steps, _ = fails_at(0)
    for step in range(1, steps, steps // 40):
        _, commits = fails_at(step)
        outcome = execute([native("btree", reader), "recover", "--pool-path", pool])
        assert outcome.code == 0, (step, outcome)
        restored += int(re.search(r"recovered, (\d+) log entries", outcome.text)[1])
        # The first transaction creates the root.
        least = max(commits - 1, 0)
        outcome = execute([native("btree", reader), "check", "--pool-path", pool, "--operations-min", str(least)])
        assert outcome.code == 0, (step, outcome)
    assert restored > 20
