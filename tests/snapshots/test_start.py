"""Start of a run: from a snapshot, exactly or on another machine, or after a functional phase."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from snapshot_runs import result_of, run, scenario

import durasim as ds
from pairing import pairs

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

ROWS = [row["name"] for row in ds.designs()]
MARKERS = [row["name"] for row in ds.designs() if row["backend"] == "markers"]
MOVING = [row["name"] for row in ds.designs() if row["backend"] in ("autopersist", "p-inspect")]


def _saved(request: Any, path: Path, mark: int = 0) -> tuple[dict[str, Any], str]:
    return run(dataclasses.replace(request, snapshot_at=mark, snapshot=str(path)))


@pytest.mark.parametrize(("design", "threads"), pairs(ROWS, (1, 2), keep=lambda design, threads: threads == design % 2))
def test_a_snapshot_at_a_mark_goes_on_as_the_run_did(design: str, threads: int, tmp_path: Path) -> None:
    request, file = scenario(design, threads), tmp_path / "a.snapshot"
    plain, text = run(request)
    assert _saved(request, file) == (plain, text), "whether a snapshot is taken changes nothing"
    again, rest = run(dataclasses.replace(request, from_=str(file)))
    assert again == plain
    assert text.endswith(rest)


def _is_in_three_pairs(source: int, target: int, threads: int) -> bool:
    """Each design is the source for itself and two others, and the target of an equal number."""
    return (target - source) % len(MARKERS) in (0, 1, 4) and threads == (source + target) % 2


@pytest.mark.parametrize(("source", "target", "threads"), pairs(MARKERS, MARKERS, (1, 4), keep=_is_in_three_pairs))
def test_a_program_moves_to_another_design(source: str, target: str, threads: int, tmp_path: Path) -> None:
    file = tmp_path / "a.snapshot"
    _saved(scenario(source, threads), file)
    moved, text = run(scenario(target, threads, from_=str(file)))
    whole, _ = run(scenario(target, threads))
    assert moved["guest_exit_code"] == 0
    assert "ok" in text
    assert moved["tx"]["committed"] == whole["tx"]["committed"]
    assert moved["roi"]["cycles"] == pytest.approx(whole["roi"]["cycles"], rel=0.25)
    if source != target:
        start = moved["configuration"]["start"]
        assert (start["kind"], start["design"], start["mark"]) == ("moved_program", source, 0)


def test_a_program_moves_to_a_machine_with_other_caches(tmp_path: Path) -> None:
    file = tmp_path / "a.snapshot"
    _saved(scenario("opt"), file)
    larger = scenario("hercules", from_=str(file), settings=("cores=1", "llc.size_bytes=8192", "frequency_mhz=2000"))
    moved, _ = run(larger)
    assert moved["guest_exit_code"] == 0
    assert run(larger)[0] == moved
    assert run(dataclasses.replace(larger, warm=False))[0]["digest"] != moved["digest"]


@pytest.mark.parametrize(
    ("design", "threads", "to"),
    pairs(ROWS, (1, 4), ("0", "roi"), keep=lambda design, threads, to: to == (design + threads) % 2),
)
def test_fast_forwarding_changes_no_result_of_the_program(design: str, threads: int, to: str) -> None:
    whole, text = run(scenario(design, threads))
    fast, fast_text = run(scenario(design, threads, fast_forward=to))
    # Numbers of logged, moved and swept objects depend on the order of threads.
    assert re.split(" log_entries| forwarders", fast_text)[0] == re.split(" log_entries| forwarders", text)[0]
    assert fast["guest_exit_code"] == 0
    assert fast["tx"]["committed"] == whole["tx"]["committed"]
    assert fast["ops"] == whole["ops"]
    # A pointer update thread is scheduled at other times, and then finds other objects. Without a
    # model of time no hardware transaction starts.
    if threads == 1 and design not in MOVING and whole["tx"]["htm_committed"] is None:
        assert fast["program"]["instructions"] == whole["program"]["instructions"]
        assert fast["roi"]["instructions"] == whole["roi"]["instructions"]
    assert fast["configuration"]["start"] == {"kind": "fast_forward", "mark": to, "warm": True}
    assert run(scenario(design, threads, fast_forward=to))[0] == fast


def test_warm_caches_save_the_misses_that_cold_ones_have() -> None:
    request = scenario("hercules", machine="hercules-tecs23-modern", ops=50, workload_args=(("populate", "3000"),))
    whole = result_of(request)
    warm = result_of(dataclasses.replace(request, fast_forward="roi"))
    cold = result_of(dataclasses.replace(request, fast_forward="roi", warm=False))

    def count(result: Any, path: str) -> float:
        value = result.stats
        for key in path.split("."):
            value = value[key]
        return value["value"] if isinstance(value, dict) else value.value

    assert warm.roi.cycles == pytest.approx(whole.roi.cycles, rel=0.1)
    assert cold.roi.cycles > 1.3 * whole.roi.cycles
    for path in ("llc.misses", "core.mispredictions"):
        assert abs(count(warm, path) - count(whole, path)) < 0.5 * abs(count(cold, path) - count(whole, path))


def test_one_snapshot_after_a_functional_phase_serves_all_designs(tmp_path: Path) -> None:
    file = tmp_path / "a.snapshot"
    forward, text = run(scenario("opt", fast_forward="0", snapshot_at=0, snapshot=str(file)))
    assert run(scenario("opt", from_=str(file)))[0] == forward
    for design in MARKERS:
        moved, moved_text = run(scenario(design, from_=str(file)))
        assert text.endswith(moved_text)
        assert moved["tx"] == run(scenario(design))[0]["tx"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"snapshot_at": 0}, "snapshot: requires both"),
        ({"snapshot": "x"}, "snapshot: requires both"),
        ({"from_": "a", "pool": "b"}, "pool: cannot be combined with --from: the run uses the pool in the snapshot"),
        (
            {"from_": "a", "fast_forward": "0"},
            "fast_forward: cannot be combined with --from: the run starts at the snapshot",
        ),
        ({"fast_forward": "now"}, "neither 'roi' nor the number of a snapshot point"),
        ({"fast_forward": "7"}, "the region of interest begins before that snapshot point"),
        ({"from_": "/does/not/exist"}, "cannot be read"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ds.ConfigError, match=words) as refusal:
        run(scenario("opt", **options))
    assert refusal.value.exit_code == 2


def test_a_mark_that_never_comes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ds.ConfigError, match="did not reach the snapshot point 5"):
        _saved(scenario("opt"), tmp_path / "a.snapshot", mark=5)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_a_snapshot_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.snapshot"
    _saved(scenario("opt"), file)
    for other, words in (
        (scenario("swl-flush"), r"another build of btree .* --pool"),
        (scenario("opt", seed=2), "was started with the arguments"),
        (scenario("opt", ops=41), "was started with the arguments"),
        (scenario("opt", settings=("cores=2",)), "machine with 1 cores"),
    ):
        with pytest.raises(ds.ConfigError, match=words) as refusal:
            run(dataclasses.replace(other, from_=str(file)))
        assert refusal.value.exit_code == 2


def test_a_machine_with_too_little_memory_is_refused(tmp_path: Path) -> None:
    file, large = tmp_path / "a.snapshot", {"workload_args": (("populate", "60000"),)}
    _saved(scenario("opt", fast_forward="0", **large), file)
    with pytest.raises(ds.ConfigError, match=r"leaves the .* bytes of the pool"):
        run(scenario("opt", settings=("cores=1", "pmem.capacity_mib=1"), from_=str(file), **large))


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    file, bad = tmp_path / "a.snapshot", tmp_path / "b.snapshot"
    _saved(scenario("opt"), file)
    good = file.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    for data, words in (
        (b"", "is not a snapshot"),
        (b"DSIMPOOL" + good[8:], "is not a snapshot"),
        (good[:8] + b"\x63\0\0\0" + good[12:], "has snapshot format 99"),
        (good[:20], "is truncated"),
        (good[:-1], "truncated or damaged"),
        (bytes(flipped), "truncated or damaged"),
        (good + b"x", "truncated or damaged"),
    ):
        bad.write_bytes(data)
        with pytest.raises(ds.ConfigError, match=words):
            run(scenario("opt", from_=str(bad)))


def test_the_api_has_the_options(tmp_path: Path) -> None:
    options = {"workload": "array-swap", "machine": "tiny", "ops": 5, "guest_output": lambda *_: None}
    file = tmp_path / "a.snapshot"
    one = ds.run(design="tc", snapshot_at=0, snapshot=file, fast_forward=0, **options)
    assert ds.run(design="tc", from_=file, **options).digest == one.digest
