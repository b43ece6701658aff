"""Objects on the host: their runtimes, workloads against their models, damaged pools, and power failures of a modelled
persistence domain (see object_crashes.cpp)."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from guest_programs import OBJECT_BACKENDS, OBJECT_WORKLOADS, ROOT, SMALL, NativeBuild, Outcome, execute

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

DURABLE_BACKENDS = [backend for backend in OBJECT_BACKENDS if backend != "markers"]
MAPS = sorted(
    (header.stem, found[1])
    for header in (ROOT / "guest/structures").glob("object_*.h")
    for found in re.finditer(
        r"^(?:class|using) (Object(?:HashMap|BTree|BPlusTree|HybridTree|PathMap))\b", header.read_text(), re.M
    )
)


def pairs(ones: list[Any], backends: list[str]) -> list[Any]:
    """All programs with `autopersist`, the first one with all backends; the rest of the product is long."""
    return [
        pytest.param(one, backend, marks=() if one == ones[0] or backend == "autopersist" else pytest.mark.long)
        for one in ones
        for backend in backends
    ]


def test_every_map_is_here() -> None:
    assert len(MAPS) == 5


@pytest.mark.parametrize("backend", OBJECT_BACKENDS)
@pytest.mark.parametrize("case", ["closure", "collections", "region"])
def test_api(native: NativeBuild, tmp_path: Path, backend: str, case: str) -> None:
    assert execute([native("objects_test", backend), tmp_path / "pool", case]) == Outcome(0, "ok\n")


@pytest.mark.parametrize("backend", ["autopersist", "p-inspect"])
@pytest.mark.parametrize(
    ("case", "code", "words"),
    [
        ("full-volatile-heap", 70, "the volatile heap is full"),
        ("full-persistent-heap", 70, "the persistent heap is full"),
        ("larger-than-heap", 70, "is wanted; make it larger"),
        ("larger-than-possible", 70, "larger than an object may be"),
        ("nested-region", 70, "regions do not nest"),
        ("store-before-region", 70, "no durable store before it"),
        ("operation-ends-in-region", 70, "ended inside of a region"),
        ("unknown-root", 2, "there is no root 15; there are 15"),
        ("unknown-root-read", 2, "there is no root 15; there are 15"),
        ("other-shape", 1, "has not the shape"),
        ("beyond-the-end", 1, "has not the shape"),
    ],
)
def test_api_refuses(native: NativeBuild, tmp_path: Path, backend: str, case: str, code: int, words: str) -> None:
    outcome = execute([native("objects_test", backend), tmp_path / "pool", case])
    assert outcome.code == code
    assert words in outcome.text
    assert outcome.text.count("\n") == 1


@pytest.mark.parametrize(("workload", "backend"), pairs(OBJECT_WORKLOADS, OBJECT_BACKENDS))
def test_run_and_check(native: NativeBuild, tmp_path: Path, workload: str, backend: str) -> None:
    program, pool = native(workload, backend), ["--pool-path", tmp_path / "pool"]
    run = [program, "run", *pool, "--populate", "100", "--ops", "2000", "--seed", "7", "--threads", "4"]
    outcome = execute(run)
    assert outcome.code == 0, outcome.text
    if backend != "markers":
        assert execute([program, "check", *pool]).code == 0
        again = execute([*run, "--threads", "3"])
        assert (again.code, again.text.count("\n")) == (2, 1), "a pool keeps its number of threads"


@pytest.mark.parametrize(
    ("argument", "value"), [("volatile-heap-bytes", "2000000000000"), ("sweep-forwarders", "2000000000")]
)
def test_thresholds_out_of_range(native: NativeBuild, tmp_path: Path, argument: str, value: str) -> None:
    program = native("pinspect-hashmap", "autopersist")
    outcome = execute([program, "run", "--pool-path", tmp_path / "pool", f"--{argument}", value])
    assert (outcome.code, outcome.text.count("\n")) == (2, 1)
    assert argument in outcome.text


@pytest.mark.parametrize("mix", ["a", "b", "d", "inserts"])
def test_mixes_of_the_server(native: NativeBuild, tmp_path: Path, mix: str) -> None:
    program, pool = native("pinspect-kv-hashmap", "autopersist"), ["--pool-path", tmp_path / "pool"]
    outcome = execute([program, "run", *pool, "--mix", mix, "--populate", "100", "--ops", "2000", "--threads", "4"])
    assert outcome.code == 0, outcome.text
    records = int(re.search(r"records=(\d+)", outcome.text)[1])
    assert (records > 150) == (mix in ("d", "inserts"))
    assert execute([program, "check", *pool]).code == 0


def test_a_footprint_says_how_many_records(native: NativeBuild, tmp_path: Path) -> None:
    program, pool = native("pinspect-kv-pmap", "ideal-r"), tmp_path / "pool"
    arguments = ["--footprint-bytes", "3000000", "--value-bytes", "1000", "--ops", "10"]
    outcome = execute([program, "run", "--pool-path", pool, *arguments])
    assert 2500 < int(re.search(r"records=(\d+)", outcome.text)[1]) < 3000


@pytest.mark.parametrize(("workload", "backend"), pairs(OBJECT_WORKLOADS, ["autopersist", "p-inspect"]))
def test_damaged_pools(native: NativeBuild, tmp_path: Path, workload: str, backend: str) -> None:
    """Replaces words of a pool by other words of it: a check reports the problem, or accepts it, and never crashes."""
    program, pool, arguments = native(workload, backend), tmp_path / "pool", SMALL[workload]
    assert execute([program, "run", "--pool-path", pool, *arguments]).code == 0
    content = pool.read_bytes()
    places = [at for at in range(0, len(content), 8) if content[at : at + 8] != bytes(8)]
    words = [content[at : at + 8] for at in places]
    draw = random.Random(workload)  # noqa: S311 - places, not secrets
    objected = 0
    for _ in range(40):
        damaged = bytearray(content)
        for _ in range(draw.randint(1, 3)):
            at = draw.choice(places)
            damaged[at : at + 8] = draw.choice([*draw.sample(words, 3), struct.pack("<Q", draw.getrandbits(64))])
        pool.write_bytes(damaged)
        for command in ("recover", "check"):
            outcome = execute([program, command, "--pool-path", pool])
            assert outcome.code in (0, 1, 2, 65, 70), outcome
            assert outcome.text.count("\n") <= 1, outcome
            objected += outcome.code != 0
    assert objected > 10


@pytest.mark.parametrize(("of_map", "backend"), pairs(MAPS, DURABLE_BACKENDS))
@pytest.mark.parametrize("cuts", [40, pytest.param(2000, marks=pytest.mark.long)])
def test_power_failures(native: NativeBuild, tmp_path: Path, of_map: tuple[str, str], backend: str, cuts: int) -> None:
    header, name = of_map
    defines = ("DURASIM_TEST_HOOKS", f"OBJECT_MAP={name}", f'OBJECT_MAP_HEADER="structures/{header}.h"')
    program = native("object_crashes", backend, defines=defines)
    command = [program, tmp_path / "pool", "operations=120", "keys=12"]
    steps = int(re.search(r"steps=(\d+)", execute([*command, "stride=1000000000"]).text)[1])
    outcome = execute([*command, f"stride={max(1, steps // cuts)}", "profile=0"])
    assert outcome.code == 0, outcome.text
    assert outcome.text.endswith("ok\n")
