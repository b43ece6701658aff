"""Generated parts of documents and tables of assumptions fit what they are generated from: `make generate`."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATE = runpy.run_path(str(ROOT / "tools" / "generate.py"))


def test_lists_in_documents_are_those_of_the_program():
    documents = GENERATE["documents"]()
    assert {path.name for path in documents} >= {"designs.md", "workloads.md"}
    for path, text in documents.items():
        assert path.read_text(encoding="utf-8") == text, "run make generate"


def test_tables_of_assumptions_fit_their_descriptions():
    sensitivity = runpy.run_path(str(ROOT / "tools" / "sensitivity.py"))
    page = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
    assert sensitivity["outdated"](page) == [], "run make generate"
    assert sensitivity["with_places"](page) == page


def test_a_table_with_another_setting_is_noticed():
    sensitivity = runpy.run_path(str(ROOT / "tools" / "sensitivity.py"))
    page = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
    changed = page.replace("`design.tc.overflow_percent=50`", "`design.tc.overflow_percent=51`")
    assert sensitivity["outdated"](changed) == ["tc-overflow"]
