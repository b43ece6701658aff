"""Workloads with a maximum number of items, as in Hercules' experiment."""

from __future__ import annotations

from pathlib import Path

import pytest
from guest_programs import NativeBuild, execute
from test_keyed import KEYED, reports_lead_to_the_dump

import durasim as ds

LIMIT = 40
# Output of a program with its number of items.
WORDS = dict.fromkeys(KEYED, "keys") | {"binary-heap": "items", "graph": "edges"}
ARGUMENTS = {
    "btree": {"node-bytes": 64},
    "binary-heap": {"value-bytes": 0},
    "graph": {"vertices": 12, "erase-percent": 0, "value-bytes": 24},
}


def words(workload: str) -> list[str]:
    return [word for name, value in ARGUMENTS.get(workload, {}).items() for word in (f"--{name}", str(value))]


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("populate", ["0", "10"])
@pytest.mark.parametrize("workload", WORDS)
def test_data_grow_to_the_limit_and_stay_there(
    native: NativeBuild, tmp_path: Path, workload: str, populate: str, threads: str
) -> None:
    """The final items, and each step, equal those of a replay."""
    program = native(workload, "markers", hooks="history", history=True)
    sizes = ["--populate", populate, "--ops", "600", "--items-max", str(LIMIT), "--threads", threads]
    text = reports_lead_to_the_dump(program, tmp_path, [*sizes, *words(workload)])
    items = int(text.split(f"{WORDS[workload]}=")[1].split()[0])
    if workload in KEYED:
        assert items == LIMIT
    else:
        # Each of three threads, or of their twelve heaps, may have one more or one less.
        assert LIMIT - 12 <= items <= LIMIT


@pytest.mark.parametrize("workload", WORDS)
def test_a_limit_below_the_items_or_a_changed_limit_is_refused(
    native: NativeBuild, tmp_path: Path, workload: str
) -> None:
    command = [native(workload, "markers"), "run", "--pool-path", tmp_path / "pool", "--ops", "50", *words(workload)]
    few = execute([*command, "--populate", "20", "--items-max", "19"])
    assert few.code == 2
    assert "--items-max has to be 0, or as large as --populate" in few.text
    assert execute([*command, "--populate", "20", "--items-max", "30"]).code == 0
    other = execute([*command, "--populate", "20", "--items-max", "31"])
    assert other.code == 2
    assert "--items-max 30" in other.text


@pytest.mark.parametrize(
    ("workload", "design"), list(zip(WORDS, ("tc", "hercules", "swl-eadr", "hoop", "kiln", "fwb"), strict=True))
)
def test_power_failures_are_survived(workload: str, design: str) -> None:
    result = ds.crash(
        design=design,
        workload=workload,
        machine="tiny",
        ops=60,
        threads=2,
        points=60,
        workload_args={"populate": 0, "items-max": 16} | ARGUMENTS.get(workload, {}),
    )
    assert result.failures == ()
