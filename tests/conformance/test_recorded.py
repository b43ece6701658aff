"""Recorded statistics and digests change only with a reason in the commit; no optimisation changes any."""

import json

import pytest
import recorder

CASES = recorder.cases()
RECORDED = {file: json.loads(file.read_text()) for file in (recorder.GOLDEN, recorder.DIGESTS)}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{case.file.stem}-{case.name}", marks=() if case.in_pairs else pytest.mark.long)
        for case in CASES
    ],
)
def test_runs_give_what_was_recorded(case):
    found = recorder.record(case)
    if not found.is_comparable:
        print("skipped: recorded values of workloads belong to the pinned compiler")
        return
    meant = "run `python -m tools.generate recorded` if the change is meant"
    assert found.value == RECORDED[case.file][case.name], meant


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_recorded_are_the_cases_alone(file):
    assert sorted(RECORDED[file]) == sorted(case.name for case in CASES if case.file == file)
