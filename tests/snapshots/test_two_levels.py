"""Snapshots, forks and warm caches of machines without an L2, whose L1Ds have two ways."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from snapshot_runs import result_of, run, run_in_pieces, scenario

import durasim as ds
from pairing import pairs

ROWS = [row["name"] for row in ds.designs()]
TWO_LEVELS = ("l2=none", "l1d.ways=2")


@pytest.mark.parametrize(
    ("design", "how"), pairs(ROWS, ("save", "fork", "ahead"), keep=lambda design, how: how == design % 3)
)
def test_a_run_in_pieces_is_the_run(design: str, how: str) -> None:
    request = scenario(design, 2, settings=("cores=2", *TWO_LEVELS))
    whole, text = run(request)
    assert "l2" not in whole["configuration"]
    assert "l2" not in whole["stats"]
    length = whole["program"]["instructions"]
    pieces = run_in_pieces(request, [length * part // 6 for part in range(1, 6)], how)
    assert (pieces["result"], pieces["output"]) == (whole, text)


@pytest.mark.parametrize("inclusion", ["inclusive", "non-inclusive"])
def test_warm_caches_save_the_misses_that_cold_ones_have(inclusion: str) -> None:
    settings = ("cores=1", *TWO_LEVELS, f"interconnect.inclusion={inclusion}")
    request = scenario(
        "opt", machine="hercules-tecs23-modern", settings=settings, ops=50, workload_args=(("populate", "3000"),)
    )
    whole = result_of(request)
    warm = result_of(dataclasses.replace(request, fast_forward="roi"))
    cold = result_of(dataclasses.replace(request, fast_forward="roi", warm=False))
    assert warm.roi.cycles == pytest.approx(whole.roi.cycles, rel=0.1)
    assert cold.roi.cycles > 1.3 * whole.roi.cycles


@pytest.mark.parametrize("inclusion", ["inclusive", "non-inclusive"])
@pytest.mark.parametrize(("before", "after"), [((), TWO_LEVELS), (TWO_LEVELS, ()), (TWO_LEVELS, TWO_LEVELS)])
def test_a_program_moves_between_machines_with_and_without_an_l2(
    before: tuple[str, ...], after: tuple[str, ...], inclusion: str, tmp_path: Path
) -> None:
    file, common = tmp_path / "a.snapshot", ("cores=1", f"interconnect.inclusion={inclusion}")
    options = {"machine": "hercules-tecs23-modern", "workload_args": (("populate", "1000"),)}
    run(scenario("tc", settings=(*common, *before), snapshot_at=0, snapshot=str(file), **options))
    moved = scenario("opt", settings=(*common, *after), from_=str(file), **options)
    misses = {}
    for warm in (True, False):
        done, _ = run(dataclasses.replace(moved, warm=warm))
        assert done["guest_exit_code"] == 0
        misses[warm] = done["stats"]["l1d.misses"]["value"] + done["stats"]["l1i.misses"]["value"]
    # The lines of the first levels are saved, independent of the levels between them and the last one.
    assert misses[True] < 0.8 * misses[False]
