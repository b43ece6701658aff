"""Private trees of threads, some changed without transactions: Table 5 of Hercules."""

from __future__ import annotations

from pathlib import Path

import pytest
from guest_programs import NativeBuild, execute
from test_keyed import reports_lead_to_the_dump

import durasim as ds

TREES = ("b-plus", "red-black")
SIZES = ("--ops", "600", "--items-max", "40", "--node-bytes", "64")


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_each_step_leads_to_what_is_left(native: NativeBuild, tmp_path: Path, tree: str, threads: str) -> None:
    program = native("own-trees", "markers", hooks="history", history=True)
    text = reports_lead_to_the_dump(
        program, tmp_path, [*SIZES, "--populate", "9", "--tree", tree, "--threads", threads]
    )
    assert f"keys={40 * int(threads)} " in text


@pytest.mark.parametrize("tree", TREES)
def test_ordinary_threads_leave_the_same_trees(native: NativeBuild, tmp_path: Path, tree: str) -> None:
    """The program compares all trees with a replay at its end; later runs refuse the pool."""
    program = native("own-trees", "markers")
    for ordinary in ("1", "2"):
        pool = tmp_path / ordinary
        command = [
            program,
            "run",
            "--pool-path",
            pool,
            *SIZES,
            "--tree",
            tree,
            "--threads",
            "2",
            "--ordinary",
            ordinary,
        ]
        outcome = execute(command)
        assert (outcome.code, "keys=80 ok" in outcome.text) == (0, True), outcome.text
        for again, words in (
            (command, "cannot be used again"),
            ([program, "check", "--pool-path", pool], "cannot be checked"),
        ):
            refused = execute(again)
            assert (refused.code, refused.text.count("\n")) == (2, 1)
            assert words in refused.text


@pytest.mark.parametrize(
    ("backend", "arguments", "words"),
    [
        ("markers", ["--ordinary", "2"], "--ordinary has to be at most --threads"),
        ("markers", ["--node-bytes", "100"], "--node-bytes has to be a multiple of 64"),
        ("undo-fence", ["--ordinary", "1"], "the runtime undo-fence has no stores outside of transactions"),
    ],
)
def test_what_cannot_be_is_refused(
    native: NativeBuild, tmp_path: Path, backend: str, arguments: list[str], words: str
) -> None:
    outcome = execute([native("own-trees", backend), "run", "--pool-path", tmp_path / "pool", *arguments])
    assert outcome.code == 2
    assert words in outcome.text
    assert outcome.text.count("\n") == 1


def test_another_pool_is_refused(native: NativeBuild, tmp_path: Path) -> None:
    command = [native("own-trees", "markers"), "run", "--pool-path", tmp_path / "pool", *SIZES]
    assert execute([*command, "--tree", "red-black"]).code == 0
    outcome = execute(command)
    assert outcome.code == 2
    assert "--tree red-black; use these" in outcome.text


def test_threads_that_take_turns_on_a_core_miss_by_thread() -> None:
    """The counts of the two threads add up to those of the level."""
    result = ds.run(
        design="hercules",
        workload="own-trees",
        machine="hercules-tecs23",
        threads=2,
        ops=2000,
        workload_args={"items-max": 500, "ordinary": 1},
        set={"cores": 1, "core.time_slice_cycles": 20000},
    )
    for level in ("l1d", "l2"):
        threads = [result.stats[f"{level}.thread_{number}.misses"].value for number in (0, 1)]
        assert min(threads) > 0
        assert sum(threads) == result.stats[f"{level}.misses"].value
