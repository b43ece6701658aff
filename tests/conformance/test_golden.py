"""Golden statistics change only with a reason in the commit."""

import json

import golden
import pytest

from durasim.programs import toolchain

GOLDEN = json.loads(golden.FILE.read_text())


def _cases():
    for case in golden.cases():
        yield pytest.param(*case, marks=() if golden.is_among_pairs(*case) else pytest.mark.long)


@pytest.mark.parametrize(("design", "workload", "threads"), list(_cases()))
def test_statistics_are_golden(design, workload, threads):
    found = golden.measure(design, workload, threads)
    if "ziglang" not in toolchain.compiler().version:
        print("skipped: golden statistics belong to the pinned compiler")
        return
    expected = GOLDEN[golden.name_of(design, workload, threads)]
    assert found == expected, "run tests/conformance/golden.py if the change is meant"


def test_nothing_golden_is_left_over():
    assert sorted(GOLDEN) == sorted(golden.name_of(*case) for case in golden.cases())
