"""Generated parts of documents and measurements are up to date with their sources: `make generate`."""

import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path

from durasim.runs.sensitivity import measurements

MEASUREMENTS = cache(measurements)
ROOT = Path(__file__).resolve().parents[2]
GENERATE = runpy.run_path(str(ROOT / "tools" / "generate.py"))
SENSITIVITY = runpy.run_path(str(ROOT / "tools" / "sensitivity.py"))


@cache
def outdated():
    return SENSITIVITY["outdated"](MEASUREMENTS())


def test_lists_in_documents_are_those_of_the_program():
    documents = GENERATE["documents"]()
    assert {path.name for path in documents} >= {"designs.md", "workloads.md", "sensitivity.md", "DEVIATIONS.md"}
    for path, text in documents.items():
        assert path.read_text(encoding="utf-8") == text, "run make generate"


def test_assumptions_are_measured_as_they_are_described():
    assert outdated() == [], "run make generate"
    text = (ROOT / "python/durasim/sensitivity.csv").read_text(encoding="utf-8")
    assert SENSITIVITY["csv_text"](MEASUREMENTS()) == text


def test_a_measurement_with_another_setting_is_noticed():
    changed = [
        replace(run, setting=run.setting.replace("tc.overflow_percent=50", "tc.overflow_percent=51"))
        for run in MEASUREMENTS()
    ]
    noticed = set(SENSITIVITY["outdated"](changed)) - set(outdated())
    assert noticed == {"tc-overflow"}
